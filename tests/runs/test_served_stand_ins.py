"""Whole served scans through the command line, with stand-ins in place of the model server and the
load generator.
"""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from profharness.analysis.curves.records import Series
from profharness.analysis.records import Summary
from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from profharness.scans.contract import key_of
from profharness.serving import kserve
from profharness.understand import report_run as understand
from tests import started
from tests.processes import gone
from tests.variants import thorough

RUNNER = Path(__file__).parent.parent / "fakes" / "stand_in_run.py"
SEARCH = ("saturation", "--model", "sleep:20ms", "--telemetry", "off", "--quiet", "--time", "5")


def profharness(*words: str, cwd: Path, **does: object) -> subprocess.CompletedProcess[str]:
    environment = {
        **os.environ,
        "OMP_NUM_THREADS": "1",
        "STAND_IN": json.dumps(does),
        "PROFHARNESS_CACHE": str(cwd / "cache"),
    }
    argv = [sys.executable, str(RUNNER), *words]
    return started.finished(argv, started.COMMAND_LINE, cwd=cwd, env=environment, timeout=280)


def read(root: Path) -> tuple[Manifest, Summary]:
    loaded = understand.load([root])
    assert loaded.manifest is not None
    return loaded.manifest, understand.summarise(loaded)


def keys(manifest: Manifest, pass_name: str = "bare") -> list[str]:
    return [key_of(record) for record in manifest.points if record.pass_name == pass_name]


def curve(summary: Summary) -> Series:
    (series,) = summary.series
    return series


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("search")
    done = profharness("run", *SEARCH, "-o", "run", cwd=folder, service_ms=20, instances=6)
    assert done.returncode == 0, done.stderr
    return folder / "run"


@pytest.mark.slow
def test_knee_and_maximum_of_a_known_server_are_found_within_5_percent(search: Path) -> None:
    manifest, summary = read(search)
    series = curve(summary)
    assert series.knee is not None
    assert series.knee.n == pytest.approx(6, rel=0.05)
    assert max(series.throughput) == pytest.approx(6 / 0.020, rel=0.05)
    assert series.jobs_per_device == 5
    assert {5, 6, 7} <= {int(level) for level in series.levels}
    rates = [point.rate for point in summary.points if point.rate is not None]
    assert rates == pytest.approx([share * 300 for share in (0.7, 0.8, 0.9, 1.0)], rel=0.05)
    assert manifest.state == "done"
    assert not (search / "points" / "bare" / "sleep-b1-c4" / "requests-0.i64").exists(), (
        "raw requests became a table"
    )
    assert (search / "points" / "bare" / "sleep-b1-c4" / "requests.parquet").exists()


@pytest.mark.slow
def test_requests_stand_in_the_merged_trace_with_their_levels(search: Path) -> None:
    loaded = understand.load([search])
    trace = loaded.trace
    assert loaded.manifest is not None
    measured = set(keys(loaded.manifest))
    assert {source.clock.value for source in trace.sources} == {"run"}
    points = {trace.sources[position].point for position in trace.requests.source}
    assert points == measured
    windows = trace.marks.take(trace.marks.kind == trace.strings.find("point"))
    assert set(trace.strings.decode(windows.point)) == measured
    assert (trace.requests.done_ns >= trace.requests.sent_ns).all()


@pytest.mark.slow
def test_the_reports_say_what_the_scan_found(search: Path) -> None:
    done = profharness("report", str(search), cwd=search.parent)
    assert done.returncode == 0, done.stderr
    assert "The knee is at 6" in done.stdout.replace("\n        ", " ")
    assert "210/s" in done.stdout
    page = (search / "report.html").read_text()
    assert "Open loop" in page
    saturation = profharness(
        "saturation", str(search), "--jobs", "23", "--latency-limit", "p99=25ms", cwd=search.parent
    )
    assert "5 jobs per device" in saturation.stdout
    assert re.search(r"devices +5 \([45] to [56]\) for 23 jobs", saturation.stdout)
    assert "within p99 25 ms  concurrency 6: 300 items/s" in saturation.stdout
    assert "CPU cores of the server" in saturation.stdout
    assert "over the network" in saturation.stdout
    answer = json.loads(profharness("report", str(search), "--json", cwd=search.parent).stdout)
    first, opened = (
        answer["points"][0],
        next(point for point in answer["points"] if point["mode"] == "open"),
    )
    assert (first["concurrency"], first["batch_size"], first["failed"]) == (1, 1, 0)
    assert first["throughput"] == pytest.approx(50, rel=0.05)
    assert first["latency_ms"] == pytest.approx(20, rel=0.01)
    assert "trials" not in first
    assert opened["rate"] == pytest.approx(210, rel=0.05)
    assert "concurrency" not in opened


