"""The torch hook in jobs of several ranks, whose collectives end their ranges a moment late."""

from __future__ import annotations

import json

import pytest

from profharness.readers.kineto import reader
from profharness.trace.wanted import Wanted
from tests import needs

from .running import Runner, sidecar_of
from .test_capture import S, policy

needs.packages("torch")

# A thread of torch's own that is late to end the range of its collective, as on a busy machine.
LATE = """
import os, torch, torch.distributed as dist
if RANKS:
    os.environ.update(MASTER_ADDR='127.0.0.1')
    dist.init_process_group('gloo', store=dist.HashStore(), rank=0, world_size=1)
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
late = torch._C._profiler._RecordFunctionFast('gloo:all_reduce')
for step in range(40):
    if step == 4: late.__enter__()
    model(torch.randn(4, 8)).sum().backward(); optimizer.step()
    if step == 6: late.__exit__(None, None, None)
print('end')
"""


@pytest.mark.slow
@pytest.mark.parametrize(("capture", "last"), [("", 24), ("steps=5:12", 11)])
def test_a_collective_that_ends_late_does_not_cost_the_steps(
    runner: Runner, capture: str, last: int
) -> None:
    """No recording is thrown away while a range may be open: the one that runs goes on as the asked
    window, and readers leave out what came before it.
    """
    ran = runner.run(
        runner.script(LATE.replace("RANKS", "True")),
        PROFHARNESS_LAYERS="torch",
        PROFHARNESS_CAPTURE=capture,
    )
    assert (ran.status, ran.out, ran.err) == (0, "end\n", "")
    assert ran.hello["messages"] == []
    (path,) = ran.files("torch")
    window = sidecar_of(path)["window"]
    assert (window["kind"], window["first_step"], window["steps"]) == ("steps", 5, last - 4)
    assert window["lead_in"] is True
    events = json.loads(path.read_text())["traceEvents"]
    assert any(event["name"] == "profharness.step:4" for event in events) or not capture
    trace = reader.read(path)
    of_step = trace.marks.kind == trace.strings.find("step")
    names = [trace.strings[code] for code in trace.marks.name[of_step].tolist()]
    assert names == [f"profharness.step:{number}" for number in range(5, last + 1)]
    assert int(trace.ops.start_ns.min()) >= int(trace.marks.start_ns[of_step].min())
    kinds = {trace.strings[code] for code in trace.marks.kind.tolist()}
    assert "marker" in kinds
    assert len(reader.read(path, wanted=Wanted.TIMES).ops) == 0


@pytest.mark.slow
def test_a_range_that_torch_does_not_end_is_said_to_cost_the_steps(runner: Runner) -> None:
    ran = runner.run(runner.script(LATE.replace("RANKS", "False")), PROFHARNESS_LAYERS="torch")
    assert (ran.status, ran.out) == (0, "end\n")
    assert ran.hello["messages"] == [
        (
            "recording ended inside of a range that torch does not end by itself, so it could not "
            "be started again: no later step was recorded"
        )
    ]


# What a signal that arrives between the count of a step and the word of it does.
SAFE_POINT_BETWEEN = """
import gc, torch
model = torch.nn.Linear(8, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=.1)
for step in range(30):
    if step == 1:
        log = next(item for item in gc.get_objects() if type(item).__name__ == 'Recorder')
        controller = log.listener.__self__
        log.host_step = lambda: controller._at_safe_point()
    model(torch.randn(4, 8)).sum().backward(); optimizer.step()
"""


@pytest.mark.slow
def test_a_safe_point_before_the_word_of_a_step_does_not_mark_it_twice(runner: Runner) -> None:
    ran = runner.run(runner.script(SAFE_POINT_BETWEEN), PROFHARNESS_LAYERS="torch")
    assert (ran.status, ran.err) == (0, "")
    (path,) = ran.files("torch")
    trace = reader.read(path)
    of_step = trace.marks.kind == trace.strings.find("step")
    names = [trace.strings[code] for code in trace.marks.name[of_step].tolist()]
    assert names == [f"profharness.step:{number}" for number in range(5, 25)]


def test_a_recording_that_none_may_follow_is_kept_on_until_the_steps_come() -> None:
    rule = policy("default", max_events=1000)
    rule.device_work(0)
    rule.opened(0)
    assert rule.step(1) is None
    rule.patient = True
    assert rule.tick(11 * S, 3_999) is None
    assert not rule.due(11 * S, 3_999)
    assert rule.tick(11 * S, 4_000) == "cut"
    assert rule.step(5) == "open"
    rule.opened(12 * S)
    assert rule.tick(60 * S, 999) is None
    assert rule.tick(60 * S, 1_000) == "cut"


def test_a_recording_of_one_process_ends_by_the_clock() -> None:
    rule = policy("default", max_events=1000)
    rule.device_work(0)
    rule.opened(0)
    assert rule.step(1) is None
    assert rule.tick(11 * S, 0) == "close"
