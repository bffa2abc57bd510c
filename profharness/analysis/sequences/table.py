"""The recurring sequences of short kernels of a trace, what they cost and what could be saved
(docs/metrics.md#sequences).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.analysis.kernels.ceilings import Ceilings
from profharness.analysis.sequences.choice import chosen
from profharness.analysis.sequences.links import link_bytes
from profharness.analysis.sequences.records import SequenceRow, Sequences, Use
from profharness.analysis.sequences.repeats import Repeat, repeats
from profharness.analysis.sequences.short import ShortRow, short_row
from profharness.analysis.time.linking import link_kernels
from profharness.analysis.time.timeless import no_timeline
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Trace

FUSED, CAPTURED = 8, 512
"""The most kernels of a sequence to fuse, and of one to capture into a graph."""
MOST = 20
_NAMED = 8


def sequences(trace: Trace, roofs: dict[int, Ceilings], pass_name: str | None = None) -> Sequences:
    """Up to 20 sequences to fuse and as many to capture. Kernels that a graph ran already are not
    to be captured again. Nothing of a trace whose kernels lie on no time axis.
    """
    kernels = trace.kernels
    if not len(kernels) or no_timeline(trace):
        return Sequences(pass_name=pass_name)
    row = short_row(kernels, np.zeros(len(kernels), np.bool_))
    bandwidth = _bandwidth(roofs)
    to_fuse = _of(trace, row, "fuse", bandwidth)
    in_graph = link_kernels(trace).in_graph
    launched = short_row(kernels, in_graph) if in_graph.any() else row
    to_capture = _of(trace, launched, "graph", bandwidth)
    short = row.kernel[row.kernel != NULL]
    return Sequences(
        pass_name=pass_name,
        kernels=len(kernels),
        kernel_ns=int(kernels.dur_ns.sum()),
        short_kernels=len(short),
        short_ns=int(kernels.dur_ns[short].sum()),
        gap_ns=row.before_ns,
        bandwidth=bandwidth,
        rows=tuple(
            sorted((*to_fuse, *to_capture), key=lambda one: (-one.saved_ns, one.use, one.names))
        ),
    )


def _bandwidth(roofs: dict[int, Ceilings]) -> float | None:
    """The lowest of the devices in bytes per second; None where one is not known."""
    values = [None if roof.bandwidth is None else roof.bandwidth.value for roof in roofs.values()]
    known = [value for value in values if value]
    return float(min(known)) if known and len(known) == len(values) else None


@dataclass(frozen=True, eq=False)
class _Row:
    """The row of short kernels with what is saved between neighbours, in ns."""

    trace: Trace
    short: ShortRow
    bytes: I64
    saves: F64


def _of(trace: Trace, short: ShortRow, use: Use, bandwidth: float | None) -> list[SequenceRow]:
    if use == "fuse":
        moved, shortest, longest = link_bytes(trace, short.kernel), 2, FUSED
    else:
        moved, shortest, longest = np.full(len(short.kernel), -1, np.int64), FUSED + 1, CAPTURED
    in_ns = np.maximum(moved, 0) / bandwidth * 1e9 if bandwidth else np.zeros(len(moved))
    row = _Row(trace, short, moved, short.gap_ns + in_ns)
    found = repeats(short.codes, shortest, longest)
    return [_sequence(row, use, repeat) for repeat in chosen(found, row.saves, MOST)]


def _sequence(row: _Row, use: Use, repeat: Repeat) -> SequenceRow:
    places = repeat.starts[:, None] + np.arange(repeat.length)
    inner = places[:, 1:]
    known = row.bytes[inner] >= 0
    kernels, trace = row.trace.kernels, row.trace
    shown = row.short.kernel[places[0, : min(repeat.length, _NAMED)]]
    return SequenceRow(
        use=use,
        names=tuple(trace.strings[int(code)] for code in kernels.name[shown]),
        ops=tuple(_operator(trace, int(op)) for op in kernels.op[shown]),
        kernels=repeat.length,
        calls=len(repeat.starts),
        total_ns=int(kernels.dur_ns[row.short.kernel[places]].sum()),
        gap_ns=int(row.short.gap_ns[inner].sum()),
        links=inner.size,
        links_known=int(known.sum()),
        bytes=int(row.bytes[inner][known].sum()) if known.any() else None,
        saved_ns=float(row.saves[inner].sum()),
    )


def _operator(trace: Trace, op: int) -> str:
    return "" if op == NULL else trace.strings[int(trace.ops.name[op])]
