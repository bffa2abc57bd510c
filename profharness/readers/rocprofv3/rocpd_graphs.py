"""Launches of HIP graphs in a rocpd database (`rocpd_graph_launch`, schema 3.0.2 and later)."""

from __future__ import annotations

import numpy as np

from profharness.readers.rocprofv3.rocpd_tables import OwnerTables
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Strings

_TABLE = "rocpd_graph_launch"
_COLUMNS = ("start", "end", "tid", "graph_exec_id", "kernel_dispatch_count")


def graph_launches(file: OwnerTables, strings: Strings) -> dict[str, I64]:
    """Start, end and thread of each launch, and as its name the graph and how many kernels it has.
    Raises one of `databases.guard.DAMAGED`.
    """
    present = file.columns(_TABLE)
    selected = [f'"{name}"' if name in present else "NULL" for name in _COLUMNS]
    rows = [row for row in file.of_table(_TABLE, selected) if None not in row[:2]]
    return {
        "start": np.array([row[0] for row in rows], np.int64),
        "end": np.array([row[1] for row in rows], np.int64),
        "tid": np.array([NULL if row[2] is None else row[2] for row in rows], np.int64),
        "name": np.array([strings.code(_name(row[3], row[4])) for row in rows], np.int64),
    }


def _name(graph: int | None, kernels: int | None) -> str:
    named = "graph" if graph is None else f"graph {graph}"
    return named if kernels is None else f"{named}: {kernels} kernel{'s' * (kernels != 1)}"
