"""Where the time of two traces differs, in words, tables and a tree, for all forms."""
