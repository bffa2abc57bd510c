"""`run --live-page` through real processes: what the page says while a run is measured and after
it, and that its server is gone then, however the run ended.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from profharness.cli.livepage.reading import RunReader
from profharness.cli.livepage.state import Told
from tests import started
from tests.processes import Seen, below, gone

pytestmark = pytest.mark.slow
SCRIPT = """
import sys, time
import profharness_mark
for number in range(6):
    time.sleep(0.05 + 0.01 * int(sys.argv[1]))
    profharness_mark.step(items=int(sys.argv[1]))
"""
ADDRESS = re.compile(r"live page (http://127\.0\.0\.1:\d+/\S+/)")
PATIENCE_S = 120.0


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "toy.py"
    path.write_text(SCRIPT)
    return path


class Running:
    """A run with a live page, and who reads the page."""

    def __init__(self, folder: Path, *words: str) -> None:
        self.errors = folder / "errors"
        self.out = folder / "out"
        with self.errors.open("wb") as errors, self.out.open("wb") as out:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "profharness", "run", "--live-page", "-o", "run", *words],
                cwd=folder,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=errors,
                process_group=0,
            )
        self.address = ""
        self.parts: dict[str, str] = {}

    def wait(self, known: Callable[[], bool]) -> None:
        """Until it is known; the run may not end before."""
        end = time.monotonic() + PATIENCE_S
        while not known():
            assert time.monotonic() < end, self.errors.read_text()
            time.sleep(0.05)

    def listening(self) -> bool:
        found = ADDRESS.search(self.errors.read_text())
        self.address = found[1] if found else ""
        return bool(found)

    def look(self) -> Told:
        with urllib.request.urlopen(f"{self.address}state?c=ab", timeout=60) as answer:
            told = msgspec.json.decode(answer.read(), type=Told)
        self.parts |= {name: part.html for name, part in told.parts.items()}
        return told

    def server(self) -> Seen:
        (found,) = [one for one in below(self.process.pid) if "cli.livepage" in one.command]
        return found


@contextlib.contextmanager
def running(folder: Path, *words: str) -> Iterator[Running]:
    run = Running(folder, *words)
    try:
        run.wait(run.listening)
        yield run
    finally:
        if run.process.poll() is None:
            os.killpg(run.process.pid, signal.SIGKILL)
            run.process.wait()


def answers(address: str) -> bool:
    try:
        urllib.request.urlopen(address, timeout=60).close()
    except urllib.error.URLError:
        return False
    return True


def test_a_scan_is_shown_as_it_comes_and_its_answer_at_the_end(
    script: Path, tmp_path: Path
) -> None:
    axes = ("--scan", "batch=1,2,4", "--repeats", "2", "--telemetry", "cpu", "--json")
    with running(tmp_path, *axes, "--", "python3", str(script), "{batch}") as run:
        server = run.server()
        assert os.getpriority(os.PRIO_PROCESS, server.pid) == 19
        counts = set()
        ended = run.look()
        while not ended.ended:
            counts |= set(re.findall(r"(\d) of 6 points", run.parts["opening"]))
            if "<b>about" in run.parts["opening"]:
                basis = re.search("so far took|nothing is left to measure", run.parts["opening"])
                assert basis, "the estimate says its basis"
            time.sleep(0.2)
            ended = run.look()
        run.process.wait(PATIENCE_S)
        assert run.process.returncode == 0, run.errors.read_text()
        assert len(counts) >= 3, "the page followed the run"
        assert "cores used" in run.parts["telemetry"]
        assert not server.runs
        assert not answers(run.address)
    said = json.loads(run.out.read_text())
    assert run.parts["points"].count("<tr>") == 1 + 6
    assert "Best is" in run.parts["opening"]
    assert str(tmp_path / "run" / "report.html") in run.parts["opening"]
    assert run.parts["curve"].count("<circle") == len(said["points"]) == 3
    live = RunReader(tmp_path / "run").look()
    assert {one.point: one.throughput for one in live.curve} == {
        one["point"]: pytest.approx(one["throughput"]) for one in said["points"]
    }


def test_the_points_of_a_direct_scan_are_those_of_the_report(
    tmp_path: Path, model_cache: Path
) -> None:
    done = started.run(
        *("run", "particlenet", "--batch-sizes", "1,2", "--trials", "5", "--min-seconds", "0"),
        *("--threads", "1", "--live-page", "--json", "-o", "run"),
        cwd=tmp_path,
        env={**os.environ, "OMP_NUM_THREADS": "1", "PROFHARNESS_CACHE": str(model_cache)},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert ADDRESS.search(done.stderr)
    live = RunReader(tmp_path / "run").look()
    assert live.unit == "jets/s"
    said = {one["point"]: one for one in json.loads(done.stdout)["points"]}
    for point in live.curve:
        assert point.throughput == pytest.approx(said[point.point]["throughput"])
        # while a run goes on only the trials' own scatter is known; the report holds drift too
        assert 0 < point.throughput_sem <= said[point.point]["throughput_sem"] * (1 + 1e-9)
        assert point.latency_ms == pytest.approx(said[point.point]["latency_ms"])
    assert len(live.curve) == len(said) == 2
    assert live.done == live.planned == len(live.points)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_no_server_outlives_a_run_that_is_stopped(
    script: Path, tmp_path: Path, number: signal.Signals
) -> None:
    axes = ("--scan", "batch=1..40:1", "--telemetry", "off")
    with running(tmp_path, *axes, "--", "python3", str(script), "{batch}") as run:
        run.look()  # a page is open, which does not ask again
        run.wait(lambda: "1 of" in (run.look(), run.parts["opening"])[1])
        server = run.server()
        os.kill(run.process.pid, number)
        run.process.wait(PATIENCE_S)
        run.wait(lambda: gone(server.pid))
        assert not answers(run.address)


def test_a_command_has_a_page_too_and_keeps_its_exit_status(tmp_path: Path) -> None:
    (tmp_path / "go").unlink(missing_ok=True)
    waits = "import pathlib, sys, time\nwhile not pathlib.Path('go').exists(): time.sleep(.02)\n"
    words = ("--telemetry", "off", "--", sys.executable, "-c", f"{waits}sys.exit(3)")
    with running(tmp_path, *words) as run:
        run.wait(lambda: "the command, without layers" in (run.look(), run.parts["opening"])[1])
        assert "not known" in run.parts["opening"]
        (tmp_path / "go").touch()
        run.wait(lambda: run.look().ended)
        assert run.process.wait(PATIENCE_S) == 3


def test_a_plan_starts_no_server(script: Path, tmp_path: Path) -> None:
    words = ("--scan", "batch=1,2", "--dry-run", "--live-page", "--", "python3", str(script))
    done = started.run("run", *words, "{batch}", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "http://" not in done.stdout + done.stderr
    assert not (tmp_path / "traces").exists()


def test_a_scan_file_may_ask_for_it_and_a_run_that_goes_on_may_ask_anew(
    script: Path, tmp_path: Path
) -> None:
    file = tmp_path / "scan.toml"
    file.write_text(
        f'live_page = true\ntelemetry = "off"\nrepeats = 1\ncommand = ["python3", "{script}", '
        '"{batch}"]\n[axes]\nbatch = ["1", "2"]\n'
    )
    done = started.run("run", str(file), "-o", "run", "--quiet", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert ADDRESS.search(done.stderr)
    again = started.run("run", "--resume", "-o", "run", "--quiet", cwd=tmp_path)
    assert again.returncode == 0, again.stderr
    assert not ADDRESS.search(again.stderr)
    shown = started.run("run", "--resume", "-o", "run", "--live-page", "--quiet", cwd=tmp_path)
    assert shown.returncode == 0, shown.stderr
    assert ADDRESS.search(shown.stderr)
