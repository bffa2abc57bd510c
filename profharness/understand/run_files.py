"""The files of a run directory as traces, each on its own clock, labelled from the manifest.

Nothing here is fatal: a file that is missing or damaged becomes a counted problem, so that a run
that was killed at any moment can still be read. `run_parts` puts the traces on one clock.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from profharness import readers
from profharness.errors import InputError
from profharness.readers.border import reading
from profharness.readers.own import host, steps
from profharness.rundir import clock_files, left_files, telemetry, telemetry_files, trials
from profharness.rundir.clock_files import clock_snapshot
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.manifest import Artifact, ClockSnapshot, Manifest, PointRecord
from profharness.rundir.paths import RunDir
from profharness.secrets.discretion import without_secrets
from profharness.trace.clocks.align import Snapshot
from profharness.trace.columns.table import NULL
from profharness.trace.model import Problem, Trace
from profharness.trace.wanted import Wanted
from profharness.understand.own_files import each, left_out, sound
from profharness.understand.run_levels import level_traces

# of these formats several files of one process, or of one workload, make one trace
_DIGITS = 8  # no run has ranks or processes of as many
_TABLE = "rocprofv3-csv"
_REPLAYS = ("rocprof-compute", "rocprof-compute-replay")


@dataclass(frozen=True)
class OwnRecords:
    """What profharness itself recorded of a run: traces, the clock readings of its hosts, and what
    could not be read of both.
    """

    traces: tuple[Trace, ...]
    snapshots: dict[str, tuple[ClockSnapshot, ...]]
    trace_problems: tuple[Problem, ...]
    clock_problems: tuple[Problem, ...]


@dataclass(frozen=True)
class GroupRecords:
    """The labelled traces in a group of a tool's files, on their own clocks, and its files that
    could not be read.
    """

    traces: tuple[Trace, ...]
    problems: tuple[Problem, ...] = ()


def own_records(run: RunDir, manifest: Manifest) -> OwnRecords:
    """Trials, steps, what Python did, telemetry, levels and clock readings."""
    trace_problems: list[Problem] = []
    clock_problems: list[Problem] = []
    inside = Inside(run.root)
    traces = (
        *_trials(inside, manifest, trace_problems),
        *_steps(inside, manifest, trace_problems),
        *_host(inside, manifest, trace_problems),
        *_telemetry(inside, trace_problems),
        *level_traces(inside, manifest, trace_problems),
    )
    snapshots = _snapshots(inside, manifest, clock_problems)
    return OwnRecords(traces, snapshots, tuple(trace_problems), tuple(clock_problems))


def all_artifacts(run: RunDir, manifest: Manifest) -> tuple[Artifact, ...]:
    """The files that the manifest lists, and those that a killed run left unrecorded."""
    recorded = frozenset(artifact.path for artifact in manifest.artifacts)
    artifacts: list[Artifact] = list(manifest.artifacts)
    for record in manifest.passes:
        for name, facts in manifest.layer_facts().items():
            if name in record.layers:
                of = left_files.LayerPass(run.root, name, record.name, ranked=manifest.ranks > 1)
                artifacts += left_files.collect(facts.leaves, of, recorded)
    return tuple(artifacts)


@dataclass(frozen=True)
class ArtifactGroups:
    """The files that tools left, those that make one trace together, and what may not be read."""

    groups: tuple[tuple[Artifact, ...], ...]
    refused: tuple[Problem, ...]


def artifact_groups(run: RunDir, manifest: Manifest) -> ArtifactGroups:
    """The files to read of those that the manifest lists and those that lie in the run. Raises
    InputError where its folders cannot be looked through.
    """
    with reading(run.artifacts_path("")):
        listed = [one for one in all_artifacts(run, manifest) if not one.aside]
        artifacts, refused = sound(run.root, listed)
        groups = _groups(run, list(artifacts))
    return ArtifactGroups(tuple(tuple(group) for group in groups), refused)


def read_group(
    run: RunDir, host: str, group: Sequence[Artifact], wanted: Wanted = Wanted.ALL
) -> GroupRecords:
    """Read the files of a group. `host` is that of files which state none; where some files of a
    set cannot be read, the others still count.
    """
    try:
        return GroupRecords((_named(run, host, group, _read(run, group, wanted)),))
    except InputError as error:
        if len(group) == 1:
            return GroupRecords((), (left_out(group[0], error.message),))
    problems: list[Problem] = []
    readable: list[Artifact] = []
    for artifact in group:
        try:
            _read(run, (artifact,), wanted)
        except InputError as error:
            problems.append(left_out(artifact, error.message))
        else:
            readable.append(artifact)
    traces: tuple[Trace, ...] = ()
    if readable:
        try:
            traces = (_named(run, host, readable, _read(run, readable, wanted)),)
        except InputError as error:
            problems.append(left_out(readable[0], error.message))
    return GroupRecords(traces, tuple(problems))


def _read(run: RunDir, group: Sequence[Artifact], wanted: Wanted) -> Trace:
    """The trace of some files, without the secrets in its texts."""
    paths = tuple(run.root / artifact.path for artifact in group)
    with reading(paths[0]):
        return _read_files(paths, group[0].format, wanted)


def _read_files(paths: tuple[Path, ...], file_format: str, wanted: Wanted) -> Trace:
    if file_format == _REPLAYS[1]:  # by its content a database like those of rocprofv3
        from profharness.readers.rocprof_compute import reader as rocprof_compute

        with reading(paths[0], _REPLAYS[1]):
            replays = rocprof_compute.read_set(paths)
        return without_secrets(replays)
    return without_secrets(readers.read_group(paths, wanted=wanted))


def _named(run: RunDir, host: str, group: Sequence[Artifact], trace: Trace) -> Trace:
    """The trace with the names that the manifest has for the file which it states as its source."""
    stated = trace.sources[0].path
    artifact = next(
        (artifact for artifact in group if str(run.root / artifact.path) == stated), group[0]
    )
    labels = {
        "pass_name": artifact.pass_name,
        "layer": artifact.layer,
        "point": artifact.point,
        "host": artifact.host or host,
        "pid": artifact.pid,
        "rank": artifact.rank,
    }
    return _labelled(
        trace,
        artifact.path,
        {name: value for name, value in labels.items() if value not in ("", None)},
        marker=artifact.format.endswith("-marker"),
    )


def _groups(run: RunDir, listed: list[Artifact]) -> list[list[Artifact]]:
    """Files that make one trace each: the tables that rocprofv3 wrote of one process, what
    rocprof-compute left of all executions of one pass and rank, and every other file by itself.
    """
    workloads: dict[str, list[Artifact]] = {}
    for artifact in listed:
        if artifact.format in _REPLAYS:
            workloads.setdefault(_workload(artifact.path), []).append(artifact)
    listed = [artifact for artifact in listed if artifact.format not in _REPLAYS]
    tables = {
        run.root / artifact.path: artifact for artifact in listed if artifact.format == _TABLE
    }
    if not tables:
        return [*([artifact] for artifact in listed), *workloads.values()]
    from profharness.readers.rocprofv3 import csv_reader as rocprofv3_csv

    sets = [[tables[path] for path in paths] for paths in rocprofv3_csv.sets(tables)]
    single = ([artifact] for artifact in listed if artifact.format != _TABLE)
    return [*single, *sets, *workloads.values()]


def _workload(path: str) -> str:
    """The folder of a workload of rocprof-compute, whose databases lie below `out` in it."""
    return path.partition("/out/")[0] if path.endswith(".db") else path.rpartition("/")[0]


def _trials(inside: Inside, manifest: Manifest, problems: list[Problem]) -> Iterator[Trace]:
    """The trials files of every pass and point; host and process from the point's record."""
    records = {
        (record.pass_name, _key(record.id, record.repeat)): record for record in manifest.points
    }
    for path, trace in each(
        inside,
        "points/*/*/trials*.csv",
        problems,
        lambda path: trials.read(path, point=path.parent.name),
    ):
        pass_name, key = path.parent.parent.name, path.parent.name
        record = records.get((pass_name, key))
        yield _labelled(
            trace,
            inside.named(path),
            {
                "pass_name": pass_name,
                "point": key,
                "layer": "trials",
                "host": (record.host if record else "") or host_of(manifest),
                "pid": _pid(record, path),
            },
        )


