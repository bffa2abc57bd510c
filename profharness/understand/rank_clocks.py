"""Files of several ranks that share no clock, put on that of one of them by their collectives."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from profharness.analysis.communication.clocks import (
    BY_COMMON_END,
    CommonClock,
    UnitClock,
    common_clock,
)
from profharness.analysis.communication.collectives import Arrivals, relabelled
from profharness.analysis.communication.matching import matched
from profharness.trace.clocks.align import RECORDED_CLOCK, Conversion
from profharness.trace.model import PUT_ON, ClockDomain, Source
from profharness.units import format_ns, format_number


@dataclass(frozen=True, eq=False)
class OnOneClock:
    """Of each part its sources as they are on the common clock, and what converts its times (None
    where they stay).
    """

    sources: tuple[tuple[Source, ...], ...]
    conversions: tuple[Conversion | None, ...]


@dataclass(frozen=True, eq=False)
class RankPart:
    """What was read as one: its sources, and the collectives of its ranks."""

    sources: tuple[Source, ...]
    arrivals: tuple[Arrivals, ...]

    @property
    def path(self) -> str:
        """How it is called."""
        return self.sources[0].path if self.sources else ""


def on_one_clock(parts: Sequence[RankPart]) -> OnOneClock | str:
    """All parts on the clock of one of them, or why collectives cannot do that.

    Parts of one host that stamp the same clock are moved together: what their clock says of them
    stays exact.
    """
    clocks = [_clock_of(part, position) for position, part in enumerate(parts)]
    mixed = next((part.path for part, own in zip(parts, clocks, strict=True) if own is None), None)
    if mixed is not None:
        return f"{mixed} holds records of several clocks"
    owners = [at for at, part in enumerate(parts) for _ in part.arrivals]
    ranks = relabelled([(str(at), part.arrivals) for at, part in enumerate(parts)])
    groups, _ = matched(ranks)
    found = common_clock(ranks, groups, [clocks[at] for at in owners])
    lost = [part for part, own in zip(parts, clocks, strict=True) if own not in found.units]
    if lost:
        return _why_not(lost, found)
    first = next(part.path for part, own in zip(parts, clocks, strict=True) if own == found.base)
    domain = next(
        part.sources[0].clock for part, own in zip(parts, clocks, strict=True) if own == found.base
    )
    made = [
        tuple(_told(source, found.units[own], first, domain) for source in part.sources)
        for part, own in zip(parts, clocks, strict=True)
    ]
    return OnOneClock(
        tuple(made),
        tuple(None if own == found.base else found.units[own].conversion for own in clocks),
    )


def _clock_of(part: RankPart, position: int) -> Hashable:
    """What tells the clock of a part from those of others: clock and host, or, where a file does
    not say them, the part itself; None for a part of several clocks.
    """
    stated = {(source.clock, source.host) for source in part.sources}
    if len(stated) != 1:
        return None
    clock, host = stated.pop()
    return position if clock is ClockDomain.UNKNOWN or not host else (clock, host)


def _why_not(lost: Sequence[RankPart], found: CommonClock) -> str:
    without = next((part for part in lost if not part.arrivals), None)
    if without is not None:
        return f"{without.path} holds no collectives, which would tell"
    others = "with those of other files" if found.units else "with each other"
    return f"the collectives of {lost[0].path} do not agree {others} in kind and order"


def _told(source: Source, unit: UnitClock, first: str, domain: ClockDomain) -> Source:
    """The source on the common clock, which says how it got there and how right that is."""
    if not unit.calls:
        words = f"others are put on its clock {BY_COMMON_END} collectives"
        told = replace(source, alignment=_after(source, words), residual_ns=0, bound_ns=0)
    else:
        right = (
            "how far that can be wrong is not bounded"
            if unit.bound_ns is None
            else f"wrong by at most {format_ns(unit.bound_ns)} between them"
        )
        how = "one offset" if len(unit.conversion.knots_ns) == 1 else "offsets linear in time"
        even = (
            f" (calls contradict clocks that run evenly by {format_ns(unit.contradiction_ns)}, "
            "which is added)"
            if unit.contradiction_ns
            else ""
        )
        words = (
            f"put on the clock of {first} by {how}, {BY_COMMON_END} "
            f"{format_number(unit.calls)} collectives: 19 of 20 ends within "
            f"{format_ns(unit.scatter_ns)}, {right}{even}"
        )
        told = replace(
            source,
            alignment=_after(source, words),
            residual_ns=unit.scatter_ns,
            bound_ns=unit.bound_ns,
        )
    details = (*source.details, (RECORDED_CLOCK, source.clock.value), (PUT_ON, first))
    return replace(told, clock=domain, details=details)


def _after(source: Source, words: str) -> str:
    return f"{source.alignment}; {words}" if source.alignment else words
