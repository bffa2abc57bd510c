"""Plots of hundreds of lines, and lists of thousands of figures."""

from __future__ import annotations

import msgspec
import pytest

from profharness.report.page import content
from profharness.report.plots import telemetry
from tests.report.samples import gpu_scan
from tests.steps import calls_of


def test_a_point_of_telemetry_costs_few_steps() -> None:
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
        assert shown.figures_by_point is not None
        assert len({row[0].text for row in shown.figures_by_point.rows}) <= listed
