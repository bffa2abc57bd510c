"""The real sampler process beside real workloads."""

from __future__ import annotations

import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir import clock_files, telemetry
from profharness.telemetry.files import unwritten
from profharness.telemetry.sources.host.slingshot import LEAST
from profharness.trace.model import Trace
from profharness.trace.sample_metrics import DEVICE_METRICS, SAMPLE_METRICS
from tests.telemetry.running import ROOT, Sampler, command, wait_for

# When told to, burns CPU itself, in a thread, in long-lived children and in children too short to
# be seen, waits for them, then says what all of it used meanwhile and stays until it is told to go.
BUSY_TREE = """
import os, subprocess, sys, threading, time
def burn(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end: pass
def child(seconds):
    pid = os.fork()
    if pid == 0:
        burn(seconds); os._exit(0)
    return pid
def grandchild():
    pid = os.fork()
    if pid == 0:
        os.waitpid(child(0.3), 0); burn(0.1); os._exit(0)
    return pid
def used():
    now = os.times()
    return now.user + now.system + now.children_user + now.children_system
sys.stdin.readline()
before = used()
thread = threading.Thread(target=burn, args=(0.2,)); thread.start()
pids = [child(0.3), grandchild()]
burn(0.2)
for pid in pids: os.waitpid(pid, 0)
for _ in range(40): os.waitpid(child(0.01), 0)
thread.join()
print(used() - before, flush=True)
sys.stdin.readline()
"""
IDLE = [sys.executable, "-c", "import sys; sys.stdin.readline()"]


