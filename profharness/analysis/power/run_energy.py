"""Energy of a command per step and per item, over its steady steps."""

from __future__ import annotations

import msgspec
import numpy as np

from profharness.analysis.records import Figure
from profharness.analysis.run.steps import steady_steps
from profharness.analysis.run.trials import BARE
from profharness.analysis.run.view import RunView
from profharness.stats.package_figures import power_figures
from profharness.trace.model import Trace


def step_energy(view: RunView, trace: Trace) -> dict[str, Figure]:
    """Over the time of the steady steps, in the bare pass or the first that shows steps.

    A step is one of the whole job: the steps of all processes over their number.
    """
    if view.manifest.kind != "command" or not view.packages:
        return {}
    for name in sorted(
        (record.name for record in view.manifest.passes), key=lambda one: one != BARE
    ):
        found = steady_steps(trace, name)
        if not len(found):
            continue
        when = found.when
        items = None if found.items is None else int(found.items.sum())
        figures = power_figures(
            view.telemetry, view.packages, when, items, f"{name} pass, {len(found)} steady steps"
        )
        energy = figures.get("energy")
        if energy is not None:
            figures["energy_per_step"] = _over(energy, len(found) / len(np.unique(found.owner)))
        return figures
    return {}


def _over(energy: Figure, steps: float) -> Figure:
    scaled = {
        end: None if value is None else value / steps
        for end, value in (("value", energy.value), ("low", energy.low), ("high", energy.high))
    }
    return msgspec.structs.replace(energy, unit="J/step", **scaled)
