"""The tables of a trace as Parquet, one file each, for pandas, Polars, DuckDB or Spark.

Text columns are dictionaries, NULL (-1) and NaN are nulls, and each column carries its unit and
meaning as metadata. Positions (device, stream, source, op) refer to rows of devices.parquet,
streams.parquet, sources.parquet and ops.parquet.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from profharness.trace.columns.table import NULL, Table
from profharness.trace.model import Strings, Trace

if TYPE_CHECKING:
    import pyarrow as pa

_ROWS = 1 << 17  # of a row group: Arrow holds the encoded columns of one before it writes them
TableT = TypeVar("TableT", bound=Table)


def write(trace: Trace, folder: Path) -> tuple[Path, ...]:
    """Write every table that has rows into `folder`, which is made if need be; the files in the
    order of the tables.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, table in _tables(trace):
        paths.append(folder / f"{name}.parquet")
        pq.write_table(table, paths[-1], compression="zstd", row_group_size=_ROWS)
        del table  # one at a time: the next is made when this one is gone
    pa.default_memory_pool().release_unused()
    return tuple(paths)


def _tables(trace: Trace) -> Iterator[tuple[str, pa.Table]]:
    for name, table in trace.tables():
        if len(table):
            yield name, _table(table, trace.strings)
    for name, rows in (
        ("devices", trace.devices),
        ("streams", trace.streams),
        ("sources", trace.sources),
        ("problems", trace.problems),
    ):
        if rows:
            yield name, _records(rows)


def read(folder: Path, pools: Trace) -> Trace:
    """The tables that `write` left in `folder`, with `pools` for everything else; texts get codes
    of `pools.strings`, new ones where need be.

    Positions are as they were written. Raises OSError where a file cannot be read.
    """
    return replace(
        pools,
        **{  # type: ignore[arg-type]  # each name maps to its own kind of table
            name: read_table(folder, name, type(empty), pools.strings)
            for name, empty in pools.tables()
        },
    )


def read_table(folder: Path, name: str, kind: type[TableT], strings: Strings) -> TableT:
    """One of these tables, empty where `write` had no rows. Raises OSError where its file cannot be
    read.
    """
    import pyarrow.parquet as pq

    path = folder / f"{name}.parquet"
    if not path.exists():
        return kind.empty()
    file = pq.ParquetFile(path, memory_map=True)
    # column by column: what Arrow needs for one is free before the next
    return kind.build(
        file.metadata.num_rows,
        **{
            column: _values(file.read([column])[column], strings)
            for column in file.schema_arrow.names
        },
    )


def _values(column: Any, strings: Strings) -> Any:
    """An Arrow column as NumPy; nulls are NULL, and left to NumPy's NaN in columns of floats."""
    import pyarrow as pa

    if len(column) and column.null_count == len(column):
        return np.nan if pa.types.is_floating(column.type) else NULL
    if pa.types.is_dictionary(column.type):
        unified: Any = column.unify_dictionaries().combine_chunks()
        whole: Any = (
            unified.chunk(0) if isinstance(unified, pa.ChunkedArray) else unified
        )  # what it is depends on Arrow's version
        codes = np.append(strings.codes(whole.dictionary.to_pylist()), np.int32(NULL))
        return codes[whole.indices.fill_null(len(codes) - 1).to_numpy(zero_copy_only=False)]
    return (column if pa.types.is_floating(column.type) else column.fill_null(NULL)).to_numpy()


def _table(table: Table, strings: Strings) -> pa.Table:
    import pyarrow as pa

    arrays, columns = [], []
    for column in fields(table):
        values, told = getattr(table, column.name), column.metadata
        array = (
            _texts(values, strings)
            if told["unit"] == "string"
            else _numbers(values, nullable=told["unit"] != "ns")
        )
        arrays.append(array)
        columns.append(
            pa.field(
                column.name, array.type, metadata={"unit": told["unit"], "meaning": told["meaning"]}
            )
        )
    return pa.Table.from_arrays(arrays, schema=pa.schema(columns))


def _texts(
    codes: Any, strings: Strings
) -> Any:  # an Arrow array; its type names differ between Arrow versions
    """Only the texts that are used, so that small tables stay small."""
    import pyarrow as pa

    used, index = np.unique(codes, return_inverse=True)
    shift = int(len(used) > 0 and used[0] == NULL)
    index = index.astype(np.int32) - shift
    positions: Any = pa.array(index, mask=index < 0)
    return pa.DictionaryArray.from_arrays(
        positions, pa.array(strings.decode(used[shift:]), pa.string())
    )


def _numbers(values: Any, *, nullable: bool) -> Any:  # an Arrow array
    import pyarrow as pa

    if values.dtype.kind == "f":
        return pa.array(values, mask=np.isnan(values))
    return pa.array(values, mask=values == NULL) if nullable else pa.array(values)


def _records(rows: Sequence[Any]) -> pa.Table:
    """A pool of the trace as a table; what is not plain (details of a source) is written as
    text.
    """
    import pyarrow as pa

    assert all(is_dataclass(row) for row in rows)
    columns = {}
    for column in fields(rows[0]):
        values = [getattr(row, column.name) for row in rows]
        plain = all(value is None or type(value) in {int, float, bool, str} for value in values)
        columns[column.name] = values if plain else [_as_text(value) for value in values]
    return pa.table(columns)


def _as_text(value: object) -> str:
    if isinstance(value, tuple):
        return "; ".join(" ".join(str(part) for part in item) for item in value)
    return str(getattr(value, "value", value))
