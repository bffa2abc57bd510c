"""Ranges of the program (roctx, NVTX, record_function) that stand for its steps. Pure.

Which of them do is what the user says by a regular expression; or, where a trace marks no steps at
all, names such as `step 3` and `iteration 3` say it, if nothing else can be meant by them.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from profharness.errors import UsageError
from profharness.trace.columns.keys import pack
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Strings, Trace
from profharness.trace.parts.step_numbers import by_name, first_digits

NAMED = "ranges named like '{}', since the trace marks no other steps"
MATCHED = "ranges whose name matches '{}'"
_TELLING = re.compile(r"(step|iteration|iter)[ _:#-]{0,2}(\d+)", re.ASCII | re.IGNORECASE)
_SHOWN = 5
_RECORDING = (
    "roctx ranges are recorded by --profile rocprofv3 and rocprof-sys, "
    "those of record_function by --profile torch"
)

Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class Ranged:
    """A trace in which ranges became steps, and the words for where its steps come from."""

    trace: Trace
    words: str


@lru_cache(maxsize=8)
def compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression of --step-range. Raises UsageError with the reason for one that is
    none.
    """
    try:
        return re.compile(pattern)
    except (re.error, OverflowError, RecursionError) as error:
        raise UsageError(
            f"--step-range: '{pattern}' is not a regular expression ({error})",
            r"write what the whole name of a range matches, such as 'iteration (\d+)', "
            r"and quote it for the shell",
        ) from error


def matching(trace: Trace, pattern: str) -> Ranged | None:
    """The trace in which every range whose whole name matches is a step; None where there is no
    such range.

    Its number is what the first digits in the expression's first group (without groups: in the
    name) say. Ranges of a process that say none, or all the same, are counted from 0 in order of
    time. In a file that has such ranges other marks of steps and trials are plain ranges from then
    on. Raises UsageError as `compiled`.
    """
    wanted = compiled(pattern)

    def number(name: str) -> int:
        found = wanted.fullmatch(name)
        if found is None:
            return _OTHER
        return first_digits((found[1] or "") if wanted.groups else name)

    rows = _ranges(trace, ("range", "step"))
    numbers = by_name(trace, rows, number)
    rows, numbers = rows[numbers != _OTHER], numbers[numbers != _OTHER]
    return (
        Ranged(_with_steps(trace, rows, _counted(trace, rows, numbers)), MATCHED.format(pattern))
        if len(rows)
        else None
    )


_OTHER = -2  # a name that does not match


def telling(trace: Trace) -> Ranged | None:
    """The trace in which ranges such as `step 3`, `step_3`, `iteration 3` or `iter 3` are steps;
    None where no file has them beyond doubt.

    Of a file that is: one of these words alone, at least two of them, and in each process one after
    the other, with growing numbers. Phases of a step that are called `step 1`, `step 2` in each
    repetition do not grow.
    """
    rows = _ranges(trace, ("range",))
    numbers = by_name(trace, rows, _told_number)
    rows, numbers = rows[numbers != NULL], numbers[numbers != NULL]
    clear = np.zeros(len(rows), np.bool_)
    for source in np.unique(trace.marks.source[rows]):
        mine = trace.marks.source[rows] == source
        clear |= mine & _beyond_doubt(trace, rows[mine], numbers[mine])
    if not clear.any():
        return None
    example = trace.strings[int(trace.marks.name[rows[clear][0]])]
    return Ranged(_with_steps(trace, rows[clear], numbers[clear]), NAMED.format(example))


def has_steps(trace: Trace) -> bool:
    """Whether any mark is a step or a trial."""
    kinds = [code for code in map(trace.strings.find, ("step", "trial")) if code != NULL]
    return bool(np.isin(trace.marks.kind, kinds).any())


def unmatched(pattern: str, names: Counter[str]) -> UsageError:
    """The error for an expression that no range matches, with the names of some that there are."""
    return UsageError(
        f"--step-range {pattern}: no range of the program has a name that matches as a whole",
        there_are(names),
    )


