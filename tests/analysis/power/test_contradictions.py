"""A trace and the driver's figures that cannot both be right."""

from __future__ import annotations

import numpy as np
import pytest

from profharness.analysis.power.contradictions import idle_contradicted
from profharness.findings import Finding
from profharness.stats.streams import streams
from profharness.trace.columns.table import concat
from profharness.trace.model import Api, Device, Kernels, Samples, Source, Strings, Trace

S, MS = 1_000_000_000, 1_000_000
ADDRESS = "0000:c1:00.0"


def scene(
    *,
    work: list[tuple[float, float]],
    percent: list[tuple[float, float]],
    power: list[tuple[float, float]] | None = None,
    others: float | None = None,
    host: list[float] | None = None,
    identity: str = ADDRESS,
) -> tuple[Finding, ...]:
    """Kernels over spans of seconds; telemetry at 20 Hz for 10 s from (until, value) pairs; host
    calls at seconds.
    """
    strings = Strings()
    at = np.arange(0, 10 * S, 50 * MS)
    metrics = {
        "gpu_percent": percent,
        "power_w": power,
        "gpu_processes_other": None if others is None else [(10.0, others)],
    }
    samples = []
    for name, steps in metrics.items():
        if steps is not None:
            values = np.select(
                [at < until * S for until, _ in steps], [value for _, value in steps]
            )
            samples.append(
                Samples.build(
                    len(at),
                    at_ns=at,
                    until_ns=at,
                    device=1,
                    metric=strings.code(name),
                    value=values,
                    source=1,
                )
            )
    starts = np.concatenate([np.arange(start * S, end * S, 10 * MS) for start, end in work]).astype(
        np.int64
    )
    kernels = Kernels.build(
        len(starts),
        start_ns=starts,
        dur_ns=np.full(len(starts), 9 * MS),
        name=strings.code("k"),
        device=0,
        source=0,
    )
    calls = np.array([0.0, 9.9] if host is None else host) * S
    api = Api.build(
        len(calls),
        start_ns=calls.astype(np.int64),
        dur_ns=np.full(len(calls), 1000),
        name=strings.code("hipLaunchKernel"),
        source=0,
    )
    sources = (Source("a.json", "kineto"), Source("t", "telemetry"))
    trace = Trace(
        sources,
        strings,
        (Device("0", "node", identity), Device("0", "node", ADDRESS)),
        kernels=kernels,
        api=api,
        samples=concat(samples),
    )
    return idle_contradicted(trace, streams(trace))


BUSY = [(10.0, 99.0)]
GAP = [(0.0, 3.0), (7.0, 9.5)]


def test_a_gap_in_which_the_driver_sees_work_is_an_error() -> None:
    (found,) = scene(
        work=GAP,
        percent=BUSY,
        power=[(0.2, 90.0), (10.0, 400.0)],
        host=[0.0, 4.0, 5.0, 9.9],
        others=0.0,
    )
    assert (found.id, found.severity) == ("idle-contradicted", "error")
    assert "no work on device 0 for 3.701 s" in found.message
    assert "its power is that of work" in found.message
    assert "no other process is seen" in found.message
    assert found.figures["gpu_percent"] == pytest.approx(99)


def test_work_of_another_process_explains_it() -> None:
    (found,) = scene(
        work=GAP, percent=BUSY, power=[(0.2, 90.0), (10.0, 400.0)], host=[0.0, 4.0, 9.9], others=1.0
    )
    assert found.severity == "warning"
    assert "1.0 other processes used it meanwhile" in found.message


def test_a_gap_in_which_the_tool_recorded_nothing_at_all_is_a_pause() -> None:
    assert (
        scene(work=GAP, percent=BUSY, power=[(0.2, 90.0), (10.0, 400.0)], host=[0.0, 1.0, 8.0])
        == ()
    )


def test_without_host_records_it_is_a_warning_only() -> None:
    (found,) = scene(work=GAP, percent=BUSY, power=[(0.2, 90.0), (10.0, 400.0)], host=[])
    assert found.severity == "warning"


def test_a_busy_figure_that_stays_high_while_power_falls_proves_nothing() -> None:
    assert (
        scene(
            work=GAP,
            percent=BUSY,
            power=[(3.1, 400.0), (6.9, 90.0), (10.0, 400.0)],
            host=[0.0, 4.0, 9.9],
        )
        == ()
    )


def test_without_power_the_drivers_figure_alone_is_a_warning() -> None:
    (found,) = scene(work=GAP, percent=BUSY, host=[0.0, 4.0, 9.9])
    assert found.severity == "warning"


@pytest.mark.parametrize("percent", [[(3.2, 99.0), (6.9, 0.0), (10.0, 99.0)], [(10.0, 40.0)]])
def test_where_both_say_idle_all_is_well(percent: list[tuple[float, float]]) -> None:
    assert scene(work=GAP, percent=percent, host=[0.0, 4.0, 9.9]) == ()


def test_short_gaps_are_no_contradiction() -> None:
    spans = [
        (start, start + 0.3) for start in np.arange(0, 9.5, 0.5)
    ]  # the driver's figure bridges them
    assert scene(work=spans, percent=BUSY, power=[(10.0, 400.0)]) == ()


def test_work_on_a_device_that_does_nothing_is_the_reverse() -> None:
    (found,) = scene(work=[(0.0, 9.5)], percent=[(10.0, 0.0)])
    assert (found.id, found.severity) == ("idle-contradicted", "warning")
    assert "another device" in found.message


def test_only_figures_of_the_same_device_count() -> None:
    assert scene(work=GAP, percent=BUSY, identity="0000:c6:00.0", host=[0.0, 4.0, 9.9]) == ()
    assert (
        len(scene(work=GAP, percent=BUSY, identity="", host=[0.0, 4.0, 9.9])) == 1
    )  # a trace that names no address: by number