@pytest.mark.slow
def test_an_error_storm_ends_the_scan_by_itself_with_findings(tmp_path: Path) -> None:
    done = profharness(
        "run", *SEARCH, "-o", "run", cwd=tmp_path, service_ms=20, instances=6, storm_from=5
    )
    assert done.returncode == 0, done.stderr
    _, summary = read(tmp_path / "run")
    errors = [one for one in summary.findings if one.id == "errors"]
    assert {one.point for one in errors} == {
        f"sleep-b1-c{level}"
        for level in (5, 6, 8)
        if any(point.concurrency == level for point in summary.points)
    }
    assert all(one.severity == "error" for one in errors)
    assert max(point.concurrency or 0 for point in summary.points) == 8
    series = curve(summary)
    assert series.recommended is not None
    assert series.recommended.at <= 4, "a level of errors is not recommended"


@pytest.mark.slow
@pytest.mark.parametrize(
    "key",
    ["sleep-b1-c8", "sleep-b1-r140", *thorough("sleep-b1-c1", "sleep-b1-c3", "sleep-b1-c4~1")],
)
def test_a_run_killed_at_any_level_goes_on_at_that_level(tmp_path: Path, key: str) -> None:
    killed = profharness(
        "run", *SEARCH, "-o", "run", cwd=tmp_path, instances=4, kill_harness_at=key
    )
    assert killed.returncode == -9
    before = RunDir(tmp_path / "run").read_manifest()
    assert key not in keys(before)
    report = profharness("report", "run", cwd=tmp_path)
    assert report.returncode == 0, report.stderr
    assert "killed" in report.stdout
    done = profharness(
        "run", "saturation", "--resume", "-o", "run", "--quiet", cwd=tmp_path, instances=4
    )
    assert done.returncode == 0, done.stderr
    manifest, summary = read(tmp_path / "run")
    assert keys(manifest)[: len(keys(before))] == keys(before), "what was measured stays"
    assert keys(manifest)[len(keys(before))] == key, "the level under way is measured again"
    assert len(set(keys(manifest))) == len(keys(manifest))
    assert manifest.state == "done"
    assert not any(one.id == "run-incomplete" for one in summary.findings)
    knee = curve(summary).knee
    assert knee is not None
    assert knee.n == pytest.approx(4, rel=0.05)


@pytest.mark.slow
def test_a_fixed_sweep_goes_on_too_and_disagreeing_options_are_refused(tmp_path: Path) -> None:
    sweep = (
        "--via",
        "triton",
        "--model",
        "sleep:20ms",
        "--concurrency",
        "1,2,4",
        "--telemetry",
        "off",
        "--quiet",
    )
    assert (
        profharness(
            "run", *sweep, "-o", "run", cwd=tmp_path, kill_harness_at="sleep-b1-c4"
        ).returncode
        == -9
    )
    refused = profharness(
        "run", "--resume", "--via", "triton", "--concurrency", "1,2", "-o", "run", cwd=tmp_path
    )
    assert refused.returncode == 2
    assert "was begun with concurrency (1, 2, 4)" in refused.stderr
    kept = len(RunDir(tmp_path / "run").read_manifest().points)
    done = profharness("run", "--resume", *sweep[:-1], "-o", "run", cwd=tmp_path)  # without --quiet
    assert done.returncode == 0, done.stderr
    assert f"resume  {kept} measured point" in done.stderr
    assert keys(RunDir(tmp_path / "run").read_manifest()) == [
        "sleep-b1-c1",
        "sleep-b1-c2",
        "sleep-b1-c4",
        "sleep-b1-c1~1",
        "sleep-b1-c4~1",
    ]
    again = profharness("run", "--resume", "-o", "run", cwd=tmp_path)
    assert again.returncode == 0
    assert "nothing is missing" in again.stderr
    for words, said in (
        (("--resume",), "--output"),
        (("--resume", "-o", "nowhere"), "no such run directory"),
    ):
        wrong = profharness("run", *words, cwd=tmp_path)
        assert wrong.returncode != 0
        assert said in wrong.stderr


