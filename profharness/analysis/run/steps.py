"""Steps of a command: rate and items per second of its steady steps, per pass.

The hooks' own log of steps is taken where a pass has one, since it covers the whole pass; a tool's
trace shows only its capture window. Steps inside a window are slowed by the profiler, and the one
after it holds the writing of the trace: steps outside speak where there are enough.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from profharness.analysis.records import Figure
from profharness.analysis.run.trials import BARE
from profharness.analysis.time.steps import Step, device_steps, steady, steps
from profharness.rundir.manifest import Manifest
from profharness.rundir.older_layers import hooked_layers
from profharness.stats.intervals import Intervals, merge
from profharness.stats.throughput import summarise_trials
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, FIRST_STEP, I64, STEPS, ClockDomain, Source, Trace
from profharness.trace.parts.select import by_source

OWN_LAYER = "steps"
ENOUGH = 5
"""Steps of a process from which those outside of the capture window speak alone."""

_COUNT = re.compile(r"[0-9]{1,18}")
Where = Literal["outside", "inside", "everywhere"]


@dataclass(frozen=True, eq=False)
class SteadySteps:
    """Steady steps of all processes of one pass, and how many leading ones were left out. Times in
    ns.

    `where` says on which side of the capture window they lie, everywhere if the pass has none.
    """

    pass_name: str
    starts_ns: I64
    durations_ns: I64
    items: I64 | None
    owner: I64
    left_out: int
    where: Where = "everywhere"
    numbers: I64 | None = None
    """Which step of its process each is; None where one of them does not say."""
    first_end_ns: int | None = None
    """The end of its first step, steady or not; None where a capture window alone shows any."""

    def __len__(self) -> int:
        return len(self.starts_ns)

    @property
    def rates(self) -> F64:
        """Steps per second of each step."""
        return np.asarray(1e9 / self.durations_ns)

    def of_numbers(self, wanted: I64) -> SteadySteps:
        """Those of these numbers; all where the numbers are not known."""
        if self.numbers is None:
            return self
        rows = np.isin(self.numbers, wanted)
        return replace(
            self,
            starts_ns=self.starts_ns[rows],
            durations_ns=self.durations_ns[rows],
            items=None if self.items is None else self.items[rows],
            owner=self.owner[rows],
            numbers=self.numbers[rows],
        )

    @property
    def when(self) -> Intervals:
        """The time in which one of the steps ran."""
        return merge(Intervals(self.starts_ns, self.starts_ns + self.durations_ns))


@dataclass(frozen=True)
class _Group:
    """The steady steps of one process."""

    kept: list[Step]
    slow: int
    where: Where


def steady_steps(
    trace: Trace,
    pass_name: str,
    *,
    profiled: bool = False,
    hooked: frozenset[str] | None = None,
) -> SteadySteps:
    """The steady steps of a pass; empty where it shows none. `items` only where every step says
    them.

    Outside of the capture windows where every process has five such steps, else inside; `profiled`
    asks for those inside. The steps next to a window are left out: they hold its opening or the
    writing of its trace. `hooked` are the layers whose files have such windows, by the manifest
    (`Manifest.hooked`); without it those of older runs.
    """
    hooked = hooked_layers() if hooked is None else hooked
    groups = _logged(trace, pass_name)
    windows = _windows(trace, pass_name, groups, hooked)
    begun = groups
    if not groups:
        groups = _traced(trace, [source.pass_name == pass_name for source in trace.sources])
        begun = _traced(
            trace, [x.pass_name == pass_name and x.layer not in hooked for x in trace.sources]
        )
    lasting = {
        process: [step for step in group if step.dur_ns > 0] for process, group in groups.items()
    }
    for inside in (True,) if profiled else (False, True):
        chosen = [
            _chosen(group, windows.get(process, []), profiled=inside)
            for process, group in lasting.items()
            if group
        ]
        if all(group.where != "inside" for group in chosen):
            break
    first_ends = [group[0].end_ns for group in begun.values()]
    return replace(_joined(pass_name, chosen), first_end_ns=min(first_ends, default=None))


def _traced(trace: Trace, wanted: list[bool]) -> dict[int, list[Step]]:
    """The steps that tools' own traces mark, by process, as they ran (without a length: 0)."""
    groups: dict[int, list[Step]] = {}
    for step in device_steps(by_source(trace, wanted)):
        start, end = step.span_ns
        timed = replace(step, start_ns=end if step.length_ns is None else start, end_ns=end, ran=())
        groups.setdefault(step.process, []).append(timed)
    return groups


