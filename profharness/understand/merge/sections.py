"""Sections of a trace: parts that were set aside and belong together, those of one run or loose
files, joined before they are read again.

Which parts are in memory at once depends on what refers to each other: the files of one process or,
where a pass lends its launch geometry to another, those of one rank.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce

from profharness.trace import derive
from profharness.trace.enrich import (
    Match,
    PassRole,
    donor_of,
    enrich_geometry,
    join_roles,
    match_sentence,
    pass_roles,
)
from profharness.trace.merge import Places, merge_with_places
from profharness.trace.model import Problem, Strings, Trace
from profharness.trace.overlay import add_spans, laid_over, overlay, point_spans
from profharness.trace.parts import cutting
from profharness.trace.parts.cutting import Cut, StepsFound
from profharness.trace.parts.points import assign_points
from profharness.trace.parts.sketch import concat_parts, placed
from profharness.understand.merge.spilled import Link, SpilledTrace, linked_groups
from profharness.understand.run_clock import share_marker_checks
from profharness.understand.run_parts import RunParts


@dataclass(frozen=True, eq=False)
class Section:
    """Joined parts, and the positions of those that must be in memory at once.

    Of each part `starts` is where its window counts from if it shares no clock with other sections'
    (None: it has no records), and `places` are its positions among the `pools`. `finish` does what
    needs all records of a group; it gets the group's number.
    """

    pools: Trace
    parts: Sequence[SpilledTrace]
    places: Sequence[Places]
    groups: Sequence[Sequence[int]]
    starts: Sequence[int | None]
    steps: StepsFound
    finish: Callable[[int, Trace], Trace] = lambda _, trace: trace

    @property
    def first_ns(self) -> int | None:
        """The earliest of the starts."""
        return min((start for start in self.starts if start is not None), default=None)

    def each(self) -> Iterator[Trace]:
        """The groups as they are before the cut."""
        for number in range(len(self.groups)):
            yield self.read(number, self.pools.strings)

    def read(self, number: int, strings: Strings) -> Trace:
        """One group, its texts coded by `strings`."""
        pools = replace(self.pools, strings=strings)
        group = [
            placed(self.parts[at].read(strings), self.places[at], pools)
            for at in self.groups[number]
        ]
        return self.finish(number, concat_parts(group))


def section_of_files(parts: Sequence[SpilledTrace]) -> Section:
    """Loose files, joined where sources of one have the calls of another."""
    pools, places = merge_with_places([part.sketch for part in parts])
    return _section(pools, parts, places, [part.links for part in parts])


def _section(
    pools: Trace,
    parts: Sequence[SpilledTrace],
    places: Sequence[Places],
    links: Sequence[frozenset[Link]],
) -> Section:
    """The section with the starts and steps of the parts as they were set aside."""
    return Section(
        pools,
        parts,
        places,
        linked_groups(links),
        [part.first_ns for part in parts],
        reduce(StepsFound.joined, (part.steps for part in parts), StepsFound()),
    )


@dataclass(frozen=True, eq=False)
class RunSection:
    """The parts of a run as they are written: what is known of all of them, and what is done to
    each group.

    `section` is what is written; the other fields fill up while its groups are read: `roles` of the
    passes in lending geometry, `spans` of the points that passes are laid over, and the `matches`
    of each group's kernels.
    """

    run: RunParts[SpilledTrace]
    section: Section
    roles: dict[tuple[str, bool], PassRole] = field(default_factory=dict)
    spans: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    matches: dict[int, tuple[Match, ...]] = field(default_factory=dict)
    lay_over: bool = False

    @classmethod
    def of(cls, run: RunParts[SpilledTrace], *, lay_over: bool, cut: Cut) -> RunSection:
        """Reads the records once more where one part depends on all others: for geometry that is
        lent, and for an overlay.
        """
        parts = run.parts
        pools, places = merge_with_places([part.sketch for part in parts])
        pools = replace(pools, sources=tuple(share_marker_checks(pools.sources)))
        lends = _lends(pools)
        joined = _section(
            pools, parts, places, _links(parts) if lends else [part.links for part in parts]
        )
        run_section = cls(run, joined, lay_over=lay_over)
        if lends or lay_over:
            run_section._look_at_all()
        sources = laid_over(pools.sources, run_section.spans) if lay_over else pools.sources
        finished = replace(joined, pools=replace(pools, sources=sources), finish=run_section.finish)
        if lay_over:
            start, steps = run_section._moved(cut)
        else:
            start, steps = joined.first_ns, joined.steps
        return replace(
            run_section, section=replace(finished, starts=[start] * len(parts), steps=steps)
        )

    def finish(self, number: int, trace: Trace) -> Trace:
        """One group with all that `load_run` adds."""
        trace, matches = enrich_geometry(assign_points(trace), self.roles)
        self.matches[number] = matches
        trace = derive.with_throughput(trace)
        if not self.lay_over:
            return trace
        return replace(overlay(trace, spans=self.spans), sources=trace.sources)

    def problems(self) -> tuple[Problem, ...]:
        """What there is to say once all groups were written."""
        return (
            *self.section.pools.problems,
            *self._match_problems(),
            *self.run.notes.problems,
        )

    def _look_at_all(self) -> None:
        for trace in self.section.each():
            pointed = assign_points(trace)
            self.roles.update(join_roles(self.roles, pass_roles(pointed)))
            add_spans(self.spans, point_spans(pointed))

    def _moved(self, wanted: Cut) -> tuple[int | None, StepsFound]:
        """The first start and the steps once the passes are laid over the bare pass."""
        steps, starts = StepsFound(), []
        for number, trace in enumerate(self.section.each()):
            laid = self.finish(number, trace)
            steps = steps.joined(cutting.steps_found(laid, wanted))
            starts.append(cutting.first_ns(laid))
        return min((start for start in starts if start is not None), default=None), steps

    def _match_problems(self) -> list[Problem]:
        """How much geometry each pass was lent, over all groups."""
        sums: dict[str, Match] = {}
        for number in sorted(self.matches):
            for match in self.matches[number]:
                so_far = sums.get(match.pass_name, replace(match, matched=0, kernels=0))
                sums[match.pass_name] = replace(
                    so_far,
                    matched=so_far.matched + match.matched,
                    kernels=so_far.kernels + match.kernels,
                )
        sources = self.section.pools.sources
        return [
            Problem(
                "info",
                sources[self.roles[name, False].first_source].path,
                match.matched,
                match_sentence(match),
            )
            for name, match in sums.items()
        ]


def _lends(pools: Trace) -> bool:
    """Whether a pass gives geometry to another."""
    roles = pass_roles(pools)
    donor = donor_of(roles)
    return donor is not None and any(not gives and name != donor for name, gives in roles)


def _links(parts: Sequence[SpilledTrace]) -> list[frozenset[Link]]:
    """The links of each part, where geometry is lent: it is joined within a rank; where some file
    does not state its rank, all ranks are one.
    """
    unstated = any(None in part.geometry_ranks for part in parts)
    return [
        part.links | {("geometry", None if unstated else rank) for rank in part.geometry_ranks}
        for part in parts
    ]
