from __future__ import annotations

import json
from itertools import pairwise

import msgspec
import pytest

from profharness.analysis.records import HotspotRow, Hotspots, Summary, TraceCounts
from profharness.report.pictures.pareto import MOST_BARS, bars, pareto_plot
from tests.report.samples import SAMPLES, gpu_scan


def row(name: str, total: int | None, category: str = "gemm") -> HotspotRow:
    return HotspotRow(
        name=name,
        category=category,
        calls=2,
        total_ns=total,
        share=None,
        mean_ns=None,
        median_ns=None,
        min_ns=None,
        max_ns=None,
        std_ns=None,
    )


def table(*rows: HotspotRow) -> Hotspots:
    return Hotspots(by="kernel", total_ns=None, rows=rows)


def test_the_bars_and_the_rest_sum_to_all_time() -> None:
    many = table(*(row(f"k{number}", 1000 - number) for number in range(50)))
    made = bars(many)
    assert len(made) == MOST_BARS + 1
    assert sum(bar.total_ns for bar in made) == sum(one.total_ns or 0 for one in many.rows)
    assert sum(bar.calls for bar in made) == 100
    assert made[-1].name == "the other 30"
    assert made[-1].together == 1.0
    assert sum(bar.share for bar in made) == pytest.approx(1.0)
    assert all(
        second.together == pytest.approx(first.together + second.share)
        for first, second in pairwise(made)
    )


def test_rows_without_times_have_no_bar() -> None:
    assert [bar.name for bar in bars(table(row("a", 5), row("b", None), row("c", 0)))] == ["a"]
    assert bars(table(row("b", None))) == ()


def test_shares_are_those_of_the_table() -> None:
    kernels = gpu_scan().hotspots[0]
    shares = {one.name: one.share for one in kernels.rows}
    assert {bar.name: pytest.approx(bar.share) for bar in bars(kernels)} == shares
    operators = msgspec.structs.replace(
        table(*(msgspec.structs.replace(row(name, 99), device_ns=10) for name in "ab")),
        by="op",
        device_ns_outside=80,
    )
    assert [(bar.share, bar.together) for bar in bars(operators)] == [(0.1, 0.1), (0.1, 0.2)]
    plot = pareto_plot(msgspec.structs.replace(gpu_scan(), hotspots=(operators,)))
    assert plot is not None
    assert "2 of 2 take 20.0 %" in plot.description


def test_the_picture_names_the_few_that_take_most() -> None:
    summary = gpu_scan()
    plot = pareto_plot(summary)
    assert plot is not None
    option = json.loads(plot.json)
    assert len(option["yAxis"]["data"]) == len(summary.hotspots[0].rows)
    assert "5 of 7 take 86.8 %" in plot.description
    together = [item["value"][0] for item in option["series"][1]["data"]]
    assert together == sorted(together)
    shares = [row.share or 0.0 for row in summary.hotspots[0].rows]
    assert together[-1] == pytest.approx(100 * sum(shares))


def test_operators_stand_by_their_device_time_where_there_is_any() -> None:
    first = msgspec.structs.replace(row("aten::mm", 10), device_ns=700)
    second = msgspec.structs.replace(row("aten::add", 90), device_ns=300)
    by_op = Hotspots(by="op", total_ns=100, rows=(first, second), device_ns_outside=0)
    assert [(bar.name, bar.share) for bar in bars(by_op)] == [("aten::mm", 0.7), ("aten::add", 0.3)]
    on_host = msgspec.structs.replace(by_op, device_ns_outside=None)
    assert [bar.name for bar in bars(on_host)] == ["aten::add", "aten::mm"]


def test_fewer_than_two_rows_make_no_picture() -> None:
    assert pareto_plot(SAMPLES["empty"]()) is None
    alone = Summary(source="x", trace=TraceCounts(), hotspots=(table(row("a", 5)),))
    assert pareto_plot(alone) is None


def test_hostile_names_are_made_visible() -> None:
    names = ("a\u202eb", "c\x1b[31m")
    hostile = table(*(row(name, 5) for name in names))
    plot = pareto_plot(Summary(source="x", trace=TraceCounts(), hotspots=(hostile,)))
    assert plot is not None
    assert "\u202e" not in json.loads(plot.json)["yAxis"]["data"][0]
    assert "\x1b" not in json.loads(plot.json)["yAxis"]["data"][1]
