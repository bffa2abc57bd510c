"""Figures of a device's counters against canned truth, and what must not become a figure."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.telemetry.sources.amd.counting import sets
from profharness.trace import device_counters
from profharness.trace.device_counters import DeviceFacts, with_figures
from profharness.trace.model import ClockDomain, Device, Samples, Source, Strings, Trace
from profharness.trace.sample_metrics import metric_of

MI210 = DeviceFacts("gfx90a", 104, 416, 32, 1)
SPX = DeviceFacts("gfx942", 304, 1216, 32, 8, "SPX/NPS1")
CPX = DeviceFacts("gfx942", 38, 152, 32, 1, "CPX/NPS4")
MI355X = DeviceFacts("gfx950", 256, 1024, 32, 8)
SECOND = 1_000_000_000
Totals = dict[str, int]


def shader_totals(cycles: int, units: int, scale: int = 1) -> dict[str, int]:
    """What a device of so many compute units counts in so many cycles: half of its units are active
    for the whole time with 8 of 32 waves each, and one SIMD of four multiplies matrices for an
    eighth of it. Counted event by event, not by the formulas: a quad-cycle event is one per four
    cycles, per SIMD or per wave.
    """
    active = units // 2
    quad = cycles // 4
    return {
        "SQ_BUSY_CU_CYCLES": active * cycles * scale,
        "SQ_WAVE_CYCLES": active * 8 * quad * scale,
        "SQ_VALU_MFMA_BUSY_CYCLES": units * (cycles // 8) * scale,  # one SIMD in each unit
        "SQ_ACTIVE_INST_VALU": active * 4 * (quad // 2) * scale,  # every SIMD, half of the time
        "SQ_ACTIVE_INST_VMEM": active * 4 * (quad // 8) * scale,
        "SQ_ACTIVE_INST_FLAT": active * 4 * (quad // 16) * scale,
        "SQ_ACTIVE_INST_LDS": active * 4 * (quad // 4) * scale,
    }


TRUTH = {
    "cu_active": 0.5,
    "cu_occupancy": 0.125,
    "matrix_busy": 0.03125,
    "valu_busy": 0.25,
    "vmem_busy": 0.09375,
    "lds_busy": 0.125,
}


def totals(facts: DeviceFacts, seconds: float, **others: int) -> dict[str, int]:
    """After so many seconds at 2 GHz; the clocks of the dies differ a little."""
    cycles = int(2e9 * seconds)
    dies = {
        f"{name}:{die}": share * (cycles - 1000 * (facts.dies - 1 - die)) // 100
        for die in range(facts.dies)
        for name, share in (("GRBM_COUNT", 100), ("GRBM_GUI_ACTIVE", 90))
    }
    return {**dies, **shader_totals(cycles, facts.compute_units), **others}


def trace_of(
    facts: DeviceFacts, readings: Sequence[tuple[int, Totals]], identity: str = "0000:c1:00.0"
) -> Trace:
    """Raw rates, as the reader of the sampler's file makes them from totals."""
    strings = Strings()
    parts = []
    for (begin, old), (end, new) in itertools.pairwise(readings):
        parts += [
            (
                begin,
                end,
                strings.code(f"counter_rate:{name}"),
                (new[name] - old[name]) / ((end - begin) / 1e9),
            )
            for name in old.keys() & new.keys()
            if new[name] >= old[name]
        ]
    columns = list(zip(*parts, strict=True)) or [[]] * 4
    known = {name: getattr(facts, name) for name in facts.__struct_fields__}
    source = Source(
        "x.bin",
        "telemetry",
        ClockDomain.MONOTONIC,
        "node",
        details=((f"device-counters.{identity}", json.dumps(known)),),
    )
    return Trace(
        (source,),
        strings,
        (Device("0", "node", identity, "AMD Instinct", "amd"),),
        samples=Samples.build(
            len(parts),
            at_ns=columns[0],
            until_ns=columns[1],
            metric=columns[2],
            value=columns[3],
            device=0,
            source=0,
        ),
    )


def figures(trace: Trace) -> dict[str, list[float]]:
    samples = trace.samples
    found: dict[str, list[float]] = {}
    for metric, value in zip(samples.metric, samples.value, strict=True):
        found.setdefault(trace.strings[int(metric)], []).append(float(value))
    return found


