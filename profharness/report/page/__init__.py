"""The HTML report: its content as values, and one self-contained file."""
