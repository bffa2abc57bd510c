"""Hardware counters as figures: against their definitions by plain pandas, and against the tool's
own analysis of the same run.
"""

from __future__ import annotations

import csv
from dataclasses import replace

import numpy as np
import pytest

from profharness import readers
from profharness.analysis.kernels import counter_shares
from profharness.analysis.kernels.counter_work import counted_work, per_dispatch
from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.summarise import summarise_trace
from profharness.trace.model import Counters, Device
from tests.analysis.scene import Scene

FOLDERS = {  # compute units, XCCs, waves of a compute unit
    "bank_conflict_MI300X": (304, 8, 32),
    "vcopy_MI300X": (304, 8, 32),
    "vcopy_MI350_v3": (128, 8, 32),
    "vcopy_MI100": (120, 1, 40),
}


def folder(shared, name):
    return shared / "fixtures/rocm/rocprof_compute" / name / "pmc_perf.csv"


@pytest.mark.parametrize("name", FOLDERS)
def test_every_figure_is_its_definition_by_plain_pandas_or_named_as_missing(shared, name):
    import pandas as pd

    units, dies, waves = FOLDERS[name]
    rows = pd.read_csv(folder(shared, name))
    clocks = rows["GRBM_GUI_ACTIVE"] / dies
    wanted = {
        "gpu_util": (rows["GRBM_GUI_ACTIVE"] / rows["GRBM_COUNT"]).clip(upper=1),
        "counted_occupancy": 4 * rows["SQ_WAVE_CYCLES"] / clocks / units / waves,
        "simd_utilisation": rows["SQ_BUSY_CU_CYCLES"] / (rows["GRBM_COUNT"] / dies) / units,
        "valu_busy": rows["SQ_ACTIVE_INST_VALU"] / units / clocks,
        "lane_use": rows["SQ_THREAD_CYCLES_VALU"] / (64 * rows["SQ_ACTIVE_INST_VALU"]),
        "l2_hit": rows["TCC_HIT_sum"] / (rows["TCC_HIT_sum"] + rows["TCC_MISS_sum"]),
        "lds_bank_conflicts": rows["SQ_LDS_BANK_CONFLICT"] / clocks / units,
    }
    if "SQ_VALU_MFMA_BUSY_CYCLES" in rows:
        wanted["mfma_util"] = rows["SQ_VALU_MFMA_BUSY_CYCLES"] / (clocks * units * 4)
    trace = readers.read(folder(shared, name))
    found = counter_shares.of_kernels(trace)
    assert set(found) == set(wanted)
    for key, column in wanted.items():
        np.testing.assert_allclose(found[key], column.to_numpy(float), rtol=1e-12, err_msg=key)
    figures = summarise_trace(trace, name).metrics
    missing = {share.name for share in counter_shares.SHARES} - set(wanted)
    assert all(figures[key].value is None and "--pmc" in figures[key].needs for key in missing)
    weight = (
        np.ones(len(rows)) if name == "vcopy_MI300X" else trace.kernels.dur_ns
    )  # a spreadsheet took that file's times
    assert figures["l2_hit"].value == pytest.approx(np.average(wanted["l2_hit"], weights=weight))


@pytest.mark.parametrize("name", FOLDERS)
def test_bytes_are_their_definitions_by_plain_pandas(shared, name):
    import pandas as pd

    rows = pd.read_csv(folder(shared, name))
    old = "TCC_EA_RDREQ_sum" in rows
    read = {
        key: rows[f"TCC_EA{'' if old else '0'}_RDREQ{key}_sum"].astype(float)
        for key in ("", "_32B", "_DRAM")
    }
    written = {
        key: rows[f"TCC_EA{'' if old else '0'}_WRREQ{key}_sum"].astype(float)
        for key in ("", "_64B", "_DRAM")
    }
    bubble = 0.0 if old else rows["TCC_BUBBLE_sum"].astype(float)
    in_bytes = 128 * bubble + 64 * (read[""] - bubble - read["_32B"]) + 32 * read["_32B"]
    out_bytes = 32 * (written[""] - written["_64B"]) + 64 * written["_64B"]
    found = per_dispatch(readers.read(folder(shared, name)))
    np.testing.assert_allclose(found.fabric_bytes, in_bytes + out_bytes)
    np.testing.assert_allclose(
        found.hbm_bytes,
        in_bytes * (read["_DRAM"] / read[""]).clip(upper=1)
        + out_bytes * (written["_DRAM"] / written[""]).clip(upper=1),
    )
    if (
        name != "bank_conflict_MI300X"
    ):  # 2^20 doubles read and written; the L2 holds the end of what is written on the newer ones
        assert (found.fabric_bytes >= 0.7 * 2 * 8 * 2**20).all()


