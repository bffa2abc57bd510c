"""Figures of bars for notebooks: the largest rows of hotspots with their running sum, and the parts
that time divides into.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from profharness.errors import InputError
from profharness.report.plots.paper_style import as_text, kept
from profharness.report.plots.partition import PARTS, part_ns
from profharness.report.text.folding import distinct_names
from profharness.report.text.labels import point_names
from profharness.rundir.shown.screen import one_line

if TYPE_CHECKING:
    import pandas as pd

    from profharness.analysis.records import Partition, Summary

_NAME = 60  # characters of a name beside its bar
_REST = "the rest"


def draw_hotspots(frame: pd.DataFrame, top: int, title: str) -> Any:
    """Bars of the `top` rows' shares of the time in per cent, one of all others, and the running
    sum. Raises InputError where no row has a time.
    """
    shares = _shares(frame)
    if not shares or not sum(share for _, share in shares):
        raise InputError("no row of hotspots has a time", "read a trace that holds times")
    shown = shares[:top]
    if len(shares) > top:
        left = shares[top:]
        shown.append((f"{_REST} ({len(left)} rows)", sum(share for _, share in left)))
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 1.5 + 0.32 * len(shown)), layout="constrained")
    places = range(len(shown))
    percent = [100 * share for _, share in shown]
    running = [sum(percent[: at + 1]) for at in places]
    axes.barh(places, percent, color="#0f8b8d")
    axes.plot(running, places, color="#d9730d", marker="o", markersize=3, label="running sum")
    names = distinct_names([name for name, _ in shown])
    axes.set_yticks(places, [as_text(one_line(name, _NAME)) for name in names])
    axes.invert_yaxis()
    axes.set(xlim=(0, 104), xlabel="share of the time (%)")
    axes.legend(loc="lower right")
    axes.set_title(as_text(title or f"Hotspots by {frame.attrs['by']}"), loc="left")
    return kept(figure, None, plt)


def _shares(frame: pd.DataFrame) -> list[tuple[str, float]]:
    """Each row's name and share of the time: on a device where it is known, else on the host."""
    of_device = "device_share" in frame and bool(frame["device_share"].notna().any())
    column = "device_share" if of_device else "share"
    if column not in frame:
        return []
    rows = frame[["name", column]].dropna().sort_values(column, ascending=False, kind="stable")
    return [(str(name), float(share)) for name, share in rows.itertuples(index=False)]


def draw_partition(summary: Summary, title: str) -> Any:
    """One bar of shares in per cent for each point with a partition, or one for the whole. Raises
    InputError where device work has no times.
    """
    bars = _partitions(summary)
    if not bars:
        raise InputError(
            f"{one_line(summary.source)}: nothing says where the time went",
            "record device work with times: kernels, or operators of a CPU",
        )
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(10, 2.4 + 0.4 * len(bars)), layout="constrained")
    left = [0.0] * len(bars)
    places = range(len(bars))
    for part in PARTS:
        shares = [100 * part_ns(one, part) / one.window_ns for _, one in bars]
        if any(shares):
            axes.barh(places, shares, left=left, color=part.color, label=part.label)
            left = [at + share for at, share in zip(left, shares, strict=True)]
    axes.set_yticks(places, [as_text(one_line(name, _NAME)) for name, _ in bars])
    axes.invert_yaxis()
    axes.set(xlim=(0, 100), xlabel="share of the time (%)")
    figure.legend(loc="outside lower center", ncols=3, fontsize="small")
    axes.set_title(as_text(title or "Where the time went"), loc="left")
    return kept(figure, None, plt)


def _partitions(summary: Summary) -> list[tuple[str, Partition]]:
    named = zip(point_names(summary, summary.points), summary.points, strict=True)
    bars = [(name, one.partition) for name, one in named if one.partition is not None]
    if not bars and summary.partition is not None:
        bars = [("whole", summary.partition)]
    return [(name, one) for name, one in bars if one.window_ns > 0]
