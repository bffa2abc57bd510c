"""A trace of a run on the run's clock, with the check of its clock by the self-check markers of the
hooks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from profharness.findings import Finding
from profharness.rundir.manifest import ClockSnapshot, Manifest
from profharness.rundir.paths import RunDir
from profharness.trace.clocks import align as clocks
from profharness.trace.clocks import checks as clock_checks
from profharness.trace.model import ClockDomain, Problem, Source, Trace
from profharness.understand.capture_window import Clocks, within_window
from profharness.understand.run_files import marker_brackets

Snapshots = Mapping[str, Sequence[ClockSnapshot]]


@dataclass(frozen=True, eq=False)
class AlignedTrace:
    """One trace on the run's clock (or, where that cannot be, on its own), and what the check of
    its clock found.
    """

    trace: Trace
    findings: tuple[Finding, ...] = ()


def reference_host(manifest: Manifest, snapshots: Snapshots) -> str:
    """The host whose CLOCK_BOOTTIME is the run's clock: the node of rank 0; of a damaged run, any
    host with clock readings.
    """
    if manifest.nodes and manifest.nodes[0].host in snapshots:
        return manifest.nodes[0].host
    return next(iter(snapshots), "")


def align_trace(run: RunDir, trace: Trace, run_clocks: Clocks) -> AlignedTrace:
    """Cut to the capture window of its pass, with its marker self-check: its spans against the
    brackets that the hook took around them.
    """
    snapshots, reference = run_clocks.snapshots, run_clocks.reference
    trace = within_window(run, clocks.align(trace, snapshots, reference), run_clocks)
    source = trace.sources[0]
    brackets = np.array(marker_brackets(run.root / source.path), np.int64).reshape(-1, 2)
    route = clocks.route(ClockDomain.MONOTONIC, source.host, snapshots, reference)
    if source.clock is not ClockDomain.RUN or not len(brackets) or isinstance(route, str):
        return AlignedTrace(trace)
    markers = trace.marks.take(trace.marks.kind == trace.strings.find("marker"))
    markers = markers.take(np.argsort(markers.start_ns, kind="stable"))
    if len(markers) != len(brackets):
        lost = Problem(
            "warning",
            source.path,
            abs(len(markers) - len(brackets)),
            "self-check markers are missing in the file: its clock is not checked",
        )
        return AlignedTrace(replace(trace, problems=(*trace.problems, lost)))
    check = clock_checks.marker_check(
        markers.start_ns,
        markers.start_ns + markers.dur_ns,
        route(brackets[:, 0]),
        route(brackets[:, 1]),
    )
    if check is None:
        return AlignedTrace(trace)
    finding = clock_checks.residual_finding(source, check)
    return AlignedTrace(
        clock_checks.with_marker_check(trace, 0, check, _between_hosts_ns(source.host, run_clocks)),
        (finding,) if finding else (),
    )


def _between_hosts_ns(host: str, run_clocks: Clocks) -> int:
    """What packets leave open between a host and the reference; 0 on the reference itself."""
    if host == run_clocks.reference:
        return 0
    return clocks.link_bound_ns(run_clocks.snapshots[host], run_clocks.reference) or 0


def share_marker_checks(sources: Sequence[Source]) -> list[Source]:
    """Files without markers of their own take the check of the marker file that the same process
    and tool wrote.
    """
    marker_files = {
        (source.host, source.pid, source.layer): source
        for source in sources
        if source.format.endswith("-marker") and source.bound_ns is not None
    }

    def shared(source: Source) -> Source:
        marker = marker_files.get((source.host, source.pid, source.layer))
        if marker is None or source.bound_ns is not None or source.pid is None:
            return source
        return replace(source, residual_ns=marker.residual_ns, bound_ns=marker.bound_ns)

    return [shared(source) for source in sources]
