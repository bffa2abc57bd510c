"""requests.parquet of one level: every request with its times (CLOCK_MONOTONIC ns) and the
execution that served it.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import numpy.typing as npt

from profharness.errors import InputError
from profharness.rundir.foreign.border import DAMAGED
from profharness.rundir.foreign.limits import REQUEST_ROWS, WHOLE
from profharness.rundir.foreign.parquet import WHOLE_NUMBERS, read_table
from profharness.trace.model import ClockDomain, Requests, Source, Strings, Trace

NAME = "requests.parquet"
COLUMNS = tuple(field.name for field in fields(Requests) if field.name not in ("point", "source"))


def read(path: Path, point: str) -> Trace:
    """The requests with the point's code. Raises InputError for a file that is no such table."""
    try:
        columns = dict.fromkeys(COLUMNS, WHOLE_NUMBERS)
        table = read_table(path, columns, "a table of requests", rows=REQUEST_ROWS)
    except OSError as error:
        raise InputError(
            f"{path}: not a table of requests ({error.strerror or error})",
            "the run directory may be damaged",
        ) from error
    values = {name: table.column(name).to_numpy() for name in COLUMNS}
    _check(path, values)
    source = Source(
        path=str(path), format="requests", clock=ClockDomain.MONOTONIC, has_host_calls=False
    )
    return Trace(
        sources=(source,),
        strings=Strings([point]),
        requests=Requests.build(table.num_rows, **values, point=0, source=0),
    )


def _check(path: Path, columns: dict[str, npt.NDArray[np.int64]]) -> None:
    for name, column in columns.items():
        if column.dtype.kind != "i" or (len(column) and not _fits(column)):
            raise InputError(f"{path}: its column {name} holds what is no time or count", DAMAGED)


def _fits(column: npt.NDArray[np.int64]) -> bool:
    return bool(column.max() <= WHOLE and column.min() >= -WHOLE)


def write(requests: Requests, path: Path) -> None:
    """Replace `path` in one step."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    temporary = path.with_name(f".{path.name}.partial")
    pq.write_table(
        pa.table({name: pa.array(getattr(requests, name)) for name in COLUMNS}),
        temporary,
        compression="zstd",
    )
    temporary.replace(path)
