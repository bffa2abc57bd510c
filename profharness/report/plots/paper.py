"""Figures for papers: throughput and latency over a scan in two panels, with ratios, in the style
of the CMS experiment.

The layout is that of the published ParticleNet scans (two panels on a logarithmic level axis,
throughput linear, latency logarithmic, a ratio panel under each where devices are compared). Needs
matplotlib and mplhep (extra `plots`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from profharness.analysis.records import PointSummary
from profharness.analysis.run.resources import Resources
from profharness.analysis.run.series import run_table
from profharness.errors import Unavailable, UsageError
from profharness.report.text.rates import widened
from profharness.rundir.outputs import whole_file
from profharness.rundir.shown.screen import one_line
from profharness.trace.model import F64
from profharness.trace.scan_table import Axis, ScanTable

# colours of the published comparison, by what a label names; the rest of the CMS palette serves
# other labels
DEVICE_COLOURS = {
    "T4": "#000000",
    "A10": "#7a21dd",
    "A30": "#9c9ca1",
    "A100": "#964a8b",
    "V100": "#f89c20",
    "MI100": "#5790fc",
    "MI210": "#e42536",
}
PALETTE = (
    "#5790fc",
    "#f89c20",
    "#e42536",
    "#964a8b",
    "#9c9ca1",
    "#7a21dd",
)  # M. Petroff, arXiv:2107.02270, six colours
BARS = "bars: standard error of the mean"
AXIS_WORDS = {
    "batch_size": "Batch size",
    "concurrency": "Concurrent requests",
    "processes": "Processes",
}


@dataclass(frozen=True, eq=False)
class Curve:
    """One device's or backend's scan, by rising level. Throughput in items/s, latency in ms; NaN
    where not measured.

    `words` name it: its run's name, and what tells the series of one table apart.
    """

    words: tuple[str, ...]
    axis: Axis
    level: F64
    throughput: F64
    throughput_sem: F64
    latency_ms: F64
    latency_sem_ms: F64

    @property
    def label(self) -> str:
        """All of its words."""
        return " ".join(word for word in self.words if word) or "measured"


def table_of(points: Sequence[PointSummary], source: str) -> ScanTable | None:
    """A run's points as a table whose errors hold the drift of repeated points, as the report's
    intervals do; None for fewer than two levels.

    A loop's latency is its level over its throughput, so both have the same relative error.
    """
    table = run_table(tuple(map(widened, points)), source)
    if table is None:
        return None
    relative = table.throughput_sem / table.throughput
    return replace(table, latency_sem_ms=np.fmax(table.latency_sem_ms, table.latency_ms * relative))


def curves(table: ScanTable, prefix: str = "") -> tuple[Curve, ...]:
    """The series of a table; `prefix` names a run among several."""
    drawn = []
    for key, rows in table.groups().items():
        order = np.asarray(rows)[np.argsort(table.level[rows], kind="stable")]
        drawn.append(
            Curve(
                (prefix, *key),
                table.axis,
                table.level[order],
                table.throughput[order],
                table.throughput_sem[order],
                table.latency_ms[order],
                table.latency_sem_ms[order],
            )
        )
    return tuple(drawn)


def shortened(labelled: Sequence[Curve]) -> tuple[Curve, ...]:
    """The curves without the words that all of their labels share, where the labels have the same
    form.
    """
    if len(labelled) < 2 or len({len(curve.words) for curve in labelled}) > 1:
        return tuple(labelled)
    differs = [
        len(set(words)) > 1 for words in zip(*(curve.words for curve in labelled), strict=True)
    ]
    return tuple(
        replace(
            curve,
            words=tuple(word for word, kept in zip(curve.words, differs, strict=True) if kept),
        )
        for curve in labelled
    )


def reference(drawn: Sequence[Curve], wanted: str) -> Curve | None:
    """The curve that ratios are taken to. Raises UsageError when no label holds `wanted`, or
    several do.
    """
    if not wanted:
        return None
    matching = [curve for curve in drawn if curve.label == wanted] or [
        curve for curve in drawn if wanted in curve.label
    ]
    if len(matching) != 1:
        raise UsageError(
            f"--ratio-to {wanted}: {'no curve is' if not matching else 'several curves are'} "
            "called so",
            f"the curves are: {'; '.join(curve.label for curve in drawn)}",
        )
    return matching[0]


def ratio(curve: Curve, base: Curve, name: str) -> tuple[F64, F64, F64]:
    """Levels that both have, the curve over `base` there, and its standard error by propagation of
    the two.
    """
    level, of_curve, of_base = np.intersect1d(curve.level, base.level, return_indices=True)
    top, under = getattr(curve, name)[of_curve], getattr(base, name)[of_base]
    sem = name.replace("_ms", "_sem_ms") if name.endswith("_ms") else f"{name}_sem"
    relative = np.hypot(
        getattr(curve, sem)[of_curve] / top,
        0 if curve is base else getattr(base, sem)[of_base] / under,
    )
    return level, top / under, top / under * relative


def draw(
    drawn: Sequence[Curve],
    output: Path | None,
    *,
    ratio_to: str = "",
    title: str = "",
    item: str = "item",
) -> Any:
    """Write the figure, in the format that the name's ending says, and give it; without a place to
    write it is only given. Raises Unavailable without matplotlib, UsageError for curves over
    different levels.
    """
    plt = canvas(output)
    if len({curve.axis for curve in drawn}) > 1:
        raise UsageError(
            "the curves are over different levels (batch size, concurrency, processes)",
            "plot them one by one",
        )
    base = reference(drawn, ratio_to)
    rows, heights = (2, (3, 1)) if base is not None else (1, (1,))
    figure, grid = plt.subplots(
        rows,
        2,
        figsize=(20, 10),
        sharex=True,
        squeeze=False,
        gridspec_kw={"height_ratios": heights, "hspace": 0.06, "wspace": 0.25},
    )
    for column, (name, words) in enumerate(
        (("throughput", f"Throughput ({item}s/s)"), ("latency_ms", "Latency (ms)"))
    ):
        _panel(grid[0][column], drawn, name, words)
        if base is not None:
            _ratios(grid[1][column], drawn, base, name)
        grid[-1][column].set_xlabel(AXIS_WORDS[drawn[0].axis])
    grid[0][1].set_yscale("log")
    if len(drawn) > 1 or drawn[0].label != "measured":
        grid[0][0].legend(fontsize="xx-small", loc="upper left")
    if title:
        grid[0][0].set_title(title, loc="left", fontsize="small")
    grid[0][1].text(
        0.98,
        0.02,
        BARS,
        transform=grid[0][1].transAxes,
        fontsize="xx-small",
        ha="right",
        va="bottom",
    )
    return kept(figure, output, plt)


def kept(figure: Any, output: Path | None, plt: Any) -> Any:
    """The figure, written where there is a place for it, and no longer one of pyplot's."""
    if output is not None:
        with whole_file(output) as drawn_to:
            figure.savefig(drawn_to, format=output.suffix[1:].lower(), bbox_inches="tight")
    plt.close(figure)
    return figure


