"""A folder that rocprof-compute (or Omniperf) wrote, of any release: workloads/NAME,
workloads/NAME/MODEL, the folder of --output-directory, or the tables or database of `analyze`.

What speaks for the dispatches, in this order: pmc_perf.csv of all executions; the tables of single
executions (`results_*.csv`, `pmc_perf_0.csv`), which are read together; the databases below `out`.
The others hold the same dispatches again and are left alone, as are SQ_*.csv and timestamps.csv.
Ceilings of roofline.csv become details of the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.rocprof_compute import ceilings, db_reader, replay_database, replays
from profharness.readers.rocprof_compute import machine_reader as rocprof_compute_machine
from profharness.readers.rocprof_compute import reader as rocprof_compute
from profharness.rundir.blocks import read_head
from profharness.trace.merge import merge
from profharness.trace.model import Problem, Trace
from profharness.trace.statistics import ToolMetric

_SYSINFO = ("sysinfo.csv", "sysinfo.csv.gz")
_HEAD_BYTES = 1 << 16
_OF_EXECUTION = re.compile(r"(?:results_)?pmc_perf_\d+\.csv")  # no other tool's names
_DEPTHS = ("", "*/", "*/*/")


def holds(folder: Path) -> bool:
    """Whether the folder, or one that it holds, has tables of this tool. Reads names, and the heads
    of files.
    """
    return bool(_counted(folder) or _databases(folder) or _analysed(folder))


def read(folder: Path) -> Trace:
    """The trace of a workload. Raises InputError where it holds none, or more than one, and as the
    reader of its table does.
    """
    workloads = _counted(folder)
    if len(workloads) > 1:
        names = ", ".join(str(path) for path in workloads)
        raise InputError(f"{folder} holds {len(workloads)} workloads: {names}", "name one of them")
    for workload, paths in workloads.items():
        trace = _with_ceilings(rocprof_compute.read_set(paths), workload)
        lost = () if rocprof_compute.is_joined(paths) else tuple(_without_rows(workload))
        problems = [*lost, *trace.problems]
        metrics = _own_analysis(workload, problems)
        return replace(trace, tool_metrics=metrics, problems=tuple(problems))
    databases, tables = _databases(folder), _analysed(folder)
    if databases:
        return _with_ceilings(db_reader.read(databases[0]), folder)
    if not tables:
        raise InputError(
            f"{folder} holds no pmc_perf.csv",
            "name the folder of one GPU model: workloads/<name>/<model>",
        )
    trace = merge([rocprof_compute_machine.read(path) for path in tables])
    return replace(trace, problems=(*_without_rows(folder), *trace.problems))


def _counted(folder: Path) -> dict[Path, list[Path]]:
    """The tables of counters here, else those one or two folders below, of each workload."""
    for depth in _DEPTHS:
        found: dict[Path, list[Path]] = {}
        for path in sorted(folder.glob(f"{depth}*.csv*")):
            if _is_of_counters(path):
                found.setdefault(path.parent, []).append(path)
        for below in sorted(folder.glob(f"{depth}out")):
            if below.parent not in found and (databases := list(_replays_below(below))):
                found[below.parent] = databases
        if found:
            return {parent: _speaking(found[parent]) for parent in sorted(found)}
    return {}


def _is_of_counters(path: Path) -> bool:
    if not path.is_file():
        return False
    if replays.JOINED.search(path.name):
        return True
    return (
        bool(replays.REPLAY.search(path.name))
        and path.stat().st_size > 0
        and rocprof_compute.sniff(read_head(path, _HEAD_BYTES), path.name)
    )


def _without_rows(workload: Path) -> Iterator[Problem]:
    """Tables of single executions that the tool began and that hold nothing: each by itself, in one
    sentence where all are so.
    """
    tables = [
        path
        for path in sorted(workload.glob("*.csv*"))
        if replays.REPLAY.match(path.name) and path.is_file()
    ]
    lost = {
        path: "the file is empty"
        if path.stat().st_size == 0
        else "the file has no columns of dispatches"
        for path in tables
        if not _is_of_counters(path)
        and (path.stat().st_size == 0 or _OF_EXECUTION.match(path.name))
    }
    if 1 < len(lost) == len(tables):
        message = (
            "no table of an execution holds a dispatch: rocprof-compute's filter by kernel or by "
            "dispatch kept none, or the program launched no kernel"
        )
        yield Problem("error", str(workload), len(lost), message)
        return
    for path, what in lost.items():
        yield Problem("error", str(path), 1, f"{what}; its counters are left out")


def _replays_below(out: Path) -> Iterator[Path]:
    """The databases of single executions, where the folder beside them is a workload's."""
    if any((out.parent / name).is_file() for name in _SYSINFO):
        for path in sorted(out.rglob("*.db")):
            if replay_database.NAME.search(path.name) and path.is_file() and path.stat().st_size:
                yield path


def _speaking(paths: list[Path]) -> list[Path]:
    """The table of all executions where there is one, the plain one before the compressed; of
    single executions all that one spelling of the tool wrote.
    """
    joined = [path for path in paths if replays.JOINED.search(path.name)]
    if joined:
        return [min(joined, key=lambda path: path.suffix == ".gz")]
    converted = [path for path in paths if path.name.startswith("results_")] or paths
    plain = {str(path) for path in paths}
    return [
        path for path in converted if path.suffix != ".gz" or str(path.with_suffix("")) not in plain
    ]


def _databases(folder: Path) -> list[Path]:
    """Databases of the tool's own analysis."""
    return [
        path
        for path in sorted(folder.glob("*.db"))
        if path.is_file() and db_reader.sniff(read_head(path, 1 << 18), path.name)
    ]


def _analysed(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.glob("*.csv"))
        if path.is_file()
        and path.stat().st_size
        and rocprof_compute_machine.sniff(read_head(path, _HEAD_BYTES), path.name)
    ]


def _own_analysis(workload: Path, problems: list[Problem]) -> tuple[ToolMetric, ...]:
    """What `analyze` worked out, where it stands beside the counters: its database, else its
    tables. What is wrong with these goes to `problems`.
    """
    try:
        for path in _databases(workload)[:1]:
            return db_reader.metrics_of(path, problems)
        for folder in sorted(workload.glob("analy*")):
            tables = [rocprof_compute_machine.read(path) for path in _analysed(folder)]
            if found := tuple(metric for table in tables for metric in table.tool_metrics):
                problems += [
                    one for table in tables if table.tool_metrics for one in table.problems
                ]
                return found
    except InputError:  # an analysis that broke off costs nothing of the counters
        return ()
    return ()


def _with_ceilings(trace: Trace, folder: Path) -> Trace:
    path = next((folder / name for name in ceilings.FILES if (folder / name).is_file()), None)
    try:
        details = () if path is None else rocprof_compute_machine.read(path).sources[0].details
    except InputError:  # a measurement of the machine that broke off costs nothing of the counters
        return trace
    first, *other_sources = trace.sources
    return replace(
        trace, sources=(replace(first, details=(*first.details, *details)), *other_sources)
    )