@pytest.mark.slow
def test_a_server_that_dies_costs_one_level_and_is_started_again(tmp_path: Path) -> None:
    done = profharness(
        "run",
        "--via",
        "triton",
        "--model",
        "sleep:20ms",
        "--concurrency",
        "1,2,4",
        "--telemetry",
        "off",
        "--quiet",
        "-o",
        "run",
        cwd=tmp_path,
        server_dies_at="sleep-b1-c2",
        slow_s=1,
    )
    assert done.returncode == 1
    manifest, summary = read(tmp_path / "run")
    states = {key_of(record): (record.state, record.error) for record in manifest.points}
    assert states["sleep-b1-c2"] == (
        "failed",
        "the server was killed by SIGSEGV: Segmentation fault in the model",
    )
    assert [state for key, (state, _) in states.items() if key != "sleep-b1-c2"] == ["ok"] * 4
    assert manifest.passes[0].executions == 2
    assert any(
        one.id == "point-failed" and "Segmentation fault" in one.message for one in summary.findings
    )


@pytest.mark.slow
def test_a_server_that_refuses_ends_the_run_in_its_own_words(tmp_path: Path) -> None:
    done = profharness(
        "run",
        "--via",
        "triton",
        "--model",
        "sleep:20ms",
        "--telemetry",
        "off",
        "-o",
        "run",
        cwd=tmp_path,
        refuse=3,
    )
    assert done.returncode == 3
    assert "error: no such device here" in done.stderr
    assert "use --device cpu" in done.stderr


@pytest.mark.slow
def test_several_targets_have_servers_of_their_own_and_the_best_is_named(tmp_path: Path) -> None:
    (tmp_path / "s.toml").write_text(
        'via = "triton"\nmodel = "sleep:20ms,sleep:40ms"\nconcurrency = [1, 2, 4]\n'
        'batch_sizes = [1, 2]\ntelemetry = "off"\n'
    )
    done = profharness("run", "s.toml", "--quiet", "-o", "run", cwd=tmp_path, instances=2)
    assert done.returncode == 0, done.stderr
    manifest, summary = read(tmp_path / "run")
    assert manifest.passes[0].executions == 2
    assert {(one.key["backend"], one.key["batch_size"]) for one in summary.series} == {
        (f"sleep@sleep_{time}ms", batch) for time in (20, 40) for batch in "12"
    }
    said = profharness("saturation", "run", cwd=tmp_path).stdout
    assert "best at batch 1: sleep@sleep_" in said
    assert "best at batch 2: sleep@sleep_" in said


@pytest.mark.slow
def test_several_models_on_one_device_are_compared_with_a_device_each(tmp_path: Path) -> None:
    """Each device answers 50/s: alone each model has one, together they share the first, spread
    each has its own again.
    """
    done = profharness(
        "run",
        "--via",
        "triton",
        "--model",
        "sleep:10ms,sleep:20ms",
        "--together",
        "--device",
        "cuda:0,cuda:1",
        "--concurrency",
        "1,2",
        "--telemetry",
        "off",
        "-o",
        "run",
        cwd=tmp_path,
        service_ms=20,
        instances=1,
    )
    assert done.returncode == 0, done.stderr
    _, summary = read(tmp_path / "run")
    totals = {(level.spread, level.concurrency): level.total.value for level in summary.sharing}
    assert totals == {
        (spread, level): pytest.approx(100 if spread else 50, rel=0.02)
        for spread in (False, True)
        for level in (1, 2)
    }
    slowdowns = {
        (level.spread, one.target): one.slowdown.value
        for level in summary.sharing
        for one in level.models
        if level.concurrency == 2
    }
    assert slowdowns == {
        (spread, f"sleep@sleep_{time}ms"): pytest.approx(1 if spread else 2, rel=0.03)
        for spread in (False, True)
        for time in (10, 20)
    }
    assert {one.key["backend"] for one in summary.series} == {
        "sleep@sleep_10ms",
        "sleep@sleep_20ms",
    }
    said = " ".join(done.stdout.split())
    assert "Together the 2 models give" in said
    assert "On a device each they give" in said
    assert "2, one device" in said
    assert "2, one each" in said


