from __future__ import annotations

import json
from typing import Any

from profharness.analysis.pictures.flame import ROOT, Tree
from profharness.report.pictures.stack_files import SCHEMA, folded_text, speedscope_json


def small() -> Tree:
    tree = Tree(of_device=True)
    main = tree.frame(ROOT, "main; with\nlines", "stack")
    op = tree.frame(main, "aten::mm", "op")
    tree.own_ns[tree.frame(op, "k\x1b[2J", "kernel")] += 70
    tree.own_ns[tree.frame(op, "l", "kernel")] += 20
    tree.own_ns[op] += 5
    return tree


def test_folded_stacks_have_a_line_each() -> None:
    assert folded_text(small()).splitlines() == [
        "main, with lines;aten::mm 5",
        r"main, with lines;aten::mm;k\u001b[2J 70",
        "main, with lines;aten::mm;l 20",
    ]


def test_speedscope_takes_stacks_as_places_of_frames() -> None:
    document: dict[str, Any] = json.loads(speedscope_json(small(), "a run"))
    assert document["$schema"] == SCHEMA
    assert document["name"] == "a run"
    (profile,) = document["profiles"]
    frames = [frame["name"] for frame in document["shared"]["frames"]]
    assert profile["type"] == "sampled"
    assert profile["unit"] == "nanoseconds"
    assert (profile["startValue"], profile["endValue"]) == (0, 95)
    assert sum(profile["weights"]) == 95
    named = {
        tuple(frames[place] for place in sample): weight
        for sample, weight in zip(profile["samples"], profile["weights"], strict=True)
    }
    assert named["main; with\nlines", "aten::mm", "l"] == 20
    assert named["main; with\nlines", "aten::mm"] == 5


def test_an_empty_tree_is_an_empty_profile() -> None:
    assert folded_text(Tree(of_device=False)) == ""
    document = json.loads(speedscope_json(Tree(of_device=False), ""))
    assert document["profiles"][0]["samples"] == []
