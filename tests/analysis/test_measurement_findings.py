"""Findings on how a run was measured, each from its figures, and a calm run that has none of
them.
"""

from __future__ import annotations

import pytest

from profharness.analysis.records import Figure
from profharness.analysis.run.checks import telemetry_findings
from profharness.analysis.run.summary import summarise_run
from profharness.rundir.manifest import PointRecord
from profharness.trace.model import ClockDomain, Source
from tests.analysis.run.run_scene import Builder, manifest, trial_ns


def shares(**values: float) -> dict[str, Figure]:
    return {name: Figure(value=value, unit="share") for name, value in values.items()}


@pytest.mark.parametrize(
    ("figure", "cause"),
    [
        ("throttle_power", "its power limit"),
        ("throttle_thermal", "its temperature"),
        ("throttle_external", "a signal from outside"),
    ],
)
def test_a_device_held_back_is_throttled_by_its_cause(figure, cause):
    (found,) = telemetry_findings(Builder().trace(), shares(**{figure: 0.3}))
    assert (found.id, found.severity, found.figures) == (
        "throttled",
        "warning",
        {"throttled_share": 0.3},
    )
    assert found.message == f"{cause} held the device's clock down 30 % of the time"
    # power limits are touched for moments by every full device; heat and signals from outside are
    # not
    assert (
        telemetry_findings(
            Builder().trace(), shares(**{figure: 0.05 if figure == "throttle_power" else 0.01})
        )
        == ()
    )


def test_other_processes_on_the_device_share_it():
    (found,) = telemetry_findings(
        Builder().trace(), {"gpu_processes_other": Figure(value=1.5, unit="processes")}
    )
    assert (found.id, found.figures) == ("device-shared", {"other_processes": 1.5})
    assert (
        telemetry_findings(
            Builder().trace(), {"gpu_processes_other": Figure(value=0.0, unit="processes")}
        )
        == ()
    )


def test_a_calm_run_has_none():
    """Even trials in two passes of equal speed, a warm cache, a model that compiled, a sampler that
    missed a tick in fifty, a device of its own.
    """
    builder = Builder()
    for name in ("bare", "torch"):
        builder.trials(name, "torch-b4", 4, trial_ns(4, 3, 60))
    builder.sources.append(
        Source(
            path="telemetry/node.parquet",
            format="telemetry",
            clock=ClockDomain.RUN,
            details=(("rows", "980"), ("missed", "20")),
        )
    )
    records = tuple(
        PointRecord(
            id="torch-b4", pass_name=name, backend="torch", batch_size=4, compile_ns=3 * 10**9
        )
        for name in ("bare", "torch")
    )
    summary = summarise_run(manifest(points=records), builder.trace(), "x")
    assert [point.state for point in summary.points] == ["ok"]
    assert [one.id for one in summary.findings] == []
    calm = shares(
        throttle_power=0.02, throttle_thermal=0.0, gpu_processes_other=0.0, cpu_throttled=0.0
    )
    assert telemetry_findings(builder.trace(), calm) == ()
