"""`profharness attach` with real processes: a stand-in target that counts on, and stand-in tools.

After each of them the target still runs and has got no signal, whatever became of the tool.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from profharness.measure.attached.target import look, tracer_of
from profharness.understand import report_run as understand
from tests import started
from tests.fakes.stand_in_node import Node
from tests.processes import gone
from tests.variants import thorough

pytestmark = pytest.mark.slow  # every test is a run of real processes, of seconds

PROGRAM = Path(__file__).resolve().parents[1] / "fakes" / "stand_in_target.py"


class Running:
    """A target that runs: what it launched, and what reached it."""

    def __init__(self, process: subprocess.Popen[bytes], log: Path) -> None:
        self.process, self.log = process, log

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def launches(self) -> list[int]:
        return [int(line) for line in self.log.read_text().split("\n")[:-1] if line.isdigit()]

    def goes_on(self) -> bool:
        """Whether it launches more, and no signal has reached it."""
        before, until = len(self.launches), time.monotonic() + 20
        while len(self.launches) < before + 3 and time.monotonic() < until:
            time.sleep(0.005)
        return len(self.launches) >= before + 3 and "signal" not in self.log.read_text()


@contextmanager
def running(folder: Path, *, attachable: bool = True) -> Iterator[Running]:
    log = folder / "launches"
    variables = {"STAND_IN_TARGET_LOG": str(log)}
    if attachable:
        variables["ROCP_TOOL_ATTACH"] = "1"
    process = subprocess.Popen([sys.executable, str(PROGRAM)], env={**os.environ, **variables})
    target = Running(process, log)
    while not log.exists():
        assert process.poll() is None
        time.sleep(0.005)
    try:
        if not look(target.pid).reachable:
            pytest.skip("this kernel lets no program trace another one")
        yield target
    finally:
        log.with_name(log.name + ".stop").touch()
        process.wait(20)


def gaps(times: list[int]) -> list[int]:
    """From each to the next, so that the clock's zero does not matter."""
    return [later - earlier for earlier, later in pairwise(times)]


@pytest.mark.parametrize(
    ("release", "layer", "kind"),
    [
        ("10.0", "rocprofv3", "rocpd"),
        *thorough(("7.1", "rocprofv3", "rocpd")),  # its file comes behind the tool's end
        ("7.12", "rocprof-sys", "pftrace"),
    ],
)
def test_a_running_process_is_recorded_and_goes_on(
    tmp_path: Path, release: str, layer: str, kind: str
) -> None:
    node = Node(tmp_path, release)
    with running(tmp_path) as target:
        done = node.profharness(
            *("attach", str(target.pid), "--profile", layer, "--for", "300ms", "--hip-trace"),
            *("--telemetry", "off", "-o", str(node.run_dir)),
        )
        assert done.returncode == 0, done.stderr
        assert target.goes_on()
        assert f"({target.pid}) goes on\n" in done.stderr
        read = [one for one in node.manifest.artifacts if not one.aside]
        assert [(one.format, one.pid) for one in read] == [(kind, target.pid)]
        assert (node.manifest.state, node.findings) == ("done", [])
        trace = understand.load([node.run_dir]).trace
        recorded, own = gaps(trace.kernels.start_ns.tolist()), gaps(target.launches)
    calls = len(recorded) + 1
    assert calls > 20  # a launch each 5 ms or so
    # every launch of the time between attaching and letting go, and no other
    found = [at for at in range(len(own)) if own[at : at + len(recorded)] == recorded]
    assert len(found) == 1
    assert found[0] > 0
    assert (node.run_dir / "report.html").is_file()
    assert node.manifest.attached == target.pid
    assert "verhead not measured (the process ran already)" in " ".join(done.stdout.split())
    (record,) = node.manifest.passes
    assert record.start_boot_ns is not None
    assert record.end_boot_ns is not None
    assert 0.3e9 <= record.end_boot_ns - record.start_boot_ns < 5e9
    assert node.kernels() == (layer, calls, 20_000 * calls)


def test_telemetry_attaches_to_everything(tmp_path: Path) -> None:
    node = Node(tmp_path, "6.2")
    with running(tmp_path, attachable=False) as target:
        done = node.profharness(
            *("attach", str(target.pid), "--for", "600ms", "--telemetry-hz", "50"),
            *("--telemetry", "cpu", "-o", str(node.run_dir)),
        )
        assert done.returncode == 0, done.stderr
        assert target.goes_on()
    assert [record.name for record in node.manifest.passes] == ["bare"]
    trace = understand.load([node.run_dir]).trace
    assert len(trace.samples) > 0


@pytest.mark.parametrize(
    ("mode", "layer", "finding"),
    [
        ("crash", "rocprofv3", "profiler-failed"),
        ("hang", "rocprofv3", "profiler-hung"),
        *thorough(
            ("silent", "rocprofv3", "profiler-failed"), ("hang", "rocprof-sys", "profiler-hung")
        ),
    ],
)
def test_the_target_goes_on_when_the_tool_fails(
    tmp_path: Path, mode: str, layer: str, finding: str
) -> None:
    node = Node(tmp_path, "10.0")
    with running(tmp_path) as target:
        done = node.profharness(
            *("attach", str(target.pid), "--profile", layer, "--for", "100ms"),
            *("--exit-limit", "0.5" if mode == "hang" else "60", "--telemetry", "off"),
            *("-o", str(node.run_dir)),
            STAND_IN_ATTACH=mode,
        )
        assert target.goes_on()
    assert done.returncode == 3, done.stderr
    assert f"error: {layer} recorded nothing of" in done.stderr
    assert ("was killed by" in done.stderr) == (mode != "silent")
    assert finding in node.findings
    assert node.manifest.state == "done"


