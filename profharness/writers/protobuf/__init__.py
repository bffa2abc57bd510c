"""Protobuf messages as bytes: single fields, and columns of NumPy as many messages at a time."""
