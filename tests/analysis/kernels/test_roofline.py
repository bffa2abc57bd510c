"""Counters, ceilings, classes of kernels and the verdict that they lead to, on traces whose answer
is known.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.kernels.ceilings import of_trace
from profharness.analysis.kernels.columns import with_rates
from profharness.analysis.kernels.counter_work import counted_work, per_dispatch
from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.kernels.hotspots import by_kernel
from profharness.analysis.kernels.roofline import BANDWIDTH, COMPUTE, INSIDE, UNDETERMINED
from profharness.analysis.measurement import Measurement
from profharness.analysis.metrics import figures
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.whole import Whole
from profharness.analysis.time.windows import Windows
from profharness.node.ceilings import Calibration
from profharness.stats import intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Counters, Device
from tests.analysis.scene import Scene

MEASURED = Calibration(
    created="2026-01-01T00:00:00",
    kind="rocm",
    name="MI210",
    compute_units=104,
    gemm_flops={"fp32": 40e12, "bf16": 100e12, "fp16": 100e12},
    copy_bytes_per_s=1.0e12,
)
N = 1000


def scene():
    return Scene(
        devices=(Device("0", name="MI210", vendor="AMD", architecture="gfx90a", compute_units=104),)
    )


def with_ops(made, shapes):
    """The scene's trace with shapes and types of its operators, in order."""
    trace = made.build()
    codes = [
        (trace.strings.code(json.dumps(dims)), trace.strings.code(json.dumps(kinds)))
        for dims, kinds in shapes
    ]
    ops = trace.ops.with_columns(
        shapes=[one for one, _ in codes], dtype=[other for _, other in codes]
    )
    return replace(trace, ops=ops)


def mixed(workgroups=1000):
    """One product at 80 % of 40 TFLOP/s, one copy at 80 % of 1 TB/s, one product at 20 %, one
    kernel that nobody knows.
    """
    made = scene()
    product, copied = 2 * N**3 / 40e12 * 1e9, 2 * 4 * N * N / 1e12 * 1e9
    begin = 0
    for name, op, length in (
        ("gemm", "aten::mm", product / 0.8),
        ("stream", "aten::copy_", copied / 0.8),
        ("slow_gemm", "aten::mm", product / 0.2),
    ):
        operator = made.op(op, begin, begin + 10)
        made.kernel(begin, begin + round(length), op=operator, name=name, workgroups=workgroups)
        begin += round(length)
    made.kernel(begin, begin + 1000, name="mystery", workgroups=workgroups)
    square = [N, N]
    pair = ([square, square], ["float", "float"])
    return with_ops(made, [pair, pair, pair])


def test_each_kernel_is_bound_by_what_it_reaches():
    trace = mixed()
    facts = KernelFacts(trace, Yardstick((MEASURED,)))
    assert facts.rates.kind.tolist() == [COMPUTE, BANDWIDTH, INSIDE, UNDETERMINED]
    assert facts.rates.compute_share[[0, 2]] == pytest.approx([0.8, 0.2], rel=1e-3)
    assert facts.rates.bandwidth_share[1] == pytest.approx(0.8, rel=1e-3)
    assert np.isnan(facts.rates.compute_share[3])


def test_a_data_sheet_says_that_a_roof_is_not_reached_only_far_below_it():
    facts = KernelFacts(mixed())
    # 80 % of 40 TFLOP/s are 71 % of the sheet's 45; the copy is at 49 % of its 1.6 TB/s, which says
    # nothing; the slow product is at 18 % of the sheet
    assert facts.rates.kind.tolist() == [COMPUTE, UNDETERMINED, INSIDE, UNDETERMINED]


def test_what_products_reach_on_such_devices_stands_for_a_missing_calibration():
    def product(device, share_of_peak):
        made = Scene(devices=(Device("0", name=device, vendor="AMD"),))
        made.kernel(
            0,
            round(2 * N**3 / (1307.4e12 if device == "MI300X" else 181e12) / share_of_peak * 1e9),
            op=made.op("aten::mm", 0, 10),
            name="gemm",
        )
        trace = with_ops(made, [([[N, N], [N, N]], ["c10::BFloat16", "c10::BFloat16"])])
        summary = summarise_trace(trace, "made up")
        return KernelFacts(trace).rates.kind.tolist(), summary.metrics["compute_bound"].note

    kind, note = product("MI300X", 0.4)  # of which products reach 708 TFLOP/s
    assert kind == [COMPUTE]
    assert note.startswith("gemm at 73.")
    assert "of what products reach on such devices (40." in note
    assert product("MI300X", 0.28)[0] == [INSIDE]
    assert product("MI210", 0.4)[0] == [UNDETERMINED]


