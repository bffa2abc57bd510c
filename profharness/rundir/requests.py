"""requests.parquet of one level: every request with its times (CLOCK_MONOTONIC ns) and the
execution that served it.
"""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

from profharness.errors import InputError
from profharness.trace.model import ClockDomain, Requests, Source, Strings, Trace

NAME = "requests.parquet"
COLUMNS = tuple(field.name for field in fields(Requests) if field.name not in ("point", "source"))


def read(path: Path, point: str) -> Trace:
    """The requests with the point's code. Raises InputError for a file that is no such table."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, columns=list(COLUMNS))
        columns = {name: table.column(name).to_numpy() for name in COLUMNS}
    except (OSError, pa.ArrowException, KeyError) as error:
        raise InputError(
            f"{path}: not a table of requests ({str(error).splitlines()[0]})",
            "the run directory may be damaged",
        ) from error
    source = Source(
        path=str(path), format="requests", clock=ClockDomain.MONOTONIC, has_host_calls=False
    )
    return Trace(
        sources=(source,),
        strings=Strings([point]),
        requests=Requests.build(table.num_rows, **columns, point=0, source=0),
    )


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