def values(trace: Trace, metric: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Start, end and value of a metric's samples."""
    rows = trace.samples.metric == trace.strings.find(metric)
    return trace.samples.at_ns[rows], trace.samples.until_ns[rows], trace.samples.value[rows]


def recorded(trace: Trace) -> int:
    """Whole rows in the file."""
    return int(dict(trace.sources[0].details)["rows"])


@pytest.mark.slow
def test_cpu_time_of_a_busy_tree_is_what_the_tree_itself_counts(tmp_path: Path) -> None:
    with Sampler(tmp_path, hz=10) as sampler:
        sampler.ready()

        def sampled(metric: str, column: int) -> np.ndarray:
            return values(telemetry.read(sampler.file("samples.bin")), metric)[column]

        with subprocess.Popen(
            [sys.executable, "-c", BUSY_TREE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as tree:
            followed_ns = time.monotonic_ns()
            sampler.follow(tree.pid)
            wait_for(lambda: 1 in sampled("processes_tree", 2), "the sampler to follow the tree")
            go_ns = time.monotonic_ns()
            tree.stdin.write("go\n")
            tree.stdin.flush()
            used = float(tree.stdout.readline())
            looked_ns = (
                time.monotonic_ns() + 1_100_000_000
            )  # what the last short children used is taken over once per second
            wait_for(
                lambda: sampled("cpu_tree", 1).max() > looked_ns, "a look after the tree's work"
            )
            sampler.stop()
            tree.communicate("\n")
    trace = telemetry.read(sampler.file("samples.bin"))
    at, until, cores = values(trace, "cpu_tree")
    after = until > go_ns
    seen = float(np.sum((cores * (until - at))[after]) / 1e9)
    assert used > 1.3  # the script did burn: 0.2 + 0.2 + 0.3 + 0.4 + 40 x 0.01 s
    assert seen == pytest.approx(used, rel=0.04)
    assert (cores >= 0).all()
    at, _, processes = values(trace, "processes_tree")
    assert (processes[at < followed_ns] == 0).all()
    assert processes.max() >= 4
    assert processes[-1] == 1
    assert values(trace, "memory_tree")[2].max() > 5e6


@pytest.mark.slow
def test_a_process_that_ran_before_it_is_followed_brings_no_old_cpu_time(tmp_path: Path) -> None:
    script = (
        "import sys, time\nwhile time.process_time() < 0.5: pass\nprint(flush=True)\n"
        "sys.stdin.readline()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as old:
        old.stdout.readline()
        time.sleep(0.2)
        with Sampler(tmp_path, hz=20) as sampler:
            sampler.ready()
            sampler.follow(old.pid)
            time.sleep(0.5)
            sampler.stop()
        old.communicate("\n")
    trace = telemetry.read(sampler.file("samples.bin"))
    at, until, cores = values(trace, "cpu_tree")
    assert values(trace, "processes_tree")[2][-1] == 1
    assert np.sum(cores * (until - at)) / 1e9 < 0.1


def test_ready_file_names_what_is_sampled_and_why_the_rest_is_not(tmp_path: Path) -> None:
    with Sampler(tmp_path, sources=("cpu", "quantum")) as sampler:
        ready = sampler.ready()
        sampler.stop()
    assert ready["pid"] == sampler.process.pid
    sampled = {
        metric.partition(":")[0] for source in ready["sources"] for metric in source["metrics"]
    }
    missing = {entry["metric"]: entry["why"] for entry in ready["missing"]}
    known = (
        {metric.name for metric in SAMPLE_METRICS}
        - {metric.name for metric in DEVICE_METRICS}
        - {"throughput"}
    )
    known = {  # named only where there are modules, and where no octets are counted
        name for name in known if not name.startswith("power_module") and name not in LEAST
    }
    assert sampled | missing.keys() == known | {"quantum"}
    assert not sampled & missing.keys()
    assert {"cpu_tree", "cpu_node", "memory_node_used"} <= sampled
    assert all(len(why) > 10 for why in missing.values())
    trace = telemetry.read(sampler.file("samples.bin"))
    assert {p.message for p in trace.problems if "not sampled" in p.message} == {
        f"{metric} was not sampled: {why}" for metric, why in missing.items()
    }


@pytest.mark.slow
def test_kill_9_loses_at_most_the_last_second(tmp_path: Path) -> None:
    with Sampler(tmp_path, hz=50) as sampler:
        sampler.ready()
        begin = time.monotonic_ns()
        time.sleep(2.5)
        sampler.process.kill()
        killed = time.monotonic_ns()
        sampler.process.wait()
    assert not sampler.file("done.json").exists()
    at, _, _ = values(telemetry.read(sampler.file("samples.bin")), "processes_tree")
    assert at[0] < begin + 1_000_000_000
    assert (
        killed - at[-1] < 1_500_000_000
    )  # one second and what a loaded machine may add to its flush
    clocks = clock_files.read_clocks(sampler.file("clocks.jsonl"))
    assert [clock.phase for clock in clocks][:2] == ["before", "during"]


def test_a_file_cut_anywhere_behind_its_header_is_read_up_to_the_cut(tmp_path: Path) -> None:
    with Sampler(tmp_path, hz=100) as sampler:
        sampler.ready()
        time.sleep(0.3)
        sampler.stop()
    whole = sampler.file("samples.bin").read_bytes()
    header = 16 + int.from_bytes(whole[8:12], "little")
    rows = recorded(telemetry.read(sampler.file("samples.bin")))
    assert rows > 3
    width = (len(whole) - header) // rows
    cut = tmp_path / "cut.samples.bin"
    for kept in (0, 1, width - 1, width, width + 8, (rows - 1) * width + 7):
        cut.write_bytes(whole[: header + kept])
        trace = telemetry.read(cut)
        assert recorded(trace) == kept // width
        assert (len(values(trace, "processes_tree")[0]) > 0) == (kept >= width)
        assert any("cut off" in problem.message for problem in trace.problems) == bool(kept % width)


@pytest.mark.slow
def test_missed_ticks_are_skipped_and_counted(tmp_path: Path) -> None:
    hz = 50
    with Sampler(tmp_path, hz=hz) as sampler:
        sampler.ready()
        time.sleep(0.3)
        sampler.process.send_signal(signal.SIGSTOP)
        time.sleep(0.6)
        sampler.process.send_signal(signal.SIGCONT)
        time.sleep(0.4)
        done = sampler.stop()
    trace = telemetry.read(sampler.file("samples.bin"))
    at, _, _ = values(trace, "processes_tree")
    assert done["missed"] >= 0.6 * hz * 0.9
    assert recorded(trace) == done["rows"]
    # Every tick from the first to the last was either recorded or counted; the row at the end is
    # off the grid.
    assert done["rows"] - 1 + done["missed"] == pytest.approx((at[-1] - at[0]) * hz / 1e9, abs=1.5)
    assert dict(trace.sources[0].details)["missed"] == str(done["missed"])
    assert any(
        problem.count == done["missed"] and "skipped" in problem.message
        for problem in trace.problems
    )


@pytest.mark.slow
def test_rate_is_kept_over_time(tmp_path: Path) -> None:
    with Sampler(tmp_path, hz=100) as sampler:
        sampler.ready()
        time.sleep(1.5)
        done = sampler.stop()
    at, _, _ = values(telemetry.read(sampler.file("samples.bin")), "processes_tree")
    assert (at[-1] - at[0]) / 1e7 == pytest.approx(done["rows"] - 1 + done["missed"], abs=1.5)
    assert done["failed"] == []


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    spec = tmp_path / "spec.json"
    starter = (
        "import json, os, subprocess, sys\n"
        f"json.dump({{'output_dir': {str(tmp_path)!r}, 'host': 'node', 'hz': 20, 'parent_pid': "
        f"os.getpid()}}, open({str(spec)!r}, 'w'))\n"
        f"subprocess.Popen({command(spec)!r}, cwd={str(ROOT)!r}).wait()"
    )
    with subprocess.Popen([sys.executable, "-c", starter]) as parent:
        wait_for((tmp_path / "node.ready.json").exists, "the ready file")
        parent.kill()
    done = wait_for(
        lambda: (
            (tmp_path / "node.done.json").exists()
            and json.loads((tmp_path / "node.done.json").read_text())
        ),
        "its end",
    )
    assert done["reason"] == "parent gone"
    assert done["rows"] > 0


def test_it_ends_with_a_harness_that_is_not_its_direct_parent(tmp_path: Path) -> None:
    with (
        subprocess.Popen(IDLE, stdin=subprocess.PIPE) as harness,
        Sampler(tmp_path, parent_pid=harness.pid) as sampler,
    ):
        sampler.ready()
        harness.kill()
        assert sampler.process.wait(90) == 0
    assert json.loads(sampler.file("done.json").read_text())["reason"] == "parent gone"


def test_it_outlives_the_thread_that_started_it(tmp_path: Path) -> None:
    started: list[Sampler] = []
    thread = threading.Thread(target=lambda: started.append(Sampler(tmp_path)))
    thread.start()
    thread.join()
    with started[0] as sampler:
        sampler.ready()
        time.sleep(0.2)
        assert sampler.stop()["reason"] == "terminated"


def test_an_interrupt_from_the_terminal_does_not_end_it(tmp_path: Path) -> None:
    with Sampler(tmp_path) as sampler:
        sampler.ready()
        sampler.process.send_signal(signal.SIGINT)
        time.sleep(0.2)
        assert sampler.process.poll() is None
        assert sampler.stop()["reason"] == "terminated"


@pytest.mark.slow
def test_without_sources_it_reads_the_clocks_only(tmp_path: Path) -> None:
    with Sampler(tmp_path, sources=()) as sampler:
        assert sampler.ready()["sources"] == []
        time.sleep(1.3)
        assert sampler.stop()["rows"] == 0
    assert not sampler.file("samples.bin").exists()
    clocks = clock_files.read_clocks(sampler.file("clocks.jsonl"))
    phases = [clock.phase for clock in clocks]
    assert (phases[0], set(phases[1:-1]), phases[-1]) == ("before", {"during"}, "after")
    assert all(clock.host == "node" and 0 < clock.width_ns < 1_000_000 for clock in clocks)
    assert abs(clocks[0].realtime_ns - time.time_ns()) < 60e9
    for first, second in pairwise(clocks):
        passed = second.monotonic_ns - first.monotonic_ns
        assert passed > 0
        for name in ("boot_ns", "realtime_ns", "monotonic_raw_ns"):
            assert getattr(second, name) - getattr(first, name) == pytest.approx(passed, rel=1e-3)


def test_it_does_not_overwrite(tmp_path: Path) -> None:
    (tmp_path / "node.samples.bin").write_bytes(b"precious")
    with Sampler(tmp_path, stderr=subprocess.PIPE, text=True) as sampler:
        assert sampler.process.wait(90) == 1
        assert "File exists" in sampler.process.stderr.read()
    assert (tmp_path / "node.samples.bin").read_bytes() == b"precious"


def test_a_full_disk_ends_it_with_a_message(tmp_path: Path) -> None:
    limit = 20_000
    with Sampler(
        tmp_path,
        hz=1000,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    ) as sampler:
        status = sampler.process.wait(90)
        assert unwritten(status) == "File too large"
        assert "File too large" in sampler.process.stderr.read()
    trace = telemetry.read(sampler.file("samples.bin"))
    assert len(trace.samples) > 0


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ("[]", "JSON object"),
        ("{", "spec.json"),
        ('{"output_dir": "x"}', "'host'"),
        ('{"output_dir": "x", "host": "h", "hz": 0}', "'hz'"),
        ('{"output_dir": "x", "host": "h", "sources": "cpu"}', "'sources'"),
    ],
)
def test_a_wrong_specification_is_named(tmp_path: Path, spec: str, said: str) -> None:
    (tmp_path / "spec.json").write_text(spec)
    ended = subprocess.run(
        command(tmp_path / "spec.json"), cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ended.returncode == 2
    assert said in ended.stderr
    assert list(tmp_path.iterdir()) == [tmp_path / "spec.json"]


def test_it_starts_cheaply_and_without_numpy(tmp_path: Path) -> None:
    code = (
        "import sys; from profharness.telemetry import sampler; "
        "import profharness.telemetry.sources.host.family; "
        "print(len(sys.modules)); "
        "print(*sorted(m.split('.')[0] for m in sys.modules if m.split('.')[0] not in "
        "sys.stdlib_module_names))"
    )
    ended = subprocess.run(
        [sys.executable, "-S", "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    imported, modules = ended.stdout.split("\n")[:2]
    assert int(imported) < 130  # a quarter of them Python's own start
    assert set(modules.split()) <= {"profharness", "__main__"}