def _panel(axes: Any, drawn: Sequence[Curve], name: str, words: str) -> None:
    for place, curve in enumerate(drawn):
        sem = getattr(curve, "latency_sem_ms" if name == "latency_ms" else "throughput_sem")
        axes.errorbar(
            curve.level,
            getattr(curve, name),
            yerr=np.nan_to_num(sem),
            label=as_text(curve.label),
            color=colour(curve.label, place),
            marker="o",
            markersize=6,
            linewidth=1.5,
            capsize=3,
        )
    axes.set_xscale("log", base=2 if drawn[0].axis == "batch_size" else 10)
    axes.set_ylabel(words)
    if name == "throughput":
        axes.set_ylim(0, axes.get_ylim()[1] * (1 + 0.06 * len(drawn)))  # room for the legend


def _ratios(axes: Any, drawn: Sequence[Curve], base: Curve, name: str) -> None:
    for place, curve in enumerate(drawn):
        level, value, sem = ratio(curve, base, name)
        axes.errorbar(
            level,
            value,
            yerr=np.nan_to_num(sem),
            color=colour(curve.label, place),
            marker="o",
            markersize=5,
            linewidth=1.2,
            capsize=2,
        )
    axes.set_ylabel("Ratio", fontsize="small")
    axes.text(
        0.02,
        0.9,
        f"to {as_text(base.label)}",
        transform=axes.transAxes,
        fontsize="xx-small",
        va="top",
    )
    axes.axhline(1, color="grey", linewidth=0.8)


def as_text(name: str) -> str:
    """A foreign name as matplotlib draws it letter by letter: a dollar sign would begin a formula,
    and a control character has no shape.
    """
    return one_line(name).replace("$", r"\$")


def colour(label: str, place: int) -> str:
    """The published colour of the device that a label names, else the palette's by place."""
    named = [name for name in DEVICE_COLOURS if name in label.split() or name in label]
    return DEVICE_COLOURS[max(named, key=len)] if named else PALETTE[place % len(PALETTE)]


def canvas(output: Path | None) -> Any:
    """Matplotlib in the CMS style: without a screen where there is a file to write, and else as
    whoever asks for a figure has set it up.
    """
    try:
        import matplotlib as mpl

        if output is not None:
            mpl.use("Agg")
        import matplotlib.pyplot as plt
        import mplhep
    except ImportError as error:
        raise Unavailable(
            f"figures need matplotlib and mplhep ({error})", "pip install 'profharness[plots]'"
        ) from error
    plt.style.use(mplhep.style.CMS)
    if output is None:
        return plt
    formats = plt.figure().canvas.get_supported_filetypes()
    plt.close("all")
    if output.suffix.lstrip(".").lower() not in formats:
        raise UsageError(
            f"{output}: no known kind of picture",
            f"end the name in one of {', '.join(sorted(formats))}",
        )
    return plt


def draw_resources(resources: Resources, output: Path, *, title: str = "") -> None:
    """The two shares over time with a dashed line where each point of the scan began. Raises as
    `draw`.
    """
    plt = canvas(output)
    figure, axes = plt.subplots(figsize=(14, 8))
    device = "GPU" if resources.of_device else "CPU"
    axes.plot(resources.seconds, resources.use, label=f"{device} utilisation", color=PALETTE[0])
    axes.plot(
        resources.seconds,
        resources.memory,
        label="GPU memory" if resources.of_device else "RAM",
        color=PALETTE[1],
    )
    for at, text in resources.marks:
        axes.axvline(at, color="red", linestyle="--", linewidth=1)
        axes.text(
            at, 101, as_text(text), rotation=90, fontsize="xx-small", ha="center", va="bottom"
        )
    axes.set_ylim(0, 100)
    axes.set_xlabel("Time (s)")
    axes.set_ylabel("Share (%)")
    axes.legend(fontsize="x-small")
    if title:
        axes.set_title(title, loc="left", fontsize="small", pad=40)
    kept(figure, output, plt)