@pytest.mark.parametrize("name", FOLDERS)
def test_operations_are_their_definitions_by_plain_pandas_or_named_as_missing(shared, name):
    """Vector instructions of 64 lanes, a multiply-add being two; matrix operations in units
    of 512.
    """
    import pandas as pd

    rows = pd.read_csv(folder(shared, name))
    found = per_dispatch(readers.read(folder(shared, name)))
    wanted = {}
    for dtype, suffix in (
        ("fp64", "F64"),
        ("fp32", "F32"),
        ("fp16", "F16"),
        ("bf16", "BF16"),
        ("fp8", "F8"),
        ("fp4", "F6F4"),
        ("int8", "I8"),
    ):
        parts = [(512, f"SQ_INSTS_VALU_MFMA_MOPS_{suffix}")]
        parts += (
            [
                (64 * weight, f"SQ_INSTS_VALU_{kind}_{suffix}")
                for kind, weight in (("ADD", 1), ("MUL", 1), ("TRANS", 1), ("FMA", 2))
            ]
            if suffix.startswith("F")
            else []
        )
        columns = [
            factor * rows[counter].astype(float) for factor, counter in parts if counter in rows
        ]
        if columns:
            wanted[dtype] = sum(columns)
    assert (
        set(wanted)
        == {
            "bank_conflict_MI300X": {"fp64", "fp32", "fp16", "bf16", "int8"},
            "vcopy_MI300X": {"fp64", "fp32", "fp16", "bf16", "int8"},
            "vcopy_MI350_v3": {"fp64", "fp32", "fp16", "bf16", "fp8", "fp4", "int8"},
            "vcopy_MI100": set(),
        }[name]
    )
    for dtype, column in found.by_type.items():
        if dtype in wanted:
            np.testing.assert_allclose(
                column, wanted[dtype].to_numpy(float), rtol=1e-12, err_msg=dtype
            )
        else:
            assert np.isnan(column).all()
    figure = summarise_trace(readers.read(folder(shared, name)), name).metrics["hfu"]
    assert (
        figure.value is None
    )  # such dispatches are of several executions: there is no time to divide by
    assert "a timeline (rocprof-compute joins executions" in figure.needs
    if wanted:
        np.testing.assert_allclose(
            found.operations, sum(wanted.values()).to_numpy(float), rtol=1e-12
        )
    else:
        assert np.isnan(found.operations).all()


@pytest.mark.parametrize("name", FOLDERS)
def test_a_whole_folder_gives_the_figures_of_its_joined_counters(shared, name):
    from profharness.understand import report_run as understand

    whole = understand.summarise(understand.load([folder(shared, name).parent]))
    joined = summarise_trace(readers.read(folder(shared, name)), name)
    for share in counter_shares.SHARES:
        assert whole.metrics[share.name].value == joined.metrics[share.name].value, share.name
        assert whole.metrics[share.name].needs == joined.metrics[share.name].needs
    assert {row.counter for row in whole.counters} >= {row.counter for row in joined.counters}


def test_the_tools_own_analysis_of_the_same_run(shared):
    """2.1 and 17.1 Speed-of-Light as rocprof-compute wrote them, in per cent and GB/s, of two
    decimals.
    """
    told: dict[str, float] = {}
    for path in sorted(
        (shared / "fixtures/rocm/rocprof_compute/analyze_csv_MI300X").glob("*Speed-of-Light.csv")
    ):
        with path.open() as lines:
            told |= {row["Metric"]: float(row["Avg"]) for row in csv.DictReader(lines)}
    trace = readers.read(folder(shared, "bank_conflict_MI300X"))
    figures = summarise_trace(trace, "x").metrics
    assert 100 * figures["valu_busy"].value == pytest.approx(told["VALU Utilization"], abs=0.005)
    assert 100 * figures["mfma_util"].value == pytest.approx(told["MFMA Utilization"], abs=0.005)
    assert 100 * figures["l2_hit"].value == pytest.approx(told["L2 Cache Hit Rate"], abs=0.005)
    assert 64 * figures["lane_use"].value == pytest.approx(told["VALU Active Threads"], abs=0.005)
    seconds = trace.kernels.dur_ns.sum() / 1e9
    rates = (told["L2-Fabric Read BW"] + told["L2-Fabric Write BW"]) * 1e9
    assert figures["fabric_bytes"].value / seconds == pytest.approx(rates, abs=0.01e9)
    # The tool takes resident waves from a level counter (SQ_ACCUM_PREV_HIRES), this figure from
    # SQ_WAVE_CYCLES, as rocprofiler's OccupancyPercent does: two counters of one quantity.
    assert 304 * 32 * figures["counted_occupancy"].value == pytest.approx(
        told["Wavefront Occupancy"], rel=0.01
    )


