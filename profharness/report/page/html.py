"""The report as one HTML file that works offline: text, tables, styles, plots and what draws them
inside.

The page forbids itself every connection, every script but its own and the two of others that it
carries, and every style but its own (its content security policy names them by hash). It follows
light and dark, prints, and reads without its script: the tables hold what the plots show.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.records import Summary
from profharness.report.axes.plots import axes_plots
from profharness.report.page import content
from profharness.report.page.later import ROOM, LaterRows
from profharness.report.page.script import (
    by_hash,
    engine,
    own_script,
    packed_engine,
    style,
    unpacker,
)
from profharness.report.page.templating import environment
from profharness.report.page.third_party.scripts import ECHARTS, PAKO
from profharness.report.pictures.sections import pictures_by_section, without_power
from profharness.report.plots import (
    curves,
    load,
    memory,
    partition,
    roofline,
    saturation,
    telemetry,
    trials,
    work_roofline,
)
from profharness.report.plots.base import Plot
from profharness.report.text.measured.vendors import as_read
from profharness.rundir.shown.packed import packed

if TYPE_CHECKING:
    from markupsafe import Markup

SIZE_LIMIT = 2_000_000
PLOTS_ROOM = 400_000
"""Characters of all plots' data together."""
SHOWN_FIRST = 40
"""Rows of a table that stand in the page's HTML; the script puts in the others."""
HOTSPOTS_FIRST = 12
"""The same of a table of hotspots, most of whose time the first ones hold."""


def render(summary: Summary) -> str:
    """The whole page; under SIZE_LIMIT bytes, of which ECharts is half a million where there is
    anything to draw. What has no room is left out, and the page says so.
    """
    summary = as_read(summary)
    drawn = _plots(msgspec.structs.replace(summary, points=summary.points[: content.MOST_DRAWN]))
    page, text = content.content(summary), ""
    for share in (1.0, 0.5, 0.2, 0.0):
        text = _page(summary, page, _fitting(drawn, int(share * PLOTS_ROOM)), int(share * ROOM))
        if len(text.encode()) < SIZE_LIMIT:
            break
    return text


def _page(
    summary: Summary, page: content.Content, drawn: dict[str, tuple[Plot, ...]], room: int
) -> str:
    """The page with these plots, and with `room` characters for the later rows of tables."""
    plots = [plot for group in drawn.values() for plot in group if plot.json]
    scripts = [*([engine()] if plots else []), unpacker(), own_script()]
    look = style({plot.height for plot in plots})
    return (
        environment("profharness.report.page")
        .get_template("report.html.j2")
        .render(
            summary=summary,
            page=page,
            shown_first=SHOWN_FIRST,
            hotspots_first=HOTSPOTS_FIRST,
            later=LaterRows(room),
            plots=drawn,
            engine=packed_engine() if plots else None,
            unpacker=unpacker(),
            third_party=(ECHARTS, PAKO),
            script=own_script(),
            style=look,
            trusted_scripts=by_hash(scripts),
            trusted_styles=by_hash([look]),
            data=_embedded(plots),
        )
    )


def _fitting(drawn: dict[str, tuple[Plot, ...]], room: int) -> dict[str, tuple[Plot, ...]]:
    """The plots, each without its data for which no room is left, the first ones first."""
    left = room
    fitting: dict[str, tuple[Plot, ...]] = {}
    for section, plots in drawn.items():
        kept = []
        for plot in plots:
            fits = len(plot.json) <= left
            left -= len(plot.json) if fits else 0
            kept.append(plot if fits else replace(plot, json=""))
        fitting[section] = tuple(kept)
    return fitting


def _plots(summary: Summary) -> dict[str, tuple[Plot, ...]]:
    """The plots of each section, those without data left out."""

    def some(*plots: Plot | None) -> tuple[Plot, ...]:
        return tuple(plot for plot in plots if plot is not None)

    pictures = pictures_by_section(summary)
    return {
        **{name: pictures[name] for name in ("strip", "reality", "grids", "ranks", "pareto")},
        "flames": pictures["flames"],
        "stacks": pictures["stacks"],
        "axes": axes_plots(summary.axes),
        "curves": ()
        if summary.axes is not None
        else (
            *some(curves.throughput_plot(summary), curves.latency_plot(summary)),
            *pictures["tradeoff"],
        ),
        "requests": load.request_plots(summary),
        "saturation": saturation.saturation_plots(summary),
        "time": partition.partition_plots(summary),
        "use": (*some(work_roofline.work_roofline_plot(summary.use)), *pictures["fill"]),
        "roofline": some(roofline.roofline_plot(summary)),
        "memory": memory.memory_plots(summary.memory),
        "trials": some(trials.trials_plot(summary)),
        "telemetry": (*pictures["power"], *telemetry.telemetry_plots(without_power(summary))),
        "overhead": some(curves.overhead_plot(summary)),
    }


def _embedded(drawn: Iterable[Plot]) -> Markup:
    """The figures as one JSON object by name, packed."""
    from markupsafe import Markup

    body = ",".join(f'"{plot.name}":{plot.json}' for plot in drawn)
    return Markup(packed(f"{{{body}}}"))  # noqa: S704  base64
