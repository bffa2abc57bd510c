from __future__ import annotations

import json

from profharness.analysis.pictures.flame import ROOT, Tree
from profharness.analysis.pictures.flame_layout import flame_of
from profharness.analysis.pictures.records import Pictures
from profharness.report.pictures.flames import flame_plots


def pictures() -> Pictures:
    tree = Tree(of_device=True)
    op = tree.frame(ROOT, "aten::mm", "op")
    tree.own_ns[tree.frame(op, "gemm", "kernel")] += 90
    tree.own_ns[tree.frame(ROOT, "outside of operators", "outside")] += 10
    flame = flame_of(tree, "op")
    assert flame is not None
    return Pictures(flames=(flame,))


def test_each_frame_is_a_box_from_its_start_to_its_end() -> None:
    (plot,) = flame_plots(pictures())
    option = json.loads(plot.json)
    (series,) = option["series"]
    told = series["itemPayload"]
    boxes = {told["names"][name]: (at, end, depth) for at, end, depth, name, _ in series["data"]}
    assert boxes == {
        "aten::mm": (0, 90, 0),
        "gemm": (0, 90, 1),
        "outside of operators": (90, 100, 0),
    }
    assert told["total"] == option["xAxis"]["max"] == 100
    assert len(told["colors"]) == len(told["kinds"]) == 3
    assert series["renderItem"] == "flame"


def test_the_description_names_the_longest_of_the_outermost_frames() -> None:
    (plot,) = flame_plots(pictures())
    assert plot.name == "flame-op"
    assert plot.title == "Device time by operators and kernels"
    assert "aten::mm 90.0 %, outside of operators 10.0 %" in plot.description


def test_without_trees_there_is_none() -> None:
    assert flame_plots(None) == ()
    assert flame_plots(Pictures()) == ()


def test_names_of_thousands_of_letters_are_cut() -> None:
    tree = Tree(of_device=True)
    for number in range(1_000):
        tree.own_ns[tree.frame(ROOT, f"{number}{'x' * 5_000}", "kernel")] += 1_000
    flame = flame_of(tree, "op")
    assert flame is not None
    (plot,) = flame_plots(Pictures(flames=(flame,)))
    assert len(plot.json) < 300_000
