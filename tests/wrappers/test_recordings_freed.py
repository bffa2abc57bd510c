"""What remains of torch's profiler in the program once a recording is on disk, and what it says."""

from __future__ import annotations

import pytest

from .running import Runner

LOOKED = """
import atexit, gc
gc.disable()
def left():
    found = [one for one in gc.get_objects() if type(one) is torch.autograd.profiler.profile]
    print("recordings left:", len(found))
atexit.register(left)  # before the hook registers what it does at the exit, so it runs after that
import torch
model = torch.nn.Linear(4, 4)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _ in range(STEPS):
    model(torch.ones(2, 4)).sum().backward()
    optimizer.step()
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "capture"), [(3, "all"), (12, "steps=4:6")], ids=["at the exit", "in the loop"]
)
def test_an_exported_recording_is_freed_without_a_collection(
    runner: Runner, steps: int, capture: str
) -> None:
    """Its C++ records would otherwise be freed at the interpreter's end, after the runtime of the
    device has gone.
    """
    script = runner.script(LOOKED.replace("STEPS", str(steps)))
    ran = runner.run(script, PROFHARNESS_LAYERS="torch", PROFHARNESS_CAPTURE=capture)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == "recordings left: 0\n"
    assert len(ran.files("torch")) == 1


def test_the_warning_about_cycles_is_not_the_programs_concern(runner: Runner) -> None:
    """torch 2.10 and 2.11 warn at each start of the profiler; other warnings, and the program's own
    filters, stay as they are.
    """
    script = runner.script(
        """
import warnings
from profharness_hooks.own_frames import quiet_start
before = list(warnings.filters)
with quiet_start():
    warnings.warn("Warning: Profiler clears events at the end of each cycle. Only events from ...")
    warnings.warn("something else")
print(warnings.filters == before)
"""
    )
    ran = runner.run(script)
    assert ran.out == "True\n"
    assert "clears events" not in ran.err
    assert "something else" in ran.err
