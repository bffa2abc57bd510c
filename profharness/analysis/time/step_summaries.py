"""Every figure step by step, each on its devices when they ran what it launched. A step of several
processes lasts from its first start to its last end over all of them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.measurement import Measurement
from profharness.analysis.metrics import figures
from profharness.analysis.records import StepSummary
from profharness.analysis.summarise import device_partition
from profharness.analysis.time.believed import believed
from profharness.analysis.time.steps import Step, device_steps, in_common, steps
from profharness.analysis.time.whole import Whole
from profharness.analysis.time.windows import Windows
from profharness.errors import InputError, UsageError
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.model import Trace
from profharness.trace.parts.step_numbers import held, nothing_left, words
from profharness.trace.parts.step_ranges import range_names, there_are

STEPS, _STEP_RECORDS = 10_000, 100
"""Steps that are measured each on its own, besides one for so many records: each takes milliseconds
however little is in it. A step of training has some thousand records, one of a small model at
least a hundred.
"""
_OWN_MARKS = "profharness."


@dataclass(frozen=True)
class Selection:
    """Steps by their own number (by position in time where they have none), `first` and up to
    `last` (not included); None for no bound.
    """

    first: int | None = None
    last: int | None = None

    def holds(self, number: int | None) -> bool:
        """Whether a step is wanted; one without a number only where all are."""
        if number is None:
            return self == Selection()
        return (self.first is None or number >= self.first) and (
            self.last is None or number < self.last
        )


def parse(text: str) -> Selection:
    """`all`, `3`, `10:30`, `10:` or `:5`. Raises UsageError for anything else, and for an empty
    range.
    """
    if text == "all":
        return Selection()
    low, colon, high = text.partition(":")
    if not all(part.isdecimal() or not part for part in (low, high)) or not (low or high):
        raise UsageError(
            f"--steps: {text!r} names no steps",
            "all, one step as 3, or a range as 10:30 (the end is not included)",
        )
    if not colon:
        return Selection(int(low), int(low) + 1)
    if low and high and int(low) >= int(high):
        raise UsageError(f"--steps: the range {text} is empty", "the second end is not included")
    return Selection(int(low) if low else None, int(high) if high else None)


def step_summaries(
    trace: Trace, facts: KernelFacts, selection: Selection
) -> tuple[StepSummary, ...]:
    """The chosen steps (or trials) in order of time, each measured on its own; none where all were
    asked for and the trace marks none.

    Raises UsageError, with the steps that there are, where it holds none of those that were asked
    for, and InputError where they are more than a trace of so many records has.
    """
    chosen = _chosen(selection, trace)
    _few_enough(len(chosen), trace)
    if (shown := believed(trace)) is not trace:
        trace, facts = shown, KernelFacts(shown, facts.yardstick)
    whole = Whole(trace, facts)
    summaries = []
    for number, group in chosen:
        inside = Measurement(trace, _windows(group), known=whole)
        spans = [step.span_ns for step in group]
        start, end = min(start for start, _ in spans), max(end for _, end in spans)
        name = f"{group[0].point} {_plain(group[0])}".strip()
        summaries.append(
            StepSummary(
                step=name,
                number=number,
                start_ns=start,
                dur_ns=end - start,
                processes=len(group),
                partition=device_partition(inside),
                metrics=figures(inside),
            )
        )
    return tuple(summaries)


def _windows(group: Sequence[Step]) -> Windows:
    """The windows of steps that belong together."""
    marks = intervals.merge(
        intervals.of([step.start_ns for step in group], [step.end_ns for step in group])
    )
    if not group[0].ran:
        return Windows(marks, group[0].label, 1)
    times: dict[int, Intervals] = {}
    for one in (one for step in group for one in step.ran):
        own = intervals.window(one.start_ns, one.end_ns)
        times[one.device] = intervals.union(times.get(one.device, intervals.EMPTY), own)
    launched = {one.device for step in group for one in step.ran if one.launched}
    when = in_common([times[device] for device in launched or times])
    return Windows(when, group[0].label, 1, times, marks)


def _few_enough(chosen: int, trace: Trace) -> None:
    tables = (trace.kernels, trace.copies, trace.api, trace.ops, trace.marks)
    most = STEPS + sum(map(len, tables)) // _STEP_RECORDS
    if chosen > most:
        raise InputError(
            f"--steps: {chosen:,} steps are more than the {most:,} that are measured at once in a "
            "trace of so few records",
            f"name a part of them, as 0:{STEPS}",
        )


def _chosen(selection: Selection, trace: Trace) -> list[tuple[int | None, list[Step]]]:
    """The wanted ones, each with its number. Their places are those of the marks, also of steps
    that launch nothing, which are left out.
    """
    ran = {(step.process, step.start_ns, step.end_ns): step for step in device_steps(trace)}
    groups = [
        [ran[key] for step in group if (key := (step.process, step.start_ns, step.end_ns)) in ran]
        for group in _together(steps(trace))
    ]
    counted = not any(step.number is not None for step in ran.values())
    numbered = [
        (place if counted else group[0].number, group)
        for place, group in enumerate(groups)
        if group
    ]
    chosen = [
        (None if counted else number, group)
        for number, group in numbered
        if selection.holds(number)
    ]
    if not chosen and selection != Selection():
        numbers = [number for number, _ in numbered if number is not None]
        raise nothing_left(
            words((selection.first, selection.last)),
            held((min(numbers), max(numbers)), counted=counted)
            if numbers
            else (
                "the trace marks no steps; --step-range REGEX makes ranges of the program "
                f"into steps: {there_are(range_names(trace))}"
            ),
        )
    return chosen


def _plain(step: Step) -> str:
    """The label; of our own mark (`profharness.trial:POINT:3`) the words `trial 3`. A number that
    the name lacks stands behind it.
    """
    if step.label.startswith(_OWN_MARKS) and step.number is not None:
        return f"{step.label.removeprefix(_OWN_MARKS).partition(':')[0]} {step.number}"
    has_number = step.number is None or str(step.number) in re.findall(r"\d+", step.label)
    return step.label if has_number else f"{step.label} {step.number}"


def _together(every: Sequence[Step]) -> list[list[Step]]:
    """Steps of several processes that belong together: of one point, of equal name (or place, where
    a process uses a name twice), at one time.
    """
    groups: dict[tuple[str, str, int], list[Step]] = {}
    names = [_plain(step) for step in every]
    repeated = len({(step.process, name) for step, name in zip(every, names, strict=True)}) < len(
        every
    )
    seen: dict[int, int] = {}
    for step, name in zip(every, names, strict=True):
        place = seen.get(step.process, 0)
        seen[step.process] = place + 1
        groups.setdefault(
            (step.point, "" if repeated else name, place if repeated else 0), []
        ).append(step)
    apart = [
        cluster
        for group in groups.values()
        for cluster in _at_one_time(sorted(group, key=lambda step: step.start_ns))
    ]
    return sorted(apart, key=lambda group: group[0].start_ns)


def _at_one_time(ordered: Sequence[Step]) -> list[list[Step]]:
    """Steps that overlap; passes and repeats that ran one after the other stay apart."""
    clusters: list[list[Step]] = []
    end = 0
    for step in ordered:
        if clusters and step.start_ns < end:
            clusters[-1].append(step)
            end = max(end, step.end_ns)
        else:
            clusters.append([step])
            end = step.end_ns
    return clusters
