"""Trees of time: on generated ranges, on a small training, and on recorded files where they are
there.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from profharness.analysis.kernels.hotspots import grouped, tally
from profharness.analysis.pictures.flame import ROOT, Tree, TreeKind, tree_of
from profharness.analysis.pictures.flame_layout import MOST_FRAMES, OTHERS, flame_of
from profharness.analysis.pictures.records import Flame
from profharness.readers.kineto import reader
from profharness.trace.model import Kernels, Trace
from profharness.trace.wanted import Wanted
from tests.analysis.operators.test_around import SPANS, Generated, training
from tests.conftest import shared_path
from tests.readers.kineto.kineto_files import document, write

KINDS: tuple[TreeKind, ...] = ("op", "module", "range", "stack")
RECORDED = sorted(shared_path("fixtures/kineto").glob("*_bert_small.json.gz"))


def stacks(tree: Tree) -> dict[str, int]:
    """The ns of each stack that has its own, by its frames."""
    return {
        ";".join(tree.names[frame] for frame in tree.path(number)): ns
        for number, ns in enumerate(tree.own_ns)
        if ns
    }


def under(tree: Tree, kind: TreeKind) -> dict[tuple[str, ...], int]:
    """For each path of spans, the time that belongs to it and to no span inside of it."""
    sums: dict[tuple[str, ...], int] = {}
    for number, ns in enumerate(tree.own_ns):
        if ns:
            spans = tuple(
                tree.names[frame] for frame in tree.path(number) if tree.kinds[frame] == kind
            )
            sums[spans] = sums.get(spans, 0) + ns
    return sums


@given(SPANS)
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
def test_each_range_holds_the_device_time_of_its_row(parts: Any) -> None:
    made = Generated()
    made.lay([*parts, 3])
    tree = tree_of(made.scene.build(), "range")
    if not tree.names:
        return
    assert tree.of_device
    sums = under(tree, "range")
    assert sums.pop((), 0) == made.outside
    assert {path[0]: ns for path, ns in sums.items()} == {
        name: ns for name, ns in made.device.items() if ns
    }


@pytest.fixture
def trained(tmp_path: Path) -> Trace:
    path = training(tmp_path)
    return reader.read(path, wanted=Wanted.STACKS)


def test_backward_kernels_stand_under_the_module_of_their_forward_operator(trained: Trace) -> None:
    assert stacks(tree_of(trained, "module")) == {
        "Net_0;Linear_0;aten::addmm;k": 4_000,
        "Net_0;Linear_0;AddmmBackward0;aten::mm;k": 8_000,
        "Net_0;Linear_1;aten::addmm;k": 5_000,
        "Net_0;Linear_1;AddmmBackward0;aten::mm;k": 7_000,
        "outside of modules;k": 2_000,
    }


def test_a_tree_of_operators_nests_them(trained: Trace) -> None:
    assert stacks(tree_of(trained, "op")) == {
        "aten::addmm;k": 9_000,
        "AddmmBackward0;aten::mm;k": 15_000,
        "outside of operators;k": 2_000,
    }


def test_without_a_device_the_host_is_weighed(tmp_path: Path) -> None:
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "pid": 7, "tid": 7, "ts": ts, "dur": dur}
        for name, ts, dur in (("a", 0, 10), ("b", 2, 5), ("b", 8, 1), ("c", 20, 4))
    ]
    trace = reader.read(write(tmp_path / "t.json", document(events)))
    tree = tree_of(trace, "op")
    assert not tree.of_device
    assert stacks(tree) == {"a": 4_000, "a;b": 6_000, "c": 4_000}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name.split(".")[0])
def test_trees_of_recorded_files_sum_to_the_tables(path: Path, kind: TreeKind) -> None:
    trace = reader.read(path, wanted=Wanted.STACKS)
    tree, table = tree_of(trace, kind), tally(trace, kind).table()
    of_rows = {row.name: row.device_ns for row in table.rows if row.device_ns}
    outside = table.device_ns_outside
    assert outside is not None
    assert tree.total_ns == sum(of_rows.values()) + outside
    if kind in ("module", "stack"):
        sums = under(tree, kind)
        assert sums.pop((), 0) == outside
        names = {
            "/".join(path) if kind == "module" else " < ".join(reversed(path)): ns
            for path, ns in sums.items()
        }
        assert names == of_rows


def test_host_time_of_spans_sums_to_the_table(tmp_path: Path) -> None:
    path = training(tmp_path)
    trace = reader.read(path, wanted=Wanted.STACKS)

    on_host = replace(trace, kernels=Kernels.empty())
    for kind in KINDS:
        tree = tree_of(on_host, kind)
        assert not tree.of_device
        assert tree.total_ns == (grouped(on_host, kind).total_ns or 0)


def tree(children: dict[str, int]) -> Tree:
    made = Tree(of_device=True)
    main = made.frame(ROOT, "main", "op")
    for name, ns in children.items():
        made.own_ns[made.frame(main, name, "kernel")] += ns
    return made


def laid_out(made: Flame) -> list[tuple[str, int, int, int]]:
    columns = zip(made.name, made.depth, made.at, made.length, strict=True)
    return [(made.names[name], depth, at, length) for name, depth, at, length in columns]


def test_short_frames_stand_together_and_sums_stay() -> None:
    made = flame_of(tree({"long": 99_900, "a": 40, "b": 60}), "op")
    assert made is not None
    assert laid_out(made) == [
        ("main", 0, 0, 100_000),
        ("long", 1, 0, 99_900),
        (OTHERS, 1, 99_900, 100),
    ]
    assert made.least_ns == 100


def test_no_more_frames_are_laid_out_than_can_be_drawn() -> None:
    made = flame_of(tree({f"k{number}": 100 + number % 7 for number in range(20_000)}), "op")
    assert made is not None
    assert len(made.name) <= MOST_FRAMES
    assert sum(length for _, depth, _, length in laid_out(made) if depth == 1) == made.total_ns


def test_a_tree_without_time_has_no_picture() -> None:
    assert flame_of(Tree(of_device=True), "op") is None


def test_trees_of_several_files_become_one() -> None:
    whole = tree({"a": 5})
    whole.add(tree({"a": 7, "b": 1}))
    assert stacks(whole) == {"main;a": 12, "main;b": 1}