def test_a_tool_that_hangs_while_it_holds_the_target_is_left_alone(tmp_path: Path) -> None:
    """To kill it in the midst of a ptrace call might crash the program."""
    node = Node(tmp_path, "10.0")
    with running(tmp_path) as target:
        done = node.profharness(
            *("attach", str(target.pid), "--profile", "rocprofv3", "--for", "100ms", "--quiet"),
            *("--exit-limit", "0.5", "--telemetry", "off", "-o", str(node.run_dir)),
            STAND_IN_ATTACH="hold",
        )
        assert target.goes_on()
        (told,) = [one.message for one in node.manifest.findings if one.id == "profiler-hung"]
        assert "it was left alone" in told
        tool = int(told.rpartition("(process ")[2].rstrip(")"))
        assert tracer_of(target.pid) == tool
        os.kill(tool, signal.SIGKILL)
        assert target.goes_on()
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("number", "layer"),
    [(signal.SIGINT, "rocprofv3"), *thorough((signal.SIGTERM, "rocprof-sys"))],
)
def test_a_signal_ends_the_recording_and_nothing_else(
    tmp_path: Path, number: signal.Signals, layer: str
) -> None:
    node = Node(tmp_path, "10.0")
    with running(tmp_path) as target:
        argv = [sys.executable, "-m", "profharness", "attach", str(target.pid), "--profile", layer]
        argv += ["--for", "10min", "--telemetry", "off", "--quiet", "-o", str(node.run_dir)]
        path = f"{node.bin}:{os.environ['PATH']}"
        with started.python(
            argv, started.COMMAND_LINE, cwd=tmp_path, env={**os.environ, "PATH": path}
        ) as process:
            tool = _tool_of(process.pid, target)
            process.send_signal(number)
            _, said = process.communicate(timeout=60)
        assert process.returncode == 128 + number, said
        assert target.goes_on()
        assert gone(tool)
    assert node.manifest.state == "interrupted"
    assert [one.pid for one in node.manifest.artifacts if not one.aside] == [target.pid]


def _tool_of(pid: int, target: Running) -> int:
    """The tool below profharness, once it has had time to record something."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        for child in children:
            words = Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0")
            if str(target.pid).encode() in words and b"tests.fakes.stand_in_tools" in words:
                seen = len(target.launches)
                while len(target.launches) < seen + 100 and time.monotonic() < until:
                    time.sleep(0.01)
                return int(child)
        time.sleep(0.01)
    raise AssertionError("the tool never started")


def test_a_process_that_ends_meanwhile(tmp_path: Path) -> None:
    node = Node(tmp_path, "10.0")
    with running(tmp_path) as target:
        argv = [sys.executable, "-m", "profharness", "attach", str(target.pid)]
        argv += ["--profile", "rocprof-sys", "--for", "10min", "--telemetry", "off", "--quiet"]
        path = f"{node.bin}:{os.environ['PATH']}"
        with started.python(
            [*argv, "-o", str(node.run_dir)],
            started.COMMAND_LINE,
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
        ) as process:
            _tool_of(process.pid, target)
            target.log.with_name(target.log.name + ".stop").touch()
            target.process.wait(20)
            _, said = process.communicate(timeout=60)
    assert "has ended meanwhile" in said
    assert node.manifest.state == "done"


def test_it_is_made_attachable_by_run(tmp_path: Path) -> None:
    node = Node(tmp_path, "10.0")
    done = node.profharness("run", "--attachable", "--dry-run", "--", sys.executable, str(PROGRAM))
    assert "env     ROCP_TOOL_ATTACH=1\n" in done.stdout
    scan = node.profharness("run", "particlenet", "--attachable", "--dry-run")
    assert scan.returncode == 2
    assert "--attachable" in scan.stderr


def test_what_speaks_against_it_is_said_before_anything_starts(tmp_path: Path) -> None:
    node = Node(tmp_path, "7.0")
    with running(tmp_path, attachable=False) as target:
        words = ("attach", str(target.pid), "--profile", "rocprofv3", "-o", str(node.run_dir))
        old = node.profharness(*words)
        assert (old.returncode, node.run_dir.exists()) == (3, False)
        assert "the rocprofv3 here (of ROCm 7.0) cannot attach" in old.stderr
        newer = Node(tmp_path / "newer", "10.0")
        refused = newer.profharness(*words)
        assert (refused.returncode, node.run_dir.exists()) == (3, False)
        assert "was started without ROCP_TOOL_ATTACH=1" in refused.stderr
        assert "profharness run --attachable" in refused.stderr
        planned = newer.profharness(*words, "--dry-run")
        assert planned.returncode == 0
        assert f"--pid {target.pid} --attach-duration-msec 30000" in planned.stdout
        assert "refused python" in planned.stdout
        assert not node.run_dir.exists()


def test_a_second_attachment_with_other_traces_is_refused_by_the_tool(tmp_path: Path) -> None:
    node = Node(tmp_path, "10.0")
    with running(tmp_path) as target:
        memory = Path(f"/tmp/rocprofv3_attach_{target.pid}.pkl")
        words = ("attach", str(target.pid), "--profile", "rocprofv3", "--for", "50ms", "--quiet")
        words += ("--telemetry", "off", "-o")
        try:
            first = node.profharness(*words, "first", "--hip-trace", STAND_IN_ATTACH="remember")
            second = node.profharness(*words, "second", STAND_IN_ATTACH="remember")
        finally:
            memory.unlink(missing_ok=True)
        assert target.goes_on()
    assert first.returncode == 0, first.stderr
    assert second.returncode == 3
    assert "was attached to python" in second.stderr  # beforehand, as a note
    assert "takes no other traces or counters; ask for the same ones" in second.stderr