def test_two_executions_are_not_one_clock(shared):
    """The share is the tool's: the level counter over the clocks of another execution of the same
    dispatch. Of one execution it is lower.
    """
    level = readers.read(folder(shared, "bank_conflict_MI300X").with_name("SQ_LEVEL_WAVES.csv"))
    names = {
        level.strings[int(code)]: float(value)
        for code, value in zip(level.counters.name, level.counters.value, strict=True)
    }
    assert names["SQ_ACCUM_PREV_HIRES"] / (names["GRBM_GUI_ACTIVE"] / 8) < 0.95 * 3010.96


def one_kernel(architecture="gfx942", units=304, name="MI300X", dies=8, **values):
    made = Scene(
        devices=(
            Device(
                "0",
                name=name,
                vendor="AMD",
                architecture=architecture,
                compute_units=units,
                dies=dies,
            ),
        )
    )
    made.kernel(0, 1000, name="k", workgroups=100)
    trace = made.build()
    codes = [trace.strings.code(key) for key in values]
    return replace(
        trace,
        counters=Counters.build(
            kernel=[0] * len(codes), name=codes, value=list(values.values()), source=0
        ),
    )


def test_what_the_tool_derived_is_taken_as_it_is():
    found = counter_shares.of_kernels(
        one_kernel(
            OccupancyPercent=25.0,
            GPU_UTIL=80.0,
            SIMD_UTILIZATION=0.5,
            MfmaUtil=10.0,
            VALUBusy=20.0,
            MemUnitStalled=30.0,
            L2CacheHit=40.0,
        )
    )
    assert {name: float(column[0]) for name, column in found.items()} == pytest.approx(
        {
            "counted_occupancy": 0.25,
            "gpu_util": 0.8,
            "simd_utilisation": 0.5,
            "mfma_util": 0.1,
            "valu_busy": 0.2,
            "memory_unit_stalled": 0.3,
            "l2_hit": 0.4,
        }
    )


def test_counters_that_contradict_each_other_give_no_share():
    given = {"OccupancyPercent": 174.6, "GPU_UTIL": -3.0, "VALUBusy": 104.0, "MfmaUtil": 100.0}
    found = counter_shares.of_kernels(one_kernel(**given))
    assert {name: float(column[0]) for name, column in found.items()} == {
        "valu_busy": 1.04,
        "mfma_util": 1.0,
    }


def test_without_the_number_of_xccs_there_is_no_figure():
    stranger = one_kernel(
        architecture="gfx942",
        units=77,
        name="",
        dies=None,
        SQ_ACTIVE_INST_VALU=10.0,
        GRBM_GUI_ACTIVE=1000.0,
        TCC_HIT_sum=1.0,
        TCC_MISS_sum=1.0,
    )
    assert set(counter_shares.of_kernels(stranger)) == {"l2_hit"}
    figure = summarise_trace(stranger, "x").metrics["valu_busy"]
    assert figure.value is None
    assert "units are known" in figure.needs


def test_a_partition_has_its_own_xccs():
    whole = one_kernel(SQ_ACTIVE_INST_VALU=3040.0, GRBM_GUI_ACTIVE=800.0, dies=None)
    part = one_kernel(SQ_ACTIVE_INST_VALU=380.0, GRBM_GUI_ACTIVE=100.0, dies=None, units=38)
    assert counter_shares.of_kernels(whole)["valu_busy"] == pytest.approx(
        counter_shares.of_kernels(part)["valu_busy"]
    )


def beside(counted):
    """The same kernel in a pass without counters, 1 us long."""
    timed = replace(counted, counters=Counters.empty())
    return summarise_trace(timed, "x", yardstick=Yardstick(counted=counted)).metrics, KernelFacts(
        timed, Yardstick(counted=counted)
    )


