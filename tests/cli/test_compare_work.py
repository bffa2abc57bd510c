"""Traces of two devices whose kernels share no name, compared by operator: in every form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import profharness
from profharness.cli import run_cli
from profharness.cli.agents.roots import Roots
from profharness.cli.agents.summaries import compare
from profharness.errors import UsageError
from profharness.report.compared.words import other_work_words
from tests.readers.kineto.kineto_files import document, event, kernel, launch, op, write

Work = dict[str, tuple[str, int]]  # operator -> kernel and its time in us

A: Work = {"aten::mm": ("sm90_gemm", 40), "aten::mul": ("vectorized", 10)}
B: Work = {
    "aten::mm": ("Cijk_Ailk", 60),
    "aten::mul": ("elementwise", 5),
    "aten::fill_": ("fill", 2),
}


def file_of(folder: Path, name: str, work: Work) -> Path:
    """One step with each operator inside of a module, one after the other."""
    events = [event("user_annotation", "ProfilerStep#1", 0, 200)]
    events.append(event("python_function", "nn.Module: Net_0", 1, 180, Python_id=1))
    device = 300
    for number, (operator, (kernel_name, length)) in enumerate(work.items(), start=1):
        start = 10 * number
        shapes = {"Input_Dims": [[8, 8], [8, 8]], "Input_type": ["float", "float"]}
        events.append(op(operator, start, 8, number, **shapes))
        events.append(launch("cudaLaunchKernel", start + 1, 2, number, External_id=number))
        events.append(kernel(kernel_name, device, length, correlation=number, External_id=number))
        device += length
    return write(folder / name, document(events))


@pytest.fixture
def pair(tmp_path):
    return [str(file_of(tmp_path, f"{name}.json", work)) for name, work in (("a", A), ("b", B))]


def test_json_has_the_work_of_both_by_operator(pair, capsys):
    assert run_cli(["compare", *pair, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    rows = {row["name"]: row for row in found["operators"]["rows"]}
    assert {name: (row["a_ns"], row["b_ns"]) for name, row in rows.items()} == {
        "aten::mm": (40_000, 60_000),
        "aten::mul": (10_000, 5_000),
        "aten::fill_": (None, 2_000),
    }
    assert rows["aten::mm"]["ratio"] == 1.5
    assert rows["aten::fill_"]["reason"] == "only in B"
    assert found["step"]["difference_ns"] == 17_000
    assert found["step"]["difference_ns"] == sum(row["difference_ns"] for row in rows.values())
    assert [row["name"] for row in found["modules"]["rows"]] == ["Net"]
    assert {row["name"] for row in found["categories"]["rows"]} == {"gemm", "elementwise", "copy"}
    assert found["tree"]["inner"][0]["name"] == "Net_0"
    assert found["hotspots"][0]["by"] == "kernel"  # as a detail
    assert not any(reason["kind"] == "kernels-switched" for reason in found["reasons"])


def test_the_answer_stands_first_and_kernels_last(pair, capsys):
    assert run_cli(["compare", *pair]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == (
        "Answer  One step takes 34.0 % more time in B (50.00 µs in A, 67.00 µs in B): "
        "aten::mm +20.00 µs (+50.0 %), aten::fill_ +2.000 µs (only in B); against it "
        "aten::mul -5.000 µs (-50.0 %)."
    )
    assert lines[3] == (
        "Why     Gemm: 40.00 µs of a step in A, 60.00 µs in B (+40.0 %); copy: 0 ns of a step in "
        "A, 2.000 µs in B (+4.0 %)."
    )
    heads = [line.partition(":")[0] for line in lines if line.startswith(("by ", "hotspots"))]
    assert heads[0] == "by operator"
    assert heads[-1].startswith("hotspots by kernel")
    assert any("Net_0 > aten::mm" in line or "aten::mm" in line for line in lines)


def test_depth_cuts_the_tree(pair, capsys):
    texts = []
    for depth in ("1", "3"):
        assert run_cli(["compare", *pair, "--depth", depth]) == 0
        texts.append(capsys.readouterr().out)
    assert texts[0].count("· ") == 0 < texts[1].count("· ")


def test_documents_and_the_page_show_it(pair, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run_cli(["compare", *pair, "--format", "md"]) == 0
    assert "### By operator" in capsys.readouterr().out
    assert run_cli(["report", "--compare", *pair, "-o", "both.html"]) == 0
    page = Path("both.html").read_text()
    assert "By operator" in page
    assert "By place in the tree of operators" in page


def test_frames_have_the_rows_of_json(pair):
    a, b = (profharness.read(path) for path in pair)
    frame = a.compare(b, by="op")
    assert list(frame["name"]) == ["aten::mm", "aten::mul", "aten::fill_"]
    assert frame["b_ns"].sum() == 67_000
    assert frame.attrs["step"]["clock"] == "device"
    with pytest.raises(UsageError, match="no rows by 'kernel'"):
        a.compare(b, by="kernel")


def test_every_way_of_comparing_says_that_the_work_differs(tmp_path, capsys):
    a = file_of(tmp_path, "a.json", A)
    b = file_of(tmp_path, "b.json", {"custom::attention": ("sm90_fmha", 90)})
    assert run_cli(["compare", str(a), str(b), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    frame = profharness.read(a).compare(profharness.read(b))
    asked = compare(Roots((tmp_path,)), str(a), str(b), top=1)
    answer = other_work_words(asked.other_work, asked.step)
    assert run_cli(["compare", str(a), str(b)]) == 0
    assert f"Answer  {answer}" in capsys.readouterr().out
    assert {row["better"] for row in told["run"]} == {"neither"}
    assert list(frame["better"]) == [row["better"] for row in told["run"]]
    assert [delta.better for delta in asked.run] == list(frame["better"])
    assert not asked.reasons
    assert not told["reasons"]


def test_an_agent_gets_the_first_rows_of_each_table_of_work(pair, tmp_path):
    asked = compare(Roots((tmp_path,)), *pair, top=1)
    assert {table.by for table in asked.work} == {"op", "shape", "module", "category"}
    assert [len(table.rows) for table in (*asked.work, *asked.hotspots)] == [1] * 5
    assert asked.tree is None
    assert asked.rows_left_out == sum(
        len(table.rows) - 1
        for found in [compare(Roots((tmp_path,)), *pair)]
        for table in (*found.work, *found.hotspots)
    )
