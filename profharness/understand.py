"""The second half's table of contents: read -> align -> merge -> summarise -> write.

Works on run directories and on loose trace files alike; starts no process and needs no device.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast, get_args

import msgspec
import numpy as np

from profharness import __version__, readers
from profharness.analysis.metrics import summarise_trace
from profharness.analysis.records import Summary
from profharness.analysis.summary import summarise_run
from profharness.errors import InputError, OutputExists, UsageError
from profharness.findings import Finding
from profharness.gather import gather, marker_brackets
from profharness.manifest import ClockSnapshot, Manifest
from profharness.report import html
from profharness.report.csv import hotspots_csv
from profharness.rundir import RunDir, write_atomic
from profharness.trace import clock_checks, clocks, derive, merge
from profharness.trace.causality import causality_findings
from profharness.trace.model import ClockDomain, Problem, Source, Strings, Trace
from profharness.trace.overlay import overlay as overlaid
from profharness.trace.points import assign_points
from profharness.writers import perfetto
from profharness.writers.options import ClockReading, GpuRepresentation, HostFacts, WriteOptions

Snapshots = Mapping[str, Sequence[ClockSnapshot]]


@dataclass(frozen=True)
class Loaded:
    """Everything that was read, on one clock. `findings` are about clocks; figures are the analysis's."""

    trace: Trace
    source: str
    manifest: Manifest | None = None
    findings: tuple[Finding, ...] = ()


@dataclass(frozen=True)
class MergeOptions:
    """How `merge` treats clocks and what it writes."""

    overlay: bool = False
    allow_unaligned: bool = False
    gpu_repr: str = "render-stage"
    force: bool = False


@dataclass(frozen=True)
class MergeReport:
    """Where the trace went, and what there is to say about it."""

    path: Path
    lines: tuple[str, ...]


def load(paths: Sequence[Path], *, allow_unaligned: bool = False, overlay: bool = False) -> Loaded:
    """One run directory, or any mix of runs and files, merged.

    Raises InputError for a path that cannot be read, and for several sources that share no clock (unless allowed).
    """
    if not paths:
        raise UsageError("nothing to read", "name a run directory or trace files")
    for path in paths:
        if not path.exists():
            raise InputError(f"{path}: there is no such file or run directory", "`profharness ls` lists runs")
    parts = [_load_run(path) if path.is_dir() else _load_file(path) for path in paths]
    if len(parts) == 1:
        loaded = parts[0]
    else:
        _check_clocks([part.trace for part in parts], allow_unaligned=allow_unaligned)
        loaded = Loaded(merge.merge([part.trace for part in parts]), ", ".join(str(path) for path in paths), None,
                        tuple(found for part in parts for found in part.findings))
    return replace(loaded, trace=overlaid(loaded.trace)) if overlay else loaded


def _load_file(path: Path) -> Loaded:
    """A loose file stays on its own clock: a single source needs no alignment."""
    trace = readers.read(path)
    return Loaded(trace, str(path), None, causality_findings(trace))


def _load_run(root: Path) -> Loaded:
    run = RunDir.open(root)
    manifest = run.read_manifest()
    gathered = gather(run, manifest)
    reference = _reference(manifest, gathered.snapshots)
    checked = [_checked(run, clocks.align(trace, gathered.snapshots, reference), gathered.snapshots, reference)
               for trace in gathered.traces]
    parts = share_marker_checks([trace for trace, _ in checked])
    whole = merge.merge(parts) if parts else Trace(sources=(), strings=Strings())
    whole = derive.with_throughput(assign_points(whole))
    whole = replace(whole, problems=(*whole.problems, *gathered.problems))
    findings = (*(found for _, own in checked for found in own), *clock_checks.clock_findings(whole, gathered.snapshots),
                *causality_findings(whole))
    return Loaded(whole, str(root), manifest, findings)


def _reference(manifest: Manifest, snapshots: Snapshots) -> str:
    """The node of rank 0; of a damaged run, any host with clock readings."""
    if manifest.nodes and manifest.nodes[0].host in snapshots:
        return manifest.nodes[0].host
    return next(iter(snapshots), "")


def _checked(run: RunDir, trace: Trace, snapshots: Snapshots, reference: str) -> tuple[Trace, tuple[Finding, ...]]:
    """The marker self-check of one aligned file: its spans against the brackets that the hook took around them."""
    source = trace.sources[0]
    brackets = np.array(marker_brackets(run.root / source.path), np.int64).reshape(-1, 2)
    way = clocks.route(ClockDomain.MONOTONIC, source.host, snapshots, reference)
    if source.clock is not ClockDomain.RUN or not len(brackets) or isinstance(way, str):
        return trace, ()
    markers = trace.marks.take(trace.marks.kind == trace.strings.find("marker"))
    markers = markers.take(np.argsort(markers.start_ns, kind="stable"))
    if len(markers) != len(brackets):
        lost = Problem("warning", source.path, abs(len(markers) - len(brackets)),
                       "self-check markers are missing in the file: its clock is not checked")
        return replace(trace, problems=(*trace.problems, lost)), ()
    check = clock_checks.marker_check(markers.start_ns, markers.start_ns + markers.dur_ns, way(brackets[:, 0]), way(brackets[:, 1]))
    if check is None:
        return trace, ()
    found = clock_checks.residual_finding(source, check)
    return clock_checks.with_marker_check(trace, 0, check), (found,) if found else ()


