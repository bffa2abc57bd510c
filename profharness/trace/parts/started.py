"""The records of a trace that started within a time of their source. Pure."""

from __future__ import annotations

import numpy as np

from profharness.trace.clocks.align import TIME_COLUMNS
from profharness.trace.columns.table import NULL
from profharness.trace.launches import join
from profharness.trace.model import I64, Trace
from profharness.trace.parts import select


def started_within(trace: Trace, low: I64, high: I64) -> Trace:
    """What started in [low, high) of its source (ns; one value per source), whole. Device work
    belongs where the call stands that launched it.
    """
    return select.rows(trace, _kept(trace, low, high))


def _kept(trace: Trace, low: I64, high: I64) -> dict[str, select.Mask]:
    kept: dict[str, select.Mask] = {}
    for name, table in trace.tables():
        if name in TIME_COLUMNS:
            start = getattr(table, TIME_COLUMNS[name][0])
            source = table.source  # type: ignore[attr-defined] # every timed table has one
            kept[name] = (start >= low[source]) & (start < high[source])
    for name, records in (("kernels", trace.kernels), ("copies", trace.copies)):
        call = join(trace, records).call
        linked = call != NULL
        kept[name][linked] = kept["api"][call[linked]]
    kept["counters"] = trace.counters.kernel != NULL
    return kept


def without_lead_in(trace: Trace, first_step: int) -> Trace:
    """A trace of one source from the beginning of the step of that number to the end of its last
    one; its clock's markers stay. All of it where the step is not marked in it.

    The hooks go on with a recording that is open when no other may follow it, and what that holds
    from before its first step was not asked for.
    """
    marks, find = trace.marks, trace.strings.find
    is_step = (marks.kind == find("step")) & (marks.kind != NULL)
    begins = is_step & (marks.name == find(f"profharness.step:{first_step}"))
    if not begins.any():
        return trace
    low = int(marks.start_ns[begins].max())
    steps = is_step & (marks.start_ns >= low)
    high = int((marks.start_ns[steps] + marks.dur_ns[steps]).max())
    kept = _kept(trace, np.array([low], np.int64), np.array([high], np.int64))
    kept["marks"] |= (marks.kind == find("marker")) & (marks.kind != NULL)
    return select.rows(trace, kept)


def without_step(trace: Trace, number: int) -> Trace:
    """A trace of one source without the last range of the step of that number: its recording ended
    inside of that step, so that the range is no step's length. What ran in it stays.
    """
    marks, find = trace.marks, trace.strings.find
    rows = np.flatnonzero(
        (marks.kind == find("step")) & (marks.name == find(f"profharness.step:{number}"))
    )
    if not len(rows) or find("step") == NULL:
        return trace
    kept = np.ones(len(marks), np.bool_)
    kept[rows[np.argmax(marks.start_ns[rows])]] = False
    return select.rows(trace, {"marks": kept})
