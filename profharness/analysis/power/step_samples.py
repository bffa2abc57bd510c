"""Telemetry step by step: means over each step, and its energy where it lasts long enough for the
power sensor.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from profharness.analysis.power.run_telemetry import figures_in
from profharness.analysis.power.sample_joins import held
from profharness.analysis.records import StepSummary
from profharness.stats.intervals import window
from profharness.stats.package_figures import power_figures
from profharness.stats.packages import packages
from profharness.stats.streams import idle_window, streams
from profharness.trace.model import Trace

_LONGER = "a longer step: 20 periods of the power sensor"


def with_samples(steps: Sequence[StepSummary], trace: Trace) -> tuple[StepSummary, ...]:
    """The steps with every metric that was sampled in them, under the names that points use, and
    their energy.

    Figures say where one value holds longer than the step; power by the energy counter stands where
    the step is long enough.
    """
    every = streams(trace)
    if not every:
        return tuple(steps)
    lasting, package_streams = [held(one) for one in every], packages(every, idle_window(trace))

    def told(step: StepSummary) -> StepSummary:
        when, origin = window(step.start_ns, step.start_ns + step.dur_ns), "telemetry in the step"
        sampled = figures_in(lasting, when, origin)
        power = power_figures(lasting, package_streams, when, None, origin)
        measured = {name: figure for name, figure in power.items() if figure.value is not None}
        if "energy" in power and "energy" not in measured:
            measured["energy"] = msgspec.structs.replace(power["energy"], needs=_LONGER)
        return msgspec.structs.replace(step, metrics={**step.metrics, **sampled, **measured})

    return tuple(told(step) for step in steps)
