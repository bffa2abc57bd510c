"""The own number of each step, and what to say of a choice of steps that a trace does not hold.
Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

import numpy as np

from profharness.errors import UsageError
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

Ends = tuple[int | None, int | None]
"""Numbers of steps, the second one not included; None is open."""

_DIGITS = 18  # as many as int64 holds whatever they are
_OWN = {
    "step": re.compile(
        rf"ProfilerStep#(\d{{1,{_DIGITS}}})|profharness\.step:(\d{{1,{_DIGITS}}})(?::\d*)?|step "
        rf"(\d{{1,{_DIGITS}}})",
        re.ASCII,
    ),
    "trial": re.compile(
        rf"profharness\.trial:.*:(\d{{1,{_DIGITS}}})|trial (\d{{1,{_DIGITS}}})",
        re.ASCII | re.DOTALL,
    ),
}
_FIRST = re.compile(r"\d+", re.ASCII)


def step_numbers(trace: Trace, kinds: Sequence[str] = ("step",)) -> I64:
    """For each mark of these kinds (step, trial) the number that it carries, in its column or in
    its name; NULL for all others.
    """
    return numbers_of(trace, np.arange(len(trace.marks)), kinds)


def numbers_of(trace: Trace, rows: I64, kinds: Sequence[str] = ("step",)) -> I64:
    """As `step_numbers`, for these marks alone and in their order: (rows,). A scan of many points
    asks for each of them, and must not look through the names of all marks each time.
    """
    kind, number = trace.marks.kind[rows], trace.marks.number[rows]
    found = np.full(len(rows), NULL, np.int64)
    for name in kinds:
        at = np.flatnonzero((kind == trace.strings.find(name)) & (kind != NULL))
        if len(at):
            found[at] = by_name(trace, rows[at], _named(_OWN[name]))
    return np.where(
        (number != NULL) & np.isin(kind, [trace.strings.find(name) for name in kinds]),
        number,
        found,
    )


def by_name(trace: Trace, rows: I64, number: Callable[[str], int]) -> I64:
    """What `number` gives for the names of these marks; each name is looked at once."""
    names, place = np.unique(trace.marks.name[rows], return_inverse=True)
    return np.array([number(trace.strings[int(code)]) for code in names], np.int64)[place]


def first_digits(text: str) -> int:
    """The number that the first digits of a text stand for; NULL without any, and for more than
    int64 holds.
    """
    found = _FIRST.search(text)
    return int(found[0]) if found is not None and len(found[0]) <= _DIGITS else NULL


def _named(pattern: re.Pattern[str]) -> Callable[[str], int]:
    def number(name: str) -> int:
        found = pattern.fullmatch(name)
        return (
            NULL
            if found is None
            else int(next(group for group in found.groups() if group is not None))
        )

    return number


def words(ends: Ends) -> str:
    """A choice of steps as it was asked for: `steps 5:8`."""
    return f"steps {'' if ends[0] is None else ends[0]}:{'' if ends[1] is None else ends[1]}"


def held(numbers: tuple[int, int], *, counted: bool = False) -> str:
    """What a trace holds: its first and last step. `counted`: their marks carry no number, so these
    are places in time.
    """
    return f"the trace holds steps {numbers[0]} to {numbers[1]}" + (
        " (they carry no numbers, and are counted from 0)" if counted else ""
    )


def nothing_left(asked: str, hint: str) -> UsageError:
    """The error for a selection that leaves no record."""
    return UsageError(f"{asked}: no record is left", hint)
