"""The change of a figure between two runs, and what is noise.

A change counts as significant when the logarithm of the ratio exceeds what the two intervals and
the drift between two measurements come to. An interval holds the scatter of the trials, and of
throughput and latency the drift of the repeated points. That is one draw: points may happen to come
back to where they were, and a run that was faster or slower throughout says nothing of it at all.
So at least an ordinary drift is assumed in its place, but of counts and of memory none, which no
clock moves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from statistics import NormalDist

import msgspec

from profharness.analysis.compare.records import Better, Delta
from profharness.analysis.records import Figure
from profharness.stats.bootstrap import Z95

DRIFT = 0.01
"""Assumed: the standard deviation of the speed of one thing between measurements at other times,
by clocks, temperature and neighbours, though nothing changed. What comes of it where measurements
drift by more or less shows benchmarks/compare_pairs.py."""
BY_DRIFT = Z95 * math.sqrt(2) * DRIFT
"""The logarithm of the largest ratio of two measurements that drift alone explains, in 95 %."""
_STEADY = frozenset(
    ("", "1", "B", "FLOP", "FLOP/B", "items", "kernels", "processes", "requests", "trials")
)
"""Units of counts and sizes."""
_WITH_DRIFT = ("throughput", "latency")
"""Figures whose intervals hold the drift of repeated points."""
_LOWER = (
    "latency",
    "idle",
    "exposed",
    "launch",
    "energy",
    "memory",
    "device_memory",
    "queue_delay",
    "step_time",
    "short_kernels",
    "compile",
    "warmup",
    "underfilled",
)
_HIGHER = (
    "throughput",
    "busy",
    "fill",
    "steps_per_second",
    "achieved_flops",
    "mfu",
    "occupancy",
    "hfu",
    "flops_of_ceiling",
    "slots_full",
    "wave_quantisation",
    "roofline_share",
    "achieved_bandwidth",
    "bandwidth_share",
)


def simultaneous(comparisons: int) -> float:
    """Two-sided 95 % normal bound that holds for this many independent comparisons at once
    (Sidak).
    """
    single_error = 1 - 0.95 ** (1 / max(comparisons, 1))
    return NormalDist().inv_cdf(1 - single_error / 2)


def changes(
    a: dict[str, Figure],
    b: dict[str, Figure],
    widening: float,
    drifts: tuple[float, float] = (0.0, 0.0),
) -> Iterator[Delta]:
    """The changes of the figures that both have in the same unit; `widening` is that of the bound
    for several comparisons at once, `drifts` are those of repeated points that the intervals hold.
    """
    for name, first in a.items():
        second = b.get(name)
        if second is None or first.unit != second.unit:
            continue
        delta = _delta(name, first, second, widening, drifts)
        if delta is not None:
            yield delta


def _delta(
    name: str, a: Figure, b: Figure, widening: float, drifts: tuple[float, float]
) -> Delta | None:
    """The change of one figure; None where a run did not measure it, or it is not positive in
    both.
    """
    if a.value is None or b.value is None or a.value <= 0 or b.value <= 0:
        return None
    log_ratio = math.log(b.value / a.value)
    widths = [_log_half_width(figure) for figure in (a, b)]
    base = Delta(
        name=name,
        unit=a.unit,
        a=float(a.value),
        b=float(b.value),
        change=math.expm1(log_ratio),
        better=_better(name),
    )
    if math.inf in widths:
        return msgspec.structs.replace(base, significant=False, unbounded=True)
    if None in widths:
        return base
    held = drifts if name.startswith(_WITH_DRIFT) else (0.0, 0.0)
    drift = 0.0 if a.unit in _STEADY else BY_DRIFT / math.sqrt(2)
    noise = widening * math.hypot(
        *(_noise(width or 0.0, abs(one), drift) for width, one in zip(widths, held, strict=True))
    )
    return msgspec.structs.replace(
        base,
        low=math.expm1(log_ratio - noise),
        high=math.expm1(log_ratio + noise),
        noise=math.expm1(noise),
        significant=bool(abs(log_ratio) > noise),
    )


def _noise(width: float, held: float, drift: float) -> float:
    """The half-width of a figure's logarithm with the drift that it holds, or with the scatter
    alone and that which is assumed, whichever is more.
    """
    return max(width, math.hypot(max(width - held, 0.0), drift))


def _log_half_width(figure: Figure) -> float | None:
    """Infinite for an interval that reaches 0 or has one end only; None without an interval."""
    if figure.value is None or (figure.low is None and figure.high is None):
        return None
    if figure.low is None or figure.high is None or figure.low <= 0:
        return math.inf
    return math.log(figure.high / figure.low) / 2


def _better(name: str) -> Better:
    if name.startswith(_LOWER):
        return "lower"
    return "higher" if name.startswith(_HIGHER) else "neither"
