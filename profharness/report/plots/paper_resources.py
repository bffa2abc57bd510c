"""A run's resources over time as a figure for papers. Needs matplotlib (extra `plots`)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from profharness.analysis.run.resources import Resources
from profharness.report.plots.paper_looks import PALETTE
from profharness.report.plots.paper_style import Style, as_text, canvas, kept


def draw_resources(
    resources: Resources, output: Path, *, title: str = "", style: Style = Style.CMS
) -> None:
    """Utilisation and memory over time with a dashed line where each point of the scan began; of
    several devices their mean, in a band from the least to the most. Raises as `canvas`.
    """
    plt = canvas(output, style)
    figure, axes = plt.subplots(figsize=(14, 8))
    several = f", mean of {resources.devices} GPUs" if resources.devices > 1 else ""
    device = "GPU" if resources.of_device else "CPU"
    use, memory = PALETTE[0], PALETTE[1]
    _line(axes, resources.seconds, resources.use, f"{device} utilisation{several}", use, "-")
    memory_of = "GPU memory" if resources.of_device else "RAM"
    _line(axes, resources.seconds, resources.memory, f"{memory_of}{several}", memory, "--")
    if resources.devices > 1:
        axes.fill_between(
            resources.seconds,
            resources.least,
            resources.most,
            color=use,
            alpha=0.2,
            linewidth=0,
            label="least to most utilised",
        )
    for at, text in resources.marks:
        axes.axvline(at, color="red", linestyle="--", linewidth=1)
        axes.text(
            at, 101, as_text(text), rotation=90, fontsize="xx-small", ha="center", va="bottom"
        )
    axes.set_ylim(0, 100)
    axes.set_xlim(0, max(float(resources.seconds[-1]), 1e-9))
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Share (%)")
    axes.legend(fontsize="x-small")
    if title:
        axes.set_title(as_text(title), loc="left", fontsize="small", pad=40)
    kept(figure, output, plt)


def _line(axes: Any, seconds: Any, values: Any, label: str, colour: str, line: str) -> None:
    axes.plot(seconds, values, label=label, color=colour, linestyle=line, linewidth=1.5)
