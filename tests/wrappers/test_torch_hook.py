"""The torch hook in real training and inference scripts. A process that imports torch takes
seconds, so they are few.
"""

from __future__ import annotations

import ast
import json
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests import bare_markers, needs
from tests.variants import thorough

from .running import WRAPPERS, Ran, Runner, sidecar_of

needs.packages("torch")
pytestmark = pytest.mark.slow

TRAIN = """
import sys, torch
model = torch.nn.Linear(8, 8)
first, second = torch.optim.SGD(model.parameters(), lr=.1), torch.optim.Adam(model.parameters())
schedule = torch.optim.lr_scheduler.StepLR(first, 3)
def train(steps, accumulate=2):
    for i in range(steps):
        for _ in range(accumulate):
            model(torch.randn(4, 8)).sum().backward()
        first.step(); second.step(); schedule.step(); first.zero_grad()
"""

BARE = bare_markers.TORCH + "assert not torch.autograd._profiler_enabled()\n" + bare_markers.NOTE


def spans(path: Path, prefix: str) -> list[dict[str, Any]]:
    return sorted(
        (
            event
            for event in json.loads(path.read_text())["traceEvents"]
            if event["ph"] == "X" and event["name"].startswith(prefix)
        ),
        key=lambda event: event["ts"],
    )


def run(runner: Runner, text: str, capture: str = "", **variables: str) -> Ran:
    return runner.run(
        runner.script(text),
        PROFHARNESS_LAYERS="torch",
        **({"PROFHARNESS_CAPTURE": capture} if capture else {}),
        **variables,
    )


