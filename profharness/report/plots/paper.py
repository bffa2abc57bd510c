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

from profharness.errors import UsageError
from profharness.report.plots.paper_looks import Look, looks
from profharness.report.plots.paper_style import (
    Style,
    as_text,
    as_text_lines,
    canvas,
    grouped,
    kept,
    plain_log,
)
from profharness.trace.model import F64
from profharness.trace.scan_table import RATE, Axis, ScanTable

BARS = "bars: standard error of the mean"
_INSIDE = 6  # curves whose legend has room inside of a panel
_TICKS, _FEW_TICKS = 12, 8
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
    differs = _differing(labelled)
    if not differs:
        return tuple(labelled)
    return tuple(
        replace(
            curve,
            words=tuple(word for word, kept in zip(curve.words, differs, strict=True) if kept),
        )
        for curve in labelled
    )


def shared_words(labelled: Sequence[Curve]) -> str:
    """The words that `shortened` leaves out, which hold of the whole figure: `torch, AMD MI210`."""
    words = zip(labelled[0].words, _differing(labelled), strict=False)
    return ", ".join(word for word, differs in words if word and not differs)


def _differing(labelled: Sequence[Curve]) -> list[bool]:
    """Which of the words tell the curves apart; none where there is one, or their form differs."""
    if len(labelled) < 2 or len({len(curve.words) for curve in labelled}) > 1:
        return []
    return [len(set(words)) > 1 for words in zip(*(curve.words for curve in labelled), strict=True)]


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


@dataclass(frozen=True)
class Frame:
    """What a figure is drawn with. Ratios to the curve that `ratio_to` names get panels of their
    own; `unit` is that of the throughput, `about` names what all curves are of, and `note` says
    what throughput is summed over.
    """

    ratio_to: str = ""
    title: str = ""
    unit: str = RATE
    about: str = ""
    note: str = ""
    style: Style = Style.CMS


def draw(drawn: Sequence[Curve], output: Path | None, frame: Frame = Frame()) -> Any:
    """Write the figure, in the format that the name's ending says, and give it; without a place to
    write it is only given. Raises Unavailable without
    matplotlib, UsageError for curves over different levels.
    """
    plt = canvas(output, frame.style)
    if len({curve.axis for curve in drawn}) > 1:
        raise UsageError(
            "the curves are over different levels (batch size, concurrency, processes)",
            "plot them one by one",
        )
    base = reference(drawn, frame.ratio_to)
    styled = looks([curve.words for curve in drawn], frame.about)
    rows, heights = (2, (3, 1)) if base is not None else (1, (1,))
    panels = [("throughput", f"Throughput ({as_text(frame.unit)})")]
    if any((curve.latency_ms > 0).any() for curve in drawn):
        panels.append(("latency_ms", "Latency (ms)"))
    figure, grid = plt.subplots(
        rows,
        len(panels),
        figsize=(10 * len(panels), 10),
        sharex=True,
        squeeze=False,
        gridspec_kw={"height_ratios": heights, "hspace": 0.06, "wspace": 0.25},
    )
    for column, (name, words) in enumerate(panels):
        _panel(grid[0][column], drawn, styled, name)
        grid[0][column].set_ylabel(words)
        if base is not None:
            _ratios(grid[1][column], drawn, styled, base, name)
        _levels(grid[-1][column], drawn)
    if len(panels) > 1:
        plain_log(grid[0][1])
    grouped(grid[0][0])
    _legend(figure, grid[0][0], drawn)
    _notes(grid[0], frame, legend_rows=_rows(len(drawn)))
    return kept(figure, output, plt)


def _panel(axes: Any, drawn: Sequence[Curve], styled: Sequence[Look], name: str) -> None:
    for curve, look in zip(drawn, styled, strict=True):
        sem = getattr(curve, "latency_sem_ms" if name == "latency_ms" else "throughput_sem")
        axes.errorbar(
            curve.level,
            getattr(curve, name),
            yerr=np.nan_to_num(sem),
            label=as_text(curve.label),
            markersize=9,
            linewidth=1.8,
            capsize=3,
            **look.settings,
        )
    if name == "throughput":
        inside = len(drawn) if len(drawn) <= _INSIDE else 0
        axes.set_ylim(0, axes.get_ylim()[1] * (1.02 + 0.07 * inside))  # room for the legend


def _levels(axes: Any, drawn: Sequence[Curve]) -> None:
    """The axis of levels, whose ticks are the levels as people write them, not powers of two."""
    axes.set_xlabel(AXIS_WORDS[drawn[0].axis])
    axes.set_xscale("log", base=2 if drawn[0].axis == "batch_size" else 10)
    levels = sorted({float(level) for curve in drawn for level in curve.level})
    if len(levels) <= _TICKS:
        axes.set_xticks(levels, [f"{level:g}" for level in levels])
        axes.set_xticks([], minor=True)
        axes.tick_params(axis="x", labelsize="x-small" if len(levels) > _FEW_TICKS else "small")


def _legend(figure: Any, axes: Any, drawn: Sequence[Curve]) -> None:
    """Inside of the first panel for few curves, above both for many."""
    if len(drawn) == 1 and drawn[0].label == "measured":
        return
    if len(drawn) <= _INSIDE:
        axes.legend(fontsize="xx-small", loc="upper left", handlelength=3)
        return
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        fontsize="xx-small",
        loc="lower center",
        bbox_to_anchor=(0.5, 0.9),
        ncols=_columns(len(drawn)),
        handlelength=3,
        frameon=False,
    )


def _columns(curves: int) -> int:
    """Columns of a legend above the panels."""
    return min(4, -(-curves // 3))


def _rows(curves: int) -> int:
    """Rows of that legend; none where it is inside of a panel."""
    return 0 if curves <= _INSIDE else -(-curves // _columns(curves))


def _notes(panels: Sequence[Any], frame: Frame, *, legend_rows: int) -> None:
    if frame.title:
        if legend_rows:
            panels[0].figure.text(
                0.125, 0.93 + 0.032 * legend_rows, as_text(frame.title), fontsize="small"
            )
        else:
            panels[0].set_title(as_text(frame.title), loc="left", fontsize="small")
    panels[-1].text(
        0.98,
        0.02,
        as_text_lines(frame.about, frame.note, BARS),
        transform=panels[-1].transAxes,
        fontsize="xx-small",
        ha="right",
        va="bottom",
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "pad": 1.5},
    )


def _ratios(
    axes: Any, drawn: Sequence[Curve], styled: Sequence[Look], base: Curve, name: str
) -> None:
    for curve, look in zip(drawn, styled, strict=True):
        level, value, sem = ratio(curve, base, name)
        axes.errorbar(
            level,
            value,
            yerr=np.nan_to_num(sem),
            markersize=7,
            linewidth=1.4,
            capsize=2,
            **look.settings,
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
    low, high = axes.get_ylim()
    low = max(low, 0)  # bars may reach below, ratios do not
    axes.set_ylim(low, high + 0.25 * (high - low))  # room for the words
