"""In which order a calibration measures its products, and what it keeps of them; with a torch and
times of the test's own.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

CPU = SimpleNamespace(type="cpu")
RATE = {"fp64": 1e11, "fp32": 2e11, "bf16": 4e11, "fp16": 2e11, "fp8": 1e6}


@pytest.fixture
def calibrate(workloads: Path) -> ModuleType:
    from profharness_workloads.checks import calibrate_torch

    return calibrate_torch


@pytest.fixture
def torch() -> SimpleNamespace:
    matmul = SimpleNamespace(allow_tf32=False)
    return SimpleNamespace(
        backends=SimpleNamespace(cuda=SimpleNamespace(matmul=matmul)),
        version=SimpleNamespace(hip=None),
    )


class Machine:
    """Does each type at its rate, slower while `slow` says so; int8 not at all."""

    def __init__(
        self, calibrate: ModuleType, patch: pytest.MonkeyPatch, slow: tuple[int, ...] = ()
    ) -> None:
        self.measured: list[tuple[str, int]] = []
        self.budgets: list[float] = []
        self.slow = slow
        patch.setattr(calibrate, "operands", self.operands)
        patch.setattr(calibrate, "best_seconds", self.best_seconds)

    def operands(self, torch: object, name: str, n: int, place: object) -> tuple[str, int]:
        if name == "int8":
            raise RuntimeError("no such product\nand a second line")
        return name, n

    def best_seconds(self, run: tuple[str, int], synchronise: object, budget_s: float) -> float:
        name, n = run
        self.measured.append(run)
        self.budgets.append(budget_s)
        return 2.0 * n**3 / RATE[name] * (3.0 if len(self.measured) in self.slow else 1.0)


def test_types_are_measured_in_turn_at_the_size_found_first(calibrate, torch, monkeypatch):
    machine = Machine(calibrate, monkeypatch)
    rounds, notes = calibrate.gemms(torch, CPU, lambda: None, 0.5)
    assert rounds == {name: [rate] * (1 if name == "fp8" else 3) for name, rate in RATE.items()}
    assert notes == ["int8: no such product"]
    order = [name for name, _ in machine.measured]
    # the emulated type takes 33 s for the smallest product, and is not asked again
    assert order[-8:] == ["fp64", "fp32", "bf16", "fp16"] * 2
    assert order.count("fp8") == 1
    tried = {name: [n for one, n in machine.measured[:-8] if one == name] for name in RATE}
    assert tried == {
        "fp64": [256, 512, 1024, 2048],
        "fp32": [256, 512, 1024, 2048],
        "bf16": [256, 512, 1024, 2048],
        "fp16": [256, 512, 1024, 2048],
        "fp8": [256],
    }
    assert all(n in tried[name] for name, n in machine.measured[-8:])
    # each has the time asked for, as far as the clock can cut it
    for name in ("fp64", "bf16"):
        assert sum(
            time
            for (one, _), time in zip(machine.measured, machine.budgets, strict=True)
            if one == name
        ) == pytest.approx(0.5)


def test_a_slow_moment_of_the_machine_lowers_no_figure(calibrate, torch, monkeypatch):
    """Whichever four measurements on end it falls on: a type's first round, or a round of all of
    them.
    """
    machine = Machine(calibrate, monkeypatch)
    calibrate.gemms(torch, CPU, lambda: None, 0.5)
    for start in range(1, len(machine.measured) - 2):
        with pytest.MonkeyPatch.context() as patch:
            Machine(calibrate, patch, slow=tuple(range(start, start + 4)))
            rounds, _ = calibrate.gemms(torch, CPU, lambda: None, 0.5)
            assert {name: max(reached) for name, reached in rounds.items()} == pytest.approx(
                {**RATE, "fp8": pytest.approx(RATE["fp8"], rel=0.7)}
            )


def test_what_fails_when_measured_again_keeps_what_it_reached(calibrate, torch, monkeypatch):
    class Full(Machine):
        def operands(self, torch, name, n, place):
            if len(self.measured) > 17:  # after the first round
                raise MemoryError("full")
            return super().operands(torch, name, n, place)

    machine = Full(calibrate, monkeypatch)
    rounds, notes = calibrate.gemms(torch, CPU, lambda: None, 0.5)
    assert len(machine.measured) == 18
    assert rounds == {name: [rate] * len(rounds[name]) for name, rate in RATE.items()}
    assert notes == ["int8: no such product"]
    assert torch.backends.cuda.matmul.allow_tf32 is False
