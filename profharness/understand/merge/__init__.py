"""Runs and trace files into one Perfetto trace, in bounded memory."""
