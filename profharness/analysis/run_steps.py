"""Steps of a command: rate and items per second of its steady steps, per pass.

The hooks' own log of steps is taken where a pass has one, since it covers the whole pass; a tool's trace shows
only its capture window.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.analysis.records import Figure
from profharness.analysis.run_trials import BARE
from profharness.analysis.steps import Step, steady, steps
from profharness.analysis.throughput import common_window, summarise_trials
from profharness.manifest import Manifest
from profharness.trace.model import F64, I64, Trace
from profharness.trace.select import by_source

OWN_LAYER = "steps"


@dataclass(frozen=True, eq=False)
class SteadySteps:
    """Steady steps of all processes of one pass, and how many leading ones were left out. Times in ns."""

    pass_name: str
    starts_ns: I64
    durations_ns: I64
    items: I64 | None
    owner: I64
    left_out: int

    def __len__(self) -> int:
        return len(self.starts_ns)

    @property
    def rates(self) -> F64:
        """Steps per second of each step."""
        return np.asarray(1e9 / self.durations_ns)


def steady_steps(trace: Trace, pass_name: str) -> SteadySteps:
    """The steady steps of a pass; empty where it shows none. `items` only where every step says them."""
    own = [source.pass_name == pass_name and source.layer == OWN_LAYER for source in trace.sources]
    found = steps(by_source(trace, own)) or steps(by_source(trace, [source.pass_name == pass_name for source in trace.sources]))
    groups: dict[int, list[Step]] = {}
    for step in found:
        if step.dur_ns > 0:
            groups.setdefault(step.process, []).append(step)
    kept = [step for group in groups.values() for step in steady(group)]
    items = [step.items for step in kept]
    known = bool(items) and all(count is not None and count > 0 for count in items)
    return SteadySteps(
        pass_name, np.array([step.start_ns for step in kept], np.int64), np.array([step.dur_ns for step in kept], np.int64),
        np.array(items, np.int64) if known else None, np.array([step.process for step in kept], np.int64), len(found) - len(kept))


def step_figures(manifest: Manifest, trace: Trace) -> dict[str, Figure]:
    """Steps and items per second of a command, from the bare pass or the first pass that shows steps.

    Steps per second is the mean over steps of 1/t (each process steps on its own clock); items per second is
    over the common window of all processes.
    """
    if manifest.kind != "command":
        return {}
    layers = {record.name: record.layers for record in manifest.passes}
    for name in sorted(layers, key=lambda one: one != BARE):
        found = steady_steps(trace, name)
        if len(found):
            return _figures(found, bool(set(layers[name]) - {"telemetry"}))
    return {}


def _figures(found: SteadySteps, profiled: bool) -> dict[str, Figure]:
    stats = summarise_trials(found.durations_ns, 1, f"steps/{found.pass_name}")
    words = f", {found.left_out} slower ones at the start left out" if found.left_out else ""
    origin = f"{found.pass_name} pass, {len(found)} steady steps{words}"
    note = "slowed by the profiler" if profiled else ""
    figures = {"steps_per_second": Figure(value=stats.throughput, unit="steps/s", low=stats.low, high=stats.high, source=origin, note=note),
               "step_time": Figure(value=stats.latency_median_ns, unit="ns", source=origin, note=note or "median")}
    if found.items is not None:
        window = common_window(found.starts_ns, found.durations_ns, found.items, found.owner)
        if window is not None:
            figures["throughput"] = Figure(value=window.throughput, unit="items/s", source=origin, note=note)
    return figures
