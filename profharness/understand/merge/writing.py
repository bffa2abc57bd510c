"""Joined records into one Perfetto trace: in one piece, or a group of records at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path

import numpy as np

from profharness.trace.merge import Places
from profharness.trace.model import I64, Problem, Source, Trace
from profharness.trace.parts import cutting, select
from profharness.trace.parts.cutting import Cut, StepsFound
from profharness.trace.parts.sketch import placed
from profharness.understand.many.jobs import IN_ONE, Workers
from profharness.understand.merge.figures import after_all
from profharness.understand.merge.sections import Section
from profharness.writers import perfetto
from profharness.writers.options import LeftOut, WriteOptions, WriteReport
from profharness.writers.perfetto import Parts
from profharness.writers.selection import first_of


@dataclass(frozen=True)
class MergeJob:
    """What to write and where, how passes and clocks are treated, and who reads."""

    target: Path
    cut: Cut
    write: WriteOptions
    attributes: Callable[[Sequence[Source]], Mapping[str, str | int]]
    workers: Workers = IN_ONE
    overlay: bool = False
    allow_unaligned: bool = False


@dataclass(frozen=True)
class Merged:
    """What was written, and what was not: records by table (`dropped`), and files of ranks that
    were not asked for.
    """

    written: WriteReport
    dropped: Counter[str]
    sources: tuple[Source, ...]
    problems: tuple[Problem, ...]
    files_left_out: int = 0


def write_whole(whole: Trace, job: MergeJob) -> Merged:
    """Write a trace that is in memory. Raises UsageError where no range is a step as asked, and
    where the cut leaves nothing.
    """
    of_ranks, dropped = cutting.cut(whole, Cut(ranks=job.cut.ranks), 0)
    if job.cut.steps is not None:
        cutting.steps_found(of_ranks, job.cut).check(job.cut)
    within = replace(job.cut, ranks=None)
    trace, outside = cutting.cut(of_ranks, within, cutting.first_ns(of_ranks) or 0)
    if not any(len(table) for _, table in trace.tables()):
        cutting.check_kept(job.cut, 0, cutting.steps_found(whole, job.cut))
    written = perfetto.write(
        trace, job.target, attributes=job.attributes(trace.sources), options=job.write
    )
    return Merged(written, outside + dropped, trace.sources, whole.problems)


@dataclass(frozen=True)
class _CutContext:
    """What a cut must know of all groups: where the window of each begins, and the steps of all."""

    origins: Sequence[int]
    steps: StepsFound


@dataclass(frozen=True, eq=False)
class GroupWriter:
    """Takes up the groups of all sections in turn. `places` are those of each section's records
    among the pools, none for a single section.

    The parts' ranks were chosen already. `one_clock`: all times are on one clock.
    """

    pools: Trace
    sections: Sequence[Section]
    one_clock: bool
    places: Sequence[Places] = ()
    dropped: Counter[str] = field(default_factory=Counter)

    def write(self, job: MergeJob) -> WriteReport:
        """Write all. Raises UsageError where no range is a step as asked, and before the file is
        complete where the cut left nothing.
        """
        context = self._cut_context()
        parts = [part for section in self.sections for part in section.parts]
        context.steps.check(job.cut)
        for part in parts:
            self.dropped.update(part.dropped)
        shares, over = self._shares(job, context)
        written = Parts(
            self.pools, [part.outline for part in parts], self._traces(job.cut, shares, context)
        )
        tell = after_all(job.write.tell_kernels, (self._read(*group) for group in self._groups))
        report = perfetto.write_parts(
            written,
            job.target,
            attributes=job.attributes(self.pools.sources),
            options=replace(job.write, max_kernels=None, tell_kernels=tell),
        )
        return replace(report, left_out=(*over, *report.left_out))

    @cached_property
    def _groups(self) -> list[tuple[int, int]]:
        """Section and number of each group."""
        return [
            (at, number)
            for at, section in enumerate(self.sections)
            for number in range(len(section.groups))
        ]

    def _cut_context(self) -> _CutContext:
        first = min(
            (start for section in self.sections if (start := section.first_ns) is not None),
            default=0,
        )
        starts = [
            self.sections[at].starts[self.sections[at].groups[number][0]]
            for at, number in self._groups
        ]
        return _CutContext(
            [first if self.one_clock or start is None else start for start in starts],
            reduce(StepsFound.joined, (section.steps for section in self.sections), StepsFound()),
        )

    def _read(self, at: int, number: int) -> Trace:
        trace = self.sections[at].read(number, self.pools.strings)
        return (
            replace(placed(trace, self.places[at], self.pools), strings=trace.strings)
            if self.places
            else replace(trace, sources=self.pools.sources)
        )

    def _chosen(self, group: int, cut: Cut, context: _CutContext) -> tuple[Trace, Counter[str]]:
        trace, within = self._read(*self._groups[group]), replace(cut, ranks=None)
        return (
            (trace, Counter())
            if within.is_all
            else cutting.cut(trace, within, context.origins[group], context.steps)
        )

    def _traces(
        self, cut: Cut, shares: Sequence[int | None], context: _CutContext
    ) -> Iterator[Trace]:
        kept = 0
        for number, share in enumerate(shares):
            trace, dropped = self._chosen(number, cut, context)
            self.dropped.update(dropped)
            kept += sum(len(table) for _, table in trace.tables())
            if share is not None:
                trace = _earliest(trace, share)
            yield trace
            del trace  # no two groups are in memory at once
        cutting.check_kept(cut, kept, context.steps)

    def _shares(
        self, job: MergeJob, context: _CutContext
    ) -> tuple[list[int | None], tuple[LeftOut, ...]]:
        """How many kernels of each group are among the first of all (None: no limit), and what that
        leaves out.
        """
        limit = job.write.max_kernels
        if limit is None:
            return [None] * len(self._groups), ()
        first, owner, total = np.empty((3, 0), np.int64), np.empty(0, np.int64), 0
        for number in range(len(self._groups)):
            kernels = self._chosen(number, job.cut, context)[0].kernels
            kernel_keys: I64 = np.stack(
                (kernels.source, kernels.device, kernels.start_ns - context.origins[number])
            )
            total += len(kernels)
            first, owner = (
                np.concatenate((first, kernel_keys), axis=1),
                np.concatenate((owner, np.full(len(kernels), number))),
            )
            kept = np.lexsort(first)[:limit]
            first, owner = first[:, kept], owner[kept]
        over = (
            (
                LeftOut(
                    "kernels",
                    total - limit,
                    f"more than the {limit} kernels asked for; the first were kept",
                ),
            )
            if total > limit
            else ()
        )
        return [int(count) for count in np.bincount(owner, minlength=len(self._groups))], over


def _earliest(trace: Trace, count: int) -> Trace:
    keep = np.zeros(len(trace.kernels), np.bool_)
    keep[first_of(trace.kernels, np.arange(len(keep)))[:count]] = True
    return trace if keep.all() else select.rows(trace, {"kernels": keep})
