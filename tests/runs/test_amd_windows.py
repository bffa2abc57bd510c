"""`--capture` under stand-ins of rocprofv3: told to record by the hooks, by a period of time, or
cut afterwards; and our ranges in its files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profharness import readers
from profharness.understand import report_run as understand
from tests.fakes.stand_in_node import PROGRAM, Node
from tests.variants import thorough

pytestmark = pytest.mark.slow  # every test is a run of real processes, of seconds

if shutil.which("cc") is None and shutil.which("gcc") is None:
    pytest.skip("needs a C compiler for the stand-in library", allow_module_level=True)

STEPS = ("--steps", "8", "--kernels", "2")


def names(node: Node) -> list[str]:
    """The kernels' names in order; the program calls those of step 3 `step_3`."""
    trace = node.trace
    return [trace.strings[int(code)] for code in trace.kernels.name]


def marked(node: Node, layer: str) -> list[tuple[str, str]]:
    """The marks that the tool's files hold: kind and label."""
    trace = node.trace
    own = [trace.sources[int(source)].layer == layer for source in trace.marks.source]
    return [
        (trace.strings[int(kind)], trace.strings[int(name)])
        for kind, name, mine in zip(trace.marks.kind, trace.marks.name, own, strict=True)
        if mine
    ]


@pytest.mark.parametrize(
    ("release", "is_cut"), [("7.0", False), ("6.4", True), *thorough(("6.2", True))]
)
def test_only_the_steps_asked_for(tmp_path: Path, release: str, is_cut: bool) -> None:
    node = Node(tmp_path, release, roctx=True)
    done = node.run(
        "--profile", "rocprofv3", "--hip-trace", "--capture", "steps=3:6", "--quiet", program=STEPS
    )
    assert done.returncode == 0, done.stderr
    assert names(node) == [f"step_{step}" for step in (3, 4, 5) for _ in range(2)]
    assert [label for kind, label in marked(node, "rocprofv3") if kind == "step"] == [
        f"profharness.step:{step}" for step in (3, 4, 5)
    ]
    assert node.findings == (["window-cut"] if is_cut else [])
    assert (node.manifest.passes[0].cut == "steps=3:6") == is_cut
    summary = understand.summarise(understand.load([node.run_dir]))
    assert "steps-without-device-events" not in [found.id for found in summary.findings]
    assert "3 steps" in summary.metrics["busy"].source
    api = node.trace.api
    assert len(api) == 6
    if not is_cut:
        # the tool's own Python, which has become the program, had no say
        assert sorted(
            hello.region
            for hello in node.manifest.processes
            if hello.pid == node.manifest.artifacts[0].pid
        ) == ["", "closed"]


def test_the_first_steps_and_steps_that_never_came(tmp_path: Path) -> None:
    node = Node(tmp_path / "first", "7.0", roctx=True)
    assert (
        node.run(
            "--profile", "rocprofv3", "--capture", "steps=0:2", "--quiet", program=STEPS
        ).returncode
        == 0
    )
    assert names(node) == ["step_0", "step_0", "step_1", "step_1"]
    assert node.findings == []
    late = Node(tmp_path / "late", "7.0", roctx=True)
    assert (
        late.run(
            "--profile", "rocprofv3", "--capture", "steps=50:60", "--quiet", program=STEPS
        ).returncode
        == 0
    )
    assert late.findings == ["empty-trace"]
    assert (
        "its window never opened: --capture steps=50:60, and the program had 8 steps"
        in late.manifest.findings[0].message
    )


