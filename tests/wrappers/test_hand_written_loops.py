"""Steps of loops that change their parameters by hand: backward passes stand for them."""

from __future__ import annotations

import pytest

from tests import needs

from .running import Ran, Runner

needs.packages("torch")
pytestmark = pytest.mark.slow

HAND = """
import torch
from torch.utils.checkpoint import checkpoint
w = torch.randn(8, 8, requires_grad=True)
def train(steps, accumulate=1):
    global w
    for i in range(steps):
        for _ in range(accumulate):
            x = torch.randn(4, 8)
            if CHECKPOINT:
                checkpoint(lambda a, b: (a @ b).sum(), x, w, use_reentrant=True).backward()
            else:
                (x @ w).sum().backward()
        with torch.no_grad():
            w -= .1 * w.grad
            w.grad = None
"""
OPTIMIZED = """
optimizer = torch.optim.SGD([w], lr=.1)
for i in range(5):
    (torch.randn(4, 8) @ w).sum().backward()
    optimizer.step()
print(torch.autograd.backward.__module__)
"""


def run(runner: Runner, text: str) -> Ran:
    return runner.run(runner.script(text), PROFHARNESS_LAYERS="torch")


def logged(ran: Ran) -> list[tuple[int, str]]:
    return [(step["n"], step["source"]) for step in ran.steps()]


def test_backward_passes_are_steps_where_nothing_else_is(runner: Runner) -> None:
    ran = run(runner, "CHECKPOINT = False\n" + HAND + "train(40)\n")
    assert logged(ran) == [(n, "backward") for n in range(10)]


def test_an_optimizer_that_comes_later_makes_the_steps(runner: Runner) -> None:
    ran = run(runner, "CHECKPOINT = False\n" + HAND + "train(33)\n" + OPTIMIZED)
    assert logged(ran) == [
        *((n, "backward") for n in range(4)),  # that of the first optimized step too
        *((n, "optimizer") for n in range(5)),
    ]
    # torch's own function is back once an optimizer has told of a step
    assert ran.out.split()[-1] == "torch.autograd"


def test_passes_inside_of_checkpoints_are_part_of_theirs(runner: Runner) -> None:
    ran = run(runner, "CHECKPOINT = True\n" + HAND + "train(35)\n")
    assert logged(ran) == [(n, "backward") for n in range(5)]
