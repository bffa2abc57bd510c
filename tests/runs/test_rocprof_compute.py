"""Runs under rocprof-compute of several versions, through real processes: every launch counts once,
whatever the version leaves, and a workload that never started is no success.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.trace.model import Trace
from tests.fakes.stand_in_node import Node
from tests.variants import thorough

pytestmark = pytest.mark.slow  # every test is a run of real processes, of seconds


def counted(trace: Trace) -> dict[str, tuple[int, float]]:
    """How many values each counter has, and their sum."""
    found: dict[str, tuple[int, float]] = {}
    names = trace.strings.decode(trace.counters.name)
    for name, value in zip(names, trace.counters.value.tolist(), strict=True):
        number, total = found.get(name, (0, 0.0))
        found[name] = (number + 1, total + value)
    return found


# five kernels of 4, 5, ... 8 workgroups with four waves each, and multiples of that
WAVES = 4.0 * (4 + 5 + 6 + 7 + 8)
ALL = {"SQ_WAVES": (5, WAVES), "GRBM_COUNT": (5, 2 * WAVES), "TCC_HIT_sum": (5, 3 * WAVES)}


@pytest.mark.parametrize(
    ("release", "tool", "table", "analysed"),
    [
        ("6.2", "omniperf", "pmc_perf.csv", "0.1_Top_Kernels.csv"),
        *thorough(
            ("7.0", "rocprof-compute", "pmc_perf.csv", "0.1_Top_Kernels.csv"),
            ("7.12", "rocprof-compute", "pmc_perf.csv", "0.1_Top_Kernels.csv"),
            ("7.13", "rocprof-compute", "results_pmc_perf_2.csv", "0.1_Top_Kernels.csv"),
        ),
        ("10.2", "rocprof-compute", "results_pmc_perf_2.csv.gz", "kernel_metric.csv"),
    ],
)
def test_it_replays_and_analyses(
    tmp_path: Path, release: str, tool: str, table: str, analysed: str
) -> None:
    node = Node(tmp_path, release)
    done = node.run("--profile", "rocprof-compute")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("program:") == 3
    # before the first of them, and on stderr
    assert done.stderr.startswith(
        "profharness: rocprof-compute runs the command 12 to 20 times by itself"
    )
    assert (node.findings, node.manifest.passes[0].perturbing) == (["serialising-counters"], True)
    assert Path(node.manifest.passes[0].argv[0][0]).name == tool
    names = {Path(artifact.path).name for artifact in node.manifest.artifacts}
    assert {table, "sysinfo.csv", analysed} <= names
    trace = node.trace
    assert (len(trace.kernels), int(trace.kernels.dur_ns.sum())) == (5, 100_000)
    assert counted(trace) == ALL


def test_a_dry_run_counts_what_the_tool_starts_by_itself(tmp_path: Path) -> None:
    node = Node(tmp_path, "10.2")
    for flags, expected, count in (
        (("--bare",), "the command's own, 13 to 21 times", "2, in which the command runs 13 to 21"),
        (("--one-execution",), "the command's own, 1 time", "1"),
    ):
        done = node.run("--profile", "rocprof-compute", *flags, "--yes", "--dry-run")
        lines = done.stdout.splitlines()
        assert f"expected time   {expected}" in lines, done.stderr
        assert f"executions      {count}" in [line.removesuffix(" times") for line in lines]
        assert "one execution of the command" not in done.stdout


def test_without_its_analysis_the_tables_of_single_executions_are_read(tmp_path: Path) -> None:
    """Its packages may be missing: the analysis fails. Two processes launch kernels."""
    node = Node(tmp_path, "7.13")
    done = node.run(
        *("--profile", "rocprof-compute", "--quiet"),
        *("--tool-arg", "rocprof-compute-analyze:--no-such-option"),
        program=("--child",),
    )
    assert done.returncode == 0, done.stderr
    assert node.findings == ["serialising-counters", "profiler-failed"]
    read = [artifact for artifact in node.manifest.artifacts if not artifact.aside]
    assert [Path(artifact.path).name for artifact in read] == [
        f"results_pmc_perf_{number}.csv" for number in range(3)
    ]
    before = node.trace
    assert (len(before.kernels), counted(before)) == (5, ALL)
    assert any("3 executions recorded the same 5" in row.message for row in before.problems)


def test_one_execution_tells_its_coverage(tmp_path: Path) -> None:
    node = Node(tmp_path, "10.2")
    # a launcher's variable: the tool puts the rank below our folder
    done = node.run("--profile", "rocprof-compute", "--one-execution", FLUX_TASK_RANK="3")
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("program:") == 1
    assert done.stderr.startswith("profharness: rocprof-compute counts in one execution")
    trace = node.trace
    assert len(trace.kernels) == 5
    assert {name: number for name, (number, _) in counted(trace).items()} == {
        "SQ_WAVES": 2,
        "GRBM_COUNT": 2,
        "TCC_HIT_sum": 1,
    }
    assert any("a dispatch carries 1 of 3 counters" in row.message for row in trace.problems)


@pytest.mark.parametrize(
    ("how", "words"),
    [
        ("never", "Profiling execution failed."),
        *thorough(
            ("silent", "it exited 0 first"),
            ("output-path", "ROCPROF_OUTPUT_PATH environment variable must be set"),
        ),
    ],
)
def test_a_workload_that_never_started_is_no_success(tmp_path: Path, how: str, words: str) -> None:
    node = Node(tmp_path, "7.12")
    done = node.run("--profile", "rocprof-compute", "--quiet", STAND_IN_COMPUTE=how)
    assert (done.returncode, node.manifest.exit_status) == (3, 3)
    (failed,) = [row.message for row in node.manifest.findings if row.id == "profiler-failed"]
    assert "did not start the workload" in failed
    assert words in failed
    known = [row.advice for row in node.manifest.findings if row.id == "known-fault"]
    assert ["name the program itself" in advice for advice in known] == [True] * (
        how == "output-path"
    )
