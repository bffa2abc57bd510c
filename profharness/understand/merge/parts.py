"""Prepared parts into one Perfetto trace, a group of them in memory at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from pathlib import Path

import numpy as np

from profharness.trace.merge import Places
from profharness.trace.model import I64, Problem, Source, Strings, Trace
from profharness.trace.parts import cutting, select
from profharness.trace.parts.cutting import Cut, StepsFound
from profharness.trace.parts.sketch import placed, together
from profharness.understand.many.jobs import Workers
from profharness.understand.merge.spilled import Prepared
from profharness.writers import columns, perfetto
from profharness.writers.options import LeftOut, WriteOptions, WriteReport
from profharness.writers.perfetto import Parts
from profharness.writers.selection import first_of


@dataclass(frozen=True)
class MergeJob:
    """What to write, where, and who reads."""

    target: Path
    cut: Cut
    write: WriteOptions
    attributes: Callable[[Sequence[Source]], Mapping[str, str | int]]
    workers: Workers


@dataclass(frozen=True)
class Merged:
    """What was written, and what was not: records by table, and files."""

    written: WriteReport
    dropped: Counter[str]
    sources: tuple[Source, ...]
    problems: tuple[Problem, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True)
class Whole:
    """What a cut must know of all parts: their earliest start (of each group where they share no
    clock), and their steps.
    """

    origins: Sequence[int]
    steps: StepsFound


@dataclass(frozen=True, eq=False)
class Section:
    """Parts that were joined: those of a run, or loose files. `finish` does what needs all records
    of a group; it gets the group's number.

    Of each part `starts` is where its window counts from if it shares no clock with other sections'
    (None: it has no records).
    """

    pools: Trace
    parts: Sequence[Prepared]
    places: Sequence[Places]
    groups: Sequence[Sequence[int]]
    starts: Sequence[int | None]
    steps: StepsFound
    finish: Callable[[int, Trace], Trace] = lambda _, trace: trace

    @classmethod
    def of(
        cls,
        pools: Trace,
        parts: Sequence[Prepared],
        places: Sequence[Places],
        groups: Sequence[Sequence[int]],
    ) -> Section:
        """With the starts and steps of the parts as they were set aside."""
        return cls(
            pools,
            parts,
            places,
            groups,
            [one.first_ns for one in parts],
            reduce(StepsFound.joined, (one.steps for one in parts), StepsFound()),
        )

    @property
    def first_ns(self) -> int | None:
        """The earliest of the starts."""
        return min((start for start in self.starts if start is not None), default=None)

    def each(self) -> Iterator[Trace]:
        """The groups as they are before the cut."""
        for number in range(len(self.groups)):
            yield self.loaded(number, self.pools.strings)

    def loaded(self, number: int, strings: Strings) -> Trace:
        """One group, its texts coded by `strings`."""
        pools = replace(self.pools, strings=strings)
        read = [
            placed(
                columns.read(
                    self.parts[at].folder, replace(self.parts[at].sketch, strings=strings)
                ),
                self.places[at],
                pools,
            )
            for at in self.groups[number]
        ]
        return self.finish(number, together(read))


@dataclass(frozen=True, eq=False)
class PartWriter:
    """Takes up the groups of all sections in turn. `places` are those of each section's records
    among the pools, none for a single section.

    The parts' ranks were chosen already. `together`: all times are on one clock.
    """

    pools: Trace
    sections: Sequence[Section]
    together: bool
    places: Sequence[Places] = ()
    dropped: Counter[str] = field(default_factory=Counter)

    def write(self, job: MergeJob) -> WriteReport:
        """Write all. Raises UsageError where no range is a step as asked, and before the file is
        complete where the cut left nothing.
        """
        whole, parts = self._whole(), [part for section in self.sections for part in section.parts]
        whole.steps.check(job.cut)
        for part in parts:
            self.dropped.update(part.dropped)
        shares, over = self._shares(job, whole)
        written = Parts(
            self.pools, [one.outline for one in parts], self._traces(job.cut, shares, whole)
        )
        report = perfetto.write_parts(
            written,
            job.target,
            attributes=job.attributes(self.pools.sources),
            options=replace(job.write, max_kernels=None),
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

    def _whole(self) -> Whole:
        first = min(
            (start for section in self.sections if (start := section.first_ns) is not None),
            default=0,
        )
        starts = [
            self.sections[at].starts[self.sections[at].groups[number][0]]
            for at, number in self._groups
        ]
        return Whole(
            [first if self.together or start is None else start for start in starts],
            reduce(StepsFound.joined, (section.steps for section in self.sections), StepsFound()),
        )

    def _loaded(self, at: int, number: int) -> Trace:
        trace = self.sections[at].loaded(number, self.pools.strings)
        return (
            replace(placed(trace, self.places[at], self.pools), strings=trace.strings)
            if self.places
            else replace(trace, sources=self.pools.sources)
        )

    def _chosen(self, group: int, cut: Cut, whole: Whole) -> tuple[Trace, Counter[str]]:
        trace, within = self._loaded(*self._groups[group]), replace(cut, ranks=None)
        return (
            (trace, Counter())
            if within.is_all
            else cutting.cut(trace, within, whole.origins[group], whole.steps)
        )

    def _traces(self, cut: Cut, shares: Sequence[int | None], whole: Whole) -> Iterator[Trace]:
        kept = 0
        for number, share in enumerate(shares):
            trace, dropped = self._chosen(number, cut, whole)
            self.dropped.update(dropped)
            kept += sum(len(table) for _, table in trace.tables())
            if share is not None:
                trace = _earliest(trace, share)
            yield trace
            del trace  # no two groups are in memory at once
        cutting.check_kept(cut, kept, whole.steps)

    def _shares(self, job: MergeJob, whole: Whole) -> tuple[list[int | None], tuple[LeftOut, ...]]:
        """How many kernels of each group are among the first of all (None: no limit), and what that
        leaves out.
        """
        limit = job.write.max_kernels
        if limit is None:
            return [None] * len(self._groups), ()
        first, owner, total = np.empty((3, 0), np.int64), np.empty(0, np.int64), 0
        for number in range(len(self._groups)):
            kernels = self._chosen(number, job.cut, whole)[0].kernels
            mine: I64 = np.stack(
                (kernels.source, kernels.device, kernels.start_ns - whole.origins[number])
            )
            total += len(kernels)
            first, owner = (
                np.concatenate((first, mine), axis=1),
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
