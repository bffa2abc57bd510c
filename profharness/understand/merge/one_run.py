"""A run directory into one Perfetto trace, with the memory of the largest group of files that refer
to each other.

Each file of a tool is read, put on the run's clock and set aside as Parquet, by several processes
or the workers of a cluster. Then the files of one process (or, where a pass lends its geometry to
another, of one rank) are taken up together, and what needs all of them is done: points, geometry,
throughput. The result is that of `load_run`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profharness.errors import UsageError
from profharness.rundir.manifest import Artifact, ClockSnapshot, Manifest
from profharness.rundir.paths import RunDir
from profharness.trace import derive
from profharness.trace.enrich import (
    Match,
    PassRole,
    donor_of,
    enrich_geometry,
    gives_geometry,
    join_roles,
    pass_roles,
    takes_geometry,
    told,
)
from profharness.trace.merge import merge_with_places
from profharness.trace.model import Problem, Trace
from profharness.trace.overlay import add_spans, laid_over, overlay, point_spans
from profharness.trace.parts import cutting
from profharness.trace.parts.cutting import Cut, StepsFound
from profharness.trace.parts.points import assign_points
from profharness.understand.load_run import (
    RunRecords,
    Told,
    aligned,
    completed,
    reference_of,
    share_marker_checks,
)
from profharness.understand.many.spread import Here, Spread
from profharness.understand.merge import spilled as prepared
from profharness.understand.merge.files import other_ranks
from profharness.understand.merge.parts import Merged, MergeJob, PartWriter, Section
from profharness.understand.merge.spilled import Link, Prepared, set_aside
from profharness.understand.run_files import (
    Gathered,
    artifact_groups,
    gather_own,
    host_of,
    of_group,
    read_or_say,
)

LARGE = 256 << 20
"""Bytes of tools' files from which on a run is merged in parts: less is sooner merged in memory."""
SCRATCH = ".profharness-merge-"
_LONG = 4 << 20  # bytes; shorter files are read sooner than a process starts


@dataclass(frozen=True)
class RunFile:
    """Files of one trace, to be put on the clock of the run's reference host and set aside."""

    root: Path
    group: tuple[Artifact, ...]
    host: str
    snapshots: Mapping[str, Sequence[ClockSnapshot]]
    reference: str
    folder: Path
    cut: Cut

    @property
    def path(self) -> str:
        """What they are called."""
        return ", ".join(artifact.path for artifact in self.group)

    @property
    def paths(self) -> tuple[Path, ...]:
        return tuple(self.root / artifact.path for artifact in self.group)


def artifact_paths(root: Path) -> list[Path]:
    """The tools' files of a run. Raises InputError for a folder that is no run."""
    run = RunDir.open(root)
    return [
        run.root / artifact.path
        for group in artifact_groups(run, run.read_manifest())
        for artifact in group
    ]


def size_of(paths: Sequence[Path]) -> int:
    """Bytes of those files that are there."""
    return sum(path.stat().st_size for path in paths if path.is_file())


@dataclass(frozen=True, eq=False)
class RunParts:
    """The records of one run, set aside on its clock, and what else there is to say. `left_out`
    files are of ranks that were not wanted.
    """

    root: Path
    manifest: Manifest
    own: Gathered
    parts: Sequence[Prepared]
    problems: Sequence[Problem]
    left_out: int

    @property
    def gathered_problems(self) -> tuple[Problem, ...]:
        """Those of files that could not be read, in the order of `gather`."""
        own = self.own
        return (*own.problems[: own.of_traces], *self.problems, *own.problems[own.of_traces :])


