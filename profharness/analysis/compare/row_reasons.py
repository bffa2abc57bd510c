"""Why one kernel's row of the hotspot table moved between two runs."""

from __future__ import annotations

import math
from collections.abc import Iterator

import msgspec

from profharness.analysis.compare.deltas import BY_DRIFT
from profharness.analysis.compare.reasons import (
    LEAST,
    MOST_NAMES,
    SAME_CALLS,
    SAME_LAUNCH,
    WORTH,
    shortened,
)
from profharness.analysis.records import HotspotRow, Hotspots
from profharness.stats.bootstrap import Z95


class RowReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why a hotspot moved: `noise` is the relative change of its mean that chance gives, None where
    not known.
    """

    message: str
    noise: float | None = None
    significant: bool | None = None


def row_reason(
    a: HotspotRow | None,
    b: HotspotRow | None,
    tables: tuple[Hotspots, Hotspots],
    clock: float | None,
) -> RowReason:
    """What changed about a kernel or an operator; `clock` is b's clock over a's where both are
    known.
    """
    if a is None or b is None:
        return RowReason(message="new" if a is None else "gone")
    noise = _noise(a, b)
    change = b.mean_ns / a.mean_ns - 1 if a.mean_ns and b.mean_ns is not None else 0.0
    significant = None if noise is None else abs(change) > noise
    causes = [*_calls(a, b), *_shape(a, b), *_switched(a, b, tables)]
    if significant and not causes:
        causes += [_clocked(change, clock)] if clock is not None and abs(clock - 1) > LEAST else []
        causes = [cause for cause in causes if cause] or [
            _beside(a, b, change, SAME_LAUNCH if tables[0].by == "kernel" else SAME_CALLS)
        ]
    return RowReason(message="; ".join(causes), noise=noise, significant=significant)


def _noise(a: HotspotRow, b: HotspotRow) -> float | None:
    """95 % bound on the ratio of two means, from the spread of the calls and the drift between two
    recordings.
    """
    scatter = [
        row.std_ns / math.sqrt(row.calls) / row.mean_ns
        for row in (a, b)
        if row.std_ns is not None and row.calls >= 3 and row.mean_ns
    ]
    return math.hypot(BY_DRIFT, *(Z95 * one for one in scatter)) if len(scatter) == 2 else None


def _calls(a: HotspotRow, b: HotspotRow) -> Iterator[str]:
    if a.calls and abs(b.calls / a.calls - 1) > WORTH:
        yield f"called {b.calls / a.calls:.2f} times as often"


def _shape(a: HotspotRow, b: HotspotRow) -> Iterator[str]:
    if a.workgroups is not None and b.workgroups is not None and a.workgroups != b.workgroups:
        yield f"launched with {b.workgroups} workgroups instead of {a.workgroups}"
    if (
        a.workgroup_size is not None
        and b.workgroup_size is not None
        and a.workgroup_size != b.workgroup_size
    ):
        sizes = ("x".join(map(str, size)) for size in (b.workgroup_size, a.workgroup_size))
        yield f"workgroups of {' threads instead of '.join(sizes)}"
    for name in ("fill", "occupancy"):
        before, after = getattr(a, name), getattr(b, name)
        if before is not None and after is not None and abs(after - before) > 0.05:
            yield f"{name} {before:.2f} -> {after:.2f}"


def _switched(a: HotspotRow, b: HotspotRow, tables: tuple[Hotspots, Hotspots]) -> Iterator[str]:
    """The kernels that an operator launches in one run only."""
    first, second = (
        {row.name for row in table.rows if row.op == name}
        for table, name in zip(tables, (a.name, b.name), strict=True)
    )
    if a.kernel_ns is not None and first and second and first != second:
        parts = [
            f"{word} {', '.join(sorted(shortened(name) for name in group)[:MOST_NAMES])}"
            for word, group in (("gone", first - second), ("new", second - first))
            if group
        ]
        yield f"kernels switched: {'; '.join(parts)}"


def _clocked(change: float, clock: float) -> str:
    """A kernel that follows the clock takes 1 / clock times as long."""
    follows = abs(math.log1p(change) + math.log(clock)) < 0.5 * abs(math.log1p(change))
    return f"the clock is {clock:.2f} times A's" if follows else ""


def _beside(a: HotspotRow, b: HotspotRow, change: float, otherwise: str) -> str:
    """Whether an operator's time moved on the device or on the host; `otherwise` where neither is
    known.
    """
    if a.kernel_ns is None or b.kernel_ns is None or not a.calls or not b.calls:
        return otherwise
    kernels = (b.kernel_ns / b.calls) / (a.kernel_ns / a.calls) - 1 if a.kernel_ns else 0.0
    return (
        f"its kernels take {1 + kernels:.2f} times as long"
        if abs(kernels) > 0.5 * abs(change)
        else "on the host: its kernels take as long as before"
    )
