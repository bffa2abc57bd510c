"""Steps that grow from the first to the last: their mean is the length of none of them."""

from __future__ import annotations

import numpy as np

from profharness.analysis.measurement import Measurement
from profharness.analysis.run.steps import steady_steps
from profharness.analysis.run.trials import BARE
from profharness.findings import Finding, finding
from profharness.rundir.manifest import Manifest
from profharness.stats.trend import FEWEST, trend
from profharness.trace.model import I64, Trace
from profharness.units import format_ns, format_share

GROWTH = 0.2
"""Of the mean step. With less growth over the whole series all steps lie within a tenth of the
mean, as those that count as steady do.
"""
MONOTONE = 0.7
"""Kendall's tau from which steps grow all the way: one jump in the middle reaches 0.5."""


def growing_steps(manifest: Manifest, trace: Trace) -> tuple[Finding, ...]:
    """Of the steps of a command, from the bare pass or the first one that shows some; passes that
    perturb the workload do not tell their lengths.
    """
    if manifest.kind != "command":
        return ()
    passes = [record.name for record in manifest.passes if not record.perturbing]
    for name in sorted(passes, key=lambda name: name != BARE):
        kept = steady_steps(trace, name, hooked=manifest.hooked())
        if len(kept):
            return steps_grow(kept.durations_ns, kept.owner)
    return ()


def growing_in(m: Measurement) -> tuple[Finding, ...]:
    """Of the steady steps that a trace marks; points of a scan are no series."""
    marked = m.whole.pace(m.point).steps
    if len(marked) < FEWEST or any(step.point for step in marked):
        return ()
    known = [(step.length_ns, step.process) for step in marked if step.length_ns is not None]
    lengths = np.array([length for length, _ in known]).astype(np.int64)
    return steps_grow(lengths, np.array([process for _, process in known], np.int64))


def steps_grow(durations_ns: I64, owner: I64) -> tuple[Finding, ...]:
    """The finding on the process (`owner`, one entry per step) whose steps grow most, in their
    order; empty where none grow by a fifth of their mean, or not all the way.
    """
    found = []
    for process in np.unique(owner).tolist():
        lengths = durations_ns[owner == process]
        line = trend(lengths)
        if line is None or not line.rises or line.tau < MONOTONE:
            continue
        mean = float(lengths.mean())
        if line.slope * (len(lengths) - 1) >= GROWTH * mean:
            found.append((line.slope * (len(lengths) - 1) / mean, line, mean, len(lengths)))
    if not found:
        return ()
    growth, line, mean, count = max(found, key=lambda one: one[0])
    first = max(line.first, 0.0)
    return (
        finding(
            "steps-grow",
            f"steps grow from {format_ns(round(first))} to {format_ns(round(line.last))} over "
            f"{count} steps, by {format_ns(round(line.slope))} each (95 %: "
            f"{format_ns(round(line.low))} to {format_ns(round(line.high))}); in all that "
            f"is {format_share(growth)} of their mean of {format_ns(round(mean))}, which few of "
            "them take",
            first_ns=first,
            last_ns=line.last,
            slope_ns=line.slope,
            slope_low_ns=line.low,
            slope_high_ns=line.high,
            mean_ns=mean,
            steps=count,
        ),
    )
