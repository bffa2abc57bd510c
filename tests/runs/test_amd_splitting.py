"""A stand-in rocprofv3 that refuses counters as the real one does, through real processes."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.understand import report_run as understand
from tests.fakes.stand_in_node import Node
from tests.variants import thorough

pytestmark = pytest.mark.slow  # every test is a run of real processes, of seconds

THREE = ("--profile", "rocprofv3", "--pmc", "SQ_WAVES,GRBM_COUNT,SQ_BUSY_CU_CYCLES")


def counted(node: Node) -> dict[str, set[str]]:
    """The names of the counters with values, by pass."""
    trace = node.trace
    found: dict[str, set[str]] = {}
    for row in range(len(trace.counters)):
        source = trace.sources[int(trace.counters.source[row])]
        found.setdefault(source.pass_name, set()).add(trace.strings[int(trace.counters.name[row])])
    return found


@pytest.mark.parametrize("release", ["7.0", *thorough("6.2", "6.4")])
def test_refused_counters_are_halved_until_they_fit(tmp_path: Path, release: str) -> None:
    node = Node(tmp_path, release)
    done = node.run(
        *THREE, "--yes", "--quiet", program=("--exit", "4"), STAND_IN_COUNTERS_AT_ONCE="1"
    )
    assert done.returncode == 4, done.stderr
    assert (
        "failed with error code 38: Request exceeds the capabilities of the hardware to collect"
        in done.stderr
    )
    assert [(record.name, record.split, record.state) for record in node.manifest.passes] == [
        ("rocprofv3", (), "done"),
        ("rocprofv3-pmc1", ("rocprofv3-pmc1a", "rocprofv3-pmc1b"), "done"),
        ("rocprofv3-pmc1a", ("rocprofv3-pmc1aa", "rocprofv3-pmc1ab"), "done"),
        ("rocprofv3-pmc1aa", (), "done"),
        ("rocprofv3-pmc1ab", (), "done"),
        ("rocprofv3-pmc1b", (), "done"),
    ]
    assert sorted(node.findings) == ["counters-split"] * 2 + ["serialising-counters"] * 3
    assert counted(node) == {
        "rocprofv3-pmc1aa": {"SQ_WAVES"},
        "rocprofv3-pmc1ab": {"GRBM_COUNT"},
        "rocprofv3-pmc1b": {"SQ_BUSY_CU_CYCLES"},
    }
    listed = node.profharness("ls", str(tmp_path)).stdout
    assert "split: rocprofv3-pmc1 as rocprofv3-pmc1a+rocprofv3-pmc1b" in listed
    summary = understand.finish(node.run_dir)
    assert [row.state for row in summary.passes].count("split") == 2
    assert not any(found.id == "run-incomplete" for found in summary.findings)
    assert "counters-split" in (node.run_dir / "report.html").read_text()


def test_a_counter_that_is_refused_alone_is_named(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.run(
        "--profile",
        "rocprofv3",
        "--pmc",
        "SQ_WAVES,GRBM_COUNT",
        "--yes",
        "--quiet",
        STAND_IN_UNCOUNTABLE="GRBM_COUNT",
    )
    assert done.returncode == 0, done.stderr
    assert counted(node) == {"rocprofv3-pmc1a": {"SQ_WAVES"}}
    (refused,) = (found for found in node.manifest.findings if found.id == "counters-refused")
    assert "this device cannot count GRBM_COUNT, not even alone" in refused.message
    assert {record.name: record.state for record in node.manifest.passes}[
        "rocprofv3-pmc1b"
    ] == "failed"
    assert node.kernels() == ("rocprofv3", 5, 100_000)


def test_no_more_executions_than_were_allowed(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.run(
        "--profile",
        "rocprofv3",
        "--pmc",
        "SQ_WAVES,GRBM_COUNT",
        "--passes",
        "2",
        "--quiet",
        STAND_IN_COUNTERS_AT_ONCE="1",
    )
    assert done.returncode == 0
    assert done.stdout.count("program:") == 2
    assert [found.id for found in node.manifest.findings] == ["counters-refused"]
    assert "--yes for as many as it takes" in node.manifest.findings[0].message


def test_a_tool_that_refuses_and_then_hangs_is_ended(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.run(
        "--profile",
        "rocprofv3",
        "--pmc",
        "SQ_WAVES,GRBM_COUNT",
        "--yes",
        "--quiet",
        "--exit-limit",
        "2",
        STAND_IN_COUNTERS_AT_ONCE="1",
        STAND_IN_REFUSAL="hang",
    )
    assert done.returncode == 0, done.stderr
    assert set(counted(node)) == {"rocprofv3-pmc1a", "rocprofv3-pmc1b"}


def test_ranks_split_together(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.run(
        "--profile",
        "rocprofv3",
        "--pmc",
        "SQ_WAVES,GRBM_COUNT",
        "--yes",
        "--quiet",
        "--ranks",
        "2",
        STAND_IN_COUNTERS_AT_ONCE="1",
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("program:") == 2 * 4
    assert set(counted(node)) == {"rocprofv3-pmc1a", "rocprofv3-pmc1b"}
    refused = {
        (outcome.rank, outcome.pass_name)
        for outcome in node.manifest.rank_outcomes
        if outcome.refused
    }
    assert refused == {(0, "rocprofv3-pmc1"), (1, "rocprofv3-pmc1")}
    assert {outcome.pass_name for outcome in node.manifest.rank_outcomes if outcome.rank == 1} == {
        "rocprofv3",
        "rocprofv3-pmc1",
        "rocprofv3-pmc1a",
        "rocprofv3-pmc1b",
    }


@pytest.mark.slow
def test_a_scan_splits_too(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.scan(*THREE[:3], "SQ_WAVES,GRBM_COUNT", STAND_IN_COUNTERS_AT_ONCE="1")
    assert done.returncode == 0, done.stderr
    assert [(record.name, record.split) for record in node.manifest.passes] == [
        ("bare", ()),
        ("rocprofv3", ()),
        ("rocprofv3-pmc1", ("rocprofv3-pmc1a", "rocprofv3-pmc1b")),
        ("rocprofv3-pmc1a", ()),
        ("rocprofv3-pmc1b", ()),
    ]
    assert {(point.pass_name, point.state) for point in node.manifest.points} == {
        (name, "ok") for name in ("bare", "rocprofv3", "rocprofv3-pmc1a", "rocprofv3-pmc1b")
    }
    assert node.manifest.scan is not None
    assert set(node.manifest.scan.planned) == {
        "bare",
        "rocprofv3",
        "rocprofv3-pmc1a",
        "rocprofv3-pmc1b",
    }
    assert [found for found in node.manifest.findings if found.severity == "error"] == []
    assert counted(node) == {"rocprofv3-pmc1a": {"SQ_WAVES"}, "rocprofv3-pmc1b": {"GRBM_COUNT"}}


def test_a_dry_run_says_that_refused_counters_are_halved(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    planned = node.run(*THREE, "--yes", "--dry-run")
    assert planned.returncode == 0
    assert (
        "# rocprofv3-pmc1: if the tool refuses these counters together, "
        "each half of them gets an execution of its own" in planned.stdout
    )