def _pid(record: PointRecord | None, path: Path) -> int | None:
    """The worker's, or that of the process whose trials these are (trials-3.csv)."""
    if record is None:
        return None
    number = path.stem.removeprefix("trials").removeprefix("-")
    return (
        record.streams[int(number)].pid
        if _is_number(number) and int(number) < len(record.streams)
        else record.pid
    )


def _steps(inside: Inside, manifest: Manifest, problems: list[Problem]) -> Iterator[Trace]:
    """The hooks' logs of steps, in every pass of a command; the pass is the one that was
    running.
    """
    for path, trace in each(inside, "artifacts/steps/**/steps-*.jsonl", problems, steps.read):
        of_process = _of_process(manifest, path)
        yield _labelled(
            trace,
            inside.named(path),
            {"layer": "steps", **of_process, "pass_name": _pass_at(manifest, trace)},
        )


def _host(inside: Inside, manifest: Manifest, problems: list[Problem]) -> Iterator[Trace]:
    """The hooks' records of what Python did; they say in which pass."""
    passes = frozenset(record.name for record in manifest.passes)
    for path, trace in each(inside, "artifacts/host/**/host-*.jsonl", problems, host.read):
        labels = {"layer": "python", **_of_process(manifest, path)}
        if trace.sources[0].pass_name not in passes:
            labels["pass_name"] = ""
        yield _labelled(without_secrets(trace), inside.named(path), labels)