def test_a_dry_run_shows_server_and_load_generator_and_writes_nothing(tmp_path: Path) -> None:
    done = profharness(
        "run",
        "--via",
        "triton",
        "--profile",
        "torch",
        "--concurrency",
        "1,2",
        "--dry-run",
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert "stand_in_server.py" in done.stdout
    assert "stand_in_client.py" in done.stdout
    assert list(tmp_path.iterdir()) == []
    searching = profharness("run", *SEARCH, "--dry-run", cwd=tmp_path)
    assert searching.returncode == 0, searching.stderr


def test_a_server_of_anothers_ends_with_a_harness_that_is_killed(tmp_path: Path) -> None:
    pid, stand_in = (
        tmp_path / "pid",
        Path(__file__).parent.parent / "fakes" / "stand_in_foreign_server.py",
    )
    # it is never ready, so the harness waits for it
    server = (
        f"{sys.executable} -c \"import os, runpy, sys; open('{pid}', "
        "'w').write(str(os.getpid())); sys.argv = ['x', '0', '--after', '900']; "
        f"runpy.run_path('{stand_in}', run_name='__main__')\""
    )
    words = (
        "run",
        "--server-command",
        server,
        "--ready",
        "http://127.0.0.1:9/health",
        "--model",
        "m",
        "--telemetry",
        "off",
        "-o",
        "run",
    )
    harness = subprocess.Popen(
        [sys.executable, str(RUNNER), *words],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={
            **os.environ,
            "STAND_IN": "{}",
            "PYTHONPATH": str(RUNNER.parents[2]),
            "PROFHARNESS_CACHE": str(tmp_path / "cache"),
        },
    )
    try:
        _until(lambda: pid.exists() and pid.read_text() != "")
        served = pid.read_text()
        assert not gone(served)
        harness.kill()
        harness.wait()
        _until(lambda: gone(served))
    finally:
        harness.kill()
        harness.wait()


def _until(true: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not true():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.slow
def test_a_server_elsewhere_is_measured_as_a_client_and_no_idle_cores_are_told(
    tmp_path: Path,
) -> None:
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    elsewhere = subprocess.Popen(
        [
            sys.executable,
            str(Path(__file__).parent.parent / "fakes" / "stand_in_foreign_server.py"),
            str(port),
        ]
    )
    try:
        _until(lambda: kserve.answers(f"http://127.0.0.1:{port}/health"))
        done = profharness(
            "run",
            "--url",
            f"http://127.0.0.1:{port}",
            "--model",
            "tagger",
            "--concurrency",
            "1,2",
            "--time",
            "1",
            "--telemetry",
            "cpu",
            "--quiet",
            "-o",
            "run",
            cwd=tmp_path,
            service_ms=20,
            instances=2,
        )
    finally:
        elsewhere.kill()
        elsewhere.wait()
    assert done.returncode == 0, done.stderr
    manifest, summary = read(tmp_path / "run")
    assert manifest.passes[0].executions == 1, "the load generator alone"
    assert [point.throughput is not None for point in summary.points] == [True, True]
    assert any(row.metric == "cpu_node" for row in summary.telemetry), "this node was sampled"
    assert not any(
        "cores_used" in point.metrics and point.metrics["cores_used"].value is not None
        for point in summary.points
    ), "none of its processes was"
