"""Bytes to columns without knowing any tool: plain and gzipped files, JSON, CSV, SQLite, protobuf,
exact decimals.
"""
