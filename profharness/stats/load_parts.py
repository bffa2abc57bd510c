"""Where a request's latency goes: out to the server, its queue, its copies, the model, and back;
and how large batches were.

Two sources are joined: the server's statistics (sums over the window, KServe's statistics
extension) and the executions that the model's process recorded for each request, on the same clock.
With both, the way out and the way back are told apart.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.rundir.levels import Level, ServerStats
from profharness.trace.columns.table import NULL
from profharness.trace.model import Requests

TOLERANCE = 0.02
MOST_CUT = 0.25
FEWEST_JOINED = 0.9  # of the requests must have an execution, else the rest may be different ones

TRANSPORT_OUT = "transport out"
QUEUE = "queue"
COMPUTE_INPUT = "compute input"
HAND_OVER = "hand-over to the model"
MODEL = "model"
COMPUTE_INFER = "compute infer"
COMPUTE_OUTPUT = "compute output"
TRANSPORT_BACK = "transport back"
TRANSPORT = "transport"
BEFORE, AFTER = "before the model", "after the model"


@dataclass(frozen=True)
class Part:
    """One part of a request's life, the mean over the window's requests in ns."""

    name: str
    mean_ns: float


@dataclass(frozen=True)
class Parts:
    """The parts in the order in which they happen; `latency_ns` is the mean latency that they are
    to make up.

    `cut` is how far, relatively, the server's statistics had to give way to the times of the
    requests themselves.
    """

    parts: tuple[Part, ...]
    latency_ns: float
    cut: float = 0.0

    @property
    def sum_ns(self) -> float:
        return sum(part.mean_ns for part in self.parts)

    @property
    def complete(self) -> bool:
        """Whether they sum to the latency within 2 %, from sources that do not contradict each
        other.
        """
        return (
            abs(self.sum_ns - self.latency_ns) <= TOLERANCE * self.latency_ns
            and self.cut <= MOST_CUT
        )

    def mean_ns(self, name: str) -> float | None:
        """One part by name, None where it could not be told apart."""
        return next((part.mean_ns for part in self.parts if part.name == name), None)


@dataclass(frozen=True)
class Batches:
    """Sizes of the server's executions: items in each, how often, and their mean."""

    sizes: tuple[tuple[int, int], ...]
    mean: float
    executions: int


def batches(level: Level) -> Batches | None:
    """The histogram over all models of the level; None where the server keeps no statistics."""
    if not level.server_stats:
        return None
    counts: dict[int, int] = {}
    for stats in level.server_stats.values():
        for size, times in stats.batch_sizes.items():
            counts[int(size)] = counts.get(int(size), 0) + times
    executions = sum(stats.exec_count for stats in level.server_stats.values())
    items = sum(stats.count for stats in level.server_stats.values())
    if not executions:
        return None
    return Batches(tuple(sorted(counts.items())), items / executions, executions)


def parts(answered: Requests, level: Level) -> Parts | None:
    """The parts of the answered requests' mean service latency; None where neither source tells
    anything.
    """
    if not len(answered):
        return None
    latency = float((answered.done_ns - answered.sent_ns).mean())
    joined = _joined(answered)
    stats = _only(level)
    cut = 0.0
    if stats is None and joined is None:
        return None
    if stats is None:
        assert joined is not None
        found = [(BEFORE, joined.before), (MODEL, joined.model), (AFTER, joined.after)]
    elif joined is None:
        found = [
            (TRANSPORT, latency - stats.total),
            (QUEUE, stats.queue),
            (COMPUTE_INPUT, stats.input),
            (COMPUTE_INFER, stats.infer),
            (COMPUTE_OUTPUT, stats.output),
        ]
    else:
        found, cut = _both(joined, stats)
    return Parts(tuple(Part(name, max(0.0, mean)) for name, mean in found), latency, cut)


@dataclass(frozen=True)
class _Joined:
    """Means in ns over the requests whose execution is known."""

    before: float
    model: float
    after: float


@dataclass(frozen=True)
class _Server:
    """Means in ns per request as the server counts them."""

    queue: float
    input: float
    infer: float
    output: float

    @property
    def total(self) -> float:
        return self.queue + self.input + self.infer + self.output


def _joined(answered: Requests) -> _Joined | None:
    """None where too few requests have an execution, or theirs lie outside the requests (another
    clock).
    """
    known = (answered.server_start_ns != NULL) & (answered.server_compute_ns != NULL)
    if known.mean() < FEWEST_JOINED:
        return None
    rows = answered.take(known)
    before = rows.server_start_ns - rows.sent_ns
    after = rows.done_ns - rows.server_start_ns - rows.server_compute_ns
    if np.median(before) < 0 or np.median(after) < 0:
        return None
    return _Joined(float(before.mean()), float(rows.server_compute_ns.mean()), float(after.mean()))


def _only(level: Level) -> _Server | None:
    """Statistics of the one model that the requests went to; an ensemble's own row holds its
    members' times again.
    """
    if not level.server_stats or len(level.server_stats) != 1:
        return None
    stats: ServerStats = next(iter(level.server_stats.values()))
    if not stats.success:
        return None
    return _Server(
        *(
            value / stats.success
            for value in (
                stats.queue_ns,
                stats.compute_input_ns,
                stats.compute_infer_ns,
                stats.compute_output_ns,
            )
        )
    )


def _both(joined: _Joined, stats: _Server) -> tuple[list[tuple[str, float]], float]:
    """The parts, and how far the server's means had to be cut to fit.

    The clock is exact: before, in and after the model make up the latency. The server's means
    divide what is before and after; they may rest on a few other requests at the window's ends.
    Compute infer is the model and the hand-over to its process and back; what is not accounted for
    is transport. How much of it was on the way out is known up to the hand-over; within that, both
    ways are taken as equally long.
    """
    before = (
        min(1.0, joined.before / (stats.queue + stats.input))
        if stats.queue + stats.input > 0
        else 1.0
    )
    after = min(1.0, joined.after / stats.output) if stats.output > 0 else 1.0
    ahead, behind = (
        joined.before - before * (stats.queue + stats.input),
        joined.after - after * stats.output,
    )
    hand_over = min(max(0.0, stats.infer - joined.model), ahead + behind)
    transport = ahead + behind - hand_over
    out = min(max(transport / 2, ahead - hand_over, 0.0), ahead, transport)
    apart = abs(stats.infer - joined.model - hand_over) / max(stats.infer, joined.model)
    return [
        (TRANSPORT_OUT, out),
        (QUEUE, before * stats.queue),
        (COMPUTE_INPUT, before * stats.input),
        (HAND_OVER, hand_over),
        (MODEL, joined.model),
        (COMPUTE_OUTPUT, after * stats.output),
        (TRANSPORT_BACK, transport - out),
    ], max(1 - before, 1 - after, apart)
