"""Reads everything that a run directory holds into traces, each on its own clock, labelled from the manifest.

Nothing here is fatal: a file that is missing or damaged becomes a counted problem, so that a run that was
killed at any moment can still be read. Aligning and merging are `understand`'s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from profharness import layers, readers
from profharness.errors import InputError
from profharness.layers import Where
from profharness.manifest import Artifact, ClockSnapshot, Manifest
from profharness.readers import steps, telemetry, trials
from profharness.rundir import RunDir
from profharness.spread import Here, here
from profharness.trace.clocks import Snapshot
from profharness.trace.model import Problem, Trace
from profharness.wrappers_path import wrappers_dir

_LONG = 4 << 20  # bytes; shorter files are read sooner than a process starts


@dataclass(frozen=True)
class Gathered:
    """The traces of one run, and the clock readings of its hosts."""

    traces: tuple[Trace, ...]
    snapshots: dict[str, tuple[ClockSnapshot, ...]]
    problems: tuple[Problem, ...]


def gather(run: RunDir, manifest: Manifest) -> Gathered:
    """Read all that is there."""
    problems: list[Problem] = []
    traces = [*_trials(run, manifest, problems), *_steps(run, manifest, problems), *_telemetry(run, problems),
              *_artifacts(run, manifest, problems)]
    return Gathered(tuple(traces), _snapshots(run, manifest, problems), tuple(problems))


def all_artifacts(run: RunDir, manifest: Manifest) -> tuple[Artifact, ...]:
    """Those of the manifest, and those that a killed run left unrecorded."""
    known = frozenset(artifact.path for artifact in manifest.artifacts)
    found: list[Artifact] = list(manifest.artifacts)
    for record in manifest.passes:
        where = Where(run_root=run.root, pass_name=record.name, wrappers=wrappers_dir(), host=_host(manifest))
        chosen = [layer for layer in layers.members() if layer.name in record.layers]
        found += [artifact for layer in chosen for artifact in layer.collect(where, known)]
    return tuple(found)


def _artifacts(run: RunDir, manifest: Manifest, problems: list[Problem]) -> Iterator[Trace]:
    listed = [artifact for artifact in all_artifacts(run, manifest) if not artifact.aside]
    for artifact, trace in zip(listed, _read([run.root / artifact.path for artifact in listed]), strict=True):
        if isinstance(trace, str):
            problems.append(Problem("error", artifact.path, 1, f"{trace}; the file is left out"))
            continue
        labels = {"pass_name": artifact.pass_name, "layer": artifact.layer, "point": artifact.point,
                  "host": artifact.host or _host(manifest), "pid": artifact.pid, "rank": artifact.rank}
        yield _labelled(trace, artifact.path, {name: value for name, value in labels.items() if value not in ("", None)},
                        marker=artifact.format.endswith("-marker"))


def _read(paths: list[Path]) -> list[Trace | str]:
    """Each file's trace, or why there is none; long ones by several processes."""
    sizes = {path: path.stat().st_size if path.is_file() else 0 for path in paths}
    long = [path for path in paths if sizes[path] >= _LONG]
    short = [path for path in paths if sizes[path] < _LONG]
    found: dict[Path, Trace | str] = {}
    for some, spread_out in ((long, here(sum(sizes[path] for path in long), len(long), None)), (short, Here())):
        found |= {some[position]: trace for position, trace in spread_out.each(read_or_say, some)}
    return [found[path] for path in paths]


def read_or_say(path: Path) -> Trace | str:
    """The trace of one file, or the message of the error."""
    try:
        return readers.read(path)
    except InputError as error:
        return error.message


def _trials(run: RunDir, manifest: Manifest, problems: list[Problem]) -> Iterator[Trace]:
    """trials.csv of every pass and point; host and process from the point's record."""
    records = {(record.pass_name, _key(record.id, record.repeat)): record for record in manifest.points}
    for path in sorted((run.root / "points").glob("*/*/trials.csv")):
        pass_name, key = path.parent.parent.name, path.parent.name
        try:
            trace = trials.read(path, point=key)
        except InputError as error:
            problems.append(Problem("error", run.relative(path), 1, error.message))
            continue
        record = records.get((pass_name, key))
        yield _labelled(trace, run.relative(path), {
            "pass_name": pass_name, "point": key, "layer": "trials", "host": (record.host if record else "") or _host(manifest),
            "pid": record.pid if record else None})


