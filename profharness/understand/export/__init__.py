"""Runs and trace files as tables for other programs: Parquet, CSV, JSON, XLSX, OpenMetrics."""