def test_the_filled_time_splits_exactly_and_names_the_kernels():
    trace = mixed()
    summary = summarise_trace(trace, "made up", yardstick=Yardstick((MEASURED,)))
    found, window = summary.metrics, summary.partition.window_ns
    parts = [
        found[name].value
        for name in ("compute_bound", "bandwidth_bound", "inside_kernel", "undetermined")
    ]
    assert sum(parts) == pytest.approx(1.0)
    assert [round(part * window) for part in parts] == trace.kernels.dur_ns.tolist()
    assert found["inside_kernel"].note.startswith("slow_gemm at 20.0 % of the measured GEMM and ")
    assert found["bandwidth_bound"].note == "stream at 80.0 % or more of the measured copy"
    assert (summary.verdict.kind, summary.verdict.share) == (
        "inside-kernel",
        pytest.approx(parts[2]),
    )
    assert summary.verdict.evidence.startswith("slow_gemm at 20.0 %")
    assert summary.verdict.at_most is None  # four kernels are a handful


@pytest.mark.parametrize(
    ("doubted", "called", "evidence"),
    [
        (
            "copy",
            ("the measured GEMM", "the data sheet's bandwidth"),
            "slow_gemm at 20.0 % of the measured GEMM",
        ),
        (
            "bf16",
            ("the measured GEMM", "the measured copy"),
            "slow_gemm at 20.0 % of the measured GEMM",
        ),
        (
            "fp32",
            ("the data sheet's peak", "the measured copy"),
            "slow_gemm at 17.7 % of the data sheet's peak",
        ),
    ],
)
def test_doubt_about_one_figure_of_a_calibration_is_none_about_the_others(
    doubted, called, evidence
):
    trace, given = mixed(), Yardstick((MEASURED.doubted(doubted, "others ran"),))
    found = KernelFacts(trace, given).ceilings_of(0)
    assert tuple(one.spoken for one in found if one is not None) == called
    note = summarise_trace(trace, "made up", yardstick=given).metrics["inside_kernel"].note
    assert note.startswith(evidence)


def test_kernels_that_leave_the_device_empty_are_underfilled_whatever_they_reach():
    summary = summarise_trace(mixed(workgroups=10), "made up", yardstick=Yardstick((MEASURED,)))
    assert summary.verdict.kind == "underfilled"
    assert summary.metrics["compute_bound"].value == 0


@given(
    st.lists(
        st.tuples(
            st.integers(0, 500),
            st.integers(1, 300),
            st.integers(0, 3),
            st.sampled_from([20, 60, 300]),
        ),
        min_size=1,
        max_size=12,
    )
)
def test_classes_and_underfilled_time_sum_to_compute_time(rows):
    made = scene()
    shapes = []
    for start, dur, kind, workgroups in rows:
        side = {0: 400, 1: 100, 2: 4, 3: 0}[kind]
        operator = made.op("aten::mm" if kind != 3 else "mine", start, start + 1)
        shapes.append(([[side, side], [side, side]], ["float", "float"]))
        made.kernel(start, start + dur, op=operator, name=f"k{kind}", workgroups=workgroups)
    trace = with_ops(made, shapes)
    m = Measurement(
        trace,
        Windows(intervals.window(100, 700), "all"),
        known=Whole(trace, KernelFacts(trace, Yardstick((MEASURED,)))),
    )
    if not m.partition.compute_ns:
        return
    assert sum(m.filled_split.ns) == m.partition.compute_ns - m.fill.underfilled_ns
    assert min(m.filled_split.ns) >= 0


def test_figures_of_work_over_the_window():
    trace = mixed()
    found = summarise_trace(trace, "made up", yardstick=Yardstick((MEASURED,))).metrics
    seconds = int(trace.kernels.dur_ns.sum()) / 1e9
    flops = 2 * 2 * N**3
    assert found["achieved_flops"].value == pytest.approx(flops / seconds)
    assert found["flops_of_ceiling"].value == pytest.approx(flops / seconds / 40e12)
    assert found["mfu"].value == pytest.approx(flops / seconds / (104 * 1.7e9 * 256))
    assert "data sheet, fp32 matrix" in found["mfu"].note
    moved = 3 * 4 * N * N * 2 + 2 * 4 * N * N
    assert found["achieved_bandwidth"].value == pytest.approx(moved / seconds)
    assert found["bandwidth_share"].value == pytest.approx(moved / seconds / 1e12)
    assert found["operational_intensity"].value == pytest.approx(flops / (3 * 4 * N * N * 2))
    assert (found["ceiling_flops"].value, found["ceiling_flops"].source) == (
        40e12,
        "calibrated GEMM, fp32",
    )
    assert (found["ceiling_bandwidth"].value, found["ceiling_bandwidth"].source) == (
        1e12,
        "calibrated copy",
    )
    assert found["mfu_at_clock"].value is None
    assert found["hfu"].value is None


