"""rocprofv3's CSV files, one per kind of record and process: every header from ROCm 6.2 to 7, and
`rocpd convert -f csv`.

Columns are found by name, whatever their case and order; all but names, ids and times may be
missing. Times are CLOCK_BOOTTIME ns. A copy has no size in this form. Of counters, whose file has
one row per dispatch and counter, each dispatch becomes one kernel where no kernel trace of the same
run is read with it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.arrow_csv import header_of
from profharness.readers.rocprofv3.csv_agents import read_agents
from profharness.readers.rocprofv3.csv_kinds import Kind, kind_of
from profharness.readers.rocprofv3.csv_rows import SetReader
from profharness.readers.rocprofv3.csv_stats import read_statistics
from profharness.rundir.blocks import read_head
from profharness.trace.model import TABLES, ClockDomain, Problem, Source, Trace
from profharness.trace.wanted import Wanted

name = "rocprofv3-csv"

_HEAD_BYTES = 1 << 16
_TAIL = re.compile(
    r"(?:(?:kernel|hip_api|hip_runtime|hip_compile[r]?|hsa_api|marker_api|memory_copy|"
    r"memory_allocation|scratch_memory|rccl_api|rocdecode_api"
    r"|rocjpeg_api)_trace|counter_collection|agent_info|pc_sampling_\w+?|\w+?_stats)\.csv(?:\.gz)?$"
)


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  part of the contract; the header decides
    """A first line with the column names of one of the tool's tables."""
    return kind_of(header_of(head)) is not None


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The trace of one file, with facts on the devices from the agent_info file beside it, if there
    is one.

    Raises InputError when the file cannot be read, is no file of this form, or has no row with
    whole numbers as times.
    """
    return _read([path], path)


def read_set(paths: Sequence[Path]) -> Trace:
    """All files of one process as one source, so that kernels and the calls that launched them are
    joined.

    The source is named by the kernel trace, else by the first file. Raises InputError as `read`
    does for each file.
    """
    if not paths:
        raise InputError("no files to read", "name the files that rocprofv3 wrote for one process")
    ordered = sorted(paths, key=lambda path: (kind_of(_header(path)) != "kernel", str(path)))
    return _read(ordered, ordered[0])


def sets(paths: Iterable[Path]) -> list[list[Path]]:
    """Files by process: those of one folder whose names differ only in the kind of record."""
    groups: dict[tuple[Path, str], list[Path]] = {}
    for path in sorted(paths):
        groups.setdefault((path.parent, _TAIL.sub("", path.name)), []).append(path)
    return list(groups.values())


def _read(paths: Sequence[Path], main: Path) -> Trace:
    kinds = {path: _kind(path) for path in paths}
    agents = [path for path, kind in kinds.items() if kind == "agent"] or _beside(main)
    beside: list[Problem] = []
    reader = SetReader(read_agents(agents[0], beside) if agents else ())
    reader.problems += beside
    statistics = []
    for path, kind in kinds.items():
        if kind == "stats":
            statistics += read_statistics(path, reader.problems)
        elif kind != "agent":
            reader.add(path, kind)
    tables, pid = reader.tables(_prefix(main))
    source = Source(
        path=str(main),
        format=name,
        clock=ClockDomain.BOOTTIME,
        pid=pid,
        has_host_calls=tables.has_calls,
        details=((TABLES, ", ".join(sorted(set(kinds.values())))),),
    )
    if set(kinds.values()) == {"call"}:
        reader.problems.append(
            Problem(
                "info",
                str(main),
                1,
                "the file holds host calls only: kernels stand in the kernel_trace file of the "
                "same process",
            )
        )
    if set(kinds.values()) == {"agent"}:
        tables.places.add_all(reader.process(None))
    return tables.trace([source], reader.problems, statistics)


def _prefix(path: Path) -> str:
    return _TAIL.sub("", path.name) if _TAIL.search(path.name) else ""


def _beside(path: Path) -> list[Path]:
    """The agent_info file of the same process."""
    if not _TAIL.search(path.name):
        return []
    candidates = [
        path.with_name(f"{_prefix(path)}agent_info.csv{ending}") for ending in ("", ".gz")
    ]
    return [
        candidate
        for candidate in candidates
        if candidate.is_file() and kind_of(_header(candidate)) == "agent"
    ]


def _header(path: Path) -> list[str]:
    return header_of(read_head(path, _HEAD_BYTES))


def _kind(path: Path) -> Kind:
    header = _header(path)
    kind = kind_of(header)
    if kind is None:
        raise InputError(
            f"{path} is none of rocprofv3's CSV files: its columns are "
            f"{', '.join(header[:8]) or 'not readable'}",
            "name a file such as PID_kernel_trace.csv",
        )
    return kind