def share_marker_checks(traces: Sequence[Trace]) -> list[Trace]:
    """Files without markers of their own take the check of the marker file that the same process and tool wrote."""
    known = {(source.host, source.pid, source.layer): source for trace in traces for source in trace.sources
             if source.format.endswith("-marker") and source.bound_ns is not None}

    def shared(source: Source) -> Source:
        marker = known.get((source.host, source.pid, source.layer))
        if marker is None or source.bound_ns is not None or source.pid is None:
            return source
        return replace(source, residual_ns=marker.residual_ns, bound_ns=marker.bound_ns)

    return [replace(trace, sources=tuple(shared(source) for source in trace.sources)) for trace in traces]


def _check_clocks(parts: Sequence[Trace], *, allow_unaligned: bool) -> None:
    """Several sources must share one clock of one host. Raises InputError, naming those that do not."""
    sources = [source for part in parts for source in part.sources]
    shared = {(source.clock, source.host) for source in sources}
    lost = [source.path for source in sources if source.clock is ClockDomain.UNKNOWN or not source.host]
    if allow_unaligned or (len(shared) == 1 and not lost):
        return
    said = (f"{lost[0]} does not say which clock or host it was recorded on" if lost else
            "they were recorded on " + ", ".join(sorted(f"{clock.value} of {host}" for clock, host in shared)))
    raise UsageError(f"these sources cannot be put on one clock: {said}",
                     "record them in one run, or merge them as they are with --allow-unaligned (they will be marked)")


def merge_to_file(paths: Sequence[Path], output: Path | None, options: MergeOptions) -> MergeReport:
    """Write one Perfetto trace. Raises OutputExists for a file that is there, unless forced."""
    target = output or _default_output(paths)
    if target.exists() and not options.force:
        raise OutputExists(f"{target} exists", "name another with -o, or overwrite it with --force")
    loaded = load(paths, allow_unaligned=options.allow_unaligned, overlay=options.overlay)
    written = perfetto.write(loaded.trace, target, attributes=_attributes(loaded), options=_write_options(loaded, _gpu_repr(options.gpu_repr)))
    lines = [f"{source.path}: {source.alignment}" for source in loaded.trace.sources if source.alignment]
    lines += [f"{problem.severity}: {problem.source}: {problem.count} x {problem.message}" for problem in loaded.trace.problems]
    return MergeReport(target, (*lines, *written.lines()))


def finish(root: Path, *, report: Path | None = None, force: bool = False) -> Summary:
    """Understand one run and write merged.pftrace, summary.json, hotspots.csv and report.html into it.

    Raises InputError for a folder that is no run, and OutputExists for a `report` elsewhere that exists.
    """
    if report is not None and report.exists() and not force:
        raise OutputExists(f"{report} exists", "name another with -o, or overwrite it with --force")
    if not root.is_dir():
        raise InputError(f"{root}: there is no such run directory", "`profharness ls` lists runs")
    run = RunDir.open(root)
    loaded = load([root])
    summary = summarise(loaded)
    perfetto.write(loaded.trace, run.merged, attributes=_attributes(loaded), options=_write_options(loaded))
    write_atomic(run.summary, msgspec.json.format(msgspec.json.encode(summary), indent=1) + b"\n")
    if summary.hotspots:
        write_atomic(run.hotspots, hotspots_csv(summary.hotspots[0]).encode())
    write_atomic(report or run.report, html.render(summary).encode())
    return summary


def summarise(loaded: Loaded) -> Summary:
    """The figures of what was loaded: of a run over all its passes, of loose files as one trace."""
    if loaded.manifest is None:
        summary = summarise_trace(loaded.trace, loaded.source)
    else:
        summary = summarise_run(loaded.manifest, loaded.trace, loaded.source)
    return msgspec.structs.replace(summary, findings=_once((*summary.findings, *loaded.findings)))


def _once(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    """Each finding once, in order; two parts of the analysis may see the same."""
    return tuple({(found.id, found.message, found.point): found for found in findings}.values())


def _default_output(paths: Sequence[Path]) -> Path:
    if len(paths) == 1 and paths[0].is_dir():
        return RunDir(paths[0]).merged
    return Path("merged.pftrace")


def _attributes(loaded: Loaded) -> dict[str, str | int]:
    """What the trace says of itself in the viewer's overview."""
    said: dict[str, str | int] = {"profharness.source": loaded.source, "profharness.version": __version__}
    if loaded.manifest is not None:
        said |= {"profharness.run_id": loaded.manifest.id, "profharness.argv": " ".join(loaded.manifest.argv),
                 "profharness.created": loaded.manifest.created}
    for number, source in enumerate(loaded.trace.sources):
        if source.bound_ns is not None:
            said[f"profharness.clock.{number}.bound_ns"] = source.bound_ns
        if source.residual_ns is not None:
            said[f"profharness.clock.{number}.residual_ns"] = source.residual_ns
        if source.alignment:
            said[f"profharness.clock.{number}.alignment"] = f"{source.path}: {source.alignment}"
    return said


def _write_options(loaded: Loaded, gpu_repr: GpuRepresentation = "render-stage") -> WriteOptions:
    """With the reference host's wall clock and the nodes' facts, where a manifest has them."""
    manifest = loaded.manifest
    if manifest is None:
        return WriteOptions(gpu_repr=gpu_repr)
    reference = manifest.nodes[0].host if manifest.nodes else ""
    readings = tuple(ClockReading(one.boot_ns, one.realtime_ns) for one in manifest.clocks if one.host == reference)
    hosts = tuple(HostFacts(host=node.host, sysname="Linux", release=node.kernel, cpus=len(node.cpus_allowed) or None)
                  for node in manifest.nodes)
    return WriteOptions(gpu_repr=gpu_repr, clocks=readings, hosts=hosts)


def _gpu_repr(text: str) -> GpuRepresentation:
    for known in get_args(GpuRepresentation):
        if text == known:
            return cast("GpuRepresentation", known)
    raise UsageError(f"--gpu-repr: {text!r} is not a representation", "use render-stage or track-event")
