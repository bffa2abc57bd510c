"""Plots of hundreds of lines: the same figure as plotly writes of their points."""

from __future__ import annotations

import json
import math

import msgspec
import pytest

from profharness.report.page import content
from profharness.report.plots import telemetry
from profharness.report.plots.base import figure_json, lines_json, look_of, scatter
from tests.report.samples import gpu_scan
from tests.steps import calls_of

LINES = (
    ((0.0, 0.1, 1e-7), (1.5, None, 1e21)),
    ((), ()),
    ((0.5, 0.6, 0.7), (-0.0, math.inf, math.nan)),
)
LOOKS = [{"mode": "lines", "name": name} for name in ("a", '["profharness points x0"]', "<b>")]


def test_lines_are_written_as_plotly_writes_their_points() -> None:
    layout = {"xaxis": {"title": {"text": "<i>s"}}}
    for looks in (LOOKS, LOOKS[:1]):
        lines = LINES[: len(looks)]
        traces = [
            scatter(x, y, "#0f8b8d", **look) for (x, y), look in zip(lines, looks, strict=True)
        ]
        made = lines_json(lines, [look_of("#0f8b8d", **look) for look in looks], layout)
        assert made == figure_json(traces, layout)


def test_points_of_telemetry_cost_no_steps_of_plotly() -> None:
    def calls(points: int) -> int:
        row = msgspec.structs.replace(
            gpu_scan().telemetry[0],
            at_s=[float(at) for at in range(points)],
            values=[float(at) for at in range(points)],
        )
        scan = msgspec.structs.replace(gpu_scan(), telemetry=(row,))
        return calls_of(lambda: telemetry.telemetry_plots(scan))

    calls(10)  # what is imported and kept
    few, more = calls(1000), calls(2000)
    assert more < few + 7 * 1000


def test_figures_are_listed_of_as_many_points_as_have_few_enough(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    scan = gpu_scan()
    each = [len(point.metrics) for point in scan.points]
    for most, listed in ((sum(each), len(each)), (sum(each[:2]), 2), (0, 1)):
        monkeypatch.setattr(content, "_FIGURES", most)
        shown = content.content(scan)
        assert shown.points_left_out == len(each) - listed
        assert len(shown.figures_by_point) <= listed
    assert json.loads(lines_json((), [], {}))["data"] == []