def _of_process(manifest: Manifest, path: Path) -> dict[str, object]:
    """Host and rank of a file of one process, by its folder."""
    host, owner = path.parent.parent.name, path.parent.name
    rank = int(owner) if manifest.ranks > 1 and _is_number(owner) else None
    return {"host": host, "rank": rank}


def _pass_at(manifest: Manifest, trace: Trace) -> str:
    """The last pass that had begun when the first step ended (BOOTTIME and MONOTONIC differ by
    whole suspends only).
    """
    if not len(trace.marks) or not manifest.clocks:
        return manifest.passes[-1].name if len(manifest.passes) == 1 else ""
    slept = manifest.clocks[0].boot_ns - manifest.clocks[0].monotonic_ns
    at = int(trace.marks.start_ns[0]) + slept
    begun = [
        record.name
        for record in manifest.passes
        if record.start_boot_ns is not None and record.start_boot_ns <= at
    ]
    return begun[-1] if begun else ""


def _telemetry(inside: Inside, problems: list[Problem]) -> Iterator[Trace]:
    where, find = f"telemetry/*{telemetry_files.SAMPLES}", telemetry_files.found_in
    for path, trace in each(inside, where, problems, telemetry.read, find=find):
        yield _labelled(trace, inside.named(path), {"layer": "telemetry"})


def _is_number(text: str) -> bool:
    """Whether a part of a file's name is the number of a rank or process."""
    return text.isdecimal() and len(text) < _DIGITS


def _labelled(trace: Trace, path: str, labels: dict[str, object], *, marker: bool = False) -> Trace:
    """The trace with its source named by the run: paths relative to the run directory, pass, layer,
    point, process.
    """
    if len(trace.sources) > 1:
        labels = {
            name: value for name, value in labels.items() if name not in ("pid", "rank")
        }  # a file of several processes says which
    sources = tuple(
        replace(
            source,
            path=path,
            format=f"{source.format}-marker" if marker else source.format,
            **labels,  # type: ignore[arg-type]  # names of Source's fields
        )
        for source in trace.sources
    )
    problems = tuple(replace(problem, source=path) for problem in trace.problems)
    return _on_host(replace(trace, sources=sources, problems=problems), str(labels.get("host", "")))


def _on_host(trace: Trace, host: str) -> Trace:
    """The trace with the host where its tool wrote none: devices of two nodes with one address are
    two devices.
    """
    if not host or len(trace.sources) > 1:
        return trace
    strings, tables = trace.strings, {}
    for name, table in trace.tables():
        column = getattr(table, "host", None)
        if (
            column is not None
            and len(column)
            and (lacking := np.isin(column, [NULL, strings.find("")])).any()
        ):
            tables[name] = table.with_columns(host=np.where(lacking, strings.code(host), column))
    devices = tuple(
        device if device.host else replace(device, host=host) for device in trace.devices
    )
    # each name maps to its own kind of table
    return replace(trace, devices=devices, **tables)  # type: ignore[arg-type]  # kinds by name


def _snapshots(
    inside: Inside, manifest: Manifest, problems: list[Problem]
) -> dict[str, tuple[ClockSnapshot, ...]]:
    """The clock readings of the manifest; of a killed run, those that the sampler wrote."""
    readings_of: dict[str, list[ClockSnapshot]] = {}
    for snapshot in manifest.clocks:
        readings_of.setdefault(snapshot.host, []).append(snapshot)
    recorded = frozenset(readings_of)

    def read(path: Path) -> tuple[Snapshot, ...]:
        host = path.name.removesuffix(clock_files.LINK_FILE).removesuffix(".clocks.jsonl")
        return () if host in recorded else clock_files.read_clocks(path)

    for _, readings in each(inside, "telemetry/*.clocks.jsonl", problems, read):
        for one in readings:
            readings_of.setdefault(one.host, []).append(clock_snapshot(one))
    return {host: tuple(readings) for host, readings in readings_of.items()}


def host_of(manifest: Manifest) -> str:
    """The node of rank 0; empty where the manifest names none."""
    return manifest.nodes[0].host if manifest.nodes else ""


def _key(point_id: str, repeat: int) -> str:
    return f"{point_id}~{repeat}" if repeat else point_id


def marker_brackets(path: Path) -> tuple[tuple[int, int], ...]:
    """The brackets (CLOCK_MONOTONIC ns) of the self-check markers that the hooks wrote beside a
    file; empty without.
    """
    from profharness.readers.own import sidecar

    try:
        with reading(path):
            checks = sidecar.load(path)
    except InputError:
        return ()
    return checks.markers if checks is not None else ()
