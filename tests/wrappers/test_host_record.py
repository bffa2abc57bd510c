"""The record of Python's work, in real processes without a framework: what it says, and that the
program behind it goes on as without it.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from profharness.readers.own.host import SHORT_COUNT, read
from profharness.trace.columns.stacks import Frame, frames_of
from profharness.trace.model import Trace

from .running import Ran, Runner

BEGIN = """
import gc, os, sys, threading, time
from profharness_hooks import host_record, process, step_log
hooked = process.process()
steps = step_log.recorder(hooked)
host_record.attach(hooked, steps)
def step():
    steps.mark(None)
def busy(seconds):
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        sum(range(100))
"""


def run(runner: Runner, text: str, **variables: str) -> Ran:
    ran = runner.run(
        runner.script(BEGIN + text),
        PROFHARNESS_LAYERS="torch",
        PROFHARNESS_PASS="torch",
        **variables,
    )
    assert (ran.status, ran.err) == (0, "")
    assert all(hello["messages"] == [] for hello in ran.hellos)
    return ran


def record(ran: Ran, pid: int = 0) -> Trace:
    (path,) = [one for one in ran.files("host") if one.name == f"host-{pid or ran.pid}.jsonl"]
    trace = read(path)
    assert not trace.problems
    return trace


def frames(trace: Trace) -> list[tuple[Frame, ...]]:
    return [frames_of(text) for text in trace.strings.decode(trace.host_samples.stack)]


def test_collections_of_the_program_are_spans_on_its_clock(runner: Runner) -> None:
    ran = run(
        runner,
        """
step()
kept = [[] for _ in range(200_000)]
gc.disable()
clock = time.clock_gettime_ns
for _ in range(3):
    before = clock(time.CLOCK_BOOTTIME)
    gc.collect()
    print(before, clock(time.CLOCK_BOOTTIME))
for _ in range(100):
    gc.collect(0)
print(threading.get_native_id())
""",
    )
    *bounds, thread = ran.out.split("\n")[:-1]
    trace = record(ran)
    assert trace.sources[0].pass_name == "torch"
    marks = trace.marks
    full = marks.take(marks.name == trace.strings.find("garbage collection, generation 2"))
    ends = [tuple(map(int, line.split())) for line in bounds]
    for before, after in ends:
        inside = (full.start_ns >= before) & (full.start_ns + full.dur_ns <= after)
        assert int(inside.sum()) == 1
    assert set(marks.tid.tolist()) == {int(thread)}
    assert int(dict(trace.sources[0].details)[SHORT_COUNT]) + len(marks) >= 103


@pytest.mark.slow
def test_samples_name_the_line_and_how_long_the_thread_ran(runner: Runner) -> None:
    ran = run(
        runner,
        """
def works():
    busy(0.5)
def waits():
    time.sleep(0.5)
step()
works()
waits()
print(threading.get_native_id())
""",
        PROFHARNESS_HOST_SAMPLES="100",
    )
    trace = record(ran)
    samples, stacks = trace.host_samples, frames(trace)
    assert set(samples.tid.tolist()) == {int(ran.out)}
    assert (samples.delay_ns >= 0).all()
    named = [{frame.function for frame in stack} for stack in stacks]
    waiting = [at for at, names in enumerate(named) if "waits" in names]
    working = [at for at, names in enumerate(named) if "works" in names]
    assert len(waiting) > 10
    assert len(working) > 5
    spent = samples.cpu_ns[waiting[-1]] - samples.cpu_ns[waiting[0]]
    assert spent < 0.2 * (samples.at_ns[waiting[-1]] - samples.at_ns[waiting[0]])
    assert samples.cpu_ns[working[-1]] > samples.cpu_ns[working[0]]
    program = str(runner.folder / "program.py")
    assert {stack[-1].file for stack in stacks} == {program}
    assert {stacks[at][0].line for at in waiting} == {BEGIN.count("\n") + 5}
    assert not any("profharness_hooks" in frame.file for stack in stacks for frame in stack)


def test_the_thread_that_steps_is_the_one_to_look_at(runner: Runner) -> None:
    ran = run(
        runner,
        """
def train():
    step()
    print(threading.get_native_id(), flush=True)
    busy(0.5)
step()
thread = threading.Thread(target=train)
thread.start()
thread.join()
busy(0.3)
""",
        PROFHARNESS_HOST_SAMPLES="200",
    )
    assert int(ran.out) in set(record(ran).host_samples.tid.tolist())


def test_off_means_no_samples_and_no_thread(runner: Runner) -> None:
    ran = run(
        runner,
        """
