"""The parts of a run: each trace in it is read, labelled, put on the run's clock and kept.

Whoever asks says how a part is kept: in memory (`keep_in_memory`), or set aside on disk
(`merge.spilled.Spill`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from profharness.findings import Finding
from profharness.rundir.manifest import Artifact, Manifest
from profharness.rundir.paths import RunDir
from profharness.trace.model import Problem
from profharness.trace.wanted import Wanted
from profharness.understand.capture_window import Clocks, cut_passes
from profharness.understand.device_identities import hidden_from, identified
from profharness.understand.many.jobs import IN_ONE, Workers
from profharness.understand.many.spread import Here, Spread
from profharness.understand.own_files import present
from profharness.understand.run_clock import (
    AlignedTrace,
    Snapshots,
    align_trace,
    reference_host,
)
from profharness.understand.run_files import (
    OwnRecords,
    artifact_groups,
    host_of,
    own_records,
    read_group,
)

_LONG = 4 << 20  # bytes; shorter files are read sooner than a process starts


class Part(Protocol):
    """A trace of a run as it is kept."""

    @property
    def findings(self) -> tuple[Finding, ...]: ...


PartT = TypeVar("PartT", bound=Part)
PartT_co = TypeVar("PartT_co", bound=Part, covariant=True)


class Keep(Protocol[PartT_co]):
    """Keeps one trace under a name that no other of the run has. It may be called in another
    process.
    """

    def __call__(self, part: AlignedTrace, name: str) -> PartT_co: ...


def keep_in_memory(part: AlignedTrace, name: str) -> AlignedTrace:  # noqa: ARG001  a `Keep`
    """The trace as it is."""
    return part


@dataclass(frozen=True)
class RunNotes:
    """What there is of a run beside its records: clock readings, findings on the clocks of single
    files, and problems of reading.
    """

    manifest: Manifest
    snapshots: Snapshots
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


@dataclass(frozen=True, eq=False)
class RunParts(Generic[PartT]):
    """The kept parts of a run, what profharness itself recorded first. `left_out` groups of files
    are of ranks that were not wanted.
    """

    root: Path
    parts: list[PartT]
    notes: RunNotes
    left_out: int = 0


def read_run(
    root: Path,
    keep: Keep[PartT],
    workers: Workers = IN_ONE,
    ranks: frozenset[int] | None = None,
    *,
    records: Wanted = Wanted.ALL,
) -> RunParts[PartT]:
    """Read a run's files of the wanted ranks (None: of all), and of them these `records`. Raises
    InputError for a folder that is no run.

    A file that cannot be read is a problem of the run.
    """
    run = RunDir.open(root)
    manifest = run.read_manifest()
    own_files = own_records(run, manifest)
    found = artifact_groups(run, manifest)
    groups = found.groups
    wanted = [
        group
        for group in groups
        if ranks is None or group[0].rank is None or group[0].rank in ranks
    ]
    there, missing = present(run.root, wanted)
    reference = reference_host(manifest, own_files.snapshots)
    cut = cut_passes(manifest)
    at = Clocks(own_files.snapshots, reference, cut)
    parts = [
        keep(align_trace(run, trace, at), f"own{number}")
        for number, trace in enumerate(own_files.traces)
    ]
    problems = [*own_files.trace_problems, *found.refused]
    jobs = [
        _GroupJob(
            run.root,
            group,
            host_of(manifest),
            Clocks(_needed_snapshots(own_files, manifest, group, reference), reference, cut),
            keep,
            str(number),
            records,
            hidden_from(manifest, group[0]),
        )
        for number, group in enumerate(there)
    ]
    for group_parts in _read_groups(jobs, workers):
        parts += group_parts.parts
        problems += group_parts.problems
    problems += missing
    notes = RunNotes(
        manifest,
        own_files.snapshots,
        tuple(finding for part in parts for finding in part.findings),
        (*problems, *own_files.clock_problems),
    )
    return RunParts(root, parts, notes, len(groups) - len(wanted))


def artifact_bytes(root: Path) -> int:
    """The size of the tools' files of a run that are there. Raises InputError for a folder that is
    no run.
    """
    run = RunDir.open(root)
    groups = artifact_groups(run, run.read_manifest()).groups
    return _bytes([run.root / artifact.path for group in groups for artifact in group])


@dataclass(frozen=True)
class _GroupJob(Generic[PartT]):
    """The files of one trace, to be read, put on the run's clock and kept, in whatever process.
    `identities` are those of the devices that its process saw, where some were hidden from it.
    """

    root: Path
    group: tuple[Artifact, ...]
    host: str
    clocks: Clocks
    keep: Keep[PartT]
    name: str
    records: Wanted
    identities: dict[str, str]

    @property
    def paths(self) -> list[Path]:
        return [self.root / artifact.path for artifact in self.group]


@dataclass(frozen=True, eq=False)
class _GroupParts(Generic[PartT]):
    """The kept traces of one group of files, and its files that could not be read."""

    parts: list[PartT]
    problems: tuple[Problem, ...]


def _keep_group(job: _GroupJob[PartT]) -> _GroupParts[PartT]:
    run = RunDir(job.root)
    records = read_group(run, job.host, job.group, job.records)
    parts = [
        job.keep(
            align_trace(run, identified(trace, job.identities), job.clocks),
            f"{job.name}-{number}",
        )
        for number, trace in enumerate(records.traces)
    ]
    return _GroupParts(parts, records.problems)


def _read_groups(
    jobs: Sequence[_GroupJob[PartT]], workers: Workers
) -> Iterator[_GroupParts[PartT]]:
    """The parts of each group in order; long files are read by the workers, short ones here."""
    is_long = [_bytes(job.paths) >= _LONG for job in jobs]
    by_position: dict[int, _GroupParts[PartT]] = {}
    if any(is_long):
        paths = [
            path
            for job, long in zip(jobs, is_long, strict=True)
            if long
            for path in job.paths
            if path.is_file()
        ]
        with workers.open(paths) as processes:
            _read_some(processes, jobs, is_long, by_position)
    _read_some(Here(), jobs, [not long for long in is_long], by_position)
    return (by_position.pop(position) for position in range(len(jobs)))


def _read_some(
    processes: Spread,
    jobs: Sequence[_GroupJob[PartT]],
    chosen: Sequence[bool],
    by_position: dict[int, _GroupParts[PartT]],
) -> None:
    positions = [position for position, wanted in enumerate(chosen) if wanted]
    for at, parts in processes.each(_keep_group, [jobs[position] for position in positions]):
        by_position[positions[at]] = parts


def _needed_snapshots(
    own_files: OwnRecords, manifest: Manifest, group: tuple[Artifact, ...], reference: str
) -> Snapshots:
    """The clock readings of a file's host and of the reference, so that those of thousands of hosts
    do not travel with each file.

    All of them where the pass is cut on reading: its window may be that of steps that other hosts
    logged.
    """
    if any(record.cut for record in manifest.passes if record.name == group[0].pass_name):
        return own_files.snapshots
    hosts = {artifact.host or host_of(manifest) for artifact in group} | {reference}
    if "" in hosts:
        return own_files.snapshots
    return {host: readings for host, readings in own_files.snapshots.items() if host in hosts}


def _bytes(paths: Sequence[Path]) -> int:
    """The size of those files that are there."""
    return sum(path.stat().st_size for path in paths if path.is_file())
