"""CPU cores that a command kept busy in its steps, apart from its start-up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import msgspec
import numpy as np

from profharness.analysis.power.run_telemetry import figures_in
from profharness.analysis.records import Figure
from profharness.analysis.run.steps import SteadySteps, steady_steps
from profharness.analysis.run.trials import BARE
from profharness.rundir.manifest import Manifest
from profharness.stats.intervals import Intervals, clip, window
from profharness.stats.streams import Stream, mean_in
from profharness.trace.model import Trace

ENOUGH_NS = 1_000_000_000
"""Sampled time of steps from which they speak for themselves."""
PARTS = 10
_T = 2.262  # Student's t of 9 degrees of freedom, 95 %


@dataclass(frozen=True)
class StepCores:
    """`shown` are figures of the run: `cores_used_steps` (cores) and `startup_time` (ns);
    `verdict` are those that the verdict on the CPU takes in place of the whole run's.
    """

    shown: dict[str, Figure] = field(default_factory=dict)
    verdict: dict[str, Figure] = field(default_factory=dict)


def step_cores(manifest: Manifest, trace: Trace, telemetry: Sequence[Stream]) -> StepCores:
    """Of the bare pass, else of the first that logged steps and does not perturb the workload;
    empty where steps or samples of the CPU are missing, or cover less than a second.
    """
    leading = manifest.nodes[0].host if manifest.nodes else ""
    cpu = [
        stream
        for stream in telemetry
        if stream.metric.startswith("cpu_") and stream.host in ("", leading)
    ]
    if manifest.kind != "command" or not cpu:
        return StepCores()
    passes = [record for record in manifest.passes if not record.perturbing]
    for record in sorted(passes, key=lambda record: record.name != BARE):
        kept = steady_steps(trace, record.name, hooked=manifest.hooked())
        if len(kept):
            return _of_pass(kept, record.start_boot_ns, cpu)
    return StepCores()


def _of_pass(kept: SteadySteps, begun_ns: int | None, cpu: Sequence[Stream]) -> StepCores:
    first, last = int(kept.starts_ns.min()), int((kept.starts_ns + kept.durations_ns).max())
    origin = f"{kept.pass_name} pass, its steps, telemetry"
    for when in (kept.when, window(first, last)):
        found = figures_in(cpu, when, origin)
        sampled, used = found.get("cpu_sampled"), found.get("cores_used")
        if used is None or sampled is None or (sampled.value or 0) < ENOUGH_NS:
            continue
        shown = {"cores_used_steps": used}
        begun_steps = kept.first_end_ns
        if begun_ns is not None and begun_steps is not None and begun_steps > begun_ns:
            shown["startup_time"] = Figure(
                value=begun_steps - begun_ns, unit="ns", source=f"{kept.pass_name} pass"
            )
        low, high = _interval(next(one for one in cpu if one.metric == "cpu_tree"), when)
        bounded = msgspec.structs.replace(used, low=low, high=high)
        return StepCores(shown, {**found, "cores_used": bounded})
    return StepCores()


def _interval(stream: Stream, when: Intervals) -> tuple[float | None, float | None]:
    """95 % of the mean, by the means of ten consecutive parts of the time; (None, None) where a
    part has no sample.
    """
    edges = np.linspace(when.start[0], when.end[-1], PARTS + 1).astype(np.int64).tolist()
    parts = [mean_in(stream, clip(when, low, high)) for low, high in pairwise(edges)]
    known = [part for part in parts if part is not None]
    whole = mean_in(stream, when)
    if len(known) < PARTS or whole is None:
        return None, None
    half = _T * float(np.std(known, ddof=1)) / PARTS**0.5
    return whole - half, whole + half
