"""Copies and memory for readers: lines of text and rows of tables."""
