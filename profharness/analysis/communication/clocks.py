"""One clock for ranks whose files have clocks of their own, by their collectives, with a bound of
how far it can be wrong. Pure.

Where the clocks stand comes from the common end: a collective that all contribute to ends on all
ranks at about one time. How wrong that can be comes from cause and effect: no rank ends such a call
before every rank has begun it, so that each call bounds the difference of two clocks from both
sides (`corridor`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from profharness.analysis.communication.collectives import Arrivals
from profharness.analysis.communication.corridor import furthest
from profharness.analysis.communication.matching import Matched, causal, meeting
from profharness.trace.clocks.align import Conversion
from profharness.units import format_ns

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
_SCATTER = 95
_WORTH_A_LINE = 0.75
"""Of the scatter about one offset: offsets linear in time must leave less."""
_FEWEST_OF_A_LINE = 24
BY_COMMON_END = "by the common end of"
"""In words of how times came onto a clock: that collectives told it."""


@dataclass(frozen=True, eq=False)
class UnitClock:
    """How one clock becomes the common one, by so many calls (0 of the base). `scatter_ns` is how
    far the ends of nineteen of twenty calls lie from it, `bound_ns` how far it can be wrong between
    its first and last call (None where no call bounds it), `contradiction_ns` by how much calls
    contradict clocks that run evenly.

    `shift_ns` is what to take off where one offset must do, `constant_ns` the scatter about that.
    """

    conversion: Conversion
    calls: int
    shift_ns: int
    constant_ns: int
    scatter_ns: int
    bound_ns: int | None
    contradiction_ns: int = 0


@dataclass(frozen=True, eq=False)
class CommonClock:
    """The clocks that could be put on the first one (`base`), by unit; `unit_of` is that of each
    rank by its position. `shared`: the ranks have one clock anyway.
    """

    units: dict[Hashable, UnitClock]
    unit_of: tuple[Hashable, ...]
    base: Hashable = None
    shared: bool = False

    def knows(self, positions: Sequence[int]) -> bool:
        """Whether all these ranks are on the clock."""
        return all(self.unit_of[position] in self.units for position in positions)

    def of(self, position: int) -> UnitClock:
        """The clock of the rank at a position."""
        return self.units[self.unit_of[position]]

    @property
    def shift_ns(self) -> dict[int, int]:
        """What to take off the times of each rank on the clock, where one number must do."""
        return {
            position: self.units[unit].shift_ns
            for position, unit in enumerate(self.unit_of)
            if unit in self.units
        }

    @property
    def constant_ns(self) -> int:
        """How far the ends of nineteen of twenty calls lie apart, with one offset each."""
        return max((unit.constant_ns for unit in self.units.values()), default=0)

    @property
    def scatter_ns(self) -> int:
        """How far the ends of nineteen of twenty calls lie apart on the clock."""
        return max((unit.scatter_ns for unit in self.units.values()), default=0)

    @property
    def bound_ns(self) -> int | None:
        """How far the clock can be wrong between any unit and the base; None where one has none."""
        bounds = [unit.bound_ns for unit in self.units.values()]
        known = [bound for bound in bounds if bound is not None]
        return max(known, default=0) if len(known) == len(bounds) else None

    @property
    def furthest_ns(self) -> int:
        """The largest difference between two clocks' readings that was taken off."""
        return max((abs(unit.shift_ns) for unit in self.units.values()), default=0)


@dataclass(frozen=True, eq=False)
class _Calls:
    """Calls of one group as its units saw them, (calls, units) ns: the middle of their members'
    ends, the last start and the first end. `causal` says which calls bound clocks.
    """

    units: tuple[Hashable, ...]
    ends: I64
    last_start: I64
    first_end: I64
    causal: Mask


@dataclass
class _Growing:
    """The units that are on the clock so far."""

    known: dict[Hashable, UnitClock] = field(default_factory=dict)

    def nearest(self, calls: _Calls) -> int | None:
        """The column of the unit on the clock that can be least wrong; None without any."""
        columns = [at for at, unit in enumerate(calls.units) if unit in self.known]
        return min(columns, key=lambda at: _or_far(self.known[calls.units[at]]), default=None)


def _or_far(unit: UnitClock) -> float:
    return np.inf if unit.bound_ns is None else unit.bound_ns


def common_clock(
    ranks: Sequence[Arrivals],
    groups: Sequence[Matched],
    unit_of: Sequence[Hashable] | None = None,
) -> CommonClock:
    """The clock of all units that calls connect with the first one of the largest group; ranks that
    share a clock as it is. Ranks of one unit share a clock; without `unit_of` each has its own.
    """
    units = tuple(range(len(ranks)) if unit_of is None else unit_of)
    members = {position for group in groups for position in group.ranks}
    if unit_of is None and all(ranks[position].common_clock for position in members):
        return CommonClock({position: _base() for position in members}, units, shared=True)
    left = sorted(
        (calls for group in groups if len((calls := _calls(group, ranks, units)).units) > 1),
        key=lambda calls: -len(calls.ends),
    )
    growing, base = _Growing(), None
    while left:
        reached = next((one for one in left if growing.nearest(one) is not None), None)
        if reached is None and growing.known:
            break
        calls = left[0] if reached is None else reached
        left = [one for one in left if one is not calls]
        column = growing.nearest(calls)
        if column is None:
            column, base = 0, calls.units[0]
            growing.known[base] = _base()
        _add(growing, calls, column)
    return CommonClock(growing.known, units, base)