def there_are(names: Counter[str]) -> str:
    """Some of the names, the most frequent first; how to record ranges where there are none."""
    if not names:
        return f"the trace holds no ranges of the program: {_RECORDING}"
    known = sorted(_folded(names).items(), key=lambda pair: (-pair[1], pair[0]))
    shown = ", ".join(repr(name) for name, _ in known[:_SHOWN])
    return (
        "ranges there are "
        f"{shown}{f' and {len(known) - _SHOWN} more names' if len(known) > _SHOWN else ''}"
    )


def range_names(trace: Trace) -> Counter[str]:
    """How often ranges of each name are there. Of names that differ by numbers alone the lowest
    stands for all.
    """
    rows = _ranges(trace, ("range",))
    codes, counts = np.unique(trace.marks.name[rows], return_counts=True)
    return _folded(
        Counter(
            {
                trace.strings[code]: count
                for code, count in zip(codes.tolist(), counts.tolist(), strict=True)
            }
        )
    )


def _folded(names: Counter[str]) -> Counter[str]:
    """Counts of several files come together here, whose lowest names may differ."""
    lowest: dict[str, str] = {}
    found: Counter[str] = Counter()
    for name in sorted(names, key=lambda name: (len(name), name)):
        found[lowest.setdefault(re.sub(r"\d+", "0", name), name)] += names[name]
    return found


def _ranges(trace: Trace, kinds: tuple[str, ...]) -> I64:
    """Marks of these kinds that last: an instant is no step."""
    marks = trace.marks
    codes = [code for code in map(trace.strings.find, kinds) if code != NULL]
    found: I64 = np.flatnonzero(np.isin(marks.kind, codes) & (marks.dur_ns > 0))
    return found


def _processes(trace: Trace, rows: I64) -> I64:
    process: I64 = pack([trace.marks.source[rows], trace.marks.pid[rows]])
    return process


def _counted(trace: Trace, rows: I64, numbers: I64) -> I64:
    """The numbers, or the places in time of the processes whose ranges say none or all the same."""
    process, result = _processes(trace, rows), numbers.copy()
    for one in np.unique(process):
        mine = np.flatnonzero(process == one)
        own = numbers[mine]
        if (own == NULL).any() or (len(own) > 1 and (own == own[0]).all()):
            result[mine[np.argsort(trace.marks.start_ns[rows[mine]], kind="stable")]] = np.arange(
                len(mine)
            )
    return result


def _told_number(name: str) -> int:
    found = _TELLING.fullmatch(name)
    return NULL if found is None else first_digits(found[2])


def _beyond_doubt(trace: Trace, rows: I64, numbers: I64) -> bool:
    marks = trace.marks
    found = (_TELLING.match(trace.strings[int(code)]) for code in np.unique(marks.name[rows]))
    if len(rows) < 2 or len({one[1].casefold() for one in found if one is not None}) > 1:
        return False
    process = _processes(trace, rows)
    order = np.lexsort((marks.start_ns[rows], process))
    together = np.diff(process[order]) == 0
    starts, ends = marks.start_ns[rows][order], (marks.start_ns[rows] + marks.dur_ns[rows])[order]
    return bool((~together | ((np.diff(numbers[order]) > 0) & (starts[1:] >= ends[:-1]))).all())


def _with_steps(trace: Trace, rows: I64, numbers: I64) -> Trace:
    """These marks are the steps of their sources, with these numbers."""
    marks, strings = trace.marks, Strings(trace.strings.texts)
    others = np.isin(marks.source, marks.source[rows]) & np.isin(
        marks.kind, [code for code in map(strings.find, ("step", "trial")) if code != NULL]
    )
    kind, number = np.where(others, strings.code("range"), marks.kind), marks.number.copy()
    kind[rows], number[rows] = strings.code("step"), numbers
    return replace(trace, strings=strings, marks=marks.with_columns(kind=kind, number=number))
