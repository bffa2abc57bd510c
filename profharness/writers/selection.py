"""Which records go into a file: what the format can hold, and a cap on kernels.

Everything left out is counted with its reason; nothing is shifted, clipped or repaired.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profharness.trace.columns.table import NULL, Table
from profharness.trace.model import (
    I64,
    Allocations,
    ClockDomain,
    Copies,
    Counters,
    HostSamples,
    Kernels,
    Requests,
    Samples,
    Trace,
)
from profharness.trace.parts.select import rows
from profharness.writers.options import LeftOut, WriteOptions

Mask = np.ndarray[tuple[int], np.dtype[np.bool_]]


def select(trace: Trace, options: WriteOptions) -> tuple[Trace, tuple[LeftOut, ...]]:
    """The trace with only the records to write, references between them kept right, and what was
    left out.
    """
    left: list[LeftOut] = []
    kept: dict[str, Mask] = {}
    for name, table in trace.tables():
        if isinstance(table, Counters | Allocations):  # what these add up to are samples
            continue
        keep = np.ones(len(table), np.bool_)
        for reason, mask in (*_rules(table), *_placed(trace, table)):
            dropped = int(np.count_nonzero(keep & ~mask))
            if dropped:
                left.append(LeftOut(name, dropped, reason))
                keep &= mask
        if isinstance(table, Kernels):
            keep = _capped(table, keep, options.max_kernels, left)
        kept[name] = keep
    known = trace.counters.kernel
    kept["counters"] = (known >= 0) & (known < len(trace.kernels))
    return rows(trace, kept), tuple(left)


def span(table: Table) -> tuple[I64, I64]:
    """Start and duration of the rows of any timed table."""
    if isinstance(table, Samples):
        return table.at_ns, np.maximum(table.until_ns - table.at_ns, 0)
    if isinstance(table, HostSamples):
        return table.at_ns, np.zeros(len(table), np.int64)
    if isinstance(table, Requests):
        start = np.where(table.sent_ns == NULL, table.intended_ns, table.sent_ns)
        return start, table.done_ns - start
    # every other timed table has both columns
    start, dur = table.start_ns, table.dur_ns  # type: ignore[attr-defined]  # timed tables
    return start, dur


def _rules(table: Table) -> Iterator[tuple[str, Mask]]:
    start, dur = span(table)
    if isinstance(table, Kernels | Copies):
        yield "no time in their file", (start != NULL) | (dur != 0)
    yield "a start before time zero, which the format cannot hold", start >= 0
    yield "a negative duration", dur >= 0
    if isinstance(table, Samples):
        yield "a value that is not a finite number", np.isfinite(table.value)


def _placed(trace: Trace, table: Table) -> Iterator[tuple[str, Mask]]:
    """Kernels of a file without times stand at zero, which is a place on no axis."""
    if isinstance(table, Kernels) and any(
        source.clock is ClockDomain.UNKNOWN for source in trace.sources
    ):
        unknown = np.array(
            [*(source.clock is ClockDomain.UNKNOWN for source in trace.sources), False]
        )
        yield (
            "no time in their file, neither a start nor a length",
            ~unknown[table.source] | (table.start_ns != 0) | (table.dur_ns != 0),
        )


def _capped(kernels: Kernels, keep: Mask, limit: int | None, left: list[LeftOut]) -> Mask:
    excess = int(np.count_nonzero(keep)) - (limit if limit is not None else len(kernels))
    if excess <= 0:
        return keep
    rows = np.flatnonzero(keep)
    late = rows[first_of(kernels, rows)[len(rows) - excess :]]
    left.append(
        LeftOut("kernels", excess, f"more than the {limit} kernels asked for; the first were kept")
    )
    kept = keep.copy()
    kept[late] = False
    return kept


def first_of(kernels: Kernels, rows: I64) -> I64:
    """The order of these rows by start; those that start together by device and source, so that it
    does not depend on how they are stored.
    """
    order: I64 = np.lexsort((kernels.source[rows], kernels.device[rows], kernels.start_ns[rows]))
    return order
