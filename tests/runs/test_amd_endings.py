"""How the workload itself ended, told apart from how a stand-in rocprofv3 around it did: every way
of one with every way of the other.
"""

from __future__ import annotations

import sys

import pytest

from tests.fakes.stand_in_node import PROGRAM, Node
from tests.variants import but_for

pytestmark = pytest.mark.slow  # every test is a run of real processes, of seconds

OWN = {
    "exit 0": ((), 0),
    "exit 3": (("--exit", "3"), 3),
    "SystemExit": (("--system-exit", "5"), 5),
    "exception": (("--raise",), 1),
    "signal": (("--abort",), 134),
}
PROFILER = {
    "clean": "",
    "changes the status": "status:7",
    "crashes": "segv",
    "aborts": "abort",
    "hangs": "hang",
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    return Node(tmp_path_factory.mktemp("node"), "7.0")


CELLS = but_for(
    ((own, profiler) for profiler in PROFILER for own in OWN),
    lambda cell: cell[0] == "exit 3" or cell[1] == "crashes",
)


@pytest.mark.parametrize(("own", "profiler"), CELLS)
def test_the_workloads_own_status_is_passed_on(node: Node, own: str, profiler: str) -> None:
    program, status = OWN[own]
    done = node.profharness(
        "wrap",
        "rocprofv3",
        "--exit-limit",
        "2",
        "-o",
        "out",
        "--",
        *_python(),
        *program,
        STAND_IN_FINALIZE=PROFILER[profiler],
    )
    assert done.returncode == status, done.stderr
    said = [line for line in done.stderr.splitlines() if line.startswith(("error: ", "warning: "))]
    workload = {0: "had ended by itself", 134: "itself was killed by SIGABRT"}.get(
        status, f"itself exited {status}"
    )
    ended = {
        "changes the status": "exited 7",
        "crashes": "was killed by SIGSEGV",
        "aborts": "was killed by SIGABRT",
    }.get(profiler)
    if profiler == "hangs":
        assert len(said) == 1
        assert "went on for 2 s after the workload had ended" in said[0]
    elif ended is None or (
        own == "signal" and profiler == "aborts"
    ):  # the same death: nobody changed anything
        assert said == []
    else:
        assert said == [f"warning: rocprofv3 {ended}, but the workload {workload}"]


@pytest.mark.parametrize("profiler", but_for(PROFILER, "crashes".__eq__))
def test_a_signal_that_the_tool_does_not_handle_is_the_workloads(node: Node, profiler: str) -> None:
    done = node.profharness(
        "wrap",
        "rocprofv3",
        "-o",
        "out",
        "--",
        *_python(),
        "--crash",
        STAND_IN_FINALIZE=PROFILER[profiler],
    )
    assert done.returncode == 139
    assert "the workload was killed by SIGSEGV" in done.stderr
    assert "but the workload" not in done.stderr


@pytest.mark.parametrize(
    ("program", "status", "says"),
    [
        (("--raise",), 1, "but the workload itself exited 1"),
        (("--exit", "3"), 0, "with which status is not known: it is taken as 0"),
    ],
)
def test_a_death_while_python_is_torn_down_leaves_the_status_unknown(
    node: Node, program: tuple[str, ...], status: int, says: str
) -> None:
    done = node.profharness(
        "wrap",
        "rocprofv3",
        "-o",
        "out",
        "--",
        *_python(),
        *program,
        STAND_IN_FINALIZE="early-abort",
    )
    assert done.returncode == status
    assert says in done.stderr


def test_the_run_directory_is_whole_after_a_crash_at_exit(node: Node) -> None:
    done = node.run(
        "--profile", "rocprofv3", "--quiet", program=("--exit", "3"), STAND_IN_FINALIZE="segv"
    )
    assert done.returncode == 3, done.stderr
    assert (
        node.manifest.state,
        node.manifest.exit_status,
        node.manifest.passes[0].exit_status,
    ) == ("done", 3, 3)
    assert node.findings == ["profiler-changed-exit"]
    assert node.kernels()[1] == 5


def test_rocprof_changes_the_status_inside_its_recorder(node: Node) -> None:
    older = Node(node.folder / "older", "6.1")
    done = older.run(
        "--profile", "rocprof", "--quiet", program=("--exit", "3"), STAND_IN_FINALIZE="status:7"
    )
    assert done.returncode == 3, done.stderr
    assert older.findings == ["profiler-changed-exit"]


def test_each_rank_tells_of_the_tool_around_it(node: Node) -> None:
    two = Node(node.folder / "two", "7.0")
    done = two.run(
        "--profile",
        "rocprofv3",
        "--quiet",
        "--ranks",
        "3",
        STAND_IN_FINALIZE="segv",
        STAND_IN_FINALIZE_RANKS="1,2",
    )
    assert done.returncode == 0, done.stderr
    assert [(found.id, found.message) for found in two.manifest.findings] == [
        (
            "profiler-changed-exit",
            "ranks 1, 2: rocprofv3 was killed by SIGSEGV, but the workload had ended by itself",
        )
    ]
    assert {outcome.rank: outcome.exit_status for outcome in two.manifest.rank_outcomes} == {
        0: 0,
        1: 0,
        2: 0,
    }


def _python() -> tuple[str, str]:
    return sys.executable, str(PROGRAM)
