"""Writers: a merged trace as files for other programs. `perfetto` is the product; `columns` gives
Parquet tables.
"""