def clock_offset_ns() -> tuple[int, int]:
    """REALTIME - MONOTONIC from the tightest of many bracketed readings, and half the width of its
    bracket.
    """
    best = min(
        (
            (after - before, real - (before + after) // 2)
            for before, real, after in (
                (time.monotonic_ns(), time.time_ns(), time.monotonic_ns()) for _ in range(3000)
            )
        )
    )
    return best[1], best[0] // 2 + 1


def marker_bounds(events: list[tuple[int, int]], markers: list[list[int]]) -> tuple[int, int]:
    """The interval of trace clock less ours that all markers allow: [max(end - after), min(start -
    before)].
    """
    assert len(events) == len(markers)
    return (
        max(end - after for (_, end), (_, after) in zip(events, markers, strict=True)),
        min(start - before for (start, _), (before, _) in zip(events, markers, strict=True)),
    )


def torch_markers(path: Path) -> list[tuple[int, int]]:
    document = json.loads(path.read_text(), parse_float=str)
    found = {}
    for event in document["traceEvents"]:
        if event["name"].startswith("profharness.marker:"):
            start, duration = (
                round(float("0." + text.partition(".")[2]) * 1000)
                + int(text.partition(".")[0]) * 1000
                for text in (str(event["ts"]), str(event["dur"]))
            )
            found[int(event["name"].rpartition(":")[2])] = (
                document["baseTimeNanoseconds"] + start,
                document["baseTimeNanoseconds"] + start + duration,
            )
    return [found[index] for index in sorted(found)]


@pytest.fixture(scope="module")
def trained(shared_runner: Callable[[str], Runner]) -> Ran:
    """Forty steps under the default capture, and an exception at the end; before it, twice, what a
    marker takes while nothing records.
    """
    offset = clock_offset_ns()
    ran = run(
        shared_runner("trained"),
        TRAIN
        + f"torch.set_num_threads(2); bare = {BARE!r}; train(30); exec(bare); train(10)\n"
        + "print('trained'); exec(bare)\nraise ValueError('at the end')",
        PROFHARNESS_RANK="2",
    )
    ran.extra["offset"] = offset
    return ran


def test_default_capture_is_twenty_steps_after_warm_up(trained: Ran) -> None:
    (path,) = trained.files("torch")
    assert [event["name"] for event in spans(path, "profharness.step:")] == [
        f"profharness.step:{n}" for n in range(5, 25)
    ]
    assert sidecar_of(path)["window"] == {
        "kind": "steps",
        "first_step": 5,
        "steps": 20,
        "truncated": False,
        "reason": "",
    }
    inside = spans(path, "Optimizer.step#SGD")
    assert len(inside) == 20
    for event, step in zip(inside, spans(path, "profharness.step:"), strict=True):
        assert step["ts"] <= event["ts"]
        assert event["ts"] + event["dur"] <= step["ts"] + step["dur"]


def test_the_programs_own_ending_is_untouched(trained: Ran) -> None:
    assert trained.status == 1
    assert trained.out == "trained\n"
    assert trained.err == (
        f'Traceback (most recent call last):\n  File "{trained.folder}/program.py", '
        "line 13, in <module>\n    raise ValueError('at the end')\nValueError: at the end\n"
    )


def test_every_step_is_logged_once(trained: Ran) -> None:
    steps = trained.steps()
    assert [(step["n"], step["items"], step["source"]) for step in steps] == [
        (n, None, "optimizer") for n in range(40)
    ]
    stamps = [step["monotonic_ns"] for step in steps]
    assert stamps == sorted(stamps)
    (path,) = trained.files("torch")
    offset, _ = trained.extra["offset"]
    base = json.loads(path.read_text())["baseTimeNanoseconds"]
    for event in spans(path, "profharness.step:"):
        end = base + round((event["ts"] + event["dur"]) * 1000) - offset
        assert abs(end - stamps[int(event["name"].rpartition(":")[2])]) < 50_000_000


def test_sidecar_and_hello_name_the_process(trained: Ran) -> None:
    (path,) = trained.files("torch")
    sidecar, hello = sidecar_of(path), trained.hello
    assert path.parent.name == "2"
    assert path.name == f"trace-{trained.pid}.json"
    assert {
        name: sidecar[name]
        for name in ("v", "file", "tool", "pid", "rank", "point", "clock", "start_ns", "role")
    } == {
        "v": 1,
        "file": path.name,
        "tool": "torch",
        "pid": trained.pid,
        "rank": 2,
        "point": "",
        "clock": "realtime",
        "start_ns": None,
        "role": "trace",
    }
    assert sidecar["threads"]["intra_op"] == 2  # the program's own word, after the variable's
    assert sidecar["threads"]["variables"]["OMP_NUM_THREADS"] == "1"
    assert hello["hooks"] == ["sitecustomize", "torch"]
    assert hello["frameworks"]["torch"].startswith("2")
    assert (hello["window"], hello["windows"]) == ("exported", [path.name])
    (told,) = hello["messages"]  # the program ends by an exception of its own
    assert re.fullmatch(r"the program ended by ValueError \(program\.py:\d+\)", told)


def test_markers_bound_the_clock_to_a_microsecond(trained: Ran) -> None:
    (path,) = trained.files("torch")
    low, high = marker_bounds(torch_markers(path), sidecar_of(path)["markers"])
    offset, width = trained.extra["offset"]
    assert len(sidecar_of(path)["markers"]) == 100
    assert 0 <= high - low <= bare_markers.widest_torch(bare_markers.noted(trained.folder))
    assert (
        low - width - 1000 <= offset <= high + width + 1000
    )  # the offset may have drifted a little since it was read


def test_steps_follow_the_scripts_own_marks(runner: Runner) -> None:
    ran = run(
        runner,
        TRAIN
        + """
import profharness_mark
for i in range(8):
    with profharness_mark.range("two updates"):
        train(2)
    profharness_mark.step(items=64)
""",
        "steps=3:6",
    )
    (path,) = ran.files("torch")
    assert [event["name"] for event in spans(path, "profharness.step:")] == [
        "profharness.step:3",
        "profharness.step:4",
        "profharness.step:5",
    ]
    assert len(spans(path, "Optimizer.step#SGD")) == 6
    assert [event["name"] for event in spans(path, "profharness.range:")] == [
        "profharness.range:two updates"
    ] * 3
    assert sidecar_of(path)["window"]["steps"] == 3
    marks = [step for step in ran.steps() if step["source"] == "mark"]
    assert [(step["n"], step["items"]) for step in marks] == [(n, 64) for n in range(8)]


def test_short_script_keeps_its_early_stretch(runner: Runner) -> None:
    ran = run(
        runner,
        "import torch\na = torch.ones(4, 4)\nfor _ in range(3): a = a @ a\nprint(a.sum().item())",
    )
    (path,) = ran.files("torch")
    assert len(spans(path, "aten::mm")) == 3
    assert sidecar_of(path)["window"] == {
        "kind": "time",
        "first_step": None,
        "steps": None,
        "truncated": True,
        "reason": "the process ended",
    }
    assert (ran.status, ran.err) == (0, "")


def test_window_by_the_clock_ends_without_the_scripts_help(runner: Runner) -> None:
    ran = run(
        runner,
        """
import os, time, torch
a = torch.randn(16, 16)
files = lambda: [name for _, _, names in os.walk(os.environ["PROFHARNESS_ARTIFACTS"]) for name in names if name.startswith("trace-")]
end = time.monotonic() + 60
while not any(name.endswith("profharness.json") for name in files()) and time.monotonic() < end:
    a = (a @ a).tanh()
    time.sleep(0.005)
print(time.monotonic() < end, flush=True)
os._exit(6)  # nothing at exit can help
""",
        "after=1500ms,for=700ms",
    )
    assert (ran.status, ran.out, ran.err) == (6, "True\n", "")
    (path,) = ran.files("torch")
    assert len(spans(path, "aten::mm")) > 0
    # from its first marker to its last: never less than asked, and a busy machine may end it late
    markers = sidecar_of(path)["markers"]
    assert 0.7e9 < markers[-1][1] - markers[0][0] < 30e9
    assert sidecar_of(path)["window"]["kind"] == "time"
    assert not sidecar_of(path)["window"]["truncated"]


def test_everything_with_a_cap_is_cut_and_says_so(runner: Runner) -> None:
    ran = run(
        runner,
        """
import time, torch
a = torch.ones(4, 4)
end = time.monotonic() + 90
while time.monotonic() < end:
    for _ in range(1000): a.add(1)
    if list(__import__("pathlib").Path(__import__("os").environ["PROFHARNESS_ARTIFACTS"]).rglob("*.profharness.json")): break
""",
        "all",
        PROFHARNESS_MAX_EVENTS="2000",
    )
    assert (ran.status, ran.err) == (0, "")
    window = sidecar_of(ran.files("torch")[-1])["window"]
    assert window["kind"] == "all"
    assert ran.hello["window"] == "exported"
    assert all(path.stat().st_size < 100e6 for path in ran.files("torch"))


@pytest.mark.parametrize("start", ["during", *thorough("before")])
def test_script_that_profiles_itself_is_left_alone(runner: Runner, start: str) -> None:
    own = """
from torch.profiler import profile, ProfilerActivity
with profile(activities=[ProfilerActivity.CPU]) as own:
    train(20)
print(sum(event.count for event in own.key_averages() if event.key == "Optimizer.step#SGD.step"))
"""
    ran = run(
        runner,
        TRAIN + ("train(7)\n" if start == "during" else "") + own + "train(30)\nprint('end')",
    )
    assert (ran.status, ran.out) == (0, "20\nend\n")
    assert any("stood back" in message for message in ran.hello["messages"])
    for path in ran.files("torch"):
        assert sidecar_of(path)["window"]["reason"] == "the script started torch's profiler itself"
        assert len(spans(path, "Optimizer.step#SGD")) == 2
    assert len(ran.files("torch")) == (1 if start == "during" else 0)


@pytest.mark.parametrize("around", ["each step", *thorough("the loop")])
def test_a_range_of_the_script_does_not_cost_the_window(runner: Runner, around: str) -> None:
    """It is open when the early stretch and the probe end, and is renewed so that the next
    recording may start.
    """
    ran = run(
        runner,
        TRAIN
        + """
from contextlib import nullcontext
from torch.profiler import record_function
with record_function('all of it') if LOOP else nullcontext():
    for _ in range(40):
        with nullcontext() if LOOP else record_function('my step'):
            train(1)
print('end')
""".replace("LOOP", str(around == "the loop")),
    )
    assert (ran.status, ran.out, ran.err) == (0, "end\n", "")
    (path,) = ran.files("torch")
    assert sidecar_of(path)["window"] == {
        "kind": "steps",
        "first_step": 5,
        "steps": 20,
        "truncated": False,
        "reason": "",
    }
    assert len(spans(path, "Optimizer.step#SGD")) == 20
    assert len(spans(path, "my step")) == (
        0 if around == "the loop" else 20
    )  # the first began inside of step 4, before the window


def test_every_range_that_is_open_at_the_end_is_seen(runner: Runner) -> None:
    """Also where a range around it has ended before it: torch then ends both at once. A write to
    freed memory was the price.
    """
    ran = run(
        runner,
        """
import sys, torch
from torch.autograd.profiler import record_function
import profharness_mark; from profharness_hooks import open_ranges as ranges, windows as profharness_window
from torch._C._profiler import _RecordFunctionFast as Fast

def recorded(body):
    window = profharness_window.Window("never", device=False)
    window.start()
    inside = body(window)
    window.end()
    return window.open_ranges(), inside

def around(window):
    span = window.range("ours")
    span.__enter__()
    torch.ones(4).add(1)
    inside = [record_function("Optimizer.step#X").__enter__()]
    torch.ones(4).add(1)
    span.__exit__(None, None, None)
    inside.append(record_function("after it").__enter__())
    torch.ones(4).add(1)
    return inside

def marked(window):
    inside = [profharness_mark.range("long") for _ in range(2)]
    for one in inside: one.__enter__()
    torch.ones(4).add(1)
    return inside

def fast(window):
    inside = [Fast("Torch-Compiled Region: 0/0"), record_function("around").__enter__()]
    inside[0].__enter__()
    return inside

def named(window):
    inside = [Fast("a range of compiled code")]
    inside[0].__enter__()
    return inside

class Called(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2
    @staticmethod
    def backward(ctx, grad):
        print(ranges.in_backward(torch))
        return grad

names, inside = recorded(around)
tied = [one.record for one in inside]
print(names, ranges.release(torch, names), [one.record is not before for one, before in zip(inside, tied)])
again, _ = recorded(lambda window: [one.__exit__(None, None, None) for one in inside])
print(again, ranges.release(torch, again))
names, inside = recorded(marked)
print(names, ranges.release(torch, names))
[one.__exit__(None, None, None) for one in inside]
names, inside = recorded(fast)
print(names, ranges.release(torch, names))
[one.__exit__(None, None, None) for one in inside]
names, inside = recorded(named)
print(names, ranges.release(torch, names), ranges.release(torch, None))
[one.__exit__(None, None, None) for one in inside]
x = torch.ones(3, requires_grad=True)
Called.apply(x).sum().backward()
print(ranges.in_backward(torch))
""",
        "steps=1000:1001",
    )
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.splitlines() == [
        "['Optimizer.step#X', 'after it'] none [True, True]",
        "[] none",
        "[] none",
        "['around', 'Torch-Compiled Region: 0/0'] operators",
        "['a range of compiled code'] unknown unknown",
        "True",
        "False",
    ]


def test_no_recording_ends_inside_of_a_backward_pass(runner: Runner) -> None:
    """As with recomputed activations, where Python runs inside of it: autograd would bring the
    ended recording back.
    """
    ran = run(
        runner,
        """
import time; from profharness_hooks import capture as profharness_capture
profharness_capture.SECONDS = 1
"""
        + TRAIN
        + """
class Long(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1
    @staticmethod
    def backward(ctx, grad):
        until = time.monotonic() + 3
        while time.monotonic() < until:
            time.sleep(.001)
        print(torch.autograd._profiler_enabled())
        return grad
Long.apply(model(torch.randn(4, 8))).sum().backward()
until = time.monotonic() + 60
while time.monotonic() < until and torch.autograd._profiler_enabled():
    time.sleep(.001)
print(torch.autograd._profiler_enabled())
train(40)
print('end')
""",
    )
    assert (ran.status, ran.out, ran.err) == (0, "True\nFalse\nend\n", "")
    (path,) = ran.files("torch")
    assert sidecar_of(path)["window"] == {
        "kind": "steps",
        "first_step": 5,
        "steps": 20,
        "truncated": False,
        "reason": "",
    }
    assert ran.hello["messages"] == []


def test_no_recording_ends_while_a_range_begins(runner: Runner) -> None:
    """A safe point often comes there: torch's own first range takes long to begin."""
    ran = run(
        runner,
        """
import time; from profharness_hooks import capture as profharness_capture
profharness_capture.SECONDS = 1
"""
        + TRAIN
        + """
begin = torch.ops.profiler._record_function_enter_new
def slow(*args):
    record, until = begin(*args), time.monotonic() + 2.5
    while time.monotonic() < until: time.sleep(.001)
    return record
torch.ops.profiler._record_function_enter_new = slow
with torch.autograd.profiler.record_function('slow'):
    print(torch.autograd._profiler_enabled())
    until = time.monotonic() + 60
    while time.monotonic() < until and torch.autograd._profiler_enabled(): time.sleep(.001)
    print(torch.autograd._profiler_enabled())
torch.ops.profiler._record_function_enter_new = begin
train(40)
print('end')
""",
    )
    assert (ran.status, ran.out, ran.err) == (0, "True\nFalse\nend\n", "")
    (path,) = ran.files("torch")
    assert sidecar_of(path)["window"] == {
        "kind": "steps",
        "first_step": 5,
        "steps": 20,
        "truncated": False,
        "reason": "",
    }


@pytest.mark.parametrize("idle", [True, *thorough(False)])
def test_optimizers_that_step_inside_of_the_backward_pass(runner: Runner, idle: bool) -> None:
    """To spare memory for gradients. Windows begin and end between passes; also when the early
    stretch ended long ago.
    """
    ran = run(
        runner,
        (
            """
import os, pathlib, time; from profharness_hooks import capture as profharness_capture
profharness_capture.SECONDS = .3 if IDLE else 60
"""
            + TRAIN
            + """
def has_steps():
    return any('"kind": "steps"' in path.read_text() for path in pathlib.Path(os.environ["PROFHARNESS_ARTIFACTS"]).rglob("*.profharness.json"))
model.bias.register_post_accumulate_grad_hook(lambda _: first.step())
if IDLE:
    until = time.monotonic() + 60
    while time.monotonic() < until and torch.autograd._profiler_enabled():
        model(torch.randn(4, 8)); time.sleep(.01)
until = time.monotonic() + 60
while time.monotonic() < until and not has_steps():
    model(torch.randn(4, 8)).sum().backward(); time.sleep(.01)
print('end')
"""
        ).replace("IDLE", str(int(idle))),
    )
    assert (ran.status, ran.out, ran.err) == (0, "end\n", "")
    path = ran.files("torch")[-1]
    window = sidecar_of(path)["window"]
    assert window["kind"] == "steps"
    assert window["steps"] >= 20
    assert len(spans(path, "Optimizer.step#SGD")) >= 20
    assert ran.hello["messages"] == [
        "optimizers step inside of the backward pass: windows begin and end a little late"
    ]


@pytest.mark.parametrize("cap", ["", *thorough("20000")])
def test_an_early_stretch_that_ends_inside_of_a_range_does_not_cost_the_steps(
    runner: Runner, cap: str
) -> None:
    """By the clock or by its events, as in a first step that takes long to compile, within
    DistributedDataParallel's own range.
    """
    ran = run(
        runner,
        """
import time; from profharness_hooks import capture as profharness_capture
profharness_capture.SECONDS = 1
"""
        + TRAIN
        + """
until = time.monotonic() + 60
with torch.profiler.record_function('DistributedDataParallel.forward'):
    while time.monotonic() < until and torch.autograd._profiler_enabled():
        model(torch.randn(4, 8)); time.sleep(0 if CAPPED else .001)
train(40)
print('end')
""".replace("CAPPED", str(bool(cap))),
        PROFHARNESS_MAX_EVENTS=cap,
    )
    assert (ran.status, ran.out, ran.err) == (0, "end\n", "")
    (path,) = ran.files("torch")
    assert sidecar_of(path)["window"] == {
        "kind": "steps",
        "first_step": 5,
        "steps": 20,
        "truncated": False,
        "reason": "",
    }


def test_nothing_is_opened_or_closed_while_torch_imports_a_module(runner: Runner) -> None:
    """The first optimizer step imports torch._dynamo for seconds, and a profiler that starts or
    ends imports too.
    """
    ran = run(
        runner,
        """
from profharness_hooks import capture as profharness_capture
profharness_capture.SECONDS = 1
import importlib.machinery, sys, time
import torch
class Slow:
    def find_spec(self, name, path, target=None):
        return importlib.machinery.ModuleSpec(name, self) if name == "torch.a_slow_module" else None
    def create_module(self, spec):
        return None
    def exec_module(self, module):
        module.seen, until = set(), time.monotonic() + 3
        while time.monotonic() < until:
            torch.ones(4).add(1); time.sleep(.001)
            module.seen.add(torch.autograd._profiler_enabled())
sys.meta_path.insert(0, Slow())
import torch.a_slow_module
print(torch.a_slow_module.seen)
until = time.monotonic() + 60
while time.monotonic() < until and torch.autograd._profiler_enabled():
    torch.ones(4).add(1); time.sleep(.001)
print(torch.autograd._profiler_enabled())
""",
    )
    assert (ran.status, ran.out, ran.err) == (0, "{True}\nFalse\n", "")
    (path,) = ran.files("torch")
    assert sidecar_of(path)["window"]["kind"] == "time"
    assert not ran.hello["messages"]


def test_forked_children_with_a_window_open_end_as_they_like(runner: Runner) -> None:
    ran = run(
        runner,
        TRAIN
        + """
import os
train(10)
endings = []
for leave in (lambda: sys.exit(7), lambda: os._exit(8)):
    pid = os.fork()
    if pid == 0:
        train(30)
        leave()
    endings.append(os.waitpid(pid, 0)[1])
train(5)
print([status >> 8 if status & 127 == 0 else -(status & 127) for status in endings])
""",
    )
    assert (ran.status, ran.out, ran.err) == (0, "[7, 8]\n", "")
    (path,) = ran.files("torch")
    assert sidecar_of(path)["window"]["steps"] == 10
    children = [hello for hello in ran.hellos if hello["forked"]]
    assert [child["used"] for child in children] == [["torch"], ["torch"]]
    assert len(ran.steps()) == 15


def test_unwritable_artifacts_cost_one_line(runner: Runner) -> None:
    (runner.folder / "occupied").write_text("")
    ran = run(
        runner,
        TRAIN + "train(30)\nsys.exit(11)",
        "steps=2:4",
        PROFHARNESS_ARTIFACTS=str(runner.folder / "occupied"),
    )
    assert (ran.status, ran.out) == (11, "")
    assert re.fullmatch(r"profharness: .*not affected\)\n", ran.err)
    assert len(ran.hello["messages"]) == 3  # the steps, the window, and the work of Python


def test_bare_pass_logs_steps_and_records_nothing(runner: Runner) -> None:
    ran = runner.run(runner.script(TRAIN + "train(3)\nprint(torch.autograd._profiler_enabled())"))
    assert ran.out == "False\n"
    assert len(ran.steps()) == 3
    assert ran.files("torch") == []


def test_sys_exit_in_a_signal_handler_during_our_work_is_not_swallowed(runner: Runner) -> None:
    ran = run(
        runner,
        """
import os, signal, sys, time, threading
signal.signal(signal.SIGTERM, lambda *_: sys.exit(23))
from profharness_hooks import safe_point as safe
def ours():
    os.kill(os.getpid(), signal.SIGTERM)
    for _ in range(10**6): pass
point = safe.SafePoint(ours, lambda: print("swallowed"))
threading.Timer(0.05, point.request).start()
end = time.monotonic() + 90
while time.monotonic() < end: pass
""",
    )
    assert (ran.status, ran.out, ran.err) == (23, "", "")
    assert signal.SIGTERM


def test_compiled_optimizer_steps_are_counted(runner: Runner) -> None:
    ran = run(
        runner,
        TRAIN
        + """
step = torch.compile(second.step, backend="eager")
for _ in range(5):
    model(torch.randn(4, 8)).sum().backward(); step()
print("end")
""",
        "steps=3:4",
    )
    assert (ran.status, ran.out) == (0, "end\n")
    assert len(ran.steps()) == 5
    assert len(ran.files("torch")) == 1


def test_window_for_workers(runner: Runner) -> None:
    """As the workers of scans use it: without the hooks, one window per point."""
    program = runner.script(f"""
import sys
sys.path.insert(0, {str(WRAPPERS / "hooks")!r})
from profharness_hooks.torch_hook import Window, span
import torch
a = torch.randn(4, 4)
bare = {BARE!r}
exec(bare)
for point in ("b4", "b8"):
    with span("outside"): a @ a
    window = Window("out/" + point + ".json", point=point, extra={{"role": "trace"}})
    window.start()
    for i in range(3):
        with span("profharness.trial:%s:%d" % (point, i)): a @ a
    print(window.stop())
    exec(bare)
try:
    with Window("out/one.json"):
        Window("out/two.json").start()
except RuntimeError as error:
    print(error)
left = Window("out/forgotten.json"); left.start(); a @ a
sys.exit(5)
""")
    ran = runner.run(program, hooked=False)
    assert ran.status == 5, ran.err
    counts = ran.out.splitlines()
    assert counts[2] == "torch's profiler is already recording in this process"
    for point, count in zip(("b4", "b8"), counts, strict=False):
        path = runner.folder / "out" / f"{point}.json"
        assert [event["name"] for event in spans(path, "profharness.trial")] == [
            f"profharness.trial:{point}:{i}" for i in range(3)
        ]
        assert spans(path, "outside") == []
        assert sidecar_of(path)["point"] == point
        events = [
            event for event in json.loads(path.read_text())["traceEvents"] if event["ph"] == "X"
        ]
        assert int(count) == len(
            [event for event in events if event["cat"] != "Trace" and "marker" not in event["name"]]
        )
        low, high = marker_bounds(torch_markers(path), sidecar_of(path)["markers"])
        assert 0 <= high - low <= bare_markers.widest_torch(bare_markers.noted(runner.folder))
    assert len(spans(runner.folder / "out" / "forgotten.json", "aten::mm")) == 1
    assert ast.literal_eval(counts[0]) > 0


def test_on_a_device_build_the_window_waits_for_the_device_and_for_graph_captures(
    runner: Runner,
) -> None:
    """A CPU build that is told it has a device: its runtime starts late, and a graph is being
    captured at first.
    """
    ran = runner.run(
        runner.script("""
import os, sys, time, types, torch
from profharness_hooks import torch_hook as profharness_torch_hook, device as profharness_device, process as profharness_hook, windows as profharness_window
state, queued = {"on": False, "capturing": True}, []
torch.version.hip, profharness_device.DEVICE_FILES = "6.4", ("/",)
cuda = torch.cuda
cuda._lazy_call, cuda.is_initialized, cuda.is_current_stream_capturing = queued.append, lambda: state["on"], lambda: state["capturing"]
cuda.synchronize, cuda.device_count = lambda: state.setdefault("synchronised", True), lambda: 1
cuda.get_device_properties = lambda i: types.SimpleNamespace(name="Instinct", pci_domain_id=0, pci_bus_id=0xc1, pci_device_id=0)
process = profharness_hook.process()
process.settings.layers = ("torch",)
profharness_torch_hook.attach(process, torch)
def settle(): time.sleep(0.3); return profharness_window.recording()
a = torch.ones(4, 4)
seen = [settle()]
queued[0](); seen.append(settle())
state["on"] = True; seen.append(settle())
state["capturing"] = False
end = time.monotonic() + 60
while not settle() and time.monotonic() < end: pass
seen.append(profharness_window.recording())
a @ a
print(seen, state["synchronised"])
"""),
        PROFHARNESS_CAPTURE="all",
    )
    assert (ran.status, ran.out) == (0, "[False, False, False, True] True\n")
    (path,) = ran.files("torch")
    assert len(spans(path, "aten::mm")) == 1
    assert ran.hello["devices"] == [{"index": 0, "name": "Instinct", "identity": "0000:c1:00.0"}]


def test_a_count_of_events_leaves_out_the_functions_of_the_watching_thread(
    runner: Runner,
) -> None:
    ran = run(
        runner,
        """
import os, threading, torch
from profharness_hooks.windows import Window
os.environ["PROFHARNESS_STACKS"] = "1"
(watch,) = (thread for thread in threading.enumerate() if thread.name == "profharness")
# once the window starts the thread ends at its next look, which here comes after it is open
opened, keeper = [], watch._target.__self__
keeper._look = lambda look=keeper._look: not opened or look()
window = Window("own.json")
window.start()
opened.append(True)
watch.join()
window.end()
frames = [event for event in window._results().events() if event.is_python_function()]
print(window.count(), sum("_look" in event.name() for event in frames))
""",
        "after=1000s",
    )
    assert ran.err == ""
    counted, looks = map(int, ran.out.split())
    assert looks > 0  # the thread ran while the window was open
    assert 0 < counted < 15  # the functions of join()


def test_a_count_of_events_leaves_out_the_functions_of_the_recording_itself(
    runner: Runner,
) -> None:
    ran = run(
        runner,
        """
import os, torch
from profharness_hooks.windows import Window
a = torch.ones(4, 4)
for stacks in "01":
    os.environ["PROFHARNESS_STACKS"] = stacks
    for products, calls in ((0, 0), (3, 0), (0, 1)):
        window = Window("own.json")
        window.start()
        for _ in range(products): a @ a
        for _ in range(calls): torch.nn.functional.relu(a)
        window.end()
        print(window.count())
""",
        "after=1000s",
    )
    assert ran.err == ""
    empty, products, call, *with_stacks = map(int, ran.out.split())
    assert empty == 0
    assert products > 3
    assert with_stacks[:2] == [empty, products]
    # functions of the program count
    assert call < with_stacks[2] < call + 20
