"""`--formulas FILE` of `hotspots`, `metrics` and `report`, as a user gives it."""

from __future__ import annotations

import gzip
import json
import math
from pathlib import Path
from typing import Any

import pytest

from profharness.cli import run_cli
from profharness.understand import frames
from tests.analysis.operators import launched
from tests.conftest import shared_path

GROUPNORM = """
[[formula]]
match = "aiter::_groupnorm_run"
kind = "expression"
bytes = "2 * size(0)"
matrix = false
nest = "wins"
"""
# The annotation of the recorded step tells the lengths: 9 prompts, sum of queries x keys 7 671 310
# and of squared queries 7 475 785 over 8155 queries, and 37 sequences with 34 489 keys.
PAIRS = 7_671_310 - (7_475_785 - 8_155) // 2 + 34_489
ATTENTION = f"""
[[formula]]
match = "vllm::unified_attention_with_output"
kind = "expression"
flops = "4 * d[0][1] * d[0][2] * {PAIRS}"
nest = "wins"
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    return launched.write(tmp_path / "t.pt.trace.json")


@pytest.fixture
def table(tmp_path: Path) -> Path:
    return write(tmp_path / "mine.toml", launched.FORMULA)


def write(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def document(capsys: pytest.CaptureFixture[str], *words: str | Path) -> Any:
    assert run_cli([*map(str, words), "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def row(table: Any, name: str) -> Any:
    (found,) = (row for row in table["rows"] if row["name"] == name)
    return found


def test_hotspots_show_the_work_of_the_users_operator(capsys, trace, table):
    words = ("hotspots", trace, "--by", "op")
    without = row(document(capsys, *words), "my::fused")
    assert (without["flops"], without["bytes"]) == (None, None)
    assert (without["device_ns"], without["calls"]) == (10_000, 1)
    found = row(document(capsys, *words, "--formulas", table), "my::fused")
    assert (found["flops"], found["flops_calls"]) == (launched.FLOPS, 1)
    assert found["bytes"] == 4 * (15 + 35 + 21)
    assert row(document(capsys, *words), "my::fused") == without  # of that one command


def test_of_several_tables_the_last_one_counts(capsys, trace, table, tmp_path):
    other = write(
        tmp_path / "other.toml",
        '[[formula]]\nmatch = "my::fused"\nkind = "expression"\nflops = "6"\n',
    )
    words = ("hotspots", trace, "--by", "op", "--formulas")
    assert row(document(capsys, *words, table, "--formulas", other), "my::fused")["flops"] == 6
    both = document(capsys, *words, other, "--formulas", table)
    assert row(both, "my::fused")["flops"] == launched.FLOPS


def test_metrics_count_the_work_of_the_users_operator(capsys, trace, table):
    without = document(capsys, "metrics", trace)
    assert without["work"]["known_ns"] == 20_000
    assert without["work"]["reasons"]["no formula"] == 10_000
    found = document(capsys, "metrics", trace, "--formulas", table)
    assert found["work"] == {
        "matrix_kernel_ns": 74_000,
        "known_ns": 30_000,
        "reasons": {
            "graph replay": 30_000,
            "no operator around the launch": 7_000,
            "launch not in the file": 5_000,
            "no shapes": 2_000,
        },
    }
    assert found["operator_share"] == without["operator_share"]


def test_metrics_print_what_is_known_and_what_operators_launched(capsys, trace, table):
    assert run_cli(["metrics", str(trace), "--formulas", str(table)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert (
        "work      known for 40.5 % of matrix-kernel time; the rest: graph replay 40.5 %, "
        "no operator around the launch 9.5 %, launch not in the file 6.8 %, no shapes 2.7 %"
    ) in lines
    assert (
        "operators 50.6 % of kernel time was launched inside of one; the rest: "
        "graph replay 35.3 %, no operator around the launch 8.2 %, launch not in the file 5.9 %"
    ) in lines


def test_steps_take_the_table_too(capsys, tmp_path, table):
    step = {
        "ph": "X",
        "cat": "user_annotation",
        "name": "ProfilerStep#1",
        "pid": 7,
        "tid": 7,
        "ts": 0.0,
        "dur": 90.0,
        "args": {},
    }
    path = launched.write(tmp_path / "steps.json", (*launched.EVENTS, step))
    words = ("metrics", path, "--steps", "all")

    def flops(*more: str | Path) -> list[float | None]:
        found = document(capsys, *words, *more)
        return [step["metrics"]["achieved_flops"]["value"] for step in found["steps"]]

    (without,), (found,) = flops(), flops("--formulas", table)
    assert found == pytest.approx(2 * without)


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_each_of_many_files_takes_the_table(capsys, tmp_path, table, processes):
    paths = [launched.write(tmp_path / f"rank{rank}.pt.trace.json") for rank in range(2)]
    many = ("--processes", str(processes), "--formulas", table)
    found = document(capsys, "metrics", *paths, *many)
    assert (found["work"]["matrix_kernel_ns"], found["work"]["known_ns"]) == (148_000, 60_000)
    assert found["operator_share"]["in_operators_ns"] == 86_000
    rows = document(capsys, "hotspots", *paths, "--by", "op", *many)
    assert row(rows, "my::fused")["flops"] == 2 * launched.FLOPS


def test_an_entry_that_does_not_fit_is_a_finding(capsys, trace, tmp_path):
    table = write(tmp_path / "far.toml", launched.TOO_FAR)
    found = document(capsys, "metrics", trace, "--formulas", table)
    (misfit,) = (item for item in found["findings"] if item["id"] == "formula-misfit")
    assert f"{table}, entry 1 (my::fused) (1 call)" in misfit["message"]
    assert found["work"]["reasons"]["formula does not fit"] == 10_000


def test_hotspots_tell_of_an_entry_that_does_not_fit(capsys, trace, tmp_path):
    table = write(tmp_path / "far.toml", launched.TOO_FAR)
    for path in (trace, launched.run_of(tmp_path / "run", launched.write)):
        assert run_cli(["hotspots", str(path), "--by", "op", "--formulas", str(table)]) == 0
        (said,) = capsys.readouterr().err.splitlines()
        assert f"{table}, entry 1 (my::fused) (1 call)" in said


@pytest.mark.parametrize("command", ["hotspots", "metrics"])
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("no table", "no TOML: "),
        ("[other]\n", "a table of formulas has [[formula]] entries, and no other"),
        ('[[formula]]\nmatch = "x"\nkind = "magic"\n', "entry 1 (x): Invalid value 'magic'"),
        (None, "cannot be read"),
    ],
)
def test_a_table_that_is_none_ends_the_command(capsys, trace, tmp_path, command, text, said):
    table = tmp_path / "wrong.toml"
    if text is not None:
        table.write_text(text)
    one, two = str(trace), str(launched.write(tmp_path / "other.pt.trace.json"))
    for paths in ([one], [one, two]):
        assert run_cli([command, *paths, "--formulas", str(table)]) == 4
        out, error = capsys.readouterr()
        assert out == ""
        assert error.startswith(f"error: {table}")
        assert said in error
        assert "docs/formulas.md" in error
        assert "Traceback" not in error


@pytest.mark.slow
def test_recorded_operators_get_work_from_a_table(capsys, tmp_path):
    trace = shared_path("fixtures/kineto/mi300x_xdit_sd3.5.json.gz")
    words = ("hotspots", trace, "--by", "op")
    without = row(document(capsys, *words), "aiter::_groupnorm_run")
    assert (without["calls"], without["bytes"]) == (30, None)
    table = write(tmp_path / "groupnorm.toml", GROUPNORM)
    found = row(document(capsys, *words, "--formulas", table), "aiter::_groupnorm_run")
    assert found["bytes_calls"] == 30
    events = json.loads(gzip.decompress(trace.read_bytes()))["traceEvents"]
    inputs = [
        event["args"]["Input Dims"][0]
        for event in events
        if event.get("name") == "aiter::_groupnorm_run" and event.get("cat") == "cpu_op"
    ]
    assert found["bytes"] == sum(4 * math.prod(extents) for extents in inputs)
    assert found["flops"] is None


def test_recorded_attention_gets_work_from_a_table(capsys, tmp_path):
    trace = shared_path("fixtures/kineto/mi300x_vllm_piecewise_graphs.json.gz")
    table = write(tmp_path / "attention.toml", ATTENTION)
    rows = document(capsys, "hotspots", trace, "--by", "op", "--formulas", table)
    found = row(rows, "vllm::unified_attention_with_output")
    assert found["flops"] == 24 * 4 * 64 * 64 * PAIRS
    work = document(capsys, "metrics", trace, "--formulas", table)["work"]
    assert "lengths unknown" not in work["reasons"]
    assert work["known_ns"] > 5_000_000


def test_a_run_and_its_report_take_the_table(capsys, tmp_path, table):
    root = launched.run_of(tmp_path / "run", launched.write)
    assert document(capsys, "report", root)["work"]["known_ns"] == 20_000
    found = document(capsys, "report", root, "--formulas", table)["work"]
    assert found == document(capsys, "metrics", root, "--formulas", table)["work"]
    assert found["known_ns"] == 30_000
    assert json.loads((root / "summary.json").read_text())["work"] == found
    rows = document(capsys, "hotspots", root, "--by", "op", "--formulas", table)
    assert row(rows, "my::fused")["flops"] == launched.FLOPS
    assert run_cli(["report", str(root), "--formulas", str(tmp_path / "none.toml")]) == 4
    assert "cannot be read" in capsys.readouterr().err


@pytest.mark.slow
def test_the_roofline_takes_the_table(capsys, tmp_path, table):
    pytest.importorskip("mplhep")
    path = launched.write(tmp_path / "fused.json", launched.FUSED)
    words = ["plot", str(path), "--roofline", "-o", str(tmp_path / "roofline.svg")]
    assert run_cli(words) == 4
    assert "no operator or kernel whose operations and bytes are both known" in (
        capsys.readouterr().err
    )
    assert run_cli([*words, "--formulas", str(table)]) == 0
    assert (tmp_path / "roofline.svg").is_file()


def test_other_figures_take_no_table(capsys, tmp_path, table):
    words = ["plot", str(tmp_path), "-o", str(tmp_path / "x.svg"), "--formulas", str(table)]
    assert run_cli(words) == 2
    assert "--formulas and --capture-trace belong to --roofline" in capsys.readouterr().err


def test_frames_take_the_table(trace, table):
    found = frames.hotspots(trace, "op", formulas=[table]).set_index("name")
    for one in (table, str(table)):
        assert frames.hotspots(trace, "op", formulas=one).set_index("name").equals(found)
    assert found.loc["my::fused", "flops"] == launched.FLOPS
    assert frames.hotspots(trace, "op").set_index("name")["flops"].isna()["my::fused"]
    of_file = frames.metrics(trace, formulas=[table]).set_index("figure")["value"]
    without = frames.metrics(trace).set_index("figure")["value"]
    assert of_file["achieved_flops"] == pytest.approx(2 * without["achieved_flops"])


@pytest.mark.slow
def test_a_roofline_of_several_hosts_needs_no_common_clock(
    trace: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("mplhep")
    events = json.loads(trace.read_text())
    paths = [
        write(tmp_path / f"{host}.json", json.dumps({**events, "host_name": host}))
        for host in ("first", "second")
    ]
    picture = tmp_path / "roofline.svg"
    words = ["plot", *map(str, paths), "--roofline", "-o", str(picture)]
    assert run_cli(words) == 0, capsys.readouterr().err
    assert picture.is_file()