def two(facts: DeviceFacts, **growth: int) -> list[tuple[int, Totals]]:
    nothing = dict.fromkeys(growth, 0)
    return [
        (7 * SECOND, totals(facts, 1.0, **nothing)),
        (7 * SECOND + SECOND // 2, totals(facts, 1.5, **growth)),
    ]


REQUESTS = {
    "gfx90a": (
        {
            "TCC_EA_RDREQ": 1000,
            "TCC_EA_RDREQ_32B": 200,
            "TCC_EA_WRREQ": 500,
            "TCC_EA_WRREQ_64B": 300,
        },
        800 * 64 + 200 * 32,
        300 * 64 + 200 * 32,
    ),
    "gfx942": (
        {"TCC_EA0_RDREQ": 1000, "TCC_EA0_RDREQ_32B": 200, "TCC_BUBBLE": 50, "TCC_EA0_WRREQ": 500},
        50 * 128 + 750 * 64 + 200 * 32,
        500 * 64,
    ),
    "gfx950": (
        {
            "TCC_EA0_RDREQ": 1000,
            "TCC_EA0_RDREQ_32B": 200,
            "TCC_EA0_RDREQ_128B": 90,
            "TCC_EA0_WRREQ": 500,
        },
        90 * 128 + 710 * 64 + 200 * 32,
        500 * 64,
    ),
}


@pytest.mark.parametrize(
    "facts", [MI210, SPX, CPX, MI355X], ids=lambda facts: f"{facts.arch}-{facts.dies}"
)
def test_canned_truth_of_each_part(facts: DeviceFacts) -> None:
    requests, read, written = REQUESTS[facts.arch]
    found = figures(with_figures(trace_of(facts, two(facts, **requests))))
    assert {name: values[0] for name, values in found.items()} == pytest.approx(
        {**TRUTH, "fabric_read": read / 0.5, "fabric_write": written / 0.5}, rel=1e-9
    )
    assert all(metric_of(name) is not None for name in found)


def test_the_longest_clock_of_the_dies_counts_and_never_their_sum() -> None:
    """With one die at half its clock the truth stays; a sum over 8 dies would show an eighth."""
    slow = two(SPX)
    for _, reading in slow:
        reading["GRBM_COUNT:0"] //= 2
        reading["GRBM_GUI_ACTIVE:0"] //= 2
    found = figures(with_figures(trace_of(SPX, slow)))
    assert found["cu_active"] == pytest.approx([0.5])


def test_no_figure_where_shaders_are_hidden_though_the_device_works() -> None:
    hidden = dict.fromkeys(shader_totals(8, 8), 0)
    facts = msgspec.structs.replace(SPX, level="fabric-only", why="this process lacks CAP_PERFMON")
    readings = [(at, {**reading, **hidden}) for at, reading in two(facts, **REQUESTS["gfx942"][0])]
    trace = with_figures(trace_of(facts, readings))
    assert set(figures(trace)) == {"fabric_read", "fabric_write"}
    assert dict(trace.sources[0].details)["device-counters-hidden.0000:c1:00.0"] == (
        "this process lacks CAP_PERFMON"
    )


def test_an_idle_device_has_zeros() -> None:
    """Its own reading keeps the command processor busy for a moment."""
    readings = [
        (at, {**reading, **dict.fromkeys(shader_totals(8, 8), 0)}) for at, reading in two(SPX)
    ]
    for _, reading in readings:
        for die in range(8):
            reading[f"GRBM_GUI_ACTIVE:{die}"] = reading[f"GRBM_COUNT:{die}"] // 1000
    trace = with_figures(trace_of(SPX, readings))
    assert figures(trace)["cu_active"] == [0.0]
    assert "device-counters-hidden.0000:c1:00.0" not in dict(trace.sources[0].details)


def test_zeros_are_none_where_the_devices_work_was_not_counted_and_units_are_not_visible() -> None:
    facts = msgspec.structs.replace(SPX, level="fabric-only", why="this process lacks CAP_PERFMON")
    readings = [
        (at, {**reading, **dict.fromkeys(shader_totals(8, 8), 0)}) for at, reading in two(SPX)
    ]
    for _, reading in readings:
        for die in range(8):
            del reading[f"GRBM_GUI_ACTIVE:{die}"]
    assert "cu_active" not in figures(with_figures(trace_of(facts, readings)))
    assert figures(with_figures(trace_of(SPX, readings)))["cu_active"] == [0.0]


def test_shaders_seen_against_expectation_are_said_to_be_a_part() -> None:
    facts = msgspec.structs.replace(SPX, level="fabric-only", why="no profiler interface")
    trace = with_figures(trace_of(facts, two(facts)))
    assert figures(trace)["cu_active"] == pytest.approx([0.5])
    assert dict(trace.sources[0].details)["device-counters-partial.0000:c1:00.0"] == (
        "no profiler interface"
    )


@pytest.mark.parametrize(("shared", "kind"), [(True, "shared"), (False, "partial")])
def test_a_lock_that_was_refused_is_said_though_shaders_are_seen(shared: bool, kind: str) -> None:
    """Another profiler's queues carry the bit, so that nothing stays 0."""
    facts = msgspec.structs.replace(SPX, why="another profiler holds the device", shared=shared)
    details = dict(with_figures(trace_of(facts, two(facts))).sources[0].details)
    said = f"device-counters-{kind}.0000:c1:00.0"
    assert details.get(said) == "another profiler holds the device"


def doubled(later: dict[str, int]) -> None:
    """Busier than the time allows, and going back afterwards."""
    later.update({f"GRBM_GUI_ACTIVE:{die}": 2 * later[f"GRBM_COUNT:{die}"] for die in range(8)})


@pytest.mark.parametrize(
    ("spoil", "left"),
    [
        pytest.param(lambda later: later.update(dict.fromkeys(later, 0)), 2, id="reset"),
        pytest.param(lambda later: later.pop("GRBM_COUNT:5"), 1, id="a die was not read"),
        pytest.param(doubled, 1, id="doubled"),
    ],
)
def test_gaps_are_no_numbers(spoil: Callable[[dict[str, int]], object], left: int) -> None:
    readings = [*two(SPX), (8 * SECOND, totals(SPX, 2.0)), (9 * SECOND, totals(SPX, 3.0))]
    spoil(readings[1][1])
    if left == 2:  # after a reset they count from nothing
        for place, seconds in ((2, 0.5), (3, 1.5)):
            readings[place] = (readings[place][0], totals(SPX, seconds))
    trace = with_figures(trace_of(SPX, readings))
    assert figures(trace)["cu_active"] == pytest.approx([0.5] * left, rel=1e-5)


def test_long_intervals_are_gaps() -> None:
    apart = [(7 * SECOND, totals(SPX, 1.0)), (9 * SECOND, totals(SPX, 3.0))]  # 2 s at 2 Hz
    assert figures(with_figures(trace_of(SPX, apart))) == {}
    slower = msgspec.structs.replace(SPX, hz=1.0)
    assert figures(with_figures(trace_of(slower, apart)))["cu_active"] == pytest.approx([0.5])


def test_more_than_there_is_room_for_is_left_out_alone() -> None:
    readings = two(SPX)
    readings[1][1]["SQ_ACTIVE_INST_LDS"] = (
        int(1.2 * 304 * 1e9) + readings[0][1]["SQ_ACTIVE_INST_LDS"]
    )
    readings[1][1]["SQ_BUSY_CU_CYCLES"] = (
        int(1.01 * 304 * 1e9) + readings[0][1]["SQ_BUSY_CU_CYCLES"]
    )
    found = figures(with_figures(trace_of(SPX, readings)))
    assert "lds_busy" not in found
    assert found["cu_active"] == [1.0], "two per cent above it is the error of reading"
    assert found["valu_busy"] == pytest.approx([0.25])


def test_a_counter_that_was_not_read_costs_its_figure_only() -> None:
    readings = two(MI210)
    for _, reading in readings:
        del reading["SQ_ACTIVE_INST_FLAT"]
    assert set(figures(with_figures(trace_of(MI210, readings)))) == set(TRUTH) - {"vmem_busy"}


@given(
    shares=st.lists(st.floats(0.0, 1.0), min_size=1, max_size=12),
    facts=st.sampled_from([MI210, SPX, CPX, MI355X]),
)
def test_means_over_any_intervals_are_those_of_the_totals(
    shares: list[float], facts: DeviceFacts
) -> None:
    """The mean of the intervals, weighted by their cycles, is the growth over the whole."""
    readings: list[tuple[int, Totals]] = [(SECOND, totals(facts, 1.0, SQ_BUSY_CU_CYCLES=0))]
    active = 0
    for place, share in enumerate(shares, 1):
        active += int(share * facts.compute_units * 1e9)
        readings.append(
            (SECOND + place * SECOND // 2, totals(facts, 1.0 + place / 2, SQ_BUSY_CU_CYCLES=active))
        )
    found = figures(with_figures(trace_of(facts, readings)))["cu_active"]
    assert len(found) == len(shares)
    assert np.mean(found) == pytest.approx(
        active / (facts.compute_units * 1e9 * len(shares)), abs=1e-8
    )


def test_names_are_those_of_the_sampler() -> None:
    assert sets.PREFIX == device_counters.RAW
    facts = replace(
        Source("x", "telemetry", ClockDomain.MONOTONIC, "n"), details=(("device-counters.a", "{"),)
    )
    assert device_counters.device_facts(Trace((facts,), Strings())) == {}