def test_memory_traffic_comes_before_that_of_the_fabric():
    both = one_kernel(
        TCC_EA0_RDREQ_sum=1000.0,
        TCC_EA0_RDREQ_32B_sum=0.0,
        TCC_BUBBLE_sum=0.0,
        TCC_EA0_RDREQ_DRAM_sum=250.0,
        TCC_EA0_WRREQ_sum=500.0,
        TCC_EA0_WRREQ_64B_sum=500.0,
        TCC_EA0_WRREQ_DRAM_sum=500.0,
    )
    figures, facts = beside(both)
    assert figures["fabric_bytes"].value == 64 * 1500
    assert figures["hbm_bytes"].value == 64 * 750
    assert figures["achieved_bandwidth"].value == pytest.approx(64 * 750 / 1e-6)
    assert "Infinity Cache" in figures["achieved_bandwidth"].note
    assert facts.rates.moved[0] == 64 * 750
    assert facts.rates.bandwidth_share[0] == pytest.approx(64 * 750 / 1e-6 / 5324.8e9)


def test_without_dram_counters_the_fabric_is_an_upper_bound_that_says_so():
    figures, _ = beside(one_kernel(FETCH_SIZE=64.0, WRITE_SIZE=32.0))
    assert figures["hbm_bytes"].value is None
    assert "DRAM" in figures["hbm_bytes"].needs
    assert "upper bound" in figures["achieved_bandwidth"].note
    assert figures["achieved_bandwidth"].value == pytest.approx(96 * 1024 / 1e-6)


def test_before_the_infinity_cache_dram_requests_are_memory_traffic():
    figures, _ = beside(
        one_kernel(
            "gfx90a",
            104,
            "MI210",
            1,
            TCC_EA_RDREQ_sum=10.0,
            TCC_EA_RDREQ_32B_sum=10.0,
            TCC_EA_RDREQ_DRAM_sum=5.0,
            TCC_EA_WRREQ_sum=0.0,
            TCC_EA_WRREQ_64B_sum=0.0,
            TCC_EA_WRREQ_DRAM_sum=0.0,
        )
    )
    assert figures["hbm_bytes"].value == 160
    assert figures["hbm_bytes"].note == "requests to DRAM"


def test_hfu_takes_each_type_over_its_peak():
    """Vector and narrow formats included: 64 lanes, two per multiply-add, 512 per matrix count."""
    counted = one_kernel(
        SQ_INSTS_VALU_FMA_F32=1000.0,
        SQ_INSTS_VALU_ADD_F32=500.0,
        SQ_INSTS_VALU_MFMA_MOPS_BF16=4000.0,
        SQ_INSTS_VALU_MFMA_MOPS_F8=8000.0,
    )
    figures, _ = beside(counted)
    clock = 304 * 2100e6
    wanted = (
        64 * 2500 / (256 * clock) + 512 * 4000 / (2048 * clock) + 512 * 8000 / (4096 * clock)
    ) / 1e-6
    assert figures["hfu"].value == pytest.approx(wanted)
    assert per_dispatch(counted).operations[0] == 64 * 2500 + 512 * 12_000


def test_the_tools_totals_come_before_the_raw_counters():
    counted = per_dispatch(
        one_kernel(TOTAL_32_OPS=111.0, SQ_INSTS_VALU_FMA_F32=1000.0, MfmaFlops=5.0)
    )
    assert counted.operations[0] == 111.0
    alone = per_dispatch(one_kernel(MfmaFlops=5.0, SQ_INSTS_VALU_MFMA_MOPS_F8=1.0))
    assert alone.operations[0] == 5.0 + 512.0


def test_counters_are_joined_by_name_and_shape():
    counted = one_kernel(
        SQ_ACTIVE_INST_VALU=3040.0, GRBM_GUI_ACTIVE=800.0, FETCH_SIZE=1.0, WRITE_SIZE=1.0
    )
    other = Scene(devices=counted.devices)
    other.kernel(0, 10, name="k", workgroups=100)
    other.kernel(10, 20, name="k", workgroups=200)
    timed = other.build()
    assert np.isfinite(counted_work(counted, timed).fabric_bytes).tolist() == [True, False]
    shares = KernelFacts(timed, Yardstick(counted=counted)).shares
    assert np.isfinite(shares["valu_busy"]).tolist() == [True, False]
    assert summarise_trace(timed, "x", yardstick=Yardstick(counted=counted)).metrics[
        "valu_busy"
    ].coverage == pytest.approx(0.5)


def test_kernels_of_unknown_workgroups_are_joined_by_name_alone():
    counted = one_kernel(FETCH_SIZE=1.0, WRITE_SIZE=1.0)
    other = Scene(devices=counted.devices)
    other.kernel(0, 10, name="k", workgroups=-1)
    other.kernel(10, 20, name="k", workgroups=200)
    other.kernel(20, 30, name="other", workgroups=-1)
    joined = counted_work(counted, other.build()).fabric_bytes
    assert joined.tolist() == pytest.approx([2048.0, 2048.0, np.nan], nan_ok=True)
