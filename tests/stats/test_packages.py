"""Power of packages in a run: never halved, never doubled, with interval, idle and what is
missing.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import pytest

from profharness.analysis.power.run_telemetry import figures_in
from profharness.analysis.records import Figure
from profharness.analysis.run.summary import summarise_run
from profharness.analysis.verdict.telemetry import telemetry_verdict
from profharness.node.ceilings import Calibration
from profharness.stats.intervals import window
from profharness.stats.package_figures import power_figures
from profharness.stats.packages import calibrated, package_findings, packages, used
from profharness.stats.streams import idle_window, streams
from profharness.trace.columns.table import concat
from profharness.trace.model import ClockDomain, Device, Samples, Source, Strings, Trace
from tests.analysis.run.run_scene import Builder, manifest, scan_trace

MS, S = 1_000_000, 1_000_000_000
C1, C6 = "0000:c1:00.0", "0000:c6:00.0"


def telemetry(
    *,
    devices=(C1,),
    power=(300.0,),
    busy=(90.0,),
    counter=(1.0,),
    seconds=4,
    scope="package of 2 dies",
    details=(),
    start=0,
    extra=(),
):
    """Samples at 20 Hz on the run clock: power with a little ripple on the first devices, busy
    shares on all of them.
    """
    strings, parts = Strings(), []
    at = start + np.arange(0, seconds * S, 50 * MS)
    ripple = np.where(np.arange(len(at)) % 2, 4.0, -4.0)

    def add(metric, device, values, until=None):
        parts.append(
            Samples.build(
                len(values),
                at_ns=at[: len(values)],
                until_ns=at[: len(values)] if until is None else until,
                device=device,
                metric=strings.code(metric),
                value=values,
                source=0,
            )
        )

    for place, watts in enumerate(power):
        add("power_w", place, watts + ripple)
        add("power_limit", place, np.full(len(at), 500.0))
        add("power_energy", place, np.full(len(at) - 1, watts * counter[place]), at[1:])
    for place, percent in enumerate(busy):
        add("gpu_percent", place, np.full(len(at), percent))
    for metric, device, value in extra:
        add(metric, device, np.full(len(at), value))
    facts = [(f"package.{device}", devices[0]) for device in devices] + [
        (f"power_scope.{device}", scope) for device in devices
    ]
    source = Source(
        path="telemetry/node.samples.bin",
        format="telemetry",
        clock=ClockDomain.RUN,
        host="node",
        layer="telemetry",
        details=(*facts, *details),
    )
    return Trace(
        (source,),
        strings,
        tuple(Device(str(place), "node", device) for place, device in enumerate(devices)),
        samples=concat(parts),
    )


def figures(trace, *, start=S, end=3 * S, items=100, idle=None):
    every = streams(trace)
    found = packages(every, idle_window(trace) if idle is None else idle)
    return power_figures(every, found, window(start, end), items, "bare pass, telemetry")


def test_energy_of_a_point_with_interval():
    found = figures(telemetry(devices=(C1,), scope="device"))
    assert found["power_w"].value == pytest.approx(300, rel=0.002)
    assert found["energy"].value == pytest.approx(600, rel=0.002)
    assert found["energy_per_item"].value == pytest.approx(6, rel=0.002)
    assert (
        found["energy_per_item"].low
        < found["energy_per_item"].value
        < found["energy_per_item"].high
    )
    assert found["items_per_joule"].value == pytest.approx(1 / 6, rel=0.002)
    assert "energy counter" in found["energy"].source
    assert found["power_w"].note == "one device"
    assert found["power_saturation"].needs == "--idle-seconds"
    assert found["power_sensor_period"].value == 50 * MS


@pytest.mark.parametrize(
    ("busy", "said"),
    [
        ((90.0, 80.0), "package of 2 dies, all active"),
        ((90.0, 0.0), "package of 2 dies, 1 of 2 active: shared, not attributable to one"),
        ((0.0, 90.0), "package of 2 dies, 1 of 2 active: shared, not attributable to one"),
    ],
)
def test_a_package_of_two_dies_counts_once_and_whole(busy, said):
    found = figures(telemetry(devices=(C1, C6), busy=busy))
    assert found["power_w"].value == pytest.approx(300, rel=0.002)
    assert found["power_w"].note == said


def test_packages_of_idle_devices_are_left_out():
    trace = telemetry(devices=(C1, C6), power=(300.0, 250.0), busy=(90.0, 0.0), counter=(1.0, 1.0))
    source = replace(
        trace.sources[0], details=tuple((f"package.{device}", device) for device in (C1, C6))
    )
    both = replace(trace, sources=(source,))
    assert figures(both)["power_w"].value == pytest.approx(300, rel=0.002)
    assert used(streams(both), window(S, 3 * S)) == ("0",)
    worked = telemetry(
        devices=(C1, C6), power=(300.0, 250.0), busy=(90.0, 50.0), counter=(1.0, 1.0)
    )
    worked = replace(worked, sources=(source,))
    found = figures(worked)
    assert found["power_w"].value == pytest.approx(550, rel=0.002)
    assert found["power_w"].note == "2 packages, one device each"
    shared = figures_in(streams(worked), window(S, 3 * S), "x")
    assert (shared["gpu_percent"].value, shared["gpu_percent"].note) == (
        70.0,
        "mean over devices 0, 1",
    )
    assert (shared["gpu_percent_0"].value, shared["power_limit"].value) == (90.0, 1000.0)


def test_idle_power_makes_net_energy_and_saturation():
    trace = telemetry(
        seconds=6, details=(("idle_start_ns", "0"), ("idle_end_ns", str(S))), scope="device"
    )
    # at rest 60 W instead of 300
    samples = trace.samples
    resting = samples.at_ns < S
    value = np.where(
        resting
        & np.isin(
            samples.metric, [trace.strings.find("power_w"), trace.strings.find("power_energy")]
        ),
        samples.value - 240,
        samples.value,
    )
    trace = replace(trace, samples=samples.with_columns(value=value))
    found = figures(trace, start=2 * S, end=4 * S)
    assert found["power_idle"].value == pytest.approx(60, rel=0.02)
    assert found["power_saturation"].value == pytest.approx((300 - 60) / (500 - 60), rel=0.02)
    assert found["energy_per_item_net"].value == pytest.approx((600 - 120) / 100, rel=0.02)


def test_a_point_shorter_than_twenty_periods_is_not_measured():
    found = figures(telemetry(), start=S, end=S + 900 * MS)
    assert {
        name: found[name].value for name in ("power_w", "energy_per_item", "power_saturation")
    } == dict.fromkeys(("power_w", "energy_per_item", "power_saturation"))
    assert found["energy_per_item"].needs == "--min-seconds 1"


def test_a_counter_that_disagrees_is_a_finding_and_not_used():
    trace = telemetry(counter=(1.5,), scope="device")
    (package,) = packages(streams(trace))
    assert "1.50 times" in package.check.why_not
    (found,) = package_findings((package,))
    assert (found.id, found.severity) == ("energy-counter", "warning")
    energy = figures(trace)
    assert energy["energy"].value == pytest.approx(600, rel=0.01)
    assert "integrated power" in energy["energy"].source


def test_a_counter_that_agrees_is_no_finding():
    (package,) = packages(streams(telemetry(counter=(1.0,), scope="device")))
    assert package.check.why_not == ""
    assert tuple(package_findings((package,))) == ()


def test_without_an_accelerator_the_cpus_stand_in():
    builder = Builder()
    at = np.arange(0, 4 * S, 200 * MS)
    builder.telemetry("power_cpu", at[:-1], at[1:], np.full(len(at) - 1, 80.0))
    trace = builder.trace()
    assert (
        figures(trace, start=0, end=3_800 * MS)["energy"].needs == "--min-seconds 4"
    )  # RAPL is read five times a second
    at = np.arange(0, 8 * S, 200 * MS)
    builder.telemetry("power_cpu", at[:-1], at[1:], np.full(len(at) - 1, 80.0))
    found = figures(
        Trace(**{**vars(builder.trace()), "samples": builder.samples[-1]}), start=S, end=6 * S
    )
    assert found["energy"].value == pytest.approx(400)
    assert "CPU packages of the node" in found["energy"].note
    assert packages(()) == ()


def powered_run():
    """A run beside which a device draws 200 W, and when its points ran."""
    builder, spans = scan_trace(kernels=False)
    start = min(low for low, _ in spans.values())
    at = np.arange(start - 50 * MS, builder.now + 50 * MS, MS)
    builder.telemetry(
        "power_w", at, at, np.full(len(at), 200.0) + np.where(np.arange(len(at)) % 2, 1.0, -1.0)
    )
    builder.samples[-1:] = [part.with_columns(device=0) for part in builder.samples[-1:]]
    return replace(builder.trace(), devices=(Device("0", "node", C1),)), spans


def test_what_a_device_draws_while_the_cpu_works_is_not_the_workloads():
    trace, _ = powered_run()
    made = manifest()
    on_cpu = msgspec.structs.replace(
        made, points=tuple(msgspec.structs.replace(point, device="cpu") for point in made.points)
    )
    summary = summarise_run(on_cpu, trace, "x")
    assert {figure for point in summary.points for figure in point.metrics} & {
        "power_w",
        "energy",
        "power_w_0",
    } == set()
    assert summary.points[0].metrics["energy_per_item"].needs == "power"
    assert [row.metric for row in summary.telemetry] == ["power_w"]


def test_a_run_prints_energy_per_point():
    trace, spans = powered_run()
    summary = summarise_run(manifest(), trace, "x")
    metrics = next(one for one in summary.points if one.batch_size == 4).metrics
    low, high = spans[4]
    per_trial = (high - low) / 1e9 * 200
    assert metrics["energy"].value == pytest.approx(per_trial, rel=0.01)
    assert metrics["power_w"].value == pytest.approx(200, rel=0.01)
    assert metrics["energy_per_item"].value == pytest.approx(
        metrics["energy"].value / (metrics["throughput"].value * (high - low) / 1e9), rel=0.05
    )
    assert summary.metrics["power_w"].value == pytest.approx(200, rel=0.01)


def shown(**values):
    return {name: Figure(value=value, unit="") for name, value in values.items()}


@pytest.mark.parametrize(
    ("values", "kind", "said"),
    [
        (
            {"gpu_percent": 20.0, "cores_used": 1.0, "cores_allowed": 8.0},
            "idle-unexplained",
            "idle 80.0 % of the time while the host ran on 1.0 of 8 cores",
        ),
        ({"gpu_percent": 100.0, "wave_fill": 0.03}, "underfilled", "holds 3.0 % of the waves"),
        (
            {"gpu_percent": 100.0, "wave_fill": 0.03, "gpu_processes": 1.0},
            "underfilled",
            "holds 3.0 % of the waves",
        ),
        (
            {"gpu_percent": 100.0, "wave_fill": 0.0, "gpu_processes": 0.0},
            "undetermined",
            "busy 100.0 % of the time; whether",
        ),
        (
            {"gpu_percent": 100.0, "wave_fill": 0.5, "memory_activity": 0.7},
            "bandwidth",
            "memory controller 70.0 %",
        ),
        (
            {"gpu_percent": 95.0, "gpu_activity_mean": 100.0, "sm_activity": 0.3},
            "underfilled",
            "30.0 % of the SMs",
        ),
        (
            {"gpu_percent": 100.0, "sm_activity": 0.9, "tensor_activity": 0.8},
            "compute",
            "tensor cores 80.0 %",
        ),
        (
            {
                "gpu_percent": 100.0,
                "sm_activity": 0.9,
                "tensor_activity": 0.1,
                "dram_activity": 0.65,
            },
            "bandwidth",
            "65.0 % of the peak",
        ),
        (
            {"gpu_percent": 90.0, "wave_fill": 0.4, "throttle_power": 0.5},
            "undetermined",
            "its power limit held the clock down 50.0 %",
        ),
        (
            {"gpu_percent": 100.0, "cu_active": 0.38, "cu_occupancy": 0.11, "wave_fill": 0.5},
            "underfilled",
            "only 38.0 % of the compute units work meanwhile, which hold 11.0 % of their waves",
        ),
        (
            {"gpu_percent": 50.1, "cu_active": 0.501, "memory_activity": 0.7, "wave_fill": 0.01},
            "bandwidth",
            "the memory controller 70.0 %",
        ),
        (
            {"gpu_percent": 100.0, "cu_active": 0.9, "matrix_busy": 0.66},
            "compute",
            "matrix cores 66.0 %",
        ),
        (
            {"gpu_percent": 100.0, "cu_active": 0.9, "matrix_busy": 0.04, "cu_occupancy": 0.3},
            "undetermined",
            "compute units 90.0 %, their occupancy 30.0 %, matrix cores 4.0 %",
        ),
        ({"cores_used": 1.0, "cores_allowed": 8.0}, "idle-cores", "1.0 of 8 allowed cores"),
    ],
)
def test_the_verdict_from_telemetry_alone(values, kind, said):
    found = telemetry_verdict(shown(**values)).verdict
    assert found.kind == kind
    assert said in found.text
    assert "lower confidence" in found.text


def test_telemetry_alone_keeps_its_distrust():
    found = telemetry_verdict(shown(cores_used=0.5, cores_allowed=8.0, cpu_node=8.0))
    assert found.verdict is None
    assert found.needs.startswith("a quiet node, as other work held the cores")


def test_no_verdict_without_figures():
    assert telemetry_verdict({}).verdict is None
    assert telemetry_verdict({}).needs


def known(gemm: float | None = 450.0, idle: float | None = 80.0) -> Calibration:
    return Calibration(
        created="2026",
        kind="rocm",
        name="AMD Instinct MI300X",
        gemm_power_w=gemm,
        idle_power_w=idle,
    )


def against_gemm(
    calibration: Calibration | None, *, idle=None, busy=(90.0,), devices=(C1,)
) -> Figure:
    trace = telemetry(
        devices=devices, scope="device" if len(devices) == 1 else "package of 2 dies", busy=busy
    )
    trace = replace(
        trace,
        devices=tuple(replace(device, name="AMD Instinct MI300X") for device in trace.devices),
    )
    every = streams(trace)
    found = calibrated(
        packages(every, window(0, 0) if idle is None else idle),
        trace,
        () if calibration is None else (calibration,),
        None,
        "",
    )
    return power_figures(every, found, window(S, 3 * S), 100, "test")["power_vs_gemm"]


def test_power_beside_the_calibrated_product():
    found = against_gemm(known())
    assert found.value == pytest.approx((300 - 80) / (450 - 80), rel=0.005)
    assert found.low < found.value < found.high
    # idle power of the run goes before that of the calibration: here the device is said to rest in
    # its first second, at 300 W
    assert against_gemm(known(), idle=window(0, S)).value == pytest.approx(0, abs=0.02)


@pytest.mark.parametrize(
    ("calibration", "busy", "devices", "needs"),
    [
        (None, (90.0,), (C1,), "profharness calibrate"),
        (known(gemm=None), (90.0,), (C1,), "profharness calibrate"),
        (known(idle=None), (90.0,), (C1,), "--idle-seconds"),
        (known(gemm=70.0), (90.0,), (C1,), "draws more than an idle device"),
        (known(), (90.0, 90.0), (C1, C6), "one die at work"),
    ],
)
def test_power_beside_the_calibrated_product_says_what_it_needs(calibration, busy, devices, needs):
    found = against_gemm(calibration, busy=busy, devices=devices)
    assert found.value is None
    assert needs in found.needs


def test_a_package_of_two_dies_with_one_at_work_is_compared_with_the_product_on_one():
    assert against_gemm(known(), busy=(90.0, 0.0), devices=(C1, C6)).value == pytest.approx(
        (300 - 80) / (450 - 80), rel=0.005
    )


def test_a_cpu_is_compared_with_the_product_on_most_threads():
    """One thread's product draws little of what the package can, however new its calibration is."""
    builder = Builder()
    at = np.arange(0, 8 * S, 200 * MS)
    builder.telemetry("power_cpu", at[:-1], at[1:], np.full(len(at) - 1, 80.0))
    trace = builder.trace()
    threads = [
        Calibration(
            created=str(2020 + number),
            kind="cpu",
            name="CPU",
            compute_units=units,
            gemm_power_w=watts,
            idle_power_w=40.0,
        )
        for number, (units, watts) in enumerate(((4, 180.0), (16, 240.0), (1, 60.0)))
    ]
    (package,) = calibrated(packages(streams(trace)), trace, threads, None, "CPU")
    assert package.gemm_w == 240.0
    (package,) = calibrated(packages(streams(trace)), trace, threads, None, "Another")
    assert package.gemm_w is None