def _steps(run: RunDir, manifest: Manifest, problems: list[Problem]) -> Iterator[Trace]:
    """The hooks' logs of steps, in every pass of a command; the pass is the one that was running."""
    for path in sorted(run.artifacts_path("steps").rglob("steps-*.jsonl")):
        try:
            trace = steps.read(path)
        except InputError as error:
            problems.append(Problem("error", run.relative(path), 1, error.message))
            continue
        host, owner = path.parent.parent.name, path.parent.name
        rank = int(owner) if manifest.ranks > 1 and owner.isdigit() else None
        yield _labelled(trace, run.relative(path), {"layer": "steps", "host": host, "rank": rank, "pass_name": _pass_at(manifest, trace)})


def _pass_at(manifest: Manifest, trace: Trace) -> str:
    """The last pass that had begun when the first step ended (BOOTTIME and MONOTONIC differ by whole suspends only)."""
    if not len(trace.marks) or not manifest.clocks:
        return manifest.passes[-1].name if len(manifest.passes) == 1 else ""
    slept = manifest.clocks[0].boot_ns - manifest.clocks[0].monotonic_ns
    at = int(trace.marks.start_ns[0]) + slept
    begun = [record.name for record in manifest.passes if record.start_boot_ns is not None and record.start_boot_ns <= at]
    return begun[-1] if begun else ""


def _telemetry(run: RunDir, problems: list[Problem]) -> Iterator[Trace]:
    for path in sorted(run.telemetry.glob("*.samples.bin")):
        try:
            trace = telemetry.read(path)
        except InputError as error:
            problems.append(Problem("error", run.relative(path), 1, error.message))
            continue
        yield _labelled(trace, run.relative(path), {"layer": "telemetry"})


def _labelled(trace: Trace, path: str, labels: dict[str, object], *, marker: bool = False) -> Trace:
    """The trace with its source named by the run: paths relative to the run directory, pass, layer, point, process."""
    if len(trace.sources) > 1:
        labels = {name: value for name, value in labels.items() if name not in ("pid", "rank")}  # a file of several processes says which
    sources = tuple(replace(source, path=path, format=f"{source.format}-marker" if marker else source.format, **labels)  # type: ignore[arg-type]  # names of Source's fields
                    for source in trace.sources)
    problems = tuple(replace(problem, source=path) for problem in trace.problems)
    return replace(trace, sources=sources, problems=problems)


def _snapshots(run: RunDir, manifest: Manifest, problems: list[Problem]) -> dict[str, tuple[ClockSnapshot, ...]]:
    """Those of the manifest; of a killed run, those that the sampler wrote."""
    found: dict[str, list[ClockSnapshot]] = {}
    for snapshot in manifest.clocks:
        found.setdefault(snapshot.host, []).append(snapshot)
    for path in sorted(run.telemetry.glob("*.clocks.jsonl")):
        if path.name.removesuffix(".clocks.jsonl") in found:
            continue
        try:
            for reading in telemetry.read_clocks(path):
                found.setdefault(reading.host, []).append(_snapshot(reading))
        except InputError as error:
            problems.append(Problem("error", run.relative(path), 1, error.message))
    return {host: tuple(readings) for host, readings in found.items()}


def read_clock_files(run: RunDir) -> tuple[ClockSnapshot, ...]:
    """Every clock reading that the samplers wrote, for the manifest."""
    paths = sorted(run.telemetry.glob("*.clocks.jsonl"))
    return tuple(_snapshot(reading) for path in paths for reading in telemetry.read_clocks(path))


def _snapshot(reading: Snapshot) -> ClockSnapshot:
    return ClockSnapshot(host=reading.host, phase=reading.phase, boot_ns=reading.boot_ns, monotonic_ns=reading.monotonic_ns,
                         monotonic_raw_ns=reading.monotonic_raw_ns, realtime_ns=reading.realtime_ns, width_ns=reading.width_ns)


def _host(manifest: Manifest) -> str:
    return manifest.nodes[0].host if manifest.nodes else ""


def _key(point_id: str, repeat: int) -> str:
    return f"{point_id}~{repeat}" if repeat else point_id


def marker_brackets(path: Path) -> tuple[tuple[int, int], ...]:
    """The brackets (CLOCK_MONOTONIC ns) of the self-check markers that the hooks wrote beside a file; empty without."""
    from profharness.readers import sidecar

    try:
        found = sidecar.load(path)
    except InputError:
        return ()
    return found.markers if found is not None else ()
