"""Ceilings that rocprof-compute wrote of the machine: what is read, and where it counts."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profharness.analysis.kernels.ceilings import of_trace
from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.kernels.roofline import BANDWIDTH, COMPUTE, UNDETERMINED
from profharness.analysis.measurement import Measurement
from profharness.analysis.metrics import figures
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.whole import Whole
from profharness.analysis.time.windows import Windows
from profharness.node.ceilings import Calibration
from profharness.readers.rocprof_compute import folder as rocprof_compute_folder
from profharness.readers.rocprof_compute import reader as rocprof_compute
from profharness.stats import intervals
from profharness.trace.model import Device, ToolCeiling, Trace
from tests.analysis.scene import Scene

COLUMNS = (
    "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,"
    "Start_Timestamp,End_Timestamp"
)
BENCHMARK = "rocprof-compute's roofline benchmark"
SYSINFO = "rocprof-compute's sysinfo.csv"
UNKNOWN = ("MI999", "gfx999")
KNOWN = ("MI300X_A1", "gfx942")
N = 1000


def workload(
    folder: Path, *, model: tuple[str, str] = UNKNOWN, roofline: str = "", bandwidth: str = ""
) -> Trace:
    """The trace of a workload with one dispatch on device 0, and these files beside it."""
    (folder / "pmc_perf.csv").write_text(f"{COLUMNS}\n0,k,0,256,64,0,100,150\n")
    (folder / "sysinfo.csv").write_text(
        "hostname,rocm_version,gpu_model,gpu_arch,cu_per_gpu,num_xcd,max_sclk,hbm_bw\n"
        f"node1,6.4.1,{model[0]},{model[1]},304,8,2100,{bandwidth}\n"
    )
    if roofline:
        (folder / "roofline.csv").write_text(roofline)
    return rocprof_compute.read(folder / "pmc_perf.csv")


def products(device: Device) -> Trace:
    """A product at 80 % of 50 TFLOP/s in fp32, and a copy at 90 % of 2 TB/s."""
    made = Scene(devices=(device,))
    lengths = (2 * N**3 / 50e12 * 1e9 / 0.8, 2 * 4 * N * N / 2e12 * 1e9 / 0.9)
    begin = 0
    for name, op, length in zip(("mm", "cp"), ("aten::mm", "aten::copy_"), lengths, strict=True):
        operator = made.op(op, begin, begin + 10)
        made.kernel(begin, begin + round(length), op=operator, name=name, workgroups=10000)
        begin += round(length)
    trace = made.build()
    strings = trace.strings
    shapes = strings.code(json.dumps([[N, N], [N, N]]))
    kinds = strings.code(json.dumps(["float", "float"]))
    ops = trace.ops.with_columns(shapes=[shapes, shapes], dtype=[kinds, kinds])
    return replace(trace, ops=ops)


def test_the_benchmark_and_the_bandwidth_by_clock_are_ceilings_of_the_device(
    tmp_path: Path,
) -> None:
    trace = workload(
        tmp_path,
        roofline="device,HBMBw,HBMBwLow,hbmBwHigh,FP16Flops,FP32Flops,MFMAF16Flops,MFMAF32Flops,"
        "FP64Flops,MFMAF64Flops,MFMAI8Ops\n0,4000.5,1,2,90000,120000,900000,110000,70000,,0\n",
        bandwidth="5324.8",
    )
    assert trace.devices[0].ceilings == (
        ToolCeiling("copy", 4000.5e9, BENCHMARK, measured=True),
        ToolCeiling("fp64", 70000e9, BENCHMARK, measured=True),
        ToolCeiling("fp32", 120000e9, BENCHMARK, measured=True),
        ToolCeiling("fp16", 900000e9, BENCHMARK, measured=True),
        ToolCeiling("copy", 5324.8e9, SYSINFO, measured=False),
    )
    assert rocprof_compute_folder.read(tmp_path).devices == trace.devices


def test_a_device_takes_its_own_row_or_that_of_another(tmp_path: Path) -> None:
    both = "device,HBMBw\n0,4000\n1,3000\n"
    assert workload(tmp_path, roofline=both).devices[0].ceilings[0].rate == 4000e9
    of_one = "device,HBMBw\n1,3000\n"
    assert workload(tmp_path, roofline=of_one).devices[0].ceilings[0].rate == 3000e9


@pytest.mark.parametrize("text", ["", "device,HBMBw\n", "device,HBMBw\n0,N/A\n"])
def test_a_benchmark_that_broke_off_gives_none(tmp_path: Path, text: str) -> None:
    trace = workload(tmp_path)
    (tmp_path / "roofline.csv").write_text(text)
    assert rocprof_compute.read(tmp_path / "pmc_perf.csv").devices == trace.devices
    assert trace.devices[0].ceilings == ()


def test_an_unknown_device_has_the_tools_ceilings_and_says_so(tmp_path: Path) -> None:
    rates = "device,HBMBw,MFMAF32Flops\n0,4000,120000\n"
    trace = workload(tmp_path, roofline=rates, bandwidth="5324.8")
    roof = of_trace(trace)[0]
    product, copied = roof.flops("fp32"), roof.bandwidth
    assert product is not None
    assert copied is not None
    assert (product.value, product.source, product.measured) == (
        120e12,
        f"{BENCHMARK}, products in fp32",
        True,
    )
    assert (copied.value, copied.source, copied.measured) == (
        4e12,
        f"{BENCHMARK}, memory bandwidth",
        True,
    )
    assert roof.flops("fp16") is None
    by_clock = of_trace(
        replace(trace, devices=(replace(trace.devices[0], ceilings=trace.devices[0].ceilings[2:]),))
    )[0].bandwidth
    assert by_clock is not None
    assert (by_clock.value, by_clock.source, by_clock.measured) == (
        5324.8e9,
        f"{SYSINFO}, memory bandwidth",
        False,
    )


def test_a_known_device_keeps_its_data_sheet_and_a_calibration_comes_first(tmp_path: Path) -> None:
    rates = "device,HBMBw,MFMAF32Flops\n0,4000,120000\n"
    known = of_trace(workload(tmp_path, model=KNOWN, roofline=rates, bandwidth="5324.8"))[0]
    sheet, product = known.bandwidth, known.flops("fp32")
    assert sheet is not None
    assert product is not None
    assert sheet.source == "data sheet"
    assert product.source.startswith("data sheet")
    assert known.by_tool == ()
    calibrated = Calibration(
        created="2026-01-01", kind="rocm", name=UNKNOWN[0], copy_bytes_per_s=3.5e12
    )
    roof = of_trace(workload(tmp_path, roofline=rates), (calibrated,))[0].bandwidth
    assert roof is not None
    assert (roof.value, roof.source) == (3.5e12, "calibrated copy")


def test_kernels_of_another_pass_are_set_against_them(tmp_path: Path) -> None:
    rates = "device,HBMBw,MFMAF32Flops\n0,2000,50000\n"
    counters = workload(tmp_path, roofline=rates)
    trace = products(Device("0", name="Some new GPU", vendor="AMD", compute_units=304))
    alone, beside = KernelFacts(trace), KernelFacts(trace, Yardstick(counted=counters))
    assert alone.rates.kind.tolist() == [UNDETERMINED, UNDETERMINED]
    assert beside.rates.kind.tolist() == [COMPUTE, BANDWIDTH]
    assert beside.rates.compute_share[0] == pytest.approx(0.8, rel=1e-3)
    assert beside.rates.bandwidth_share[1] == pytest.approx(0.9, rel=1e-3)
    other = products(Device("0", name="Some new GPU", vendor="AMD", compute_units=120))
    smaller = KernelFacts(other, Yardstick(counted=counters))
    assert np.isnan(smaller.rates.compute_share).all()


def test_figures_say_where_their_ceiling_comes_from(tmp_path: Path) -> None:
    rates = "device,HBMBw,MFMAF32Flops\n0,2000,50000\n"
    ceilings = workload(tmp_path, roofline=rates).devices[0].ceilings
    trace = products(Device("0", name="MI999", vendor="AMD", ceilings=ceilings))
    found = figures(
        Measurement(
            trace,
            Windows(intervals.window(0, int(trace.kernels.dur_ns.sum())), "all"),
            known=Whole(trace, KernelFacts(trace)),
        )
    )
    assert found["ceiling_flops"].value == 50e12
    assert found["ceiling_flops"].source == f"{BENCHMARK}, products in fp32"
    assert found["ceiling_bandwidth"].source == f"{BENCHMARK}, memory bandwidth"
    assert found["flops_of_ceiling"].value == pytest.approx(
        2 * N**3 / 50e12 / (trace.kernels.dur_ns.sum() / 1e9), rel=1e-2
    )
    assert f"of {BENCHMARK}, products in fp32" in found["flops_of_ceiling"].note
    assert found["mfu"].value is None
    assert f"of {BENCHMARK}" in found["bandwidth_bound"].note


def test_a_benchmark_that_work_goes_beyond_is_no_ceiling(tmp_path: Path) -> None:
    rates = "device,HBMBw,MFMAF32Flops\n0,2000,10000\n"  # 40 TFLOP/s are done
    ceilings = workload(tmp_path, roofline=rates).devices[0].ceilings
    trace = products(Device("0", name="MI999", vendor="AMD", ceilings=ceilings))
    roof = KernelFacts(trace).roofs[0]
    assert roof.flops("fp32") is None
    assert roof.bandwidth is not None
    said = [
        finding.message
        for finding in summarise_trace(trace, "made up").findings
        if finding.id == "ceiling-not-believed"
    ]
    assert said == [
        (
            f"{BENCHMARK}, products in fp32, of 1e+04 GFLOP/s is not believed and no ceiling here: "
            "this work does 4 times of it, so that it was measured beside other work, or the work is "
            "less than it is taken for"
        )
    ]