def _logged(trace: Trace, pass_name: str) -> dict[int, list[Step]]:
    """The hooks' own logs, by the position of their source: one process each."""
    is_log = [
        source.pass_name == pass_name and source.layer == OWN_LAYER for source in trace.sources
    ]
    logs = by_source(trace, is_log)
    places = np.flatnonzero(is_log).tolist()
    read = {
        place: steps(by_source(logs, np.arange(len(places)) == number))
        for number, place in enumerate(places)
    }
    return {place: group for place, group in read.items() if group}


def _joined(pass_name: str, groups: list[_Group]) -> SteadySteps:
    kept = [step for group in groups for step in group.kept]
    items = [step.items for step in kept]
    items_known = bool(items) and all(count is not None and count > 0 for count in items)
    places = {group.where for group in groups}
    where: Where = (
        "inside" if "inside" in places else "outside" if "outside" in places else "everywhere"
    )
    return SteadySteps(
        pass_name,
        np.array([step.start_ns for step in kept], np.int64),
        np.array([step.dur_ns for step in kept], np.int64),
        np.array(items, np.int64) if items_known else None,
        np.repeat(np.arange(len(groups)), [len(group.kept) for group in groups]).astype(np.int64),
        sum(group.slow for group in groups),
        where,
        _numbers(kept),
    )


def _numbers(kept: list[Step]) -> I64 | None:
    """Which steps they are, by their marks or the end of their names."""
    texts = [
        step.label.rpartition(" ")[2] if step.number is None else str(step.number) for step in kept
    ]
    return np.array(texts, np.int64) if all(map(_COUNT.fullmatch, texts)) else None


def _chosen(group: list[Step], windows: list[tuple[int, int]], *, profiled: bool) -> _Group:
    """One process: after its last window, else anywhere outside, else inside."""
    if not windows:
        kept = steady(group)
        return _Group(kept, len(group) - len(kept), "everywhere")
    starts, ends = (
        np.array([getattr(step, side) for step in group], np.int64)
        for side in ("start_ns", "end_ns")
    )
    inside = np.zeros(len(group), np.bool_)
    for opened, closed in windows:
        inside |= (starts < closed) & (ends > opened)
    edge = np.zeros(len(group), np.bool_)
    edge[1:] |= inside[:-1] & ~inside[1:]
    edge[:-1] |= inside[1:] & ~inside[:-1]
    after = starts >= max(closed for _, closed in windows)
    for wanted in () if profiled else (after & ~inside & ~edge, ~inside & ~edge):
        if int(wanted.sum()) >= ENOUGH:
            return _Group(*_steady_of(group, wanted), "outside")
    # The last step that touches a window may hold the writing of its trace.
    last = inside & np.append(~inside[1:], False)
    return _Group(
        *_steady_of(group, inside & ~last if (inside & ~last).any() else inside), "inside"
    )


