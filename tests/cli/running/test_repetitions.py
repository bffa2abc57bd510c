"""`--dry-run` says how often each point is really measured, and which device is missing."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from profharness.cli import run_cli
from profharness.cli.running.repetitions import device_lines, measurement_lines
from profharness.node.probe import Device, Environment
from profharness.options.request import Request
from profharness.scans import create
from profharness.supervise.pass_plan import PassPlan

LAYER: Any = SimpleNamespace(name="torch")


def planned(request: Request, devices: Sequence[Device] = (), elsewhere: str = "") -> Any:
    environment = Environment(devices=tuple(devices), packages={"torch": "2.4"})
    scan = create(request, environment)
    passes = [PassPlan("bare", (), scan.backends), PassPlan("torch", (LAYER,), scan.backends)]
    return SimpleNamespace(
        request=request,
        environment=environment,
        elsewhere=elsewhere,
        scan=scan,
        schedule=SimpleNamespace(passes=passes),
    )


def asked(**options: Any) -> Request:
    return Request(**{"scan": "particlenet", "backend": ("torch",), **options})


def test_points_that_are_measured_again_are_named_and_counted() -> None:
    plan = planned(asked(batch_sizes=(1, 4, 16), trials=50, min_seconds=1.5, profile_trials=1))
    assert list(measurement_lines(plan)) == [
        (
            "measurements    bare: 5 measurements of 3 points (torch-b1, torch-b16 again at the end), "
            "each at least 50 trials and 1.5 s, after the warm-up"
        ),
        "                torch: 3 points, each 1 trial",
    ]


def test_a_warm_up_of_a_given_number_and_no_least_time() -> None:
    plan = planned(asked(batch_sizes=(8,), trials=2, min_seconds=0, warmup=3))
    bare, _ = measurement_lines(plan)
    assert bare.endswith("each at least 2 trials, after 3 trials of warm-up")


GPU = Device(index=0, kind="rocm", name="MI300X")


@pytest.mark.parametrize(
    ("device", "devices", "said"),
    [
        ("cuda", (), "device          cuda: missing, this node has no GPU that its driver shows"),
        ("cuda:1", (GPU,), "device          cuda:1: missing, this node has 1 (MI300X)"),
        ("cuda:0", (GPU,), ""),
        ("cpu", (), ""),
        ("auto", (GPU,), "device          auto: MI300X"),
        ("auto", (), "device          auto: the CPU, as this node has no GPU"),
    ],
)
def test_a_device_that_is_not_here_is_told(
    device: str, devices: tuple[Device, ...], said: str
) -> None:
    told = "\n".join(device_lines(planned(asked(device=device), devices)))
    assert told.startswith(said)
    assert bool(told) == bool(said)


def test_nothing_is_said_of_devices_of_nodes_that_a_job_will_get() -> None:
    """The same question tells of the missing device where it is about this node."""
    assert list(device_lines(planned(asked(device="cuda"))))
    assert not list(device_lines(planned(asked(device="cuda", launcher="slurm"))))


@pytest.mark.slow
def test_a_plan_with_a_missing_device_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["run", "particlenet", "--device", "cuda:77", "--batch-sizes", "1", "--dry-run"]
    assert run_cli(words) == 0
    assert "cuda:77: missing" in capsys.readouterr().out
