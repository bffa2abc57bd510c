"""Runs under stand-ins of AMD's tools, through real processes: exit codes, findings and a run
directory that can be read.

The stand-ins accept exactly the options of one ROCm release and leave files in its formats
(tests/fakes/stand_in_tools.py).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.understand import report_run as understand
from tests import started
from tests.fakes.stand_in_node import PROGRAM, Node
from tests.variants import thorough

pytestmark = pytest.mark.slow  # every test is a run of real processes, of seconds


@pytest.mark.parametrize(
    ("release", "layer", "flags"),
    [
        ("6.2", "rocprofv3", ("--hip-trace",)),
        ("7.0", "rocprofv3", ("--hip-trace",)),
        ("6.4", "rocprof", ("--sys-trace",)),
        ("7.0", "rocprof-sys", ("--rocprof-sys-mode", "python")),
        *thorough(
            ("6.3", "rocprofv3", ("--hip-trace", "--stats")),
            ("6.4", "rocprofv3", ("--sys-trace",)),
            ("5.7", "rocprof", ()),
            ("6.2", "rocprof-sys", ()),
        ),
        ("10.1", "rocprof-sys", ("--rocprof-sys-output", "both")),
        ("10.2", "rocprof-sys", ("--rocprof-sys-output", "rocpd")),
    ],
)
def test_a_script_under_each_tracer(
    tmp_path: Path, release: str, layer: str, flags: tuple[str, ...]
) -> None:
    node = Node(tmp_path, release)
    done = node.run(
        "--profile",
        layer,
        *flags,
        "--quiet",
        program=("--kernels", "6", "--exit", "4", "a b", "$HOME"),
    )
    assert done.returncode == 4, done.stderr
    assert "program: a b $HOME" in done.stdout
    assert [found for found in node.manifest.findings if found.severity == "error"] == []
    (record,) = node.manifest.passes
    assert (record.name, record.exit_status, record.state) == (layer, 4, "done")
    read = [artifact for artifact in node.manifest.artifacts if not artifact.aside]
    assert len(read) == 1, read
    assert node.kernels() == (layer, 6, 120_000)
    assert (node.run_dir / "report.html").is_file()


def test_amd_log_keeps_both_logs(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.run("--profile", "amd-log", "--quiet", program=("--miopen",))
    assert done.returncode == 0, done.stderr
    assert "MIOpen(HIP): Command" in done.stderr
    assert "not of MIOpen" in done.stderr
    assert {artifact.format for artifact in node.manifest.artifacts} == {"amd-log", "miopen-log"}
    errors = [
        found.id
        for found in understand.summarise(understand.load([node.run_dir])).findings
        if found.severity == "error"
    ]
    assert errors == []  # a log of the host's side lacks no kernels
    stamped = next(node.run_dir.glob("artifacts/amd-log/*/*/*/miopen-*.log")).read_text()
    assert stamped.startswith("@")
    assert stamped.count("\n") == 1


@pytest.mark.parametrize(
    ("release", "layer"), [("6.2", "rocprofv3"), *thorough(("6.1", "rocprof"))]
)
def test_counters_run_in_passes_of_their_own(tmp_path: Path, release: str, layer: str) -> None:
    node = Node(tmp_path, release)
    refused = node.run("--profile", layer, "--pmc", "FETCH_SIZE WRITE_SIZE")
    assert refused.returncode == 2
    assert "3 passes" in refused.stderr
    assert not node.run_dir.exists()
    done = node.run(
        "--profile", layer, "--pmc", "FETCH_SIZE WRITE_SIZE", "--passes", "3", "--quiet"
    )
    assert done.returncode == 0, done.stderr
    assert [
        (record.name, record.counters, record.perturbing) for record in node.manifest.passes
    ] == [
        (layer, (), False),
        (f"{layer}-pmc1", ("FETCH_SIZE",), True),
        (f"{layer}-pmc2", ("WRITE_SIZE",), True),
    ]
    assert {artifact.pass_name for artifact in node.manifest.artifacts if not artifact.aside} == {
        layer,
        f"{layer}-pmc1",
        f"{layer}-pmc2",
    }
    assert node.kernels()[0] == layer


def test_a_tool_that_came_later_is_missing_with_the_way_out(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.1")
    done = node.run("--profile", "rocprofv3")
    assert done.returncode == 3
    assert done.stderr.splitlines() == [
        "error: rocprofv3 is not on this node (it came with ROCm 6.2; here is ROCm 6.1.1)",
        (
            "  use --profile rocprof (kernel statistics) or --profile torch; "
            "`profharness doctor --try` shows what works here"
        ),
    ]
    assert not node.run_dir.exists()
    planned = node.run("--profile", "rocprofv3", "--dry-run")
    assert planned.returncode == 0
    assert "planned for ROCm 10.2, the newest known" in planned.stdout


@pytest.mark.parametrize(
    ("release", "layer"), [("6.3", "rocprofv3"), *thorough(("6.3", "rocprof"))]
)
def test_an_option_that_the_tool_refuses_is_its_failure(
    tmp_path: Path, release: str, layer: str
) -> None:
    node = Node(tmp_path, release)
    done = node.run("--profile", layer, "--tool-arg", f"{layer}:--bogus", "--quiet")
    assert done.returncode == 3
    assert "program:" not in done.stdout
    assert node.findings[0] == "profiler-failed"
    assert "did not start the workload" in node.manifest.findings[0].message


def test_a_crash_of_the_workload_is_the_workloads(tmp_path: Path) -> None:
    for release, layer in (("7.0", "rocprofv3"), ("6.1", "rocprof")):
        (tmp_path / release).mkdir()
        node = Node(tmp_path / release, release)
        done = node.run("--profile", layer, "--quiet", program=("--crash",))
        assert done.returncode == 139, done.stderr
        assert node.manifest.exit_status == 139
        assert node.findings == ["profiler-failed"]
        assert "the workload was killed by SIGSEGV" in node.manifest.findings[0].message


def test_a_crash_of_the_profiler_is_not(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.run("--profile", "rocprofv3", "--quiet", STAND_IN_FINALIZE="abort")
    assert done.returncode == 0, done.stderr
    assert node.findings == ["profiler-changed-exit"]
    assert (
        "rocprofv3 was killed by SIGABRT, but the workload had ended by itself"
        in node.manifest.findings[0].message
    )
    assert node.kernels()[1] == 5


def test_post_processing_that_fails_is_the_profilers(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.1")
    done = node.run(
        "--profile", "rocprof", "--quiet", program=("--exit", "6"), STAND_IN_CORRUPT="1"
    )
    assert done.returncode == 6
    assert node.findings[:2] == ["profiler-changed-exit", "profiler-failed"]
    assert "rocprof exited 1, but the workload itself exited 6" in node.manifest.findings[0].message


@pytest.mark.parametrize(
    ("release", "layer"), [("7.0", "rocprofv3"), *thorough(("6.1", "rocprof"))]
)
def test_a_hang_at_exit_ends_after_the_limit_and_keeps_the_files(
    tmp_path: Path, release: str, layer: str
) -> None:
    node = Node(tmp_path, release)
    done = node.run("--profile", layer, "--quiet", "--exit-limit", "2", STAND_IN_FINALIZE="hang")
    assert done.returncode == 0, done.stderr
    assert node.findings[0] == "profiler-hung"
    assert node.manifest.state == "done"
    if layer == "rocprofv3":  # the other tool makes its files after the end that never came
        assert node.kernels()[1] == 5


def test_a_tool_that_records_nothing(tmp_path: Path) -> None:
    for number, (program, variables, expected) in enumerate(
        [
            ((), {"STAND_IN_FINALIZE": "silent"}, "profiler-failed"),
            (("--kernels", "0"), {}, "empty-trace"),
        ]
    ):
        (tmp_path / str(number)).mkdir()
        node = Node(tmp_path / str(number), "6.3")
        done = node.run("--profile", "rocprofv3", "--quiet", program=program, **variables)
        assert done.returncode == 0
        assert node.findings == [expected]
        assert (node.run_dir / "report.html").is_file()


def test_a_child_process_writes_its_own_files(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    assert node.run("--profile", "rocprofv3", "--quiet", program=("--child",)).returncode == 0
    assert node.findings == []
    assert len({artifact.pid for artifact in node.manifest.artifacts}) == 2
    assert node.kernels()[1] == 5


def test_a_worker_that_lost_the_tracer_is_noticed(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.3")
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules" / "tensorflow.py").write_text("__version__ = '2.16'\n")
    done = node.run(
        "--profile",
        "rocprofv3",
        "--quiet",
        program=("--stripped-child",),
        PYTHONPATH=str(tmp_path / "modules"),
    )
    assert done.returncode == 0
    assert node.findings == ["launcher-traced"]


def test_counters_that_the_device_lacks(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    done = node.run(
        "--profile",
        "rocprofv3",
        "--tool-arg",
        "rocprofv3:--pmc",
        "--tool-arg",
        "rocprofv3:NOT_A_COUNTER",
        "--quiet",
    )
    assert done.returncode == 0
    assert node.findings == ["counters-refused"]


def test_wrap_makes_no_run_around_it(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    words = (
        "wrap",
        "rocprofv3",
        "--hip-trace",
        "-o",
        "out",
        "--",
        sys.executable,
        str(PROGRAM),
        "--exit",
        "3",
    )
    done = node.profharness(*words)
    assert done.returncode == 3, done.stderr
    (database,) = (tmp_path / "out").rglob("*_results.db")
    assert str(database.relative_to(tmp_path)) in done.stderr
    assert not list((tmp_path / "out").rglob("manifest.json"))
    assert node.profharness(*words).returncode == 3
    assert len(list((tmp_path / "out").rglob("*_results.db"))) == 2
    planned = node.profharness("wrap", "rocprofv3", "--dry-run", "--", "python", "t.py")
    assert planned.stdout.splitlines()[-1].endswith("-- python t.py")
    assert node.profharness("wrap", "rocprofv3").returncode == 2
    too_many = node.profharness(
        "wrap", "rocprofv3", "--pmc", "FETCH_SIZE,WRITE_SIZE", "--", "python", "t.py"
    )
    assert too_many.returncode == 2
    assert "2 executions" in too_many.stderr


def test_a_job_script_profiles_chosen_ranks_only(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    script = Path(__file__).parents[2] / "wrappers" / "slurm" / "rocprofv3.sh"
    harness = tmp_path / "profharness"
    harness.write_text(f'#!/bin/sh\nexec {sys.executable} -m profharness "$@"\n')
    harness.chmod(0o755)
    for rank in ("0", "1"):
        done = subprocess.run(
            [str(script), sys.executable, str(PROGRAM)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={
                **os.environ,
                "PATH": f"{node.bin}:{os.environ['PATH']}",
                "PROFHARNESS": str(harness),
                "PROFHARNESS_WRAP_RANKS": "1,3",
                "SLURM_PROCID": rank,
                "PROFHARNESS_WRAP_OUTPUT": str(tmp_path / "out"),
            },
        )
        assert (done.returncode, "program:" in done.stdout) == (0, True), done.stderr
        assert len(list((tmp_path / "out").rglob("*_results.db"))) == int(rank)


def test_a_dry_run_needs_nothing_and_writes_nothing(tmp_path: Path) -> None:
    words = (
        "run",
        "--profile",
        "onnxruntime,rocprofv3,rocprof-compute",
        "--pmc",
        "occupancy",
        "--yes",
        "--hip-trace",
        "--dry-run",
        "--",
        "python",
        "train.py",
    )
    done = started.run(*words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = [line.strip() for line in done.stdout.splitlines()]
    # one of the three is rocprof-compute's, which starts the command 12 to 20 times
    assert lines[1] == "executions      3, in which the command runs 14 to 22 times"
    assert "pass onnxruntime+rocprofv3   layers: rocprofv3, onnxruntime (outermost first)" in lines
    assert (
        sum(line.startswith("argv") and line.endswith("-- python train.py") for line in lines) == 3
    )
    assert any(
        line.startswith(
            "argv    rocprofv3 --kernel-trace --memory-copy-trace --pmc OccupancyPercent "
            "MeanOccupancyPerCU SIMD_UTILIZATION --output-format rocpd"
        )
        for line in lines
    )
    assert any(line.startswith("then    rocprof-compute analyze") for line in lines)
    assert "note    rocprofv3 is not on this node: planned for ROCm 10.2, the newest known" in lines
    assert any(
        line.startswith("# no AMD device is seen here: counters and passes are planned for gfx942")
        for line in lines
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_scan_under_a_tool_that_hides_the_workers_status(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.4")
    done = node.scan("--profile", "rocprof")
    assert done.returncode == 0, done.stderr
    assert [(record.name, record.state, record.exit_status) for record in node.manifest.passes] == [
        ("bare", "done", 0),
        ("rocprof", "done", 0),
    ]
    assert {(point.pass_name, point.state) for point in node.manifest.points} == {
        ("bare", "ok"),
        ("rocprof", "ok"),
    }
    assert node.findings == []
    assert (node.run_dir / "control" / "rocprof" / "status").is_dir()


def test_doctor_says_which_tools_are_ready_and_that_no_device_is_there(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    lines = [
        line.split(maxsplit=3)
        for line in node.profharness("doctor", COLUMNS="300").stdout.splitlines()
        if line.startswith("layer")
    ]
    told = {words[1]: (words[2], words[3]) for words in lines}
    assert told["rocprofv3"] == (
        "ready",
        "1.0.0: it is here, but no AMD device is seen: the amdgpu driver is not loaded",
    )
    assert "no AMD device" not in told["torch"][1]
    assert told["rocprof"][0] == "ready"


def test_calls_and_kernels_of_rocprof_are_linked_by_its_arrows(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.1")
    done = node.run("--profile", "rocprof", "--hip-trace")
    assert done.returncode == 0, done.stderr
    assert "launches-missing" not in done.stdout
    assert "Try --hip-trace" not in done.stdout
    assert "The GPU computes" in done.stdout  # by its kernels, though the probe saw none here


def test_a_killed_program_leaves_the_cache_of_rocprof_sys_only(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.11")
    done = node.run("--profile", "rocprof-sys", "--quiet", program=("--crash",))
    assert done.returncode == 139, done.stderr
    (found,) = (found for found in node.manifest.findings if found.id == "profiler-failed")
    assert "was killed by SIGSEGV; rocprof-sys 1.4 and newer make their files" in found.message
    assert "--tool-arg rocprof-sys:--trace-legacy" in found.message
