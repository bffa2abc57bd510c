"""Which pictures the page shows, by the section that they stand in."""

from __future__ import annotations

import msgspec

from profharness.analysis.records import Summary
from profharness.report.pictures.fill_peak import fill_peak_plot
from profharness.report.pictures.flames import flame_plots
from profharness.report.pictures.grids import grid_plot
from profharness.report.pictures.pareto import pareto_plot
from profharness.report.pictures.power import DRAWN, power_plots
from profharness.report.pictures.rank_heat import rank_heat_plot
from profharness.report.pictures.ranks import ranks_plot
from profharness.report.pictures.reality import reality_plot
from profharness.report.pictures.strip import strip_plot
from profharness.report.pictures.tradeoff import tradeoff_plot
from profharness.report.plots.base import Plot


def pictures_by_section(summary: Summary) -> dict[str, tuple[Plot, ...]]:
    """The pictures of a summary; a section without any has none."""
    drawn = summary.pictures
    return {
        "strip": _some(strip_plot(drawn)),
        "reality": _some(reality_plot(summary)),
        "tradeoff": _some(tradeoff_plot(summary)),
        "grids": _some(grid_plot(summary)),
        "ranks": (
            *_some(rank_heat_plot(summary.communication)),
            *_some(ranks_plot(summary, drawn)),
        ),
        "pareto": _some(pareto_plot(summary)),
        "flames": flame_plots(drawn),
        "stacks": flame_plots(drawn, sampled=True),
        "fill": _some(fill_peak_plot(summary)),
        "power": power_plots(summary, drawn),
    }


def without_power(summary: Summary) -> Summary:
    """The summary without the telemetry that the pictures of power and clock draw, which would
    otherwise be drawn twice.
    """
    rows = tuple(row for row in summary.telemetry if not (row.device and row.metric in DRAWN))
    return msgspec.structs.replace(summary, telemetry=rows)


def _some(plot: Plot | None) -> tuple[Plot, ...]:
    return () if plot is None else (plot,)