def _steady_of(
    group: list[Step], wanted: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> tuple[list[Step], int]:
    picked = [step for step, take in zip(group, wanted.tolist(), strict=True) if take]
    kept = steady(picked)
    return kept, len(picked) - len(kept)


def _windows(
    trace: Trace, pass_name: str, logged: dict[int, list[Step]], hooked: frozenset[str]
) -> dict[int, list[tuple[int, int]]]:
    """The capture windows of each process that logged steps: from the first to the last record of
    each of its files.

    A file that is not on the run's clock says by its sidecar which steps it holds.
    """
    files = (
        [
            (place, source)
            for place, source in enumerate(trace.sources)
            if source.pass_name == pass_name
            and source.layer in hooked
            and not source.format.endswith("-marker")
        ]
        if logged
        else []
    )
    spans = {
        place: _span(trace, place) if source.clock is ClockDomain.RUN else None
        for place, source in files
    }
    return {
        owner: [
            span
            for place, source in files
            if _same_process(source, trace.sources[owner])
            and (span := spans[place] or _by_number(source, group)) is not None
        ]
        for owner, group in logged.items()
    }


def _by_number(source: Source, group: list[Step]) -> tuple[int, int] | None:
    """The time of the steps that the sidecar names, in the log of the same process (labels end in
    the step's number).
    """
    facts = dict(source.details)
    if FIRST_STEP not in facts or STEPS not in facts:
        return None
    first = int(facts[FIRST_STEP])
    inside = [
        step
        for step in group
        if first <= int(step.label.rpartition(" ")[2]) < first + int(facts[STEPS])
    ]
    return (inside[0].start_ns, inside[-1].end_ns) if inside else None


def _same_process(first: Source, second: Source) -> bool:
    if first.host and second.host and first.host != second.host:
        return False
    return first.pid is None or second.pid is None or first.pid == second.pid


def _span(trace: Trace, place: int) -> tuple[int, int] | None:
    """From the start of the first record of a source on the host to the end of the last; its steps
    where it marks any.
    """
    marks = trace.marks
    steps_here = (
        (marks.source == place) & (marks.kind == trace.strings.find("step")) & (marks.kind != NULL)
    )
    ends: list[tuple[int, int]] = []
    for table, rows in (
        (marks, steps_here),
        (trace.ops, trace.ops.source == place),
        (trace.api, trace.api.source == place),
    ):
        if rows.any():
            ends.append(
                (
                    int(table.start_ns[rows].min()),
                    int((table.start_ns[rows] + table.dur_ns[rows]).max()),
                )
            )
    return (min(start for start, _ in ends), max(end for _, end in ends)) if ends else None


def step_figures(manifest: Manifest, trace: Trace) -> dict[str, Figure]:
    """Steps and items per second of a command, from the bare pass or the first pass that shows
    steps.

    One estimate behind all three: the steps of a process over the time that they took, so that
    steps_per_second is 1 / step_time. Steps per second is the mean over processes (each step is one
    of the whole job), items per second the sum, both over the time in which all processes stepped
    where there is such a time. Passes that perturb the workload do not tell its rate.
    """
    if manifest.kind != "command":
        return {}
    layers = {record.name: record.layers for record in manifest.passes if not record.perturbing}
    for name in sorted(layers, key=lambda pass_name: pass_name != BARE):
        kept = steady_steps(trace, name, hooked=manifest.hooked())
        if len(kept):
            whole_pass = (
                set(layers[name])
                - {"telemetry"}
                - (manifest.hooked() if kept.where == "outside" else frozenset())
            )
            return _figures(kept, slowed=kept.where == "inside" or bool(whole_pass))
    if any(record.perturbing for record in manifest.passes):
        return {
            name: Figure(
                value=None, unit=unit, needs="an execution without counters and logs: --bare"
            )
            for name, unit in (("steps_per_second", "steps/s"), ("step_time", "ns"))
        }
    return {}


def _figures(kept: SteadySteps, *, slowed: bool) -> dict[str, Figure]:
    shared = _in_common(kept)
    owners = np.unique(kept.owner)
    counts = np.array([(shared & (kept.owner == process)).sum() for process in owners], np.float64)
    times = np.array(
        [kept.durations_ns[shared & (kept.owner == process)].sum() for process in owners],
        np.float64,
    )
    stats = summarise_trials(kept.durations_ns[shared], 1, f"steps/{kept.pass_name}")
    rate = float(np.mean(counts / times)) * 1e9
    # The interval of the mean time, around the rate of the processes together; times that may be 0
    # do not bound a rate.
    scale = rate * stats.latency_mean_ns
    low, high = (
        None if end is None or end <= 0 else scale / end
        for end in (stats.latency_high_ns, stats.latency_low_ns)
    )
    shortest = None if low is None else 0.0
    words = (
        f", {kept.left_out} slower {'one' if kept.left_out == 1 else 'ones'} at the start left out"
        if kept.left_out
        else ""
    )
    place = {
        "outside": " outside of the capture window",
        "inside": " in the capture window",
        "everywhere": "",
    }[kept.where]
    origin = f"{kept.pass_name} pass, {int(shared.sum())} steady steps{place}{words}"
    note = "slowed by the profiler" if slowed else ""
    figures = {
        "steps_per_second": Figure(
            value=rate, unit="steps/s", low=low, high=high, source=origin, note=note
        ),
        "step_time": Figure(
            value=1e9 / rate,
            unit="ns",
            low=shortest if high is None else 1e9 / high,
            high=None if low is None else 1e9 / low,
            source=origin,
            note=note or "mean",
        ),
    }
    if kept.items is not None:
        items = np.array(
            [kept.items[shared & (kept.owner == process)].sum() for process in owners],
            np.float64,
        )
        total = float(np.sum(items / times)) * 1e9
        figures["throughput"] = Figure(
            value=total,
            unit="items/s",
            low=None if low is None else low * total / rate,
            high=None if high is None else high * total / rate,
            source=origin,
            note=note,
        )
    return figures


def _in_common(kept: SteadySteps) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """The steps in the time that all processes have in common; all steps where that leaves a
    process without two.
    """
    owners = np.unique(kept.owner)
    ends = kept.starts_ns + kept.durations_ns
    opens = max(int(kept.starts_ns[kept.owner == process].min()) for process in owners)
    closes = min(int(ends[kept.owner == process].max()) for process in owners)
    shared = (kept.starts_ns >= opens) & (ends <= closes)
    enough = len(owners) > 1 and all(
        int((shared & (kept.owner == process)).sum()) >= 2 for process in owners
    )
    return np.asarray(shared if enough else np.ones(len(kept), np.bool_))