def _base() -> UnitClock:
    nothing = np.zeros(1, np.int64)
    return UnitClock(Conversion(nothing, nothing, 0, 0), 0, 0, 0, 0, 0)


def _calls(group: Matched, ranks: Sequence[Arrivals], unit_of: Sequence[Hashable]) -> _Calls:
    """The calls of a group that end on all ranks at about one time, by unit."""
    meet = meeting(group, ranks)
    of_all = causal(group, ranks)[meet]
    start, end = group.start[meet], (group.start + group.dur)[meet]
    units = tuple(dict.fromkeys(unit_of[position] for position in group.ranks))
    if not meet.any():
        return _Calls((), end, start, end, of_all)
    columns = [
        [at for at, position in enumerate(group.ranks) if unit_of[position] == unit]
        for unit in units
    ]
    return _Calls(
        units,
        np.stack([_middle(end[:, own]) for own in columns], axis=1),
        np.stack([start[:, own].max(axis=1) for own in columns], axis=1),
        np.stack([end[:, own].min(axis=1) for own in columns], axis=1),
        of_all,
    )


def _middle(ends: I64) -> I64:
    """The median of each call over the ranks of a unit. Times since 1970 are too large for floating
    point, differences are not.
    """
    first = ends[:, :1]
    return np.asarray(first[:, 0] + np.median(ends - first, axis=1).astype(np.int64), np.int64)


def _add(growing: _Growing, calls: _Calls, column: int) -> None:
    """Put each unit of the calls that is not there yet on the clock, by that of `column`."""
    of_base = growing.known[calls.units[column]]
    there = of_base.conversion
    ends = there(calls.ends[:, column])
    last_start, first_end = (
        there(calls.last_start[:, column]),
        there(calls.first_end[:, column]),
    )
    for at, unit in enumerate(calls.units):
        if unit not in growing.known:
            apart = calls.ends[:, at] - ends
            low = calls.last_start[:, at] - first_end
            high = calls.first_end[:, at] - last_start
            own = (calls.ends[:, at], apart, low, high, calls.causal)
            growing.known[unit] = _measured(own, of_base)


def _measured(own: tuple[I64, I64, I64, I64, Mask], of_base: UnitClock) -> UnitClock:
    """From the moments of its calls, how far its ends lie behind the base's, and the least and most
    that each call lets that be.
    """
    at, apart, low, high, causal = own
    middle = int(np.median(apart))
    constant = _off(apart - middle)
    knots, offsets = np.array([at[0]], np.int64), np.array([-middle], np.int64)
    conversion = Conversion(knots, offsets, int(at[0]), int(at[-1]))
    line, scatter = _line(at, apart), constant
    if line is not None and (off := _off(at - line(at) - apart)) < _WORTH_A_LINE * constant:
        conversion, scatter = line, off
    bound, contradiction = None, 0
    if causal.any() and of_base.bound_ns is not None:
        estimate = at[causal] - conversion(at[causal])
        most, contradiction = furthest(at[causal], low[causal] - estimate, high[causal] - estimate)
        bound = most + contradiction + of_base.bound_ns
    return UnitClock(
        conversion,
        len(at),
        middle,
        constant,
        max(scatter, of_base.scatter_ns),
        bound,
        max(contradiction, of_base.contradiction_ns),
    )


def _off(residuals: I64) -> int:
    return int(np.ceil(np.percentile(np.abs(residuals), _SCATTER)))


def _line(at: I64, apart: I64) -> Conversion | None:
    """Offsets along the line through the middles of the first and the last third; None of few
    calls.
    """
    count = len(at)
    if count < _FEWEST_OF_A_LINE:
        return None
    zero, level = int(at[0]), int(apart[0])
    third = count // 3
    early, late = slice(0, third), slice(count - third, count)
    x = [float(np.median(at[part] - zero)) for part in (early, late)]
    y = [float(np.median(apart[part] - level)) for part in (early, late)]
    if x[1] <= x[0]:
        return None
    slope = (y[1] - y[0]) / (x[1] - x[0])
    ends = [y[0] + slope * (moment - x[0]) for moment in (0.0, float(at[-1] - zero))]
    return Conversion(
        at[[0, -1]],
        np.array([-level - round(end) for end in ends], np.int64),
        zero,
        int(at[-1]),
    )


def words(clock: CommonClock) -> str:
    """How the clocks were put together, and how right that is."""
    bound = (
        "how far they can be wrong is not bounded"
        if clock.bound_ns is None
        else f"wrong by at most {format_ns(clock.bound_ns)}"
    )
    return (
        f"{BY_COMMON_END} collectives (clocks up to {format_ns(clock.furthest_ns)} apart; "
        f"19 of 20 ends within {format_ns(clock.scatter_ns)}, {bound}{against(clock)})"
    )


def against(clock: CommonClock) -> str:
    """What to add where the calls contradict clocks that run evenly; empty where none does."""
    most = max((unit.contradiction_ns for unit in clock.units.values()), default=0)
    return (
        f"; calls contradict clocks that run evenly by {format_ns(most)}, which is added"
        if most
        else ""
    )
