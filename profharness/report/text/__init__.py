"""Words: sentences, labels, figures and tables for a terminal."""