step()
print(len(os.listdir("/proc/self/task")))
gc.collect()
""",
        PROFHARNESS_HOST_SAMPLES="off",
    )
    assert ran.out == "1\n"
    trace = record(ran)
    assert not len(trace.host_samples)


def test_without_a_step_nothing_is_written_and_no_thread_begins(runner: Runner) -> None:
    ran = run(runner, 'gc.collect()\nprint(len(os.listdir("/proc/self/task")))\n')
    assert ran.out == "1\n"
    assert ran.files("host") == []


def test_the_program_sees_no_other_thread(runner: Runner) -> None:
    ran = run(runner, "step()\nbusy(0.1)\nprint(threading.active_count(), threading.enumerate())\n")
    assert ran.out.startswith("1 [<_MainThread")


@pytest.mark.slow
def test_a_fork_is_no_fork_of_a_program_with_threads(runner: Runner) -> None:
    """Pythons that warn of it count the threads of the process at that moment."""
    ran = run(
        runner,
        """
counted = []
step()
os.register_at_fork(after_in_child=lambda: counted.append(len(os.listdir("/proc/self/task"))))
for _ in range(20):
    child = os.fork()
    if not child:
        os._exit(0 if counted == [1] else 1)
    assert os.waitpid(child, 0)[1] == 0
    busy(0.01)
busy(0.2)
print("ended")
""",
        PROFHARNESS_HOST_SAMPLES="200",
    )
    assert ran.out == "ended\n"
    assert len(ran.files("host")) == 1
    assert len(record(ran).host_samples) > 5


def test_a_forked_child_that_steps_has_a_record_of_its_own(runner: Runner) -> None:
    ran = run(
        runner,
        """
step()
child = os.fork()
if not child:
    step()
    gc.collect()
    busy(0.3)
    sys.exit(0)
print(child, os.waitpid(child, 0)[1])
""",
        PROFHARNESS_HOST_SAMPLES="200",
    )
    child, status = map(int, ran.out.split())
    assert status == 0
    trace = record(ran, child)
    assert len(trace.host_samples)
    assert set(trace.host_samples.tid.tolist()) == {child}


@pytest.mark.parametrize(
    "end",
    [
        "os._exit(0)",
        "sys.exit(0)",
        "threading.Thread(target=busy, args=(0.2,)).start()",
        "threading.Thread(target=busy, args=(9,), daemon=True).start()",
    ],
)
def test_no_end_of_the_program_waits_for_it(runner: Runner, end: str) -> None:
    run(runner, f"step()\nbusy(0.05)\n{end}\n", PROFHARNESS_HOST_SAMPLES="1000")


@pytest.mark.slow
def test_what_was_written_before_a_kill_is_readable(runner: Runner) -> None:
    ran = runner.run(
        runner.script(BEGIN + "step()\nbusy(1.0)\nos.kill(os.getpid(), 9)\n"),
        PROFHARNESS_LAYERS="torch",
    )
    assert ran.status == -9
    (path,) = ran.files("host")
    trace = read(path)
    assert len(trace.host_samples) > 3
    assert not trace.problems


@pytest.mark.slow
def test_a_folder_that_cannot_be_written_is_told_once_and_ends_nothing(runner: Runner) -> None:
    (runner.folder / "artifacts").mkdir()
    (runner.folder / "artifacts" / "host").write_text("in the way")
    ran = runner.run(
        runner.script(BEGIN + "step()\nbusy(1.2)\nstep()\nprint('ended')\n"),
        PROFHARNESS_LAYERS="torch",
    )
    assert (ran.status, ran.out) == (0, "ended\n")
    assert [text for text in ran.hello["messages"] if "Python's work" in text]


def test_stacks_are_bounded_and_ours_are_left_out(runner: Runner) -> None:
    ran = run(
        runner,
        """
from profharness_hooks.line_sampler import Names
names = Names()
def deep(count):
    return deep(count - 1) if count else names.stack(sys._getframe())
number = deep(150)
import json
print(json.dumps(names.take()))
""",
    )
    lines: list[dict[str, Any]] = json.loads(ran.out)
    assert sum("stack" in line for line in lines) == 60
    assert sum("file" in line for line in lines) == 1


def test_it_slows_down_where_it_takes_too_much(tmp_path: Path) -> None:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "wrappers" / "hooks"))
    try:
        from profharness_hooks.line_sampler import DUTY, LineSampler, Rates
    finally:
        sys.path.pop(0)
    sampler = LineSampler(Rates(50.0, 200.0), lambda: None, lambda: None)
    usual = sum(sampler._period_ns() for _ in range(100)) / 100
    assert usual == pytest.approx(20e6, rel=0.02)
    sampler._keep_cheap(10 * DUTY)
    slow = sum(sampler._period_ns() for _ in range(100)) / 100
    assert slow == pytest.approx(200e6, rel=0.02)
    for _ in range(20):
        sampler._keep_cheap(0.0)
    assert sum(sampler._period_ns() for _ in range(100)) / 100 == pytest.approx(usual, rel=0.02)
    sampler.written(9 << 20)
    assert sum(sampler._period_ns() for _ in range(100)) / 100 == pytest.approx(40e6, rel=0.02)
