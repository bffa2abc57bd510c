"""Why a command without device work moved between two runs: operators that switched, run on other
inputs, or take longer.

An operator's effect is its own time per step in both runs, as a share of A's: its share of the
operators' time, times the share of the window in which any operator ran.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass

from profharness.analysis.compare.reasons import Reason, switched
from profharness.analysis.records import HotspotRow, Hotspots, PointKernel, Summary

_LEAST = 0.05
_MOST = 4
_SHOWN = 3


@dataclass(frozen=True)
class OperatorSide:
    """One run's operators: `time` per step (any unit), the table by operator, and the share of the
    window in which one ran.
    """

    time: float
    table: Hotspots
    running: float

    @property
    def window_ns(self) -> float:
        return (self.table.total_ns or 0) / self.running


def side(summary: Summary, time: float) -> OperatorSide | None:
    """None for a run with device work, or whose operators were not recorded with their times."""
    table = next(
        (hotspots for hotspots in summary.hotspots if hotspots.by == "op" and hotspots.total_ns),
        None,
    )
    running = summary.metrics.get("operators")
    if summary.partition is not None or table is None or running is None or not running.value:
        return None
    return OperatorSide(time, table, float(running.value))


def operator_reasons(a: OperatorSide, b: OperatorSide, noise: float | None) -> list[Reason]:
    """Operators that one run has alone, as one switch; those of both whose effect exceeds the noise
    and a twentieth of A's time. The largest first.
    """
    stretch, least = b.time / a.time, max(noise or 0.0, _LEAST)
    before, after = ({row.name: row for row in run_side.table.rows} for run_side in (a, b))
    reasons = list(_switch(a, b, stretch))
    for name in before.keys() & after.keys():
        now_ns, then_ns = after[name].total_ns or 0, before[name].total_ns or 0
        effect = stretch * now_ns / b.window_ns - then_ns / a.window_ns
        if abs(effect) > least:
            calls = (after[name].calls / b.window_ns * stretch) / (before[name].calls / a.window_ns)
            reasons.append(
                Reason(
                    kind="operator-time",
                    message=_change_words(before[name], after[name], calls),
                    effect=effect,
                    noise=noise,
                )
            )
    return sorted(reasons, key=lambda reason: -abs(reason.effect or 0.0))[:_MOST]


def _switch(a: OperatorSide, b: OperatorSide, stretch: float) -> Iterator[Reason]:
    sides = [
        [
            PointKernel(
                name=row.name, calls=row.calls, total_ns=row.total_ns or 0, share=row.share or 0.0
            )
            for row in run_side.table.rows
        ]
        for run_side in (a, b)
    ]
    message = switched(sides[0], sides[1], "operator time")
    if message:
        names = [{kernel.name for kernel in group} for group in sides]
        gone, new = (
            sum(kernel.total_ns for kernel in group if kernel.name not in other)
            for group, other in zip(sides, reversed(names), strict=True)
        )
        yield Reason(
            kind="operators-switched",
            message=message,
            effect=stretch * new / b.window_ns - gone / a.window_ns,
        )


def _change_words(before: HotspotRow, after: HotspotRow, call_ratio: float) -> str:
    """More calls per step, or more time per call: whichever ratio is larger; and other inputs."""
    time_ratio = (after.mean_ns or 0) / before.mean_ns if before.mean_ns else 1.0
    if call_ratio > 0 and abs(math.log(call_ratio)) > abs(math.log(max(time_ratio, 1e-9))):
        return f"{before.name} is called {call_ratio:.2f} times as often"
    return f"{before.name} takes {time_ratio:.2f} times as long per call" + (
        f", {other}" if (other := other_inputs(before, after)) else ""
    )


def other_inputs(row_a: HotspotRow, row_b: HotspotRow) -> str:
    """`on bfloat16 instead of float`, `on inputs 512x384 instead of 128x384`; empty where the
    inputs are alike or not known.
    """
    parts = []
    for words, before, after in (
        ("", _types(row_a.dtypes), _types(row_b.dtypes)),
        ("inputs ", _shapes(row_a.shapes), _shapes(row_b.shapes)),
    ):
        if before and after and before != after:
            parts.append(f"on {words}{after} instead of {before}")
    return " and ".join(parts)


def _types(text: str | None) -> str:
    """The distinct types of tensors, as torch wrote them: `float`, `c10::BFloat16`."""
    return ", ".join(
        dict.fromkeys(
            str(name).removeprefix("c10::")
            for name in _listed(text)
            if name and name not in ("Scalar", "ScalarList", "TensorList")
        )
    )


def _shapes(text: str | None) -> str:
    """`128x384, 384x384` of the first inputs that are tensors."""
    shapes = [
        extents
        for extents in _listed(text)
        if isinstance(extents, list) and extents and all(isinstance(size, int) for size in extents)
    ]
    return ", ".join("x".join(str(size) for size in extents) for extents in shapes[:_SHOWN])


def _listed(text: str | None) -> list[object]:
    try:
        inputs = json.loads(text or "[]")
    except ValueError:
        return []
    return inputs if isinstance(inputs, list) else []
