"""The roofline of operators and kernels: what is drawn, and that it can be read."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import msgspec
import pytest

from profharness.analysis.use.records import DeviceUse
from profharness.errors import UsageError
from profharness.report.plots.paper import canvas
from profharness.report.plots.paper_roofline import draw_roofline
from profharness.report.plots.work_roofline import LABELLED, work_roofline, work_roofline_plot
from tests.report.samples import command


@pytest.fixture
def use() -> DeviceUse:
    used = command().use
    assert used is not None
    return used


def test_points_lie_where_their_rows_say(use: DeviceUse) -> None:
    drawn = work_roofline(use)
    assert drawn is not None
    for mark in (*drawn.operators, *drawn.kernels):
        assert (mark.x, mark.y) == (mark.row.intensity, mark.row.flops_per_s)
        assert drawn.x_range[0] < mark.x < drawn.x_range[1]
        assert drawn.y_range[0] < mark.y < drawn.y_range[1]
    largest = max(drawn.operators, key=lambda mark: mark.row.device_ns)
    assert largest.radius == max(mark.radius for mark in drawn.operators)


def test_the_slope_meets_the_highest_ceiling(use: DeviceUse) -> None:
    drawn = work_roofline(use)
    assert drawn is not None
    (flat, slope) = drawn.lines
    assert use.bandwidth is not None
    assert slope.y[1] == pytest.approx(flat.y[0])
    assert slope.x[1] == pytest.approx(use.roofs[0].value / use.bandwidth.value)
    assert use.bandwidth.source in slope.text
    assert use.roofs[0].source in flat.text


def test_labels_are_of_those_with_most_excess(use: DeviceUse) -> None:
    drawn = work_roofline(use)
    assert drawn is not None
    assert drawn.named == drawn.operators[:LABELLED]
    plot = work_roofline_plot(use)
    assert plot is not None
    (texts,) = (
        one["itemPayload"]["texts"]
        for one in json.loads(plot.json)["series"]
        if one.get("renderItem") == "labels"
    )
    assert set(texts) >= {"addmm", "convolution"}


def test_operators_are_drawn_by_their_inputs_where_these_are_known(use: DeviceUse) -> None:
    row = use.operators[0]
    shapes = tuple(
        msgspec.structs.replace(row, shapes=f"[[{size}, 64], [64, 64], []]", excess_ns=1e6 / size)
        for size in (8, 16)
    )
    drawn = work_roofline(msgspec.structs.replace(use, shapes=shapes))
    assert drawn is not None
    assert [mark.name for mark in drawn.operators] == ["addmm 8×64", "addmm 16×64"]


@pytest.mark.parametrize("unknown", [("roofs",), ("bandwidth",), ("roofs", "bandwidth")])
def test_what_is_known_is_drawn_without_the_other_ceiling(
    use: DeviceUse, unknown: tuple[str, ...]
) -> None:
    bare = msgspec.structs.replace(
        use, **{name: () if name == "roofs" else None for name in unknown}
    )
    whole, drawn = work_roofline(use), work_roofline(bare)
    assert drawn is not None
    assert whole is not None
    assert drawn.operators == whole.operators
    assert drawn.kernels == whole.kernels
    assert len(drawn.lines) == 2 - len(unknown)
    for line in drawn.lines:
        assert line.x[0] < line.x[1]
        assert drawn.x_range[0] <= line.x[0]
        assert line.x[1] <= drawn.x_range[1]
        assert line.y[1] <= drawn.y_range[1]
    assert work_roofline_plot(bare) is not None


def test_without_known_work_there_is_no_plot(use: DeviceUse) -> None:
    assert work_roofline_plot(msgspec.structs.replace(use, operators=(), kernels=())) is None
    assert work_roofline_plot(None) is None


@pytest.mark.slow
def test_the_figure_for_papers_is_written(use: DeviceUse, tmp_path: Path) -> None:
    mpl = pytest.importorskip("matplotlib")
    drawn = work_roofline(use)
    assert drawn is not None
    with mpl.rc_context({"svg.fonttype": "none"}):
        draw_roofline(drawn, tmp_path / "roofline.svg", title="made up")
    text = (tmp_path / "roofline.svg").read_text()
    for words in ("addmm", "made up", "FLOP per byte that must move", drawn.lines[0].text):
        assert words in text
    with pytest.raises(UsageError, match="no known kind of picture"):
        draw_roofline(drawn, tmp_path / "roofline.xyz")


@pytest.mark.slow
@pytest.mark.parametrize("ends", [(25.0, 750.0), (3.0, 30.0), (1.2, 1900.0)])
def test_labels_of_ticks_do_not_run_into_each_other(
    use: DeviceUse, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ends: tuple[float, float]
) -> None:
    pytest.importorskip("matplotlib")
    plt = canvas(tmp_path / "any.png")
    drawn = work_roofline(use)
    assert drawn is not None
    kept: list[Any] = []
    monkeypatch.setattr(plt, "close", kept.append)
    draw_roofline(replace(drawn, x_range=ends), tmp_path / "roofline.png")
    monkeypatch.undo()
    figure = kept[-1]
    boxes = sorted(
        (
            label.get_window_extent()
            for label in figure.axes[0].get_xticklabels(which="both")
            if label.get_text() and ends[0] <= label.get_position()[0] <= ends[1]
        ),
        key=lambda box: box.x0,
    )
    plt.close(figure)
    assert len(boxes) >= 3
    for left, right in pairwise(boxes):
        assert left.x1 + left.height / 2 < right.x0
