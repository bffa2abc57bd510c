from __future__ import annotations

import gzip
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.kernels.occupancy import kernel_slots, occupancy, residency
from profharness.analysis.measurement import Measurement, measure
from profharness.analysis.metrics import figures
from profharness.analysis.time.windows import Windows
from profharness.node.devices import identify
from profharness.stats import intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Kernels, Source, Stream, Strings, Trace
from tests.conftest import shared_path

# beyond this, shared memory of a block must be asked for; the estimate in the files takes such
# blocks as impossible
OPT_IN = 49152
KINETO = (
    "a100_event_sync",
    "a100_multistream_graphs_rank0of16",
    "a100_nccl_rank0of2",
    "a100_train_rank3of8_intus",
    "a100_triton_example",
    "h100_bert_small",
    "h100_qwen0.5b_prefill",
    "v100_epoch_ns_timestamps",
)


def trace_of(kernels, device=None):
    """One MI210 by default: 104 units, 8 waves on each of 4 SIMDs."""
    return Trace(
        sources=(Source("a.csv", "rocprofv3-csv"),),
        strings=Strings(["k"]),
        kernels=kernels,
        streams=(Stream(0, "0"),),
        devices=(
            device
            or Device("0", name="MI210", vendor="AMD", architecture="gfx90a", compute_units=104),
        ),
    )


def kernels(start, dur, workgroups, *, threads=256, vgpr=8, lds=0):
    return Kernels.build(
        len(start),
        start_ns=start,
        dur_ns=dur,
        name=0,
        device=0,
        stream=0,
        workgroups=workgroups,
        workgroup_size_x=threads,
        workgroup_size_y=1,
        workgroup_size_z=1,
        vgpr=vgpr,
        accum_vgpr=0,
        sgpr=16,
        lds_bytes=lds,
        source=0,
    )


def over(trace, start, end):
    return Measurement(trace, Windows(intervals.window(start, end), "all"), traced=False)


@pytest.mark.slow
@pytest.mark.parametrize("name", KINETO)
def test_nvidia_occupancy_is_kinetos_own_estimate(name):
    path = shared_path(f"fixtures/kineto/{name}.json.gz")
    if not path.exists():
        pytest.skip("needs the shared recorded files")
    document = json.loads(gzip.decompress(path.read_bytes()))
    sms = document["deviceProperties"][0]
    recorded = [
        event["args"]
        for event in document["traceEvents"]
        if "est. achieved occupancy %" in event.get("args", {})
    ]
    device = identify(name=sms["name"], compute_units=sms["numSms"])
    sizes = np.array([record["block"] for record in recorded], np.int64)
    count = np.prod(np.array([record["grid"] for record in recorded], np.int64), axis=1)
    table = Kernels.build(
        len(recorded),
        workgroups=count,
        workgroup_size_x=sizes[:, 0],
        workgroup_size_y=sizes[:, 1],
        workgroup_size_z=sizes[:, 2],
        vgpr=[record["registers per thread"] for record in recorded],
        lds_bytes=[record["shared memory"] for record in recorded],
    )
    held = kernel_slots(table, device)
    assert np.all(held != NULL)
    per_unit = count / device.compute_units
    np.testing.assert_allclose(
        per_unit, [record["blocks per SM"] for record in recorded], rtol=1e-4, atol=1e-5
    )
    threads = np.prod(sizes, axis=1)
    # the file's figure is of threads, not of whole warps, and a rounded percentage
    ours = 100 * np.minimum(per_unit, held) * threads / device.limits.threads
    theirs = np.array([record["est. achieved occupancy %"] for record in recorded])
    judged = np.array([record["shared memory"] <= OPT_IN for record in recorded])
    assert np.all(np.abs(ours - theirs)[judged] <= 0.51)
    assert np.all((theirs == 0)[~judged])  # the file gives up on these, although they ran
    assert np.all(held[~judged] >= 1)


def test_occupancy_of_a_trace_is_the_time_weighted_mean_of_the_files_estimate(shared):
    path = shared / "fixtures/kineto/a100_nccl_rank0of2.json.gz"
    trace = readers.read(path)
    held = residency(trace)
    device = identify(name="NVIDIA A100-PG509-200")
    warps = -(
        -(
            trace.kernels.workgroup_size_x.astype(np.int64)
            * trace.kernels.workgroup_size_y
            * trace.kernels.workgroup_size_z
        )
        // 32
    )
    expected = np.minimum(trace.kernels.workgroups / device.compute_units, held.slots) * warps / 64
    np.testing.assert_allclose(held.occupancy, expected)
    figure = figures(measure(trace))["occupancy"]
    assert figure.coverage == 1.0
    assert 0 < figure.value < 1


def test_one_kernel_of_known_shape():
    # 4 waves a workgroup, 8 workgroups fit on a unit: 104 workgroups are one per unit, 4 of 32
    # waves
    found = figures(over(trace_of(kernels([0], [100], [104])), 0, 200))
    assert found["occupancy"].value == pytest.approx(4 / 32)  # while it runs
    assert found["slots_full_time"].value == 0
    assert found["wave_quantisation"].value is None
    assert "more workgroups than" in found["wave_quantisation"].needs