def test_counters_are_counted_in_the_steps_only(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0", roctx=True)
    done = node.run(
        "--profile",
        "rocprofv3",
        "--pmc",
        "SQ_WAVES",
        "--yes",
        "--capture",
        "steps=3:6",
        "--quiet",
        program=STEPS,
    )
    assert done.returncode == 0, done.stderr
    trace = node.trace
    assert {trace.sources[int(source)].pass_name for source in trace.counters.source} == {
        "rocprofv3-pmc1"
    }
    assert len(trace.counters) == 6


@pytest.mark.parametrize("release", ["7.0", *thorough("6.4")])
def test_a_period_of_time_that_the_tool_keeps_to_itself(tmp_path: Path, release: str) -> None:
    node = Node(tmp_path, release)
    done = node.run(
        "--profile",
        "rocprofv3",
        "--capture",
        "for=1.5s",
        "--quiet",
        program=(*STEPS, "--step-seconds", "0.3"),
    )
    assert done.returncode == 0, done.stderr
    found = names(node)
    assert 0 < len(found) < 16
    assert found == [f"step_{number // 2}" for number in range(len(found))]
    assert node.findings == []


@pytest.mark.parametrize(
    ("release", "capture"), [("6.3", "after=0.6s,for=0.6s"), *thorough(("7.0", "after=0.6s"))]
)
def test_a_period_that_it_cannot_keep_to_is_cut_afterwards(
    tmp_path: Path, release: str, capture: str
) -> None:
    node = Node(tmp_path, release)
    done = node.run(
        "--profile",
        "rocprofv3",
        "--capture",
        capture,
        "--quiet",
        program=(*STEPS, "--step-seconds", "0.15"),
    )
    assert done.returncode == 0, done.stderr
    (raw,) = (
        readers.read(node.run_dir / artifact.path)
        for artifact in node.manifest.artifacts
        if not artifact.aside
    )
    assert len(raw.kernels) == 16
    low = (node.manifest.passes[0].start_boot_ns or 0) + 600_000_000
    inside = (raw.kernels.start_ns >= low) & (
        (raw.kernels.start_ns < low + 600_000_000) if "for=" in capture else True
    )
    assert node.trace.kernels.start_ns.tolist() == raw.kernels.start_ns[inside].tolist()
    assert node.findings[-1] == "window-cut"


def test_wrap_refuses_a_window_that_nobody_would_cut(tmp_path: Path) -> None:
    older = Node(tmp_path / "older", "6.4")
    done = older.profharness(
        "wrap", "rocprofv3", "--capture", "steps=3:6", "--", sys.executable, str(PROGRAM), *STEPS
    )
    assert done.returncode == 2
    assert "cannot record that alone" in done.stderr
    node = Node(tmp_path / "new", "7.0", roctx=True)
    done = node.profharness(
        "wrap",
        "rocprofv3",
        "--capture",
        "steps=3:6",
        "-o",
        "out",
        "--",
        sys.executable,
        str(PROGRAM),
        *STEPS,
    )
    assert done.returncode == 0, done.stderr
    (database,) = (node.folder / "out").rglob("*_results.db")
    assert len(readers.read(database).kernels) == 6


def test_without_the_library_the_hooks_say_why_nothing_was_recorded(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    assert (
        node.run(
            "--profile",
            "rocprofv3",
            "--capture",
            "steps=3:6",
            "--quiet",
            program=STEPS,
            ROCM_PATH=str(tmp_path),
        ).returncode
        == 0
    )
    assert "empty-trace" in node.findings
    told = next(found for found in node.manifest.findings if found.id == "empty-trace")
    assert "no library with roctxProfilerResume could be loaded" in told.message


@pytest.mark.parametrize("release", ["7.0", *thorough("6.2", "6.4")])
def test_ranges_by_our_names_are_steps_and_ranges(tmp_path: Path, release: str) -> None:
    node = Node(tmp_path, release, roctx=True)
    assert (
        node.run(
            "--profile", "rocprofv3", "--quiet", program=(*STEPS, "--range", 'load "x"')
        ).returncode
        == 0
    )
    found = marked(node, "rocprofv3")
    assert ("range", 'load "x"') in found
    assert [label for kind, label in found if kind == "step"] == [
        f"profharness.step:{step}" for step in range(1, 8)
    ]


def test_a_working_directory_that_will_not_do_for_temporary_files(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    node.folder = Path("/")
    done = node.run("--profile", "rocprofv3", "--quiet")
    assert done.returncode == 0, done.stderr
    assert node.findings == []
    assert node.kernels()[1] == 5
    assert len(list((node.run_dir / "control" / "spill").glob("*/*"))) == 1
    bare = subprocess.run(
        [
            node.bin / "rocprofv3",
            "--kernel-trace",
            "-d",
            tmp_path / "out",
            "--",
            sys.executable,
            str(PROGRAM),
        ],
        cwd="/",
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": ""},
    )
    assert "mmap failed with errno 22" in bare.stderr  # what it is there against
