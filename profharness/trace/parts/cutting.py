"""Parts of a trace for a viewer: a stretch of time, some steps, some ranks; and what was left out.
Pure.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from profharness.trace.clocks.align import TIME_COLUMNS
from profharness.trace.columns.table import NULL, Table
from profharness.trace.launches import join
from profharness.trace.model import I64, Requests, Trace
from profharness.trace.parts import select, step_ranges
from profharness.trace.parts.step_numbers import Ends, held, nothing_left, step_numbers, words
from profharness.units import format_exact_ns

Mask = npt.NDArray[np.bool_]
_FAR = np.iinfo(np.int64)
_LOG = "steps"  # the format of the hooks' own log of steps
_HOST = "host"  # and of their record of what Python did


@dataclass(frozen=True)
class StepRange:
    """The ranges of the program that are its steps. One that a run recorded counts where it
    matches; one asked for now must match.
    """

    pattern: str
    recorded: bool = False


class Told(IntEnum):
    """What says which steps there are; of several sources the best one counts."""

    NOTHING = 0
    NAMES = 1
    LOG = 2
    MARKS = 3


@dataclass(frozen=True)
class Cut:
    """What to keep: None is everything. Ends that are None are open.

    `window` is in ns after `origin_ns`. `steps` are numbers of steps, the second one not included;
    each process keeps its own steps, from the start of the first to the end of the last, and what
    was launched in them. `step_range` says which ranges of the program are steps.
    """

    window: tuple[int | None, int | None] | None = None
    steps: Ends | None = None
    ranks: frozenset[int] | None = None
    step_range: StepRange | None = None

    @property
    def is_all(self) -> bool:
        return self.window is None and self.steps is None and self.ranks is None

    def words(self) -> str:
        """What was asked for."""
        asked = []
        if self.window is not None:
            low, high = (None if end is None else format_exact_ns(end) for end in self.window)
            asked.append(f"the window {low or 'start'} to {high or 'end'}")
        if self.steps is not None:
            asked.append(words(self.steps))
        if self.ranks is not None:
            asked.append(f"ranks {', '.join(str(rank) for rank in sorted(self.ranks))}")
        return " and ".join(asked)


@dataclass(frozen=True)
class StepsFound:
    """Of some sources together: start of the first and end of the last wanted step (None without
    any), and the numbers of all steps.

    `told` is what says so, `matched` whether ranges that were asked for are among them; where they
    are not, `names` counts those there are.
    """

    window: tuple[int, int] | None = None
    numbers: tuple[int, int] | None = None
    told: Told = Told.NOTHING
    matched: bool = False
    names: Counter[str] = field(default_factory=Counter)

    def joined(self, other: StepsFound) -> StepsFound:
        """Of the sources of both; of those that tell it best."""
        matched, names = self.matched or other.matched, self.names + other.names
        if self.told != other.told:
            return replace(max(self, other, key=lambda one: one.told), matched=matched, names=names)
        return StepsFound(
            _hull(self.window, other.window),
            _hull(self.numbers, other.numbers),
            self.told,
            matched,
            names,
        )

    def check(self, wanted: Cut) -> None:
        """Raises UsageError where ranges were asked for that no source holds."""
        if wanted.step_range is not None and not wanted.step_range.recorded and not self.matched:
            raise step_ranges.unmatched(wanted.step_range.pattern, self.names)


def cut(
    trace: Trace, wanted: Cut, origin_ns: int, everywhere: StepsFound | None = None
) -> tuple[Trace, Counter[str]]:
    """The records that are wanted, whole, and how many of each table were left out.

    A record is inside if it starts inside; in steps, device work is where its launching call is.
    `everywhere` is about the whole of which `trace` is a part: sources without steps keep what lies
    in those of all others.
    """
    before = {name: len(table) for name, table in trace.tables()}
    part = trace
    if wanted.ranks is not None:
        part = select.by_source(part, [source.rank in wanted.ranks for source in part.sources])
    if wanted.steps is not None:
        part = _steps(part, wanted, everywhere or steps_found(part, wanted))
    if wanted.window is not None:
        low, high = wanted.window
        part = select.window(
            part,
            _FAR.min if low is None else origin_ns + low,
            _FAR.max if high is None else origin_ns + high,
        )
    return part, Counter(
        {
            name: before[name] - len(table)
            for name, table in part.tables()
            if before[name] > len(table)
        }
    )


def first_ns(trace: Trace) -> int | None:
    """The earliest start of any record but telemetry and what the hooks tell of Python; None
    without any.
    """
    starts = [
        int(_starts(table).min())
        for name, table in trace.tables()
        if name in TIME_COLUMNS and name not in ("samples", "host_samples", "marks") and len(table)
    ]
    marks = trace.marks
    of_host = np.array([source.format == _HOST for source in trace.sources] + [False], np.bool_)
    told = marks.start_ns[~of_host[marks.source]] if of_host.any() else marks.start_ns
    return min([*starts, *([int(told.min())] if len(told) else [])], default=None)


def steps_found(trace: Trace, wanted: Cut | None = None) -> StepsFound:
    """The wanted steps and all steps of a trace, as far as it tells them by marks, else by the
    hooks' log, else by the names of ranges.
    """
    wanted = wanted or Cut()
    ranged = _ranged(trace, wanted)
    names = (
        step_ranges.range_names(trace)
        if wanted.step_range is not None and ranged is None
        else Counter[str]()
    )
    numbers = step_numbers(ranged or trace)
    own = np.array([source.format != _LOG for source in trace.sources], np.bool_)[
        trace.marks.source
    ]
    for told, found in ((Told.MARKS, np.where(own, numbers, NULL)), (Told.LOG, numbers)):
        if (found != NULL).any():
            return _found(
                trace, found, wanted, StepsFound(told=told, matched=ranged is not None, names=names)
            )
    telling = step_ranges.telling(trace)
    if telling is None:
        return StepsFound(names=names)
    return _found(
        trace, step_numbers(telling.trace), wanted, StepsFound(told=Told.NAMES, names=names)
    )


def check_kept(wanted: Cut, rows: int, steps: StepsFound) -> None:
    """Raises UsageError where a selection left nothing. `rows` are what it left, `steps` those of
    the whole.
    """
    if rows or wanted.is_all:
        return
    named = wanted.steps is not None and steps.numbers is not None
    raise nothing_left(
        wanted.words(),
        held(steps.numbers)
        if named and steps.numbers
        else "look at what the files hold with `profharness metrics`",
    )


def _found(trace: Trace, numbers: I64, wanted: Cut, found: StepsFound) -> StepsFound:
    named, chosen = numbers[numbers != NULL], _wanted(numbers, wanted.steps or (None, None))
    starts, ends = trace.marks.start_ns[chosen], (trace.marks.start_ns + trace.marks.dur_ns)[chosen]
    return replace(
        found,
        window=(int(starts.min()), int(ends.max())) if len(starts) else None,
        numbers=(int(named.min()), int(named.max())),
    )


def _ranged(trace: Trace, wanted: Cut) -> Trace | None:
    """With the ranges asked for as steps; None where there are none."""
    found = (
        None
        if wanted.step_range is None
        else step_ranges.matching(trace, wanted.step_range.pattern)
    )
    return None if found is None else found.trace


def _numbers(trace: Trace, wanted: Cut, told: Told) -> I64:
    """The numbers of the steps of a part, where the whole tells them in this way."""
    if told > Told.NAMES:
        return step_numbers(_ranged(trace, wanted) or trace)
    telling = step_ranges.telling(trace)
    return step_numbers(telling.trace if telling else trace)


def _hull(one: tuple[int, int] | None, other: tuple[int, int] | None) -> tuple[int, int] | None:
    if one is None or other is None:
        return one or other
    return min(one[0], other[0]), max(one[1], other[1])


def _wanted(numbers: I64, steps: Ends) -> Mask:
    wanted: Mask = (
        (numbers != NULL)
        & (numbers >= (0 if steps[0] is None else steps[0]))
        & (numbers < (_FAR.max if steps[1] is None else steps[1]))
    )
    return wanted


def _steps(trace: Trace, wanted: Cut, everywhere: StepsFound) -> Trace:
    low, high = _step_windows(trace, wanted, everywhere)
    kept: dict[str, Mask] = {}
    for name, table in trace.tables():
        if name in TIME_COLUMNS:
            kept[name] = _inside(_starts(table), *_of_source(table, low, high))
    for name, records in (("kernels", trace.kernels), ("copies", trace.copies)):
        call = join(trace, records).call
        linked = call != NULL
        kept[name][linked] = kept["api"][call[linked]]
    kept["counters"] = trace.counters.kernel != NULL
    return select.rows(trace, kept)


def _step_windows(trace: Trace, wanted: Cut, everywhere: StepsFound) -> tuple[I64, I64]:
    """Start and end of the wanted steps of each source, and (last, for NULL) of all together;
    sources without steps have those of all.
    """
    numbers, marks = _numbers(trace, wanted, everywhere.told), trace.marks
    chosen = _wanted(numbers, wanted.steps or (None, None))
    count = len(trace.sources)
    low, high = np.full(count + 1, _FAR.max), np.full(count + 1, _FAR.min)
    np.minimum.at(low, marks.source[chosen], marks.start_ns[chosen])
    np.maximum.at(high, marks.source[chosen], (marks.start_ns + marks.dur_ns)[chosen])
    if everywhere.window is not None:
        low[count], high[count] = everywhere.window
    stepping = np.zeros(count + 1, np.bool_)
    stepping[marks.source[numbers != NULL]] = True
    return np.where(stepping, low, low[count]), np.where(stepping, high, high[count])


def _of_source(table: Table, low: I64, high: I64) -> tuple[I64, I64]:
    # every timed table has a source
    source: npt.NDArray[np.int32] = table.source  # type: ignore[attr-defined]  # all have one
    return low[source], high[source]


def _inside(at: I64, low: I64, high: I64) -> Mask:
    inside: Mask = (at >= low) & (at < high)
    return inside


def _starts(table: Table) -> I64:
    if isinstance(table, Requests):
        return table.sent_ns
    start: I64 = getattr(table, "at_ns" if hasattr(table, "at_ns") else "start_ns")
    return start
