"""What a quick look at a tool's file shows: whether it holds any kernel, or any counter.

Bounded reading only; the figures come from the readers.
"""

from __future__ import annotations

import gzip
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from profharness.errors import InputError
from profharness.rundir.databases.opening import opened

_LOOK = 64 << 20  # bytes of a file that are looked through
_CHUNK = 1 << 20
# a record of a device kernel, as each text format writes one
_JSON_V3 = re.compile(rb'"kernel_dispatch"\s*:\s*\[\s*\{')
_JSON_COUNTED = re.compile(rb'"counter_collection"\s*:\s*\[\s*\{')
# sections 6 to 517 of rocprof's trace are GPUs; an event's own pid and tid stand right before its
# time
_JSON_V1 = re.compile(
    rb'"pid":\s*"?(?:[6-9]|[1-9]\d|[1-4]\d\d|50\d|51[0-7])"?,\s*"tid":\s*"?\d+"?,\s*"ts"'
)
_EMPTY_PFTRACE = 1500  # bytes; a process without device work leaves about 640


def holds_kernels(path: Path, file_format: str) -> bool | None:
    """Whether the file holds at least one kernel record; None where only reading
    all of it would show that.
    """
    look = _LOOKS.get(file_format)
    try:
        return None if look is None else look(path)
    except (OSError, InputError, EOFError):
        return None


def holds_rows(path: Path) -> bool:
    """Whether a table has a row below its header; False for one that cannot be read."""
    try:
        return _has_rows(path)
    except OSError:
        return False


def holds_counters(path: Path) -> bool:
    """Whether a tool's file holds at least one value of a hardware counter; False for one that
    cannot be read.
    """
    try:
        if path.suffix == ".db":
            return _any_row(path, ("rocpd_pmc_event",))
        if path.name.endswith("_results.json"):
            return _matches(path, _JSON_COUNTED)
        return ("_counter_collection" in path.name or path.name == "results.csv") and _has_rows(
            path
        )
    except (OSError, InputError, EOFError):
        return False


def _rocpd(path: Path) -> bool:
    return _any_row(path, ("rocpd_kernel_dispatch",))


def _rocprof_db(path: Path) -> bool:
    return _any_row(path, ("OPS", "KERN"))


def _any_row(path: Path, tables: Sequence[str]) -> bool:
    """Whether one of the tables has a row; a table that is not there has none."""
    with opened(path) as database:
        look = database.connection.execute
        present = {name for (name,) in look("SELECT name FROM sqlite_master")}
        return any(
            look(f'SELECT 1 FROM "{name}" LIMIT 1').fetchone()  # noqa: S608  constants
            for name in tables
            if name in present
        )


def _v3_csv(path: Path) -> bool:
    return ("_kernel_trace" in path.name or "_counter_collection" in path.name) and _has_rows(path)


def _has_rows(path: Path) -> bool:
    """More than a header line."""
    with gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb") as file:
        return bool(file.readline()) and bool(file.readline().strip())


def _v3_json(path: Path) -> bool:
    return _matches(path, _JSON_V3)


def _v1_json(path: Path) -> bool:
    return _matches(path, _JSON_V1)


def _perfetto(path: Path) -> bool | None:
    if path.stat().st_size > _EMPTY_PFTRACE:
        return None
    return None if b"kernel_dispatch" in path.read_bytes() else False


def _matches(path: Path, pattern: re.Pattern[bytes]) -> bool:
    tail = b""
    with gzip.open(path, "rb") if path.name.endswith(".gz") else path.open("rb") as file:
        for _ in range(_LOOK // _CHUNK):
            chunk = file.read(_CHUNK)
            if not chunk:
                return False
            if pattern.search(tail + chunk):
                return True
            tail = chunk[-512:]
    return False


_LOOKS: Mapping[str, Callable[[Path], bool | None]] = {
    "rocpd": _rocpd,
    "rocprofv3-csv": _v3_csv,
    "rocprofv3-json": _v3_json,
    "rocprof-db": _rocprof_db,
    "rocprof-json": _v1_json,
    "rocprof": _has_rows,
    "pftrace": _perfetto,
    "rocprof-compute": _has_rows,
    "rocprof-compute-replay": _rocpd,
}
