"""How far the alignment can be trusted: marker self-check, steps of the wall clock, suspended
hosts. Pure.

Marker spans are written into a tool's trace between two reads of CLOCK_MONOTONIC. If the trace's
times carry the error e once aligned, then `start - e >= before` and `end - e <= after` for each: e
lies in the intersection of all `[end - after, start - before]`. That interval must contain 0, and
its width bounds the error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from profharness.findings import Finding, finding
from profharness.trace.clocks.align import SnapshotLike, recorded_clock, unaligned
from profharness.trace.columns.keys import distinct
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, ClockDomain, Source, Trace
from profharness.units import format_ns

STEP_NS = 100_000
SUSPENDED_NS = 1_000_000


RESOLUTION_NS = 1_000
"""onnxruntime and older tools write whole microseconds: a smaller residual says nothing."""


@dataclass(frozen=True)
class MarkerCheck:
    """The error of a source's aligned times lies in [low_ns, high_ns]; an empty interval
    contradicts itself.

    `residual_ns` is the part of the error that is certain (0 where the interval contains 0),
    `bound_ns` the width.
    """

    low_ns: int
    high_ns: int
    markers: int

    @property
    def is_empty(self) -> bool:
        return self.low_ns > self.high_ns

    @property
    def residual_ns(self) -> int:
        """Signed; for an empty interval the width of the contradiction."""
        if self.is_empty:
            return self.low_ns - self.high_ns
        return max(self.low_ns, 0) or min(self.high_ns, 0)

    @property
    def bound_ns(self) -> int:
        return abs(self.high_ns - self.low_ns)


def marker_check(starts: I64, ends: I64, before: I64, after: I64) -> MarkerCheck | None:
    """From the spans as the tool recorded them and their brackets, all in ns on one clock; None
    without markers.

    Raises ValueError when the four differ in length.
    """
    if not len(starts) == len(ends) == len(before) == len(after):
        raise ValueError(
            f"markers do not match their brackets: {len(starts)}, {len(ends)}, {len(before)}, "
            f"{len(after)}"
        )
    if not len(starts):
        return None
    return MarkerCheck(int(np.max(ends - after)), int(np.min(starts - before)), len(starts))


def with_marker_check(
    trace: Trace, source: int, check: MarkerCheck, between_hosts_ns: int = 0
) -> Trace:
    """The trace with residual and bound recorded for the source at this position; what its host's
    clock may be off from the reference's is part of the bound.
    """
    sources = list(trace.sources)
    sources[source] = replace(
        sources[source],
        residual_ns=check.residual_ns,
        bound_ns=check.bound_ns + between_hosts_ns,
    )
    return replace(trace, sources=tuple(sources))


def residual_finding(source: Source, check: MarkerCheck) -> Finding | None:
    """`clock-residual` when the markers contradict the alignment, or one another, by more than the
    tools' stamps resolve.
    """
    if abs(check.residual_ns) <= RESOLUTION_NS:
        return None
    if check.is_empty:
        return finding(
            "clock-residual",
            f"{source.path}: its {check.markers} markers disagree about its clock by "
            f"{format_ns(check.residual_ns)}",
            residual_ns=check.residual_ns,
            markers=check.markers,
        )
    return finding(
        "clock-residual",
        f"{source.path}: its times are off by at least {format_ns(check.residual_ns)} "
        f"after alignment (markers, ± {format_ns(check.bound_ns)})",
        residual_ns=check.residual_ns,
        bound_ns=check.bound_ns,
        markers=check.markers,
    )


@dataclass(frozen=True)
class Measured:
    """When a point was measured and where: CLOCK_MONOTONIC ns of its host."""

    point: str
    host: str
    start_ns: int
    end_ns: int


def clock_findings(
    trace: Trace,
    snapshots: Mapping[str, Sequence[SnapshotLike]],
    points: Sequence[Measured] = (),
) -> tuple[Finding, ...]:
    """What the snapshots say against the sources of this trace, aligned or not: steps, suspends and
    the points in which the host slept, sources left out.
    """
    found: list[Finding] = []
    confused = _kineto_on_amd(trace)
    for host, taken in snapshots.items():
        readings = sorted(taken, key=lambda reading: reading.monotonic_ns)
        sources = [source for source in trace.sources if source.host == host]
        here = sum(trace.sources[position].host == host for position in confused)
        found += [
            one
            for one in (_stepped(host, readings, sources), _suspended(host, readings, here))
            if one
        ]
        found += _slept_in(readings, [one for one in points if one.host in ("", host)])
    left = unaligned(trace)
    if len(trace.sources) > 1 and left:
        found += [
            finding("clock-unaligned", f"{source.path}: {source.alignment or 'not aligned'}")
            for source in left
        ]
    return tuple(found)


def _stepped(
    host: str, readings: Sequence[SnapshotLike], sources: Sequence[Source]
) -> Finding | None:
    """NTP slews REALTIME and MONOTONIC alike, so that their difference changes by steps only; while
    the host sleeps both the wall clock and BOOTTIME go on.
    """
    offsets = [reading.realtime_ns - reading.boot_ns for reading in readings]
    step = max(offsets, default=0) - min(offsets, default=0)
    if step <= STEP_NS:
        return None
    affected = sum(recorded_clock(source) is ClockDomain.REALTIME for source in sources)
    return finding(
        "clock-stepped",
        f"{host}: the wall clock was set by {format_ns(step)} during the run{_when(readings)}; "
        f"{affected} of its {len(sources)} sources stamp it",
        severity=None if affected else "info",
        step_ns=step,
        sources=affected,
    )


def _when(readings: Sequence[SnapshotLike]) -> str:
    """Between which readings the wall clock was set first, as times since the first reading."""
    for before, after in pairwise(readings):
        moved = (after.realtime_ns - after.boot_ns) - (before.realtime_ns - before.boot_ns)
        if abs(moved) > STEP_NS:
            first = readings[0].monotonic_ns
            way = "forward" if moved > 0 else "back"
            return (
                f" (first {way} by {format_ns(abs(moved))}, "
                f"{format_ns(before.monotonic_ns - first)} to "
                f"{format_ns(after.monotonic_ns - first)} after its first reading)"
            )
    return ""


def _slept_in(readings: Sequence[SnapshotLike], points: Sequence[Measured]) -> list[Finding]:
    """One for each point that was measured while the host slept, as far as two readings tell."""
    found = []
    for before, after in pairwise(readings):
        slept = (after.boot_ns - after.monotonic_ns) - (before.boot_ns - before.monotonic_ns)
        if slept < SUSPENDED_NS:
            continue
        width = after.monotonic_ns - before.monotonic_ns
        found += [
            finding(
                "suspended-host",
                f"the host slept for {format_ns(slept)} while this point was measured, or within "
                f"{format_ns(width)} of it",
                point=one.point,
                slept_ns=slept,
                slept_during_run_ns=slept,
            )
            for one in points
            if one.start_ns <= after.monotonic_ns and before.monotonic_ns <= one.end_ns
        ]
    return found


def _kineto_on_amd(trace: Trace) -> list[int]:
    """Sources in which torch's profiler stamped kernels of AMD devices."""
    amd = np.array([device.vendor == "amd" for device in trace.devices], np.bool_)
    known = trace.kernels.device != NULL
    sources = distinct(trace.kernels.source[known][amd[trace.kernels.device[known]]])
    return [position for position in sources.tolist() if trace.sources[position].format == "kineto"]


def _suspended(host: str, readings: Sequence[SnapshotLike], confused: int) -> Finding | None:
    """BOOTTIME runs on while the host sleeps. Kineto on ROCm shifts BOOTTIME stamps of kernels as
    if they were MONOTONIC; `confused` is the number of such sources.
    """
    slept = [reading.boot_ns - reading.monotonic_ns for reading in readings]
    if not slept or max(slept) < SUSPENDED_NS:
        return None
    during = max(slept) - min(slept)
    if during < SUSPENDED_NS and not confused:
        return None
    if during >= SUSPENDED_NS:
        text = f"{host}: slept for {format_ns(during)} during the run"
    else:
        text = (
            f"{host}: slept for {format_ns(max(slept))} since it was started; "
            f"kernels of {confused} torch traces "
            "may be shifted by as much against their host calls"
        )
    return finding("suspended-host", text, slept_ns=max(slept), slept_during_run_ns=during)
