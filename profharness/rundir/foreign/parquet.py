"""Parquet tables of a run, judged by what they say of themselves before they are read.

A table of a few kilobytes can unfold to any size: by a number of rows, by pages that decompress, by
long texts that few codes repeat. The format is that of https://parquet.apache.org/docs/file-format;
the headers of its pages are Thrift's compact protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.limits import PAGE_BYTES, TABLE_BYTES, TABLE_ROWS
from profharness.rundir.foreign.pages import page_sizes
from profharness.rundir.foreign.small_files import read_file
from profharness.units import format_bytes, format_number

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

Kinds = tuple[str, ...]
WHOLE_NUMBERS: Kinds = ("int64", "int32", "int16", "int8")
_FOOTER = 8  # bytes behind the metadata: their length and the magic


def read_table(
    path: Path, columns: Mapping[str, Kinds], what: str, *, rows: int = TABLE_ROWS
) -> pa.Table:
    """The columns of a table, each of one of the types that Arrow names so (`int64`). Raises
    OSError as `open` does, and InputError for a file that is no such table, or that would unfold to
    more than its size explains: `rows`, and one for each byte. `what` it should be is said in
    words: a table of requests.
    """
    return table_of(read_file(path, TABLE_BYTES), path, columns, what, rows=rows)


def table_of(
    data: bytes, path: Path, columns: Mapping[str, Kinds], what: str, *, rows: int = TABLE_ROWS
) -> pa.Table:
    """The same of bytes that were read already; errors name `path` and `what` it is not."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with reading(path, f"not {what}"):
        # what the footer may hold is bounded by its own length: no text or list in it is longer
        footer = int.from_bytes(data[-_FOOTER:-4], "little")
        bounded = {
            "thrift_string_size_limit": max(footer, 1),
            "thrift_container_size_limit": max(footer, 1),
        }
        file = pq.ParquetFile(pa.BufferReader(data), **bounded)
        _check_types(file, columns)
        _check_size(file.metadata, data, rows)
        return file.read(columns=list(columns), use_threads=False)


def _check_types(file: pq.ParquetFile, columns: Mapping[str, Kinds]) -> None:
    schema = file.schema_arrow
    for name, wanted in columns.items():
        found = schema.get_all_field_indices(name)
        if not found:
            raise ValueError(f"it has no column {name}")
        kind = str(schema.field(found[0]).type) if len(found) == 1 else "several columns"
        if kind not in wanted:
            raise ValueError(f"its column {name} is {kind}, not {' or '.join(wanted)}")


def _check_size(metadata: pq.FileMetaData, data: bytes, most: int) -> None:
    """Raises ValueError for more rows than the bytes explain, and for pages that are too large."""
    counts = [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)]
    rows = max(metadata.num_rows, sum(counts))
    if min((metadata.num_rows, *counts)) < 0 or rows > most + len(data):
        raise ValueError(
            f"it says that it has {format_number(rows)} rows in {format_bytes(len(data))}"
        )
    filled = [group for group, count in enumerate(counts) if count]
    for group in filled:
        for place in range(metadata.num_columns):
            column = metadata.row_group(group).column(place)
            start, dictionary = column.data_page_offset, column.dictionary_page_offset
            if dictionary is not None and 0 < dictionary < start:
                start = dictionary  # where Arrow begins, too
            sizes = page_sizes(data, start, column.total_compressed_size)
            if (largest := max(sizes, default=0)) > PAGE_BYTES:
                raise ValueError(f"a page of it unfolds to {format_bytes(largest)}")
