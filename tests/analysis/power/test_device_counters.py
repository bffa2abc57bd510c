"""Findings on hardware counters of whole devices."""

from __future__ import annotations

import json

import msgspec
import pytest

from profharness.analysis.power.device_counters import device_counter_findings, for_verdict
from profharness.analysis.records import Figure
from profharness.analysis.run.checks import telemetry_findings
from profharness.analysis.verdict.telemetry import telemetry_verdict, units_counted
from profharness.trace.device_counters import DeviceFacts
from profharness.trace.model import ClockDomain, Device, Samples, Source, Strings, Trace

IDENTITY = "0000:c1:00.0"


def trace(
    *details: tuple[str, str],
    metrics: tuple[str, ...] = (),
    arch: str = "gfx90a",
    sdk: str = "1.1.0",
) -> Trace:
    facts = msgspec.to_builtins(DeviceFacts(arch, 104, 416, 32, 1, "SPX/NPS1", sdk=sdk))
    source = Source(
        "x.bin",
        "telemetry",
        ClockDomain.RUN,
        "node",
        details=((f"device-counters.{IDENTITY}", json.dumps(facts)), *details),
    )
    strings = Strings()
    return Trace(
        (source,),
        strings,
        (Device("0", "node", IDENTITY),),
        samples=Samples.build(
            len(metrics),
            at_ns=list(range(len(metrics))),
            until_ns=list(range(1, len(metrics) + 1)),
            metric=strings.codes(metrics),
            value=0.5,
            device=0,
            source=0,
        ),
    )


@pytest.mark.parametrize(
    ("details", "metrics", "said"),
    [
        (
            (f"device-counters-hidden.{IDENTITY}", "this process lacks CAP_PERFMON"),
            ("fabric_read",),
            f"{IDENTITY} worked, and no compute unit of it was seen to work: this process lacks",
        ),
        (
            (f"device-counters-partial.{IDENTITY}", "no profiler interface"),
            ("cu_active",),
            "of some processes only were counted, so the figures are the least",
        ),
        (
            (f"missing.device-counters:{IDENTITY}", "it is a virtual function"),
            (),
            f"{IDENTITY}: it is a virtual function",
        ),
        (
            ("failed.device-counters", "1 read: HelperEndedError: SIGABRT"),
            ("cu_active",),
            "hardware counters of node are not there to the end (1 read: HelperEndedError",
        ),
        (
            ("failed.device-counters", "1 read: ValueError: sample: status 9"),
            ("cu_active",),
            "hardware counters of node are not there for some intervals (1 read: ValueError",
        ),
        (
            (f"device-counters-shared.{IDENTITY}", "another profiler holds the device"),
            ("cu_active",),
            "programs the same registers, so that every figure of its hardware counters may be",
        ),
    ],
)
def test_hidden_units_are_a_finding(
    details: tuple[str, str], metrics: tuple[str, ...], said: str
) -> None:
    (found,) = device_counter_findings(trace(details, metrics=metrics))
    assert (found.id, found.severity) == ("device-counters-hidden", "warning")
    assert said in found.message
    assert [one.id for one in telemetry_findings(trace(details, metrics=metrics), {})] == [
        "device-counters-hidden"
    ], "and it is no gap of the sampler"


def test_the_limiter_is_named_where_units_were_counted() -> None:
    (found,) = device_counter_findings(trace(metrics=("cu_active",), arch="gfx942"))
    assert (found.id, found.severity) == ("device-counters-limiter", "info")
    assert "(gfx942 as SPX/NPS1, 104 compute units)" in found.message
    assert not list(device_counter_findings(trace(metrics=("fabric_read",), arch="gfx942")))


def test_counters_that_all_see_have_none() -> None:
    assert not list(device_counter_findings(trace(metrics=("cu_active", "fabric_read"))))
    assert not list(
        device_counter_findings(trace(("failed.device-counters", "1 read: it never began"), sdk=""))
    ), "whoever asked for it says so"


WHOSE = ("counters-exporter", "omnistat at localhost:8001")


@pytest.mark.parametrize(
    ("details", "severity", "said"),
    [
        ((WHOSE,), "info", "are those of omnistat at localhost:8001, not of profharness"),
        (
            (WHOSE, ("failed.counters-exporter", "3 reads: ExporterError: gone")),
            "warning",
            "from omnistat at localhost:8001 have holes (3 reads: ExporterError: gone)",
        ),
        (
            (("missing.counters-exporter", "it is gone"),),
            "warning",
            "no hardware counter of node was read from the exporter: it is gone",
        ),
    ],
)
def test_whose_counters_they_are_and_that_they_ended(
    details: tuple[tuple[str, str], ...], severity: str, said: str
) -> None:
    found = telemetry_findings(trace(*details), {})
    assert [one.id for one in found] == ["device-counters-exporter"]
    assert found[0].severity == severity
    assert said in found[0].message


def test_an_end_before_the_first_figure_is_said() -> None:
    """It had begun, so that whoever asked was told that all is well."""
    (found,) = device_counter_findings(
        trace(("failed.device-counters", "1 read: HelperEndedError: SIGABRT"))
    )
    assert "are not there to the end (1 read: HelperEndedError: SIGABRT)" in found.message


@pytest.mark.parametrize("kind", ["partial", "shared"])
def test_no_verdict_rests_on_units_that_were_seen_in_part(kind: str) -> None:
    figures = {
        "gpu_percent": Figure(value=100.0, unit="%"),
        "cu_active": Figure(value=0.1, unit="share"),
        "cu_active_1": Figure(value=0.1, unit="share"),
    }
    seen, doubtful = trace(), trace((f"device-counters-{kind}.{IDENTITY}", "why"))
    assert "compute units work" in str(telemetry_verdict(for_verdict(figures, seen)))
    left = for_verdict(figures, doubtful)
    assert set(left) == {"gpu_percent"}
    assert not units_counted(left)
    assert "underfilled" not in str(telemetry_verdict(left).verdict)
