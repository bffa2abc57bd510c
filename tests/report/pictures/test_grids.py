from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import product

import msgspec
import pytest

from profharness.analysis.records import PointSummary, Summary
from profharness.report.pictures.grids import grid_plot
from profharness.report.pictures.settings import explained, settings
from tests.report.samples import SAMPLES, gpu_scan


def scan(points: Iterator[PointSummary]) -> Summary:
    return msgspec.structs.replace(gpu_scan(), points=tuple(points))


def point(batch: int, clients: int, processes: int | None = None, *, rate: float) -> PointSummary:
    return PointSummary(
        point=f"b{batch}c{clients}p{processes}",
        backend="torch",
        batch_size=batch,
        concurrency=clients,
        processes=processes,
        throughput=rate,
    )


def test_two_settings_make_a_heat_map_with_a_cell_for_each_pair() -> None:
    pairs = list(product((1, 4, 16), (2, 8)))
    plot = grid_plot(scan(point(b, c, rate=100.0 * b + c) for b, c in pairs))
    assert plot is not None
    option = json.loads(plot.json)
    assert plot.name == "heat"
    assert (option["xAxis"]["data"], option["yAxis"]["data"]) == (["1", "4", "16"], ["2", "8"])
    cells = {tuple(item["value"][:2]): item["value"][2] for item in option["series"][0]["data"]}
    assert cells == {
        (x, y): 100.0 * b + c
        for (x, b), (y, c) in product(enumerate((1, 4, 16)), enumerate((2, 8)))
    }
    assert "the best is 1 608 at batch size 16, concurrency 8" in plot.description.replace(
        "\u2009", " "
    ).replace("\u202f", " ")


def test_three_settings_make_lines_from_the_most_important_one() -> None:
    every = product((1, 4), (2, 8), (1, 2))
    plot = grid_plot(scan(point(b, c, p, rate=10.0 * b * c**0.1 * p**0.5) for b, c, p in every))
    assert plot is not None
    option = json.loads(plot.json)
    assert plot.name == "parallel"
    titles = [axis["name"].partition(":")[0] for axis in option["parallelAxis"]]
    assert titles[:3] == ["batch size", "processes", "concurrency"]
    assert len(option["series"][0]["data"]) == 8
    assert "over 8 points" in plot.description


def test_importance_is_the_share_of_the_variance_between_the_groups() -> None:
    points = [point(b, c, rate=2.0**b) for b, c in product((1, 2, 3), (1, 2))]
    assert explained(points, "batch_size") == pytest.approx(1.0)
    assert explained(points, "concurrency") == pytest.approx(0.0)
    both = [point(b, c, rate=2.0 ** (b + c)) for b, c in product((0, 1), (0, 1))]
    assert explained(both, "batch_size") == pytest.approx(0.5)
    assert explained(both, "concurrency") == pytest.approx(0.5)


def test_single_points_explain_nothing() -> None:
    points = [point(b, b, rate=float(b)) for b in (1, 2, 3)]
    assert [one.importance for one in settings(points)] == [None, None]


@pytest.mark.parametrize("name", ["gpu_scan", "cpu_scan", "command", "empty"])
def test_one_setting_has_no_grid(name: str) -> None:
    assert grid_plot(SAMPLES[name]()) is None


def test_points_on_a_diagonal_make_no_heat_map() -> None:
    assert grid_plot(scan(point(b, b, rate=float(b)) for b in (1, 2, 3, 4))) is None
