"""A run directory as one trace: read, align, check the clocks, merge, cut by point."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from profharness.findings import Finding
from profharness.gather import gather, marker_brackets
from profharness.manifest import ClockSnapshot, Manifest
from profharness.rundir import RunDir
from profharness.trace import clock_checks, clocks, derive, merge
from profharness.trace.causality import causality_findings
from profharness.trace.enrich import enrich_geometry
from profharness.trace.model import ClockDomain, Problem, Source, Strings, Trace
from profharness.trace.points import assign_points

Snapshots = Mapping[str, Sequence[ClockSnapshot]]


@dataclass(frozen=True)
class RunRecords:
    """The records of a run on one clock, its manifest, and what the checks of its clocks found."""

    trace: Trace
    manifest: Manifest
    findings: tuple[Finding, ...]


def load_run(root: Path) -> RunRecords:
    """Everything that a run directory holds, aligned, cut by point, and checked. Raises InputError for a folder that is no run."""
    run = RunDir.open(root)
    manifest = run.read_manifest()
    gathered = gather(run, manifest)
    reference = _reference(manifest, gathered.snapshots)
    checked = [_checked(run, clocks.align(trace, gathered.snapshots, reference), gathered.snapshots, reference)
               for trace in gathered.traces]
    parts = share_marker_checks([trace for trace, _ in checked])
    whole = merge.merge(parts) if parts else Trace(sources=(), strings=Strings())
    whole, _ = enrich_geometry(assign_points(whole))
    whole = derive.with_throughput(whole)
    whole = replace(whole, problems=(*whole.problems, *gathered.problems))
    findings = (*(found for _, own in checked for found in own), *clock_checks.clock_findings(whole, gathered.snapshots),
                *causality_findings(whole))
    return RunRecords(whole, manifest, findings)


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
