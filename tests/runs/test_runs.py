"""Whole runs through real processes: the command line, real torch and onnxruntime workers, hooks,
sampler, report.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profharness.analysis.records import Summary
from profharness.readers.perfetto.check import check_file
from profharness.rundir.paths import RunDir
from profharness.understand import report_run as understand
from tests import bare_markers, started

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("runs")]
QUICK = ("--trials", "4", "--min-seconds", "0", "--threads", "1")
ENV = {**os.environ, "OMP_NUM_THREADS": "1"}
TRAIN = """
import sys, torch
torch.manual_seed(0)
model = torch.nn.Linear(16, 4)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(int(sys.argv[1])):
    optimizer.zero_grad()
    model(torch.randn(8, 16)).square().mean().backward()
    optimizer.step()
print("trained", flush=True)
sys.stderr.write("to stderr\\n")
sys.exit(int(sys.argv[2]))
"""


def profharness(
    *words: str, cwd: Path, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    return started.run(*words, cwd=cwd, env=env or ENV, timeout=300)


@pytest.fixture(scope="session")
def cache(model_cache: Path) -> dict[str, str]:
    """Exports of the built-in model are shared by all runs."""
    return {**ENV, "PROFHARNESS_CACHE": str(model_cache)}


@pytest.fixture(scope="session")
def scan(tmp_path_factory: pytest.TempPathFactory, cache: dict[str, str]) -> tuple[Path, Summary]:
    root = tmp_path_factory.mktemp("scan") / "run"
    done = profharness(
        "run",
        "particlenet",
        "--batch-sizes",
        "1,2",
        *QUICK,
        "--profile",
        "torch,onnxruntime",
        "--profile-trials",
        "3",
        "-o",
        str(root),
        cwd=root.parent,
        env=cache,
    )
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout
    assert "Answer" in done.stdout
    loaded = understand.load([root])
    return root, understand.summarise(loaded)


def test_every_point_has_throughput_and_each_layer_its_overhead(scan: tuple[Path, Summary]) -> None:
    _, summary = scan
    assert [point.point for point in summary.points] == [
        "torch-b1",
        "torch-b2",
        "onnxruntime-b1",
        "onnxruntime-b2",
    ]
    for point in summary.points:
        assert point.throughput is not None
        assert point.throughput > 0
        assert list(point.overhead) == [point.backend]
        assert point.metrics["throughput"].unit == "jets/s"
    assert [record.name for record in summary.passes] == ["bare", "torch", "onnxruntime"]


def test_the_sources_line_up(scan: tuple[Path, Summary]) -> None:
    """Marker self-check: at most 1 µs for torch, 2 µs for onnxruntime (as far as the machine can);
    every source is on the run's clock.
    """
    _, summary = scan
    assert all(source.clock == "run" for source in summary.sources)
    bounds = {
        layer: [s.bound_ns for s in summary.sources if s.layer == layer]
        for layer in ("torch", "onnxruntime")
    }
    widest = {
        "torch": bare_markers.widest_torch(bare_markers.measured(bare_markers.TORCH)),
        "onnxruntime": bare_markers.widest_onnxruntime(
            bare_markers.measured(bare_markers.ONNXRUNTIME)
        ),
    }
    assert all(
        bound is not None and bound <= widest[layer]
        for layer, known in bounds.items()
        for bound in known
    ), (bounds, widest)
    assert bounds["torch"]
    assert bounds["onnxruntime"]
    assert not any(found.id.startswith("clock-") for found in summary.findings)


def test_the_merged_trace_is_sound_and_holds_what_was_recorded(scan: tuple[Path, Summary]) -> None:
    root, _ = scan
    check = check_file(root / "merged.pftrace")
    assert check.faults == ()
    trace = understand.load([root]).trace
    kinds = {trace.strings[code] for code in trace.marks.kind}
    assert {"trial", "warmup", "point"} <= kinds
    assert len(trace.ops) > 100
    assert {"cpu_tree", "memory_tree", "throughput"} <= {
        trace.strings[code] for code in trace.samples.metric
    }


def test_trials_of_the_bare_pass_stand_inside_their_pass(scan: tuple[Path, Summary]) -> None:
    root, _ = scan
    manifest = RunDir(root).read_manifest()
    trace = understand.load([root]).trace
    for number, source in enumerate(trace.sources):
        if source.layer == "trials":
            record = manifest.pass_named(source.pass_name)
            own = trace.marks.take(trace.marks.source == number)
            assert record is not None
            assert record.start_boot_ns is not None
            assert record.end_boot_ns is not None
            assert record.start_boot_ns <= own.start_ns.min()
            assert (own.start_ns + own.dur_ns).max() <= record.end_boot_ns


def test_products_are_complete_and_machine_readable(scan: tuple[Path, Summary]) -> None:
    root, _ = scan
    assert {"manifest.json", "merged.pftrace", "summary.json", "hotspots.csv", "report.html"} <= {
        path.name for path in root.iterdir()
    }
    assert (root / "report.html").stat().st_size < 6_000_000
    metrics = json.loads(profharness("metrics", str(root), "--json", cwd=root.parent).stdout)
    assert metrics["schema"] == 2
    assert {"source", "trace", "devices", "points", "metrics", "findings", "problems"} <= set(
        metrics
    )
    hotspots = json.loads(
        profharness("hotspots", str(root), "--format", "json", cwd=root.parent).stdout
    )
    assert hotspots["by"] == "op"
    assert sum(row["total_ns"] for row in hotspots["rows"]) == hotspots["total_ns"]
    saturation = json.loads(profharness("saturation", str(root), "--json", cwd=root.parent).stdout)
    assert len(saturation["series"]) == 2
    same = profharness(
        "compare", str(root), str(root), "--fail-on", "throughput<-1%", cwd=root.parent
    )
    assert same.returncode == 0, same.stderr
    again = profharness("merge", str(root), cwd=root.parent)
    assert again.returncode == 2
    assert "--force" in again.stderr
    overlaid = profharness("merge", str(root), "--overlay", "-o", "o.pftrace.gz", cwd=root.parent)
    assert overlaid.returncode == 0, overlaid.stderr


def test_a_failing_point_costs_itself_only_and_json_stays_pure(
    tmp_path: Path, cache: dict[str, str]
) -> None:
    """A batch that no memory can hold fails; the scan goes on and exits 1."""
    done = profharness(
        "run",
        "--json",
        "--batch-sizes",
        "1,400000000",
        *QUICK,
        "-o",
        "run",
        cwd=tmp_path,
        env=cache,
    )
    assert done.returncode == 1, done.stderr
    answer = json.loads(done.stdout)
    small, large = answer["points"]
    assert small["throughput"] > 0
    assert large["state"] == "failed"
    assert "throughput" not in large
    assert any(found["id"] == "point-failed" for found in answer["findings"])


def test_a_scan_file_and_isolate(tmp_path: Path, cache: dict[str, str]) -> None:
    (tmp_path / "nightly.toml").write_text(
        "batch_sizes = [1]\ntrials = 3\nmin_seconds = 0\nthreads = 1\nisolate = true\n"
        'inputs = "hep"\nbackend = "onnxruntime"\n'
    )
    done = profharness("run", "nightly.toml", "-o", "run", "--quiet", cwd=tmp_path, env=cache)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    manifest = RunDir(tmp_path / "run").read_manifest()
    assert manifest.scan is not None
    assert manifest.scan.name == "nightly"
    assert manifest.passes[0].executions == 2
    assert len({point.pid for point in manifest.points}) == 2


def test_a_dry_run_writes_nothing_and_shows_every_command(tmp_path: Path) -> None:
    done = profharness(
        "run", "--dry-run", "--profile", "torch,onnxruntime", "--batch-sizes", "1,4", cwd=tmp_path
    )
    assert done.returncode == 0
    assert list(tmp_path.iterdir()) == []
    for words in (
        "pass bare",
        "pass torch",
        "batch/torch_worker.py",
        "batch/onnxruntime_worker.py",
        "PROFHARNESS_LAYERS=torch",
        "executions",
    ):
        assert words in done.stdout
    command = profharness(
        "run", "--dry-run", "--profile", "torch", "--", "python", "train.py", "-x", cwd=tmp_path
    )
    assert "python train.py -x" in command.stdout
    assert "PYTHONPATH=" in command.stdout


@pytest.mark.thorough  # test_served_stand_ins.py and test_taken_up_runs.py have killed scans
def test_a_run_that_is_killed_at_any_moment_can_still_be_read(
    tmp_path: Path, cache: dict[str, str]
) -> None:
    root = tmp_path / "run"
    process = subprocess.Popen(
        [
            sys.executable,
            "-m",
            "profharness",
            "run",
            "--batch-sizes",
            "1,2,4",
            "--trials",
            "5",
            "--min-seconds",
            "0.5",
            "--profile",
            "torch",
            "--threads",
            "1",
            "-o",
            str(root),
        ],
        env=cache,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        process_group=0,
    )
    deadline = time.monotonic() + 120
    while (
        time.monotonic() < deadline
        and not (root / "points" / "bare" / "torch-b1" / "trials.csv").exists()
    ):
        assert process.poll() is None
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert RunDir(root).read_manifest().state == "running"
    report = profharness("report", str(root), cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    merged = profharness("merge", str(root), "-o", "m.pftrace", cwd=tmp_path)
    assert merged.returncode == 0, merged.stderr
    assert check_file(tmp_path / "m.pftrace").faults == ()
    summary = json.loads((root / "summary.json").read_text())
    assert any(point.get("throughput") for point in summary["points"])


def test_a_command_is_passed_on_untouched_and_its_steps_are_found(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    done = profharness(
        "run",
        "--profile",
        "torch",
        "-o",
        "run",
        "--",
        sys.executable,
        "train.py",
        "40",
        "7",
        cwd=tmp_path,
    )
    assert done.returncode == 7, done.stderr
    assert done.stdout.startswith("trained\n")
    assert "to stderr\n" in done.stderr
    loaded = understand.load([tmp_path / "run"])
    trace = loaded.trace
    steps = trace.marks.take(trace.marks.kind == trace.strings.find("step"))
    formats = {trace.sources[source].format for source in steps.source}
    assert {"steps", "kineto"} <= formats
    assert len(steps.take([trace.sources[s].format == "steps" for s in steps.source])) == 39
    assert loaded.manifest is not None
    assert [hello.frameworks.get("torch", "")[:1] for hello in loaded.manifest.processes] == ["2"]
    assert loaded.manifest.exit_status == 7
    summary = understand.summarise(loaded)
    assert not any(found.id == "hook-not-loaded" for found in summary.findings)


def test_json_of_a_command_keeps_its_output_off_stdout(tmp_path: Path) -> None:
    done = profharness(
        "run",
        "--json",
        "-o",
        "run",
        "--",
        sys.executable,
        "-c",
        "print('noise'); import sys; sys.exit(3)",
        cwd=tmp_path,
    )
    assert done.returncode == 3
    assert json.loads(done.stdout)["schema"] == 2
    assert "noise" in done.stderr


def test_a_signal_death_of_the_command_is_the_runs_status(tmp_path: Path) -> None:
    done = profharness(
        "run",
        "--quiet",
        "-o",
        "run",
        "--",
        sys.executable,
        "-c",
        "import os; os.kill(os.getpid(), 11)",
        cwd=tmp_path,
    )
    assert done.returncode == 128 + 11


def test_ranks_join_one_run_directory(tmp_path: Path) -> None:
    """Plain processes with torchrun's variables: one directory, each rank's own trace, the manifest
    by rank 0.
    """
    (tmp_path / "train.py").write_text(TRAIN)
    shared = {
        **ENV,
        "WORLD_SIZE": "2",
        "LOCAL_WORLD_SIZE": "2",
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": "29123",
        "TORCHELASTIC_RUN_ID": "none",
        "PROFHARNESS_OUTPUT": str(tmp_path / "traces"),
    }
    ranks = [
        started.python(
            [
                sys.executable,
                "-m",
                "profharness",
                "run",
                "--quiet",
                "--profile",
                "torch",
                "--",
                sys.executable,
                "train.py",
                "30",
                str(rank),
            ],
            started.COMMAND_LINE,
            cwd=tmp_path,
            env={**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)},
        )
        for rank in (1, 0)
    ]
    ended = [(process.communicate(timeout=180)[1], process.returncode) for process in ranks]
    assert [status for _, status in ended] == [1, 0], ended
    roots = list((tmp_path / "traces").iterdir())
    assert len(roots) == 1
    loaded = understand.load(roots)
    assert loaded.manifest is not None
    assert [(o.rank, o.exit_status) for o in loaded.manifest.rank_outcomes] == [(0, 0), (1, 1)]
    torch_ranks = {source.rank for source in loaded.trace.sources if source.layer == "torch"}
    assert torch_ranks == {0, 1}
