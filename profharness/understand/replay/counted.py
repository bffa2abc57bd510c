"""Hardware counters of the calls of a replay, from the files that the counting tool left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from profharness.analysis.kernels.counter_records import CounterRow
from profharness.analysis.kernels.counter_table import counter_rows
from profharness.trace.calls.plan import ReplayLine
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace
from profharness.trace.parts.select import rows
from profharness.understand.load import load_files


def counters_of(
    files: Sequence[Path], lines: Mapping[int, ReplayLine]
) -> dict[int, tuple[CounterRow, ...]]:
    """The counters of each call: of the kernels that started while it ran, when nothing else ran
    on the device. Raises InputError for files that cannot be read.
    """
    if not files:
        return {}
    trace = load_files(files, every_pass=True).trace
    return {number: counter_rows(_during(trace, line)) for number, line in lines.items()}


def _during(trace: Trace, line: ReplayLine) -> Trace:
    """The kernels that started in the windows of a call, with their counters. Both stand on
    CLOCK_BOOTTIME of this host.
    """
    start = trace.kernels.start_ns
    inside = np.zeros(len(start), np.bool_)
    for begin, end in line.windows:
        inside |= (start >= begin) & (start <= end)
    return rows(trace, {"kernels": inside, "counters": trace.counters.kernel != NULL})