@pytest.mark.parametrize(
    ("name", "launched", "hidden"),
    [
        ("bmm_E2m1_E2m1E2m1_Fp32_t128x8x512_et128x8_swiGlu_dynBatch_sm100a", "", "gemm"),
        ("bmm_E2m1_E2m1E2m1_Fp32_t128x8x512_et128x8_swiGlu_dynBatch_sm100a", "vllm::moe", "gemm"),
        ("my_fused_layer", "", "unnamed"),
        ("my_fused_layer", "vllm::layer", "unnamed"),
        ("my_fused_layer", "aten::unique", ""),  # torch's own that multiply have formulas
        ("void cub::DeviceScanKernel<int>(int*)", "", ""),
    ],
)
def test_the_upper_end_of_mfu_holds_products_of_unknown_work(name, launched, hidden):
    made = scene()
    operator = made.op("aten::mm", 0, 10)
    made.kernel(0, 600_000, op=operator, workgroups=1000, name="Cijk_Ailk")
    other = made.op(launched or "aten::noise", 20, 30)
    made.kernel(600_000, 1_000_000, op=other if launched else NULL, workgroups=1000, name=name)
    found = figures(
        Measurement(
            with_ops(made, [([[N, N], [N, N]], ["float", "float"]), ([], [])]),
            Windows(intervals.window(0, 1_000_000), "all"),
        )
    )["mfu"]
    assert found.value == pytest.approx(2 * N**3 / 1e-3 / (104 * 1.7e9 * 256))
    assert found.coverage_of == "matrix-kernel time"
    if not hidden:
        assert (found.low, found.high, found.coverage) == (None, None, 1.0)
        return
    assert (found.low, found.coverage) == (found.value, pytest.approx(0.6))
    assert found.high == pytest.approx(found.value + 0.4)
    assert found.note.endswith(f"at least: without {hidden} kernels of unknown work")


@pytest.mark.parametrize(("known_ns", "is_told"), [(510_000, True), (490_000, False)])
def test_mfu_says_nothing_of_a_peak_that_unknown_products_may_reach(known_ns, is_told):
    made = scene()
    operator = made.op("aten::mm", 0, 10)
    made.kernel(0, known_ns, op=operator, workgroups=1000, name="Cijk_Ailk")
    made.kernel(0, 500_000, stream=2, workgroups=1000, name="my_fused_layer")
    found = figures(
        Measurement(
            with_ops(made, [([[N, N], [N, N]], ["float", "float"])]),
            Windows(intervals.window(0, 500_000), "all"),
        )
    )["mfu"]
    assert (found.value is not None) is is_told
    assert found.high is None
    assert (found.low is not None) is is_told


def test_mfu_at_the_clock_that_was_observed():
    made = scene()
    operator = made.op("aten::mm", 0, 10)
    made.kernel(0, 1_000_000, op=operator, workgroups=1000)
    made.sample("clock_gpu", 0, 0, 850.0)
    made.sample("clock_gpu", 500_000, 500_000, 850.0)
    found = figures(
        Measurement(
            with_ops(made, [([[N, N], [N, N]], ["float", "float"])]),
            Windows(intervals.window(0, 1_000_000), "all"),
        )
    )
    assert found["mfu_at_clock"].value == pytest.approx(2 * found["mfu"].value)
    assert "850 MHz" in found["mfu_at_clock"].note


def counted_scene():
    """A counter pass: two dispatches of `stream` and one of `other`, each with its counters."""
    made = scene()
    for start in (0, 100):
        made.kernel(start, start + 50, name="stream", workgroups=1000)
    made.kernel(200, 250, name="other", workgroups=7)
    trace = made.build()
    rows = [
        (0, "FETCH_SIZE", 1000.0),
        (0, "WRITE_SIZE", 500.0),
        (1, "FETCH_SIZE", 3000.0),
        (1, "WRITE_SIZE", 500.0),
        (0, "MfmaFlops", 2.0e6),
        (1, "MfmaFlops", 2.0e6),
        (2, "SQ_INSTS_VALU_MFMA_MOPS_BF16", 10.0),
        (2, "SQ_INSTS_VALU_MFMA_MOPS_F8", 3.0),
    ]
    counters = Counters.build(
        kernel=[row for row, _, _ in rows],
        name=trace.strings.codes(name for _, name, _ in rows),
        value=[value for _, _, value in rows],
        source=0,
    )
    return replace(trace, counters=counters)