def test_a_slow_sensor_is_a_finding_with_its_period_and_delay():
    """New values every 200 ms, each the mean of the 200 ms before it; the counter tells what the
    power really was.
    """
    rng = np.random.default_rng(5)
    at = np.arange(0, 30 * S, 20 * MS)
    true = np.repeat(
        rng.uniform(150.0, 400.0, len(at) // 5), 5
    )  # another level every tenth of a second
    joules = np.concatenate(([0.0], np.cumsum(true) * 0.02))
    shown = np.array(
        [(joules[place] - joules[max(place - 10, 0)]) / 0.2 for place in range(len(at))]
    )
    shown = np.repeat(shown[::10], 10)
    strings = Strings()
    power = Samples.build(
        len(at),
        at_ns=at,
        until_ns=at,
        device=0,
        metric=strings.code("power_w"),
        value=shown,
        source=0,
    )
    counter = Samples.build(
        len(at) - 1,
        at_ns=at[:-1],
        until_ns=at[1:],
        device=0,
        metric=strings.code("power_energy"),
        value=true[:-1],
        source=0,
    )
    trace = Trace(
        (Source("t", "telemetry"),),
        strings,
        (Device("0", "node", C1),),
        samples=concat([power, counter]),
    )
    (found,) = [
        one for one in package_findings(packages(streams(trace))) if one.id == "power-sensor"
    ]
    assert found.figures["period_ns"] == pytest.approx(200 * MS, rel=0.1)
    assert found.figures["window_ns"] + found.figures["delay_ns"] == pytest.approx(
        300 * MS, abs=120 * MS
    )  # averaging, and half a period of waiting
    assert "new value every 200.0 ms" in found.message
