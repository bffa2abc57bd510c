"""A run directory as one trace: read, align, check the clocks, merge, cut by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from profharness.findings import Finding
from profharness.rundir.manifest import ClockSnapshot, Manifest
from profharness.rundir.paths import RunDir
from profharness.trace import derive, merge
from profharness.trace.clocks import align as clocks
from profharness.trace.clocks import checks as clock_checks
from profharness.trace.clocks.causality import causality_findings
from profharness.trace.enrich import enrich_geometry
from profharness.trace.model import ClockDomain, Problem, Source, Strings, Trace
from profharness.trace.parts.points import assign_points
from profharness.understand.capture_window import Clocks, within_window
from profharness.understand.run_files import gather, marker_brackets

Snapshots = Mapping[str, Sequence[ClockSnapshot]]


@dataclass(frozen=True)
class RunRecords:
    """The records of a run on one clock, its manifest, and what the checks of its clocks found."""

    trace: Trace
    manifest: Manifest
    findings: tuple[Finding, ...]


def load_run(root: Path) -> RunRecords:
    """Everything that a run directory holds, aligned, cut by point, and checked. Raises InputError
    for a folder that is no run.
    """
    run = RunDir.open(root)
    manifest = run.read_manifest()
    gathered = gather(run, manifest)
    reference = reference_of(manifest, gathered.snapshots)
    checked = [aligned(run, trace, gathered.snapshots, reference) for trace in gathered.traces]
    shared = iter(share_marker_checks([source for trace, _ in checked for source in trace.sources]))
    parts = [
        replace(trace, sources=tuple(next(shared) for _ in trace.sources)) for trace, _ in checked
    ]
    findings = tuple(found for _, own in checked for found in own)
    snapshots, problems = gathered.snapshots, gathered.problems
    whole = merge.merge(parts) if parts else Trace(sources=(), strings=Strings())
    del gathered, checked, parts  # their columns are in the whole now
    return completed(whole, manifest, Told(snapshots, findings, problems))


@dataclass(frozen=True)
class Told:
    """Of a run, beside its records: clock readings, findings on the clocks of single files, and
    problems of reading.
    """

    snapshots: Snapshots
    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]


def completed(whole: Trace, manifest: Manifest, told: Told) -> RunRecords:
    """The merged and aligned records of a run, cut by point and checked."""
    whole, _ = enrich_geometry(assign_points(whole))
    whole = derive.with_throughput(whole)
    whole = replace(whole, problems=(*whole.problems, *told.problems))
    findings = (
        *told.findings,
        *clock_checks.clock_findings(whole, told.snapshots),
        *causality_findings(whole),
    )
    return RunRecords(whole, manifest, findings)


def reference_of(manifest: Manifest, snapshots: Snapshots) -> str:
    """The node of rank 0; of a damaged run, any host with clock readings."""
    if manifest.nodes and manifest.nodes[0].host in snapshots:
        return manifest.nodes[0].host
    return next(iter(snapshots), "")


def aligned(
    run: RunDir, trace: Trace, snapshots: Snapshots, reference: str
) -> tuple[Trace, tuple[Finding, ...]]:
    """One file on the run's clock, with its marker self-check: its spans against the brackets that
    the hook took around them.
    """
    trace = within_window(
        run, clocks.align(trace, snapshots, reference), Clocks(snapshots, reference)
    )
    source = trace.sources[0]
    brackets = np.array(marker_brackets(run.root / source.path), np.int64).reshape(-1, 2)
    way = clocks.route(ClockDomain.MONOTONIC, source.host, snapshots, reference)
    if source.clock is not ClockDomain.RUN or not len(brackets) or isinstance(way, str):
        return trace, ()
    markers = trace.marks.take(trace.marks.kind == trace.strings.find("marker"))
    markers = markers.take(np.argsort(markers.start_ns, kind="stable"))
    if len(markers) != len(brackets):
        lost = Problem(
            "warning",
            source.path,
            abs(len(markers) - len(brackets)),
            "self-check markers are missing in the file: its clock is not checked",
        )
        return replace(trace, problems=(*trace.problems, lost)), ()
    check = clock_checks.marker_check(
        markers.start_ns,
        markers.start_ns + markers.dur_ns,
        way(brackets[:, 0]),
        way(brackets[:, 1]),
    )
    if check is None:
        return trace, ()
    found = clock_checks.residual_finding(source, check)
    return clock_checks.with_marker_check(trace, 0, check), (found,) if found else ()


def share_marker_checks(sources: Sequence[Source]) -> list[Source]:
    """Files without markers of their own take the check of the marker file that the same process
    and tool wrote.
    """
    known = {
        (source.host, source.pid, source.layer): source
        for source in sources
        if source.format.endswith("-marker") and source.bound_ns is not None
    }

    def shared(source: Source) -> Source:
        marker = known.get((source.host, source.pid, source.layer))
        if marker is None or source.bound_ns is not None or source.pid is None:
            return source
        return replace(source, residual_ns=marker.residual_ns, bound_ns=marker.bound_ns)

    return [shared(source) for source in sources]
