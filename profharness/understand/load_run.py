"""A run directory as one trace in memory: its parts merged, cut by point, enriched and checked."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.findings import Finding
from profharness.rundir.manifest import Manifest
from profharness.trace import derive, merge
from profharness.trace.clocks import checks as clock_checks
from profharness.trace.clocks.causality import causality_findings
from profharness.trace.enrich import enrich_geometry
from profharness.trace.model import Strings, Trace
from profharness.trace.parts.points import assign_points
from profharness.trace.wanted import Wanted
from profharness.understand.run_clock import share_marker_checks
from profharness.understand.run_parts import RunNotes, keep_in_memory, read_run

if TYPE_CHECKING:
    from profharness.analysis.pictures.records import Flame


@dataclass(frozen=True)
class RunRecords:
    """The records of a run on one clock, its manifest, and what the checks of its clocks found.
    `flames` are its flame graphs where the functions and modules that they show are not kept, and
    `shown` reads the records with these once more, part after part.
    """

    trace: Trace
    manifest: Manifest
    findings: tuple[Finding, ...]
    flames: tuple[Flame, ...] | None = None
    shown: Callable[[], Iterable[Trace]] | None = None


def load_run(root: Path, wanted: Wanted = Wanted.ALL) -> RunRecords:
    """Everything that a run directory holds, Python's frames where `wanted` says so. Raises
    InputError for a folder that is no run.
    """
    run = read_run(root, keep_in_memory, records=wanted)
    traces, notes = [part.trace for part in run.parts], run.notes
    whole = merge.merge(traces) if traces else Trace(sources=(), strings=Strings())
    del run, traces  # their columns are in the whole now
    return complete_run(whole, notes)


def complete_run(whole: Trace, notes: RunNotes) -> RunRecords:
    """The merged and aligned records of a run with all that needs all of them: marker checks,
    points, geometry, throughput and findings.
    """
    whole = replace(whole, sources=tuple(share_marker_checks(whole.sources)))
    whole, _ = enrich_geometry(assign_points(whole))
    whole = derive.with_throughput(whole)
    whole = replace(whole, problems=(*whole.problems, *notes.problems))
    findings = (
        *notes.findings,
        *clock_checks.clock_findings(whole, notes.snapshots, _measured(notes.manifest)),
        *causality_findings(whole),
    )
    return RunRecords(whole, notes.manifest, findings)


def _measured(manifest: Manifest) -> tuple[clock_checks.Measured, ...]:
    """When each point of the run was measured, where the run says so."""
    return tuple(
        clock_checks.Measured(
            point.id, point.host, point.start_monotonic_ns, point.end_monotonic_ns
        )
        for point in manifest.points
        if point.start_monotonic_ns is not None and point.end_monotonic_ns is not None
    )
