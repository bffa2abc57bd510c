"""Sequences of a written-out trace, with the gaps and bytes that can be counted by hand."""

from __future__ import annotations

import json

import pytest

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.operators.calls import read_call
from profharness.analysis.sequences.links import handed_on
from profharness.analysis.sequences.table import sequences
from profharness.cli import run_cli
from tests.analysis.scene import Scene

US = 1_000


def scene(*, pause: int = 2 * US, length: int = 5 * US, calls: int = 4) -> Scene:
    """Three short kernels and a long one, over and over; the short ones wait for each other."""
    made, now = Scene(), 0
    for _ in range(calls):
        for name in ("add", "mul", "relu"):
            made.kernel(now, now + length, name=name)
            now += length + pause
        made.kernel(now, now + 200 * US, name="gemm")
        now += 200 * US + pause
    return made


def rows(made: Scene):
    trace = made.build()
    return sequences(trace, KernelFacts(trace).roofs)


def test_gaps_and_times_are_those_between_the_kernels_of_a_call():
    found = rows(scene())
    (row,) = found.rows
    assert (row.use, row.names, row.kernels, row.calls) == ("fuse", ("add", "mul", "relu"), 3, 4)
    assert (row.total_ns, row.gap_ns) == (4 * 3 * 5 * US, 4 * 2 * 2 * US)
    assert (row.bytes, row.links, row.links_known) == (None, 8, 0)
    assert row.saved_ns == row.gap_ns
    assert (found.kernels, found.short_kernels, found.short_ns) == (16, 12, 60 * US)
    assert found.gap_ns == (4 * 3 - 1) * 2 * US  # the very first kernel waits for nothing


def test_a_pause_of_a_millisecond_ends_a_run():
    assert rows(scene(pause=1_000 * US)).rows == ()


def test_kernels_that_are_shorter_than_the_gap_before_them_are_short():
    assert rows(scene(length=12 * US)).rows == ()
    assert rows(scene(length=12 * US, pause=20 * US)).rows[0].names[-2:] == ("mul", "relu")


def test_streams_are_rows_of_their_own():
    made = Scene()
    for step in range(4):
        for place, name in enumerate("ab"):
            start = 20 * US * step + 10 * US * place
            made.kernel(start, start + 3 * US, name=name, stream=place)
    found = rows(made)
    assert [row.names for row in found.rows] == [("a", "a"), ("b", "b")]


F32 = ["float", "float"]


def call(name: str, *shapes: list[int]):
    return read_call(name, json.dumps(shapes), json.dumps(["float"] * len(shapes)))


def test_bytes_of_a_tensor_count_written_and_read():
    add = call("aten::add", [8, 4], [4])
    assert handed_on(add, call("aten::mul", [8, 4], [8, 4])) == 2 * 8 * 4 * 4
    assert handed_on(add, call("aten::mul", [8, 5])) is None
    assert handed_on(call("aten::mm", [8, 3], [3, 4]), add) == 2 * 8 * 4 * 4
    assert handed_on(call("aten::addmm", [4], [8, 3], [3, 4]), add) == 2 * 8 * 4 * 4
    assert handed_on(call("custom::op", [8, 4]), add) is None
    assert handed_on(call("aten::add", [8, 4], [3]), add) is None
    assert handed_on(None, add) is None


def test_the_layers_of_a_recorded_model_are_found(shared, capsys):
    path = shared / "fixtures" / "kineto" / "mi300x_bert_small.json.gz"
    assert run_cli(["hotspots", "--by", "sequence", str(path), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    layer = found["rows"][0]
    assert (layer["use"], layer["kernels"], layer["calls"]) == ("graph", 12, 4)  # four BertLayers
    added = next(
        row for row in found["rows"] if row["ops"] == ["aten::add_", "aten::native_layer_norm"]
    )
    # 1 x 141 x 512 in bfloat16, written and read, five times
    assert (added["calls"], added["bytes"]) == (5, 5 * 2 * 141 * 512 * 2)
    assert added["saved_ns"] == pytest.approx(
        added["gap_ns"] + added["bytes"] / found["bandwidth"] * 1e9
    )


@pytest.mark.parametrize("form", ["table", "md", "csv"])
def test_every_form_lists_them(shared, capsys, form):
    path = shared / "fixtures" / "kineto" / "mi300x_bert_small.json.gz"
    assert run_cli(["hotspots", "--by", "sequence", str(path), "--format", form]) == 0
    text = capsys.readouterr().out
    assert "fuse" in text
    assert "graph" in text


def test_several_files_and_stacks_are_refused(shared, capsys):
    path = str(shared / "fixtures" / "kineto" / "mi300x_bert_small.json.gz")
    assert run_cli(["hotspots", "--by", "sequence", path, path]) == 2
    assert run_cli(["hotspots", "--by", "sequence", path, "--format", "folded"]) == 2
    assert "by sequence" in capsys.readouterr().err
