"""What the page opens with: the verdict, the bound on a gain, and the command that shows more."""

from __future__ import annotations

import shlex

from profharness.analysis.records import PointSummary, Summary
from profharness.report.page.headline import Tile
from profharness.report.page.window import window_verdict
from profharness.report.text.labels import point_name
from profharness.report.text.limits import full_verdict
from profharness.report.text.scan_sentences import best_series, recommended_point
from profharness.rundir.shown.screen import one_line

_LONGEST = 200
"""Characters of a kernel's name in a command; a longer one is asked for by a part of it."""


def opening_verdict(summary: Summary) -> str:
    """The verdict of the point that a scan recommends, with which point that is, or of the window;
    else what a verdict needs; empty where nothing is to be judged.
    """
    if (point := _recommended(summary)) is not None:
        where = point_name(summary, point)
        if point.verdict is not None:
            return f"At {where}: {point.verdict.text[0].lower()}{point.verdict.text[1:]}"
        if summary.axes is not None and (needs := full_verdict(None, point.verdict_needs)):
            return f"At {where}: {needs}"
    return "" if summary.axes is not None else window_verdict(summary)


def headroom_tile(summary: Summary) -> Tile | None:
    """How many times as fast the work could run at most, where the verdict bounds it."""
    verdict, where = None if summary.axes is not None else summary.verdict, ""
    if (point := _recommended(summary)) is not None and point.verdict is not None:
        verdict, where = point.verdict, f" at {point_name(summary, point)}"
    if verdict is None or verdict.at_most is None:
        return None
    note = f"times as fast at most{where}"
    return Tile(
        "headroom", f"{verdict.at_most:.{2 if verdict.at_most < 10 else 0}f}", note, verdict.text
    )


def view_command(summary: Summary) -> str:
    """The command that opens the run's merged trace; empty where there is no run."""
    run = summary.run
    return "" if run is None else f"profharness view {shlex.quote(run.path)}"


def spot_commands(summary: Summary) -> tuple[tuple[str, str], ...]:
    """What to look at first in a run's trace, and the command that opens it there: the longest step
    and the kernel that takes most time.
    """
    run = summary.run
    if run is None:
        return ()
    view = f"{view_command(summary)} --at"
    step = None if summary.pictures is None else summary.pictures.longest_step
    spots = [] if step is None else [(f"the longest step, {step}", f"{view} {step}")]
    kernels = next((table for table in summary.hotspots if table.by == "kernel"), None)
    if kernels is not None and kernels.rows and _can_be_named(kernels.rows[0].name):
        hottest = kernels.rows[0].name
        words = "the longest launch of the kernel with most time"
        spots.append((words, f"{view} {shlex.quote(hottest)}"))
    return tuple(spots)


def _can_be_named(kernel: str) -> bool:
    """Whether a shell's line can hold this name, which `view` would not take for a step."""
    return kernel == one_line(kernel, _LONGEST) and len(kernel) <= _LONGEST and not kernel.isdigit()


def _recommended(summary: Summary) -> PointSummary | None:
    """The point that a scan recommends. A scan over axes also has a verdict of its whole window, in
    which all its settings took turns: that tells less.
    """
    if summary.axes is not None:
        name = summary.axes.recommended
        return next((point for point in summary.points if point.point == name), None)
    if summary.verdict is not None:
        return None
    series = best_series(summary)
    return None if series is None else recommended_point(summary, series)
