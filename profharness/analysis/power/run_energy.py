"""Energy of a command per step and per item, over its steady steps."""

from __future__ import annotations

import msgspec
import numpy as np

from profharness.analysis.records import Figure
from profharness.analysis.run.steps import steady_steps
from profharness.analysis.run.trials import BARE
from profharness.analysis.run.view import RunView
from profharness.stats.energy import OF_COMMAND
from profharness.stats.package_figures import power_figures
from profharness.trace.model import Trace


def step_energy(view: RunView, trace: Trace) -> dict[str, Figure]:
    """Over the time of the steady steps, in the bare pass or the first that shows steps.

    A step is one of the whole job: the steps of all processes over their number.
    """
    if view.manifest.kind != "command" or not view.packages:
        return {}
    for name in sorted(
        (record.name for record in view.manifest.passes), key=lambda pass_name: pass_name != BARE
    ):
        steps = steady_steps(trace, name, hooked=view.manifest.hooked())
        if not len(steps):
            continue
        when = steps.when
        items = None if steps.items is None else int(steps.items.sum())
        figures = power_figures(
            view.telemetry,
            view.packages,
            when,
            items,
            f"{name} pass, {len(steps)} steady steps",
            OF_COMMAND,
        )
        energy = figures.get("energy")
        if energy is not None:
            figures["energy_per_step"] = _over(energy, len(steps) / len(np.unique(steps.owner)))
        return figures
    return {}


def _over(energy: Figure, steps: float) -> Figure:
    scaled = {
        end: None if value is None else value / steps
        for end, value in (("value", energy.value), ("low", energy.low), ("high", energy.high))
    }
    return msgspec.structs.replace(energy, unit="J/step", **scaled)
