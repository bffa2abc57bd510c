"""A folder that rocprof-compute (or Omniperf) wrote, of any release: workloads/NAME,
workloads/NAME/MODEL, or the tables of `analyze`.

pmc_perf.csv speaks for the dispatches: the tables of single executions beside it (SQ_*.csv,
pmc_perf_0.csv, timestamps.csv) hold the same ones again and are left alone. Ceilings of
roofline.csv become details of the source.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.rocprof_compute import machine_reader as rocprof_compute_machine
from profharness.readers.rocprof_compute import reader as rocprof_compute
from profharness.rundir.blocks import read_head
from profharness.trace.merge import merge
from profharness.trace.model import Trace

_TABLES = ("pmc_perf.csv", "pmc_perf.csv.gz")
_ROOFLINES = ("roofline.csv", "roofline.csv.gz")
_HEAD_BYTES = 1 << 16


def holds(folder: Path) -> bool:
    """Whether the folder, or one that it holds, has tables of this tool. Reads names, and the heads
    of files.
    """
    return bool(_counted(folder) or _analysed(folder))


def read(folder: Path) -> Trace:
    """The trace of a workload. Raises InputError where it holds none, or more than one, and as the
    reader of its table does.
    """
    counter_tables = _counted(folder)
    if len(counter_tables) > 1:
        models = ", ".join(str(path.parent) for path in counter_tables)
        raise InputError(
            f"{folder} holds {len(counter_tables)} workloads: {models}", "name one of them"
        )
    if counter_tables:
        return _with_ceilings(rocprof_compute.read(counter_tables[0]), counter_tables[0].parent)
    tables = _analysed(folder)
    if not tables:
        raise InputError(
            f"{folder} holds no pmc_perf.csv",
            "name the folder of one GPU model: workloads/<name>/<model>",
        )
    return merge([rocprof_compute_machine.read(path) for path in tables])


def _counted(folder: Path) -> list[Path]:
    """The table of counters here, else those one or two folders below, each workload's once."""
    for depth in ("", "*/", "*/*/"):
        table_of = {
            path.parent: path
            for name in reversed(_TABLES)
            for path in sorted(folder.glob(depth + name))
            if path.is_file()
        }
        if table_of:
            return [table_of[parent] for parent in sorted(table_of)]
    return []


def _analysed(folder: Path) -> list[Path]:
    return [
        path
        for path in sorted(folder.glob("*.csv"))
        if path.is_file()
        and path.stat().st_size
        and rocprof_compute_machine.sniff(read_head(path, _HEAD_BYTES), path.name)
    ]


def _with_ceilings(trace: Trace, folder: Path) -> Trace:
    path = next((folder / name for name in _ROOFLINES if (folder / name).is_file()), None)
    try:
        details = () if path is None else rocprof_compute_machine.read(path).sources[0].details
    except InputError:  # a measurement of the machine that broke off costs nothing of the counters
        return trace
    first, *other_sources = trace.sources
    return replace(
        trace, sources=(replace(first, details=(*first.details, *details)), *other_sources)
    )