def merge_run(root: Path, job: MergeJob, *, lay_over: bool = False) -> Merged:
    """Write the trace of one run. Raises InputError for a folder that is no run, and UsageError
    where the cut leaves nothing.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=job.target.parent) as scratch:
        return written(run_parts(root, job, Path(scratch)), job, lay_over=lay_over)


def merge_and_load(root: Path, job: MergeJob) -> RunRecords | None:
    """Write the trace of one run, and give what `load_run` does: its files are read once, and no
    more than its columns are kept.

    None, and no trace, where nothing could be read.
    """
    with tempfile.TemporaryDirectory(prefix=SCRATCH, dir=job.target.parent) as scratch:
        found = run_parts(root, job, Path(scratch))
        if not found.parts:
            return None
        written(found, job)
        whole = prepared.merged(found.parts)
    findings = tuple(one for part in found.parts for one in part.findings)
    return completed(
        replace(whole, sources=tuple(share_marker_checks(whole.sources))),
        found.manifest,
        Told(found.own.snapshots, findings, found.gathered_problems),
    )


def run_parts(root: Path, job: MergeJob, scratch: Path) -> RunParts:
    """Read a run's files of the wanted ranks and set them aside in `scratch`. Raises InputError for
    a folder that is no run.
    """
    run = RunDir.open(root)
    manifest = run.read_manifest()
    own = gather_own(run, manifest)
    groups = artifact_groups(run, manifest)
    wanted = [
        group
        for group in groups
        if job.cut.ranks is None or group[0].rank is None or group[0].rank in job.cut.ranks
    ]
    parts, problems = _set_aside(run, manifest, own, (job, wanted, scratch))
    return RunParts(root, manifest, own, parts, problems, len(groups) - len(wanted))


def written(found: RunParts, job: MergeJob, *, lay_over: bool = False) -> Merged:
    """Write the trace of a run's parts. Raises UsageError where there are none, or the cut leaves
    nothing.
    """
    if not found.parts:
        raise UsageError(
            f"{job.cut.words() or found.root}: no file is left",
            "look at what the run holds with `profharness metrics`",
        )
    section = RunSection.of(found, lay_over=lay_over, cut=job.cut)
    writer = PartWriter(section.joined.pools, [section.joined], together=True)
    report = writer.write(job)
    return Merged(
        report,
        writer.dropped,
        writer.pools.sources,
        section.problems(),
        other_ranks(found.left_out),
    )


def prepare(job: RunFile) -> list[Prepared | Problem]:
    """Read the files of one trace and set them aside."""
    run = RunDir(job.root)
    found: list[Prepared | Problem] = []
    for one in of_group(run, job.host, job.group, read_or_say(job.paths)):
        if isinstance(one, Problem):
            found.append(one)
        else:
            trace, findings = aligned(run, one, job.snapshots, job.reference)
            found.append(
                _with_links(
                    replace(
                        set_aside(trace, job.folder / str(len(found)), job.cut), findings=findings
                    ),
                    trace,
                )
            )
    return found


def _set_aside(
    run: RunDir,
    manifest: Manifest,
    own: Gathered,
    what: tuple[MergeJob, Sequence[tuple[Artifact, ...]], Path],
) -> tuple[list[Prepared], list[Problem]]:
    """The parts of a run in their order, and the problems of files that could not be read."""
    job, groups, scratch = what
    reference = reference_of(manifest, own.snapshots)
    parts = []
    for number, trace in enumerate(own.traces):
        moved, findings = aligned(run, trace, own.snapshots, reference)
        parts.append(
            replace(set_aside(moved, scratch / f"own{number}", job.cut), findings=findings)
        )
    files = [
        RunFile(
            run.root,
            group,
            host_of(manifest),
            _needed(own, manifest, group, reference),
            reference,
            scratch / str(number),
            job.cut,
        )
        for number, group in enumerate(groups)
    ]
    long = [file for file in files if size_of(file.paths) >= _LONG]
    found: dict[Path, list[Prepared | Problem]] = {}
    if long:
        with job.workers.open(
            [path for file in long for path in file.paths if path.is_file()]
        ) as processes:
            found |= _prepared(processes, long)
    found |= _prepared(Here(), [file for file in files if file.folder not in found])
    each = [one for file in files for one in found[file.folder]]
    return [*parts, *(one for one in each if isinstance(one, Prepared))], [
        one for one in each if isinstance(one, Problem)
    ]


def _needed(
    own: Gathered, manifest: Manifest, group: tuple[Artifact, ...], reference: str
) -> dict[str, tuple[ClockSnapshot, ...]]:
    """The clock readings of a file's host and of the reference, so that those of thousands of hosts
    do not travel with each file.

    All of them where the pass is cut on reading: its window may be that of steps that other hosts
    logged.
    """
    if any(record.cut for record in manifest.passes if record.name == group[0].pass_name):
        return own.snapshots
    hosts = {artifact.host or host_of(manifest) for artifact in group} | {reference}
    return (
        own.snapshots
        if "" in hosts
        else {host: readings for host, readings in own.snapshots.items() if host in hosts}
    )


def _prepared(processes: Spread, files: Sequence[RunFile]) -> dict[Path, list[Prepared | Problem]]:
    return {files[position].folder: one for position, one in processes.each(prepare, files)}


def _with_links(part: Prepared, trace: Trace) -> Prepared:
    """With the ranks that give geometry to another pass, or take it."""
    lending: set[Link] = {
        ("geometry", source.rank)
        for position, source in enumerate(trace.sources)
        if gives_geometry(source) or takes_geometry(trace, position)
    }
    return replace(part, links=part.links | lending)


def _of_one_rank(parts: Sequence[Prepared]) -> list[Prepared]:
    """Geometry is joined within a rank; where some file does not say its rank, or nothing is lent,
    ranks do not matter for that.
    """
    lending = {link for part in parts for link in part.links if link[0] == "geometry"}
    if not any(rank is None for _, rank in lending):
        return list(parts)
    return [
        replace(
            part,
            links=frozenset(
                ("geometry", None) if link[0] == "geometry" else link for link in part.links
            ),
        )
        for part in parts
    ]


@dataclass(frozen=True, eq=False)
class RunSection:
    """The parts of a run as they are written: what is known of all of them, and what is done to
    each group.
    """

    found: RunParts
    joined: Section
    roles: dict[tuple[str, bool], PassRole] = field(default_factory=dict)
    spans: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)
    matches: dict[int, tuple[Match, ...]] = field(default_factory=dict)
    lay_over: bool = False

    @classmethod
    def of(cls, found: RunParts, *, lay_over: bool, cut: Cut) -> RunSection:
        """Two passes over the records where one part depends on all others: for geometry that is
        lent, and for an overlay.
        """
        parts = found.parts
        pools, places = merge_with_places([one.sketch for one in parts])
        pools = replace(pools, sources=tuple(share_marker_checks(pools.sources)))
        lends = _lends(pools)
        linked = (
            _of_one_rank(parts)
            if lends
            else [
                replace(part, links=frozenset(link for link in part.links if link[0] != "geometry"))
                for part in parts
            ]
        )
        section = cls(
            found, Section.of(pools, parts, places, prepared.together(linked)), lay_over=lay_over
        )
        if lends or lay_over:
            for trace in section.joined.each():
                pointed = assign_points(trace)
                section.roles.update(join_roles(section.roles, pass_roles(pointed)))
                add_spans(section.spans, point_spans(pointed))
        sources = laid_over(pools.sources, section.spans) if lay_over else pools.sources
        finished = replace(
            section.joined, pools=replace(pools, sources=sources), finish=section.finished
        )
        start, steps = section.moved(cut) if lay_over else (finished.first_ns, finished.steps)
        return replace(section, joined=replace(finished, starts=[start] * len(parts), steps=steps))

    def finished(self, number: int, trace: Trace) -> Trace:
        """One group with all that `load_run` adds."""
        trace, found = enrich_geometry(assign_points(trace), self.roles)
        self.matches[number] = found
        trace = derive.with_throughput(trace)
        return (
            replace(overlay(trace, spans=self.spans), sources=trace.sources)
            if self.lay_over
            else trace
        )

    def moved(self, wanted: Cut) -> tuple[int | None, StepsFound]:
        """The first start and the steps where records were moved."""
        steps, starts = StepsFound(), []
        for number, trace in enumerate(self.joined.each()):
            laid = self.finished(number, trace)
            steps = steps.joined(cutting.steps_found(laid, wanted))
            starts.append(cutting.first_ns(laid))
        return min((start for start in starts if start is not None), default=None), steps

    def problems(self) -> tuple[Problem, ...]:
        """What there is to say once all groups were written."""
        return (*self.joined.pools.problems, *self._match_problems(), *self.found.gathered_problems)

    def _match_problems(self) -> list[Problem]:
        """How much geometry each pass was lent, over all groups."""
        sums: dict[str, Match] = {}
        for number in sorted(self.matches):
            for one in self.matches[number]:
                known = sums.get(one.pass_name, replace(one, matched=0, kernels=0))
                sums[one.pass_name] = replace(
                    known, matched=known.matched + one.matched, kernels=known.kernels + one.kernels
                )
        sources = self.joined.pools.sources
        return [
            Problem(
                "info",
                sources[self.roles[name, False].first_source].path,
                match.matched,
                told(match),
            )
            for name, match in sums.items()
        ]


def _lends(pools: Trace) -> bool:
    """Whether a pass gives geometry to another."""
    roles = pass_roles(pools)
    donor = donor_of(roles)
    return donor is not None and any(not gives and name != donor for name, gives in roles)