def test_a_full_device_and_its_last_round():
    # 832 workgroups fill all places; 1664 take two rounds exactly, 833 a second one for a single
    # workgroup
    found = figures(
        over(trace_of(kernels([0, 100, 200], [100, 100, 100], [832, 1664, 833])), 0, 400)
    )
    assert found["slots_full_time"].value == pytest.approx(0.75)
    assert found["occupancy"].value == pytest.approx(1.0)
    assert found["wave_quantisation"].value == pytest.approx((1.0 + 833 / 1664) / 2)


def test_kernels_side_by_side_fill_the_device_together():
    # each half of the places, for 50 ns of the 100 that both run
    both = figures(over(trace_of(kernels([0, 50], [100, 100], [416, 416])), 0, 200))
    assert both["slots_full_time"].value == pytest.approx(0.25)
    assert both["occupancy"].value == pytest.approx((0.5 * 50 + 1.0 * 50 + 0.5 * 50) / 150)


@pytest.mark.parametrize(("lost_ns", "measured"), [(10, True), (20, False)])
def test_below_nine_tenths_of_kernel_time_nothing_is_said(lost_ns, measured):
    table = kernels([0, 100], [100, lost_ns], [832, 832], vgpr=[8, NULL])
    found = figures(over(trace_of(table), 0, 200))
    for name in ("occupancy", "slots_full_time"):
        assert (found[name].value is not None) is measured
        assert found[name].coverage == pytest.approx(100 / (100 + lost_ns))
    if measured:
        assert (found["slots_full_time"].low, found["slots_full_time"].high) == (
            pytest.approx(0.5),
            pytest.approx(0.5 + lost_ns / 200),
        )
    else:
        assert "here 83%" in found["occupancy"].needs


def test_without_registers_or_on_a_stranger_it_is_not_measured():
    plain = kernels([0], [100], [104], vgpr=NULL)
    assert figures(over(trace_of(plain), 0, 100))["occupancy"].value is None
    stranger = trace_of(
        kernels([0], [100], [104]), Device("0", name="unheard of", compute_units=104)
    )
    found = figures(over(stranger, 0, 100))
    assert found["occupancy"].value is None
    assert found["fill"].value == pytest.approx(1.0)


def test_lds_counts_with_its_dynamic_part():
    table = kernels([0], [100], [104], lds=16384).with_columns(lds_dynamic_bytes=16384)
    assert residency(trace_of(table)).slots.tolist() == [2]


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1000),
            st.integers(1, 200),
            st.integers(1, 3000),
            st.sampled_from([64, 256, 1024]),
            st.integers(0, 256),
        ),
        min_size=1,
        max_size=15,
    ),
    st.integers(0, 500),
    st.integers(501, 1300),
)
def test_shares_are_shares_and_windows_add_up(rows, start, end):
    start_ns, dur, count, threads, vgpr = zip(*rows, strict=True)
    trace = trace_of(kernels(start_ns, dur, count, threads=threads, vgpr=vgpr))
    held = residency(trace)
    runs = held.slots != NULL  # 16 waves of more than 128 registers fit on no unit
    assert np.all((held.occupancy[runs] > 0) & (held.occupancy[runs] <= 1))
    assert np.all(np.isnan(held.occupancy[~runs]))
    known = np.isfinite(held.quantisation)
    assert np.all(held.quantisation[known] <= 1)
    assert np.all(held.quantisation[known] > 0.5)
    parts = [
        occupancy(trace, 0, intervals.window(*ends), held)
        for ends in ((start, end), (start, (start + end) // 2), ((start + end) // 2, end))
    ]
    for name in ("full_ns", "known_ns", "known_kernel_ns", "rounds_ns"):
        assert getattr(parts[0], name) == getattr(parts[1], name) + getattr(parts[2], name)
    assert parts[0].resident_ns <= parts[0].known_ns + 1e-6
    assert parts[0].full_ns <= parts[0].known_ns <= parts[0].window_ns


def test_a_product_that_takes_all_registers_of_a_simd(shared):
    """128 architectural and 384 accumulation registers, 64 KiB of LDS, 256 workgroups of 4 waves on
    304 units: one place per unit.
    """
    trace = readers.read(shared / "fixtures/rocm/rocprofv3/rocpd/mi300x_ck_gemm_28_results.db.gz")
    held = residency(trace)
    product = trace.kernels.workgroups == 256
    assert set(held.slots[product].tolist()) == {1}
    assert held.occupancy[product] == pytest.approx(256 / 304 * 4 / 32)
    found = figures(measure(trace))
    assert found["occupancy"].coverage == 1.0
    assert found["occupancy"].value == pytest.approx(256 / 304 * 4 / 32, rel=0.01)


@pytest.mark.slow
def test_a_trace_of_gfx950_is_covered(shared):
    found = figures(
        measure(readers.read(shared / "fixtures/rocm/rocprofv3/json/908_results.json.gz"))
    )
    assert found["occupancy"].coverage == 1.0
    # one collective with few workgroups takes nearly all of the time: the device is busy and hardly
    # occupied
    assert found["occupancy"].value < 0.1 < found["busy"].value
    assert found["slots_full_time"].value < 0.01
