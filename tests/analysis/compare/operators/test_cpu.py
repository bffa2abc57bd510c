"""Two real runs on the CPU: the block that was made slow is named, with its backward pass."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.analysis.compare.operators.records import Branch
from profharness.understand.loose.sides import compare_sides, read_side
from tests import needs

needs.packages("torch")

pytestmark = [needs.TORCH_HERE, pytest.mark.slow]
SLOW_BLOCK = 2


def recorded(path: Path, width: int) -> Path:
    """Three steps of training four blocks, of which one is `width` wide and the others 64."""
    import torch
    from torch.profiler import ProfilerActivity, profile, schedule

    class Block(torch.nn.Module):
        def __init__(self, inner: int) -> None:
            super().__init__()
            self.wide, self.narrow = torch.nn.Linear(64, inner), torch.nn.Linear(inner, 64)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + self.narrow(torch.relu(self.wide(x)))

    class Net(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            widths = [width if at == SLOW_BLOCK else 64 for at in range(4)]
            self.blocks = torch.nn.ModuleList(map(Block, widths))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for block in self.blocks:
                x = block(x)
            return x

    model = Net()
    plan = schedule(wait=1, warmup=1, active=3)
    with profile(
        activities=[ProfilerActivity.CPU], record_shapes=True, with_stack=True, schedule=plan
    ) as recording:
        for _ in range(5):
            model(torch.randn(64, 64)).square().mean().backward()
            recording.step()
    recording.export_chrome_trace(str(path))
    return path


@pytest.fixture
def one_thread():
    """Threads that wait for each other on a busy machine would make every block slow."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_the_wide_block_is_named(tmp_path):
    sides = [read_side(recorded(tmp_path / f"{width}.json", width)) for width in (64, 64 * 256)]
    found = compare_sides(*sides)
    assert found.step is not None
    assert found.step.clock == "host"
    for steps in (found.step.steps_a, found.step.steps_b):
        assert steps in (2, 3)  # a first one that other work held up is none of the steady ones
    for table in found.work:
        assert sum(row.a_ns or 0 for row in table.rows) == found.step.whole_a_ns
        assert sum(row.b_ns or 0 for row in table.rows) == found.step.whole_b_ns
    assert found.tree is not None
    path = steepest(found.tree)
    assert path[:2] == ["Net_0", f"Block_{SLOW_BLOCK}"]
    block = next(one for one in found.tree.inner[0].inner if one.name == f"Block_{SLOW_BLOCK}")
    inside = {one.name for linear in block.inner for one in (linear, *linear.inner)}
    assert any(name.startswith("backward: ") for name in inside)


def steepest(branch: Branch) -> list[str]:
    """The names on the way from the outside to where most of the difference is."""
    if not branch.inner:
        return []
    first = branch.inner[0]
    return [first.name, *steepest(first)]
