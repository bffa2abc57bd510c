"""Puts the times of all sources on one axis: CLOCK_BOOTTIME of the reference host. Pure.

A reader says which clock a source stamps; snapshots (readings of all clocks of a host at one
instant, taken beside the run) say how that clock stood to the others. In between the offset is
linear; where all readings agree with one offset within their own widths, that offset is used as it
is, so that equal times stay equal and nesting stays exact. Durations are never changed. Nothing is
guessed: a source without a known clock or without snapshots stays as it is and says so in
`Source.alignment`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from profharness.trace.columns.table import NULL, Table
from profharness.trace.model import I64, ClockDomain, Source, Trace
from profharness.units import format_ns

# Columns that hold times of the source's clock; all other columns of nanoseconds are lengths.
TIME_COLUMNS: dict[str, tuple[str, ...]] = {
    "kernels": ("start_ns",),
    "copies": ("start_ns",),
    "api": ("start_ns",),
    "ops": ("start_ns",),
    "marks": ("start_ns",),
    "samples": ("at_ns", "until_ns"),
    "requests": ("intended_ns", "sent_ns", "done_ns", "server_start_ns"),
    "host_samples": ("at_ns",),
    "allocations": ("at_ns",),
}
RECORDED_CLOCK = "recorded_clock"
_LONGEST = 1 << 52  # ns, 52 days: float64 holds such numbers exactly
_FIELDS = {
    ClockDomain.REALTIME: "realtime_ns",
    ClockDomain.MONOTONIC: "monotonic_ns",
    ClockDomain.MONOTONIC_RAW: "monotonic_raw_ns",
    ClockDomain.BOOTTIME: "boot_ns",
}


class SnapshotLike(Protocol):
    """Readings of one host's clocks at one instant, all within `width_ns`: `Snapshot` and the
    manifest's record.
    """

    @property
    def boot_ns(self) -> int: ...
    @property
    def monotonic_ns(self) -> int: ...
    @property
    def monotonic_raw_ns(self) -> int: ...
    @property
    def realtime_ns(self) -> int: ...
    @property
    def width_ns(self) -> int: ...
    @property
    def reference(self) -> str: ...
    @property
    def reference_ns(self) -> int | None: ...
    @property
    def reference_width_ns(self) -> int: ...


@dataclass(frozen=True)
class Snapshot:
    """One reading of a host's clocks, in ns. `phase` is before, during or after the run.

    `reference_ns` is BOOTTIME of the host `reference` at the same instant, within
    `reference_width_ns` to both sides, where packets told it.
    """

    host: str
    phase: str
    boot_ns: int
    monotonic_ns: int
    monotonic_raw_ns: int
    realtime_ns: int
    width_ns: int
    reference: str = ""
    reference_ns: int | None = None
    reference_width_ns: int = 0


@dataclass(frozen=True, eq=False)
class Conversion:
    """From one clock to another: offsets (ns) to add at rising times of the first, linear in
    between.

    Before the first and after the last knot the offset is that of the nearest one. `first_ns` and
    `last_ns` bound the times that snapshots enclose. Integer arithmetic throughout: exact to 1 ns,
    and never decreasing unless the other clock was set back.
    """

    knots_ns: I64
    offsets_ns: I64
    first_ns: int
    last_ns: int

    def __call__(self, times: I64) -> I64:
        """The same instants on the other clock."""
        if len(self.knots_ns) == 1:
            shifted: I64 = times + self.offsets_ns[0]
            return shifted
        segment = np.clip(
            np.searchsorted(self.knots_ns, times, "right") - 1, 0, len(self.knots_ns) - 2
        )
        start = self.knots_ns[segment]
        length = self.knots_ns[segment + 1] - start
        rise = self.offsets_ns[segment + 1] - self.offsets_ns[segment]
        inside = np.clip(times - start, 0, length)
        converted: I64 = times + self.offsets_ns[segment] + _scaled(rise, inside, length)
        return converted

    def outside_ns(self, times: I64) -> I64:
        """How far each time lies before the first or after the last snapshot; 0 for those
        between.
        """
        far: I64 = np.maximum(np.maximum(self.first_ns - times, times - self.last_ns), 0)
        return far


def _scaled(rise: I64, part: I64, whole: I64) -> I64:
    """`rise * part // whole`, exact though the product may need more than 64 bits; 0 <= part <=
    whole, and all below 2**52.

    The quotient in floating point is off by at most 2; the remainder then fits into 64 bits, where
    the products may wrap.
    """
    quotient = np.floor(rise.astype(np.float64) * part / whole).astype(np.int64)
    remainder = rise * part - quotient * whole
    exact: I64 = quotient + remainder // whole
    return exact


def conversion(
    snapshots: Sequence[SnapshotLike], origin: ClockDomain, target: ClockDomain
) -> Conversion:
    """From clock `origin` to clock `target` of one host. At least one snapshot; both clocks must be
    real ones.

    A reading at which `origin` had been set back is left out (`clocks.checks` reports such a step).
    """
    read = [
        (getattr(s, _FIELDS[origin]), getattr(s, _FIELDS[target]), s.width_ns)
        for s in sorted(snapshots, key=lambda s: s.monotonic_ns)
    ]
    return _between(read)


def _between(read: Sequence[tuple[int, int, int]]) -> Conversion:
    """From readings in order: of the first clock, of the second, and how far these may lie
    apart.
    """
    rising = [read[0]]
    rising += [
        one for one, highest in zip(read[1:], _highest(read), strict=False) if one[0] > highest
    ]
    first, last = rising[0][0], rising[-1][0]
    low = max(to - at - width for at, to, width in rising)
    high = min(to - at + width for at, to, width in rising)
    if low <= high or len(rising) == 1:
        return Conversion(np.array([first]), np.array([(low + high) // 2]), first, last)
    knots = list(_knots([(at, to - at) for at, to, _ in rising]))
    return Conversion(
        np.array([at for at, _ in knots]), np.array([offset for _, offset in knots]), first, last
    )


def _highest(read: Sequence[tuple[int, int, int]]) -> Iterator[int]:
    highest = read[0][0]
    for at, _, _ in read:
        highest = max(highest, at)
        yield highest


def _knots(points: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """The points, with further ones between where they are too far apart."""
    for (start, offset), (end, following) in pairwise(points):
        pieces = 1 + max(abs(following - offset), end - start) // _LONGEST
        for piece in range(pieces):
            at = start + (end - start) * piece // pieces
            yield at, offset + (following - offset) * (at - start) // (end - start)
    yield points[-1]


@dataclass(frozen=True)
class Route:
    """The conversions that take one source to the run clock, in order, and how it is said in
    words. `bound_ns` is how far the clocks of its host and the reference can be apart at the
    readings; None where that was not measured.
    """

    steps: tuple[Conversion, ...]
    words: str
    bound_ns: int | None = None

    def __call__(self, times: I64) -> I64:
        for step in self.steps:
            times = step(times)
        return times


def route(
    clock: ClockDomain, host: str, snapshots: Mapping[str, Sequence[SnapshotLike]], reference: str
) -> Route | str:
    """How times of `clock` on `host` become BOOTTIME of `reference`, or why they cannot.

    Between hosts that exchanged packets these tell; else the wall clocks are taken as equal. How
    true that is depends on the site's time service, and the words say so.
    """
    if clock is ClockDomain.RUN:
        return Route((), "already on the run's clock")
    if clock not in _FIELDS:
        return "the file does not say which clock it stamps"
    if not host:
        return "the file does not say on which host it was recorded"
    for needed in (host, reference):
        if not snapshots.get(needed):
            return f"there are no clock readings of host {needed}"
    if host == reference:
        step = conversion(snapshots[host], clock, ClockDomain.BOOTTIME)
        return Route((step,), _words(clock, step, snapshots[host]))
    linked = _linked(snapshots[host], reference)
    return (
        _by_packets(clock, snapshots[host], linked)
        if linked
        else _by_wall_clocks(clock, host, snapshots, reference)
    )


def _by_wall_clocks(
    clock: ClockDomain, host: str, snapshots: Mapping[str, Sequence[SnapshotLike]], reference: str
) -> Route:
    local = conversion(snapshots[host], clock, ClockDomain.REALTIME)
    shared = conversion(snapshots[reference], ClockDomain.REALTIME, ClockDomain.BOOTTIME)
    return Route(
        (local, shared),
        f"{_words(clock, local, snapshots[host])}, then through the wall clocks of {host} and "
        f"{reference}, whose difference was not measured",
    )


def _linked(snapshots: Sequence[SnapshotLike], reference: str) -> list[tuple[int, int, int]]:
    """BOOTTIME of the host and of the reference at the instants that packets told, and their
    widths.
    """
    return sorted(
        (one.boot_ns, one.reference_ns, one.reference_width_ns)
        for one in snapshots
        if one.reference == reference and one.reference_ns is not None
    )


def link_bound_ns(snapshots: Sequence[SnapshotLike], reference: str) -> int | None:
    """How far BOOTTIME of both hosts can be apart at the instants that packets told; None without
    any.
    """
    return max((width for _, _, width in _linked(snapshots, reference)), default=None)


def _by_packets(
    clock: ClockDomain,
    snapshots: Sequence[SnapshotLike],
    linked: Sequence[tuple[int, int, int]],
) -> Route:
    local = conversion(snapshots, clock, ClockDomain.BOOTTIME)
    there = _between(linked)
    bound = max(width for _, _, width in linked)
    name = next(one.reference for one in snapshots if one.reference_ns is not None)
    how = "one offset" if len(there.knots_ns) == 1 else "offsets linear in time"
    return Route(
        (local, there),
        f"{_words(clock, local, snapshots)}, then to the clock of {name} by {how} from "
        f"{len(linked)} readings by packets, within {format_ns(bound)}",
        bound + max(one.width_ns for one in snapshots),
    )


def _words(clock: ClockDomain, step: Conversion, snapshots: Sequence[SnapshotLike]) -> str:
    width = max(s.width_ns for s in snapshots)
    how = "one offset" if len(step.knots_ns) == 1 else "offsets linear in time"
    return (
        f"{clock.value} by {how} from {len(snapshots)} clock readings of at most "
        f"{format_ns(width)} width"
    )


def align(trace: Trace, snapshots: Mapping[str, Sequence[SnapshotLike]], reference: str) -> Trace:
    """The same records on CLOCK_BOOTTIME of host `reference`; `snapshots` are by host.

    Each aligned source has clock RUN, and says in `alignment` how it was aligned and how far times
    lie outside of the snapshots; its own clock stays in `details` as `recorded_clock`. Sources that
    cannot be aligned keep their times and clock, and `alignment` begins with "not aligned".
    """
    routes = [route(source.clock, source.host, snapshots, reference) for source in trace.sources]
    tables = {name: table for name, table in trace.tables() if name in TIME_COLUMNS}
    outside = np.zeros(len(trace.sources), np.int64)
    changed = {
        name: _converted(table, TIME_COLUMNS[name], routes, outside)
        for name, table in tables.items()
    }
    sources = tuple(
        _described(source, way, int(far))
        for source, way, far in zip(trace.sources, routes, outside, strict=True)
    )
    # each table keeps its own type
    return replace(trace, sources=sources, **changed)  # type: ignore[arg-type]  # same types


def _converted(
    table: Table, columns: Sequence[str], routes: Sequence[Route | str], outside: I64
) -> Table:
    """The table with its times converted by source; `outside` takes each source's farthest time
    from any snapshot.
    """
    if not len(table):
        return table
    changed = {column: getattr(table, column).copy() for column in columns}
    for position, rows in rows_by_source(table):
        way = routes[position]
        if isinstance(way, str) or not way.steps:
            continue
        for times in changed.values():
            known = rows[times[rows] != NULL]
            if len(known):
                outside[position] = max(
                    outside[position], int(way.steps[0].outside_ns(times[known]).max())
                )
                times[known] = way(times[known])
    return table.with_columns(**changed)


def moved(trace: Trace, conversion: Conversion) -> Trace:
    """The trace with all its times converted, whatever its sources."""
    changed = {
        name: table.with_columns(
            **{
                column: np.where(times == NULL, NULL, conversion(times))
                for column in TIME_COLUMNS[name]
                if (times := getattr(table, column)) is not None
            }
        )
        for name, table in trace.tables()
        if name in TIME_COLUMNS and len(table)
    }
    return replace(trace, **changed)  # type: ignore[arg-type]  # same types


def rows_by_source(table: Table) -> Iterator[tuple[int, I64]]:
    """Each source that has rows in the table, with the positions of its rows in rising order."""
    source = table.source  # type: ignore[attr-defined] # every table with times has this column
    order = np.argsort(source, kind="stable")
    positions, first = np.unique(source[order], return_index=True)
    for position, rows in zip(positions, np.split(order, first[1:]), strict=False):
        if position != NULL:
            yield int(position), rows


def _described(source: Source, way: Route | str, outside_ns: int) -> Source:
    if isinstance(way, str):
        return replace(source, alignment=f"not aligned: {way}")
    if not way.steps:
        return source
    words = way.words
    if outside_ns:
        words += (
            f"; times up to {format_ns(outside_ns)} outside of the readings take the nearest offset"
        )
    if source.alignment:  # how the file's times came onto the clock that it states
        words = f"{source.alignment}; {words}"
    return replace(
        source,
        clock=ClockDomain.RUN,
        bound_ns=source.bound_ns if way.bound_ns is None else way.bound_ns + (source.bound_ns or 0),
        alignment=words,
        details=(*source.details, (RECORDED_CLOCK, source.clock.value)),
    )


def recorded_clock(source: Source) -> ClockDomain:
    """The clock that the source's file stamps, also after alignment."""
    return ClockDomain(dict(source.details).get(RECORDED_CLOCK, source.clock.value))


def unaligned(trace: Trace) -> tuple[Source, ...]:
    """The sources that are not on the run's clock."""
    return tuple(source for source in trace.sources if source.clock is not ClockDomain.RUN)
