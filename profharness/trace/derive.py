"""Series that follow from other records: throughput from the trials. Pure."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profharness.trace.columns.table import NULL, concat
from profharness.trace.model import Samples, Strings, Trace

THROUGHPUT = "throughput"


def with_throughput(trace: Trace) -> Trace:
    """Adds one sample per trial: its items over its duration in items/s, from the trial's start to
    its end.

    Trials without items or without duration give none. The trial's source becomes the sample's.
    """
    marks = trace.marks
    rows = np.flatnonzero(
        (marks.kind == trace.strings.find("trial")) & (marks.items != NULL) & (marks.dur_ns > 0)
    )
    if not len(rows):
        return trace
    strings = Strings(trace.strings.texts)
    rows = rows[np.argsort(marks.start_ns[rows], kind="stable")]
    start, length = marks.start_ns[rows], marks.dur_ns[rows]
    added = Samples.build(
        at_ns=start,
        until_ns=start + length,
        metric=strings.code(THROUGHPUT),
        value=marks.items[rows] / (length / 1e9),
        source=marks.source[rows],
    )
    return replace(
        trace,
        strings=strings,
        samples=concat([trace.samples, added]) if len(trace.samples) else added,
    )
