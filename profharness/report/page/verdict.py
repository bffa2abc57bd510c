"""What the page opens with: the verdict, the bound on a gain, and the command that shows more."""

from __future__ import annotations

import shlex

from profharness.analysis.records import PointSummary, Summary
from profharness.report.page.headline import Tile
from profharness.report.page.window import window_verdict
from profharness.report.text.labels import point_name
from profharness.report.text.scan_sentences import best_series, recommended_point


def opening_verdict(summary: Summary) -> str:
    """The verdict of the window, or of the point that a scan recommends, with which point that is;
    else what a verdict needs; empty where nothing is to be judged.
    """
    if summary.verdict is None and (point := _recommended(summary)) is not None:
        where = point_name(summary, point)
        if point.verdict is not None:
            return f"At {where}: {point.verdict.text[0].lower()}{point.verdict.text[1:]}"
    return window_verdict(summary)


def headroom_tile(summary: Summary) -> Tile | None:
    """How many times as fast the work could run at most, where the verdict bounds it."""
    verdict, where = summary.verdict, ""
    if verdict is None and (point := _recommended(summary)) is not None:
        verdict, where = point.verdict, f" at {point_name(summary, point)}"
    if verdict is None or verdict.at_most is None:
        return None
    note = f"times as fast at most{where}"
    return Tile("headroom", f"{verdict.at_most:.2f}", note, verdict.text)


def view_command(summary: Summary) -> str:
    """The command that opens the run's merged trace; empty where there is no run."""
    run = summary.run
    return "" if run is None else f"profharness view {shlex.quote(run.path)}"


def _recommended(summary: Summary) -> PointSummary | None:
    series = best_series(summary)
    return None if series is None else recommended_point(summary, series)
