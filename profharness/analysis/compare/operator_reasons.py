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
        return self.table.total_ns / self.running


def side(summary: Summary, time: float) -> OperatorSide | None:
    """None for a run with device work, or whose operators were not recorded."""
    table = next((one for one in summary.hotspots if one.by == "op" and one.rows), None)
    running = summary.metrics.get("operators")
    if summary.partition is not None or table is None or running is None or not running.value:
        return None
    return OperatorSide(time, table, float(running.value))


def operator_reasons(a: OperatorSide, b: OperatorSide, noise: float | None) -> list[Reason]:
    """Operators that one run has alone, as one switch; those of both whose effect exceeds the noise
    and a twentieth of A's time. The largest first.
    """
    stretch, least = b.time / a.time, max(noise or 0.0, _LEAST)
    before, after = ({row.name: row for row in one.table.rows} for one in (a, b))
    found = list(_switch(a, b, stretch))
    for name in before.keys() & after.keys():
        effect = stretch * after[name].total_ns / b.window_ns - before[name].total_ns / a.window_ns
        if abs(effect) > least:
            calls = (after[name].calls / b.window_ns * stretch) / (before[name].calls / a.window_ns)
            found.append(
                Reason(
                    kind="operator-time",
                    message=_said(before[name], after[name], calls),
                    effect=effect,
                    noise=noise,
                )
            )
    return sorted(found, key=lambda one: -abs(one.effect or 0.0))[:_MOST]


def _switch(a: OperatorSide, b: OperatorSide, stretch: float) -> Iterator[Reason]:
    sides = [
        [
            PointKernel(name=row.name, calls=row.calls, total_ns=row.total_ns, share=row.share)
            for row in one.table.rows
        ]
        for one in (a, b)
    ]
    told = switched(sides[0], sides[1], "operator time")
    if told:
        names = [{one.name for one in group} for group in sides]
        gone, new = (
            sum(one.total_ns for one in group if one.name not in other)
            for group, other in zip(sides, reversed(names), strict=True)
        )
        yield Reason(
            kind="operators-switched",
            message=told,
            effect=stretch * new / b.window_ns - gone / a.window_ns,
        )


def _said(one: HotspotRow, two: HotspotRow, calls: float) -> str:
    """More calls per step, or more time per call: whichever ratio is larger; and other inputs."""
    each = two.mean_ns / one.mean_ns if one.mean_ns > 0 else 1.0
    if calls > 0 and abs(math.log(calls)) > abs(math.log(max(each, 1e-9))):
        return f"{one.name} is called {calls:.2f} times as often"
    return f"{one.name} takes {each:.2f} times as long per call" + (
        f", {other}" if (other := other_inputs(one, two)) else ""
    )


def other_inputs(one: HotspotRow, two: HotspotRow) -> str:
    """`on bfloat16 instead of float`, `on inputs 512x384 instead of 128x384`; empty where the
    inputs are alike or not known.
    """
    parts = []
    for words, before, after in (
        ("", _types(one.dtypes), _types(two.dtypes)),
        ("inputs ", _shapes(one.shapes), _shapes(two.shapes)),
    ):
        if before and after and before != after:
            parts.append(f"on {words}{after} instead of {before}")
    return " and ".join(parts)


def _types(text: str | None) -> str:
    """The distinct types of tensors, as torch wrote them: `float`, `c10::BFloat16`."""
    return ", ".join(
        dict.fromkeys(
            str(one).removeprefix("c10::")
            for one in _listed(text)
            if one and one not in ("Scalar", "ScalarList", "TensorList")
        )
    )


def _shapes(text: str | None) -> str:
    """`128x384, 384x384` of the first inputs that are tensors."""
    shapes = [
        one
        for one in _listed(text)
        if isinstance(one, list) and one and all(isinstance(size, int) for size in one)
    ]
    return ", ".join("x".join(str(size) for size in one) for one in shapes[:_SHOWN])


def _listed(text: str | None) -> list[object]:
    try:
        found = json.loads(text or "[]")
    except ValueError:
        return []
    return found if isinstance(found, list) else []