def test_counters_of_a_dispatch():
    found = per_dispatch(counted_scene())
    assert found.fabric_bytes[:2].tolist() == [1500 * 1024, 3500 * 1024]
    assert np.isnan(found.fabric_bytes[2])
    assert found.operations.tolist() == [
        2.0e6,
        2.0e6,
        13 * 512,
    ]  # 8-bit operations are not in MfmaFlops and come on top


def test_a_counter_pass_gives_work_and_another_pass_time():
    made = scene()
    made.strings.code("moves the codes of names")
    made.kernel(0, 4000, name="stream", workgroups=1000)
    made.kernel(4000, 5000, name="stream", workgroups=999)  # another shape: nothing is known of it
    made.kernel(5000, 6000, name="new", workgroups=7)
    timed = made.build()
    counted = counted_scene()
    found = counted_work(counted, timed)
    assert found.fabric_bytes[0] == 2500 * 1024
    assert np.isnan(found.fabric_bytes[1:]).all()
    facts = KernelFacts(timed, Yardstick((MEASURED,), counted=counted))
    # 2.56 MB in 4 us are 64 % of 1 TB/s
    assert facts.rates.bandwidth_share[0] == pytest.approx(0.64)
    assert facts.rates.kind[0] == BANDWIDTH
    figure = figures(
        Measurement(timed, Windows(intervals.window(0, 6000), "all"), known=Whole(timed, facts))
    )
    assert figure["fabric_bytes"].value == 2500 * 1024
    assert figure["fabric_bytes"].coverage == pytest.approx(4000 / 6000)
    assert figure["hfu"].value == pytest.approx(2.0e6 / 6e-6 / (104 * 1.7e9 * 1024))
    assert figure["bandwidth_bound"].note == "stream at 64.0 % of the measured copy"


def test_times_of_the_counter_pass_itself_are_never_used():
    trace = counted_scene()
    found = figures(
        Measurement(
            trace,
            Windows(intervals.window(0, 250), "all"),
            known=Whole(trace, KernelFacts(trace, Yardstick((MEASURED,)))),
        )
    )
    for name in (
        "achieved_bandwidth",
        "bandwidth_share",
        "hfu",
        "compute_bound",
        "mfu",
        "achieved_flops",
    ):
        assert found[name].value is None, name
    assert "without counters" in found["bandwidth_share"].needs
    assert found["fabric_bytes"].value == 5000 * 1024


def test_hotspots_carry_what_is_known_of_each_kernel():
    trace = mixed()
    table = with_rates(by_kernel(trace), KernelFacts(trace))
    rows = {row.name: row for row in table.rows}
    assert rows["gemm"].flops_per_s == pytest.approx(32e12, rel=1e-3)
    assert rows["stream"].bytes_per_s == pytest.approx(0.8e12, rel=1e-3)
    assert rows["mystery"].flops_per_s is None
    assert {row.fill for row in table.rows} == {1.0}
    assert rows["gemm"].occupancy is None


def test_the_newest_calibration_of_the_same_software_counts():
    older = Calibration(
        created="2025-01-01",
        kind="rocm",
        name="MI210",
        software={"torch": "2"},
        copy_bytes_per_s=1.0,
    )
    newer = Calibration(
        created="2026-01-01",
        kind="rocm",
        name="MI210",
        software={"torch": "3"},
        copy_bytes_per_s=2.0,
    )
    elsewhere = Calibration(created="2027-01-01", kind="rocm", name="MI300X", copy_bytes_per_s=3.0)
    trace = mixed()
    for software, expected in (
        ({"torch": "2"}, 1.0),
        ({"torch": "3"}, 2.0),
        ({"torch": "4"}, 2.0),
        (None, 2.0),
    ):
        assert of_trace(trace, (older, newer, elsewhere), software)[0].bandwidth.value == expected
    assert not of_trace(trace)[0].bandwidth.measured


def test_fabric_traffic_is_what_the_vendors_analysis_prints(shared):
    """rocprof-compute's own analysis of this run: 673.08 + 671.20 GB/s between L2 and fabric over a
    kernel of 6249 ns.
    """
    found = per_dispatch(
        readers.read(shared / "fixtures/rocm/rocprof_compute/bank_conflict_MI300X/pmc_perf.csv")
    )
    assert found.fabric_bytes[0] / 6249e-9 / 1e9 == pytest.approx(673.08 + 671.20, abs=0.01)


@pytest.mark.parametrize("name", ["vcopy_MI100", "vcopy_MI300X"])
def test_a_copy_moves_what_it_reads_and_writes(shared, name):
    found = per_dispatch(
        readers.read(shared / f"fixtures/rocm/rocprof_compute/{name}/pmc_perf.csv")
    )
    # 2^20 doubles read and written, and little else; the first dispatch finds nothing in the caches
    assert found.fabric_bytes[0] == pytest.approx(2 * 8 * 2**20, rel=0.002)
