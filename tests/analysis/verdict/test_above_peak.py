"""Shares of a peak that cannot be: found, explained, and no verdict built on them."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict

import msgspec
import numpy as np
import pytest

from profharness import readers
from profharness.analysis.kernels.facts import KernelFacts, Yardstick
from profharness.analysis.kernels.roofline import BANDWIDTH, COMPUTE, UNDETERMINED
from profharness.analysis.records import Figure, StepSummary
from profharness.analysis.run.summary import summarise_run
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.step_summaries import parse, step_summaries
from profharness.analysis.verdict.above_peak import above_peak, impossible, steps_above_peak
from profharness.analysis.verdict.window import verdict
from profharness.findings import Finding
from profharness.node.ceilings import Calibration
from profharness.report.text.metrics import metrics_text
from tests.analysis.kernels.test_roofline import scene, with_ops
from tests.analysis.run import run_scene

N = 1000
FLOPS = 2 * N**3
SHEET = 104 * 1.7e9 * 256  # fp32 matrix units of an MI210, FLOP/s
MEASURED = Calibration(
    created="2026-01-01",
    kind="rocm",
    name="MI210",
    compute_units=104,
    gemm_flops={"fp32": 40e12},
    copy_bytes_per_s=1.0e12,
)


def products(*shares, pause=0, peak=SHEET, marked=False):
    """One product after the other, each at this share of the peak while it runs, with pauses
    between them.
    """
    made, at, shapes = scene(), 0, []
    for number, share in enumerate(shares):
        length = round(FLOPS / peak / share * 1e9)
        made.kernel(
            at, at + length, op=made.op("aten::mm", at, at + 10), name="gemm", workgroups=1000
        )
        if marked:
            made.mark("step", at, at + length, f"step {number}")
        at += length + pause
        shapes.append(([[N, N], [N, N]], ["float", "float"]))
    return with_ops(made, shapes)


def found_in(trace, *calibrations) -> list[Finding]:
    return [
        one
        for one in summarise_trace(trace, "made up", yardstick=Yardstick(calibrations)).findings
        if one.id == "above-peak"
    ]


def test_a_trace_that_does_more_than_its_device_can():
    (found,) = found_in(products(5.0, 7.0))
    mean = 2 / (1 / 5 + 1 / 7)
    assert found.severity == "error"
    assert found.figures == {
        "mfu": pytest.approx(mean, rel=1e-4),
        "flops_of_ceiling": pytest.approx(mean, rel=1e-4),
    }
    assert found.message == (
        f"mfu {mean:.3g}, FLOP/s of the ceiling {mean:.3g} of a possible 1 (of data sheet, "
        "fp32 matrix); likely shapes that belong to other work, "
        "kernels or parts of them that the trace lacks, or fp32 products that ran in a faster "
        "type (TF32), or a device taken for another"
    )
    assert "do not use this figure" in found.advice


@pytest.mark.parametrize(
    ("share", "calibrations"),
    [(1.0, ()), (1.04, ()), (0.5, ()), (1.15 * 40e12 / SHEET, (MEASURED,))],
)
def test_a_little_above_the_peak_is_possible(share, calibrations):
    """Clocks above the data sheet's, and programs that beat the calibrated product."""
    assert found_in(products(share), *calibrations) == []


def test_a_measured_ceiling_is_a_weaker_bound():
    trace = products(0.95, peak=SHEET)
    slow = msgspec.structs.replace(MEASURED, gemm_flops={"fp32": 30e12})
    assert found_in(trace, slow) == []
    summary = summarise_trace(trace, "made up", yardstick=Yardstick((slow,)))
    (told,) = [one for one in summary.findings if one.id == "ceiling-not-believed"]
    assert (told.severity, told.figures) == ("warning", {"figure": "fp32", "ceiling": 30e12})
    assert f"does {0.95 * SHEET / 30e12:.3g} times of it" in told.message
    for name in ("flops_of_ceiling", "ceiling_flops"):
        figure = summary.metrics[name]
        assert "data sheet" in f"{figure.note}{figure.source}", "the sheet stands in its place"
    assert summary.metrics["flops_of_ceiling"].value == pytest.approx(0.95, rel=1e-3)


def test_a_ceiling_is_believed_up_to_a_fifth_above_it():
    trace = products(1.15 * 40e12 / SHEET)
    summary = summarise_trace(trace, "made up", yardstick=Yardstick((MEASURED,)))
    assert "ceiling-not-believed" not in {one.id for one in summary.findings}
    assert "calibrated" in summary.metrics["flops_of_ceiling"].note


def test_one_short_kernel_beyond_it_does_not_end_the_belief_in_a_ceiling():
    """A record of 1 % of the time may be cut short, or be of other work."""
    trace = products(*[0.3] * 400, 0.95)
    slow = msgspec.structs.replace(MEASURED, gemm_flops={"fp32": 30e12})
    summary = summarise_trace(trace, "made up", yardstick=Yardstick((slow,)))
    assert "ceiling-not-believed" not in {one.id for one in summary.findings}


def test_what_was_doubted_when_it_was_measured_is_no_ceiling():
    doubted = MEASURED.doubted("fp32", "its rounds scatter").doubted("copy", "others ran")
    summary = summarise_trace(products(0.5), "made up", yardstick=Yardstick((doubted,)))
    told = [one for one in summary.findings if one.id == "ceiling-not-believed"]
    assert [one.figures["figure"] for one in told] == ["fp32", "copy"]
    assert "its rounds scatter" in told[0].message
    assert "data sheet" in summary.metrics["ceiling_flops"].source
    assert "data sheet" in summary.metrics["ceiling_bandwidth"].source


@pytest.mark.parametrize(
    ("low", "high", "expected"), [(None, None, True), (1.3, 1.5, True), (1.0, 1.8, False)]
)
def test_what_the_interval_leaves_open_is_not_impossible(low, high, expected):
    assert (
        impossible(
            "mfu", Figure(value=1.4, unit="share", low=low, high=high, note="of data sheet, bf16")
        )
        is expected
    )


def test_what_is_not_measured_is_not_impossible():
    assert list(above_peak({"mfu": Figure(value=None, unit="share", needs="FLOPs")})) == []


def test_a_sampled_clock_is_not_exact():
    assert (
        list(
            above_peak(
                {
                    "mfu_at_clock": Figure(
                        value=1.15, unit="share", note="of data sheet, bf16 at 900 MHz"
                    )
                }
            )
        )
        == []
    )
    (found,) = above_peak(
        {"mfu_at_clock": Figure(value=1.3, unit="share", note="of data sheet, bf16 at 900 MHz")}
    )
    assert found.message.startswith(
        "mfu at the observed clock 1.3 of a possible 1 (of data sheet, bf16 at 900 MHz); "
    )


@pytest.mark.parametrize(
    ("note", "severity", "why"),
    [
        (
            "of data sheet; at least: every tensor once, by its shape",
            "info",
            "tensors that stay in a cache",
        ),
        ("of data sheet; by counters: requests to DRAM", "warning", "counters of other kernels"),
    ],
)
def test_traffic_above_the_memorys_bandwidth(note, severity, why):
    (found,) = above_peak(
        {"bandwidth_share": Figure(value=1.5, unit="share", note=note)}, "torch-b4"
    )
    assert (found.severity, found.point, found.figures) == (
        severity,
        "torch-b4",
        {"bandwidth_share": 1.5},
    )
    assert f"memory bandwidth 1.5 of a possible 1 (of data sheet); likely {why}" in found.message


def test_operations_that_counters_saw_are_blamed_on_counters():
    (found,) = above_peak({"hfu": Figure(value=1.5, unit="share", note="of data sheet, fp16")})
    assert "likely counters of other kernels" in found.message
    assert "operators" not in found.message


def test_kernels_above_the_peak_between_pauses_are_found_though_the_mean_is_possible():
    trace = products(3.0, 0.5, pause=1_000_000)
    (found,) = found_in(trace)
    assert found.severity == "warning"
    lengths = trace.kernels.dur_ns
    assert found.figures == {
        "kernels": 1,
        "kernel_time_share": pytest.approx(lengths[0] / lengths.sum()),
        "of_peak": pytest.approx(3.0, rel=1e-4),
    }
    assert found.message.startswith(
        "1 kernel does more FLOP/s than the device can (14.3 % of kernel time; "
        "gemm on average 3 times its peak); likely "
    )


def test_few_kernels_above_the_peak_are_nothing():
    assert found_in(products(3.0, *[0.5] * 20, pause=1000)) == []


def test_kernels_at_impossible_rates_are_undetermined():
    facts = KernelFacts(products(3.0, 0.9))
    assert facts.rates.kind.tolist() == [UNDETERMINED, COMPUTE]
    assert facts.rates.above.tolist() == [True, False]
    made = scene()
    for at, share in ((0, 2.0), (100_000, 0.9)):  # of 1 TB/s, to read and write 4 MB
        made.kernel(
            at,
            at + round(8 * N * N / 1e12 / share * 1e9),
            op=made.op("aten::copy_", at, at + 10),
            name="stream",
            workgroups=1000,
        )
    pair = ([[N, N], [N, N]], ["float", "float"])
    cached = KernelFacts(with_ops(made, [pair, pair]), Yardstick((MEASURED,)))
    assert cached.rates.bandwidth_share == pytest.approx([2.0, 0.9], rel=1e-3)
    assert cached.rates.kind.tolist() == [UNDETERMINED, BANDWIDTH]


def test_no_verdict_is_built_on_what_cannot_be():
    summary = summarise_trace(products(5.0, 7.0), "made up")
    assert summary.verdict.kind == "undetermined"
    assert summary.metrics["compute_bound"].value == 0
    assert summary.verdict.at_most is None
    cores = {
        "cores_used": Figure(value=2.0, unit="cores"),
        "cores_allowed": Figure(value=2.0, unit="cores"),
    }

    def limiter(name, value, note="of calibrated GEMM, fp32"):
        return verdict(None, {**cores, name: Figure(value=value, unit="share", note=note)}, ()).kind

    assert [limiter("flops_of_ceiling", value) for value in (0.8, 1.1, 1.3)] == [
        "compute",
        "compute",
        "undetermined",
    ]
    assert [
        limiter("bandwidth_share", value, "of calibrated copy; at least") for value in (0.8, 1.3)
    ] == ["bandwidth", "undetermined"]


def test_a_step_above_the_peak_is_named_where_the_whole_trace_is_not():
    trace = products(0.2, 1.2, 1.1, marked=True)
    steps = step_summaries(trace, KernelFacts(trace), parse("all"))
    whole = summarise_trace(trace, "made up")
    (found,) = steps_above_peak(steps, [])
    assert found.message.startswith(
        "step step 1: mfu 1.2, FLOP/s of the ceiling 1.2 of a possible 1 (of data sheet, "
        "fp32 matrix); likely "
    )
    assert found.message.endswith("(above in 2 of 3 steps)")
    assert found.figures["steps"] == 2
    assert f"error     above-peak: {found.message[:40]}" in metrics_text(
        msgspec.structs.replace(whole, steps=steps, findings=(found,))
    )
    # what is said of the whole trace is not said again of its steps
    assert (
        steps_above_peak(
            steps, [Finding(id="above-peak", severity="error", message="", figures={"mfu": 2.0})]
        )
        == ()
    )
    possible = StepSummary(
        step="0",
        start_ns=0,
        dur_ns=1,
        processes=1,
        metrics={"mfu": Figure(value=0.9, unit="share")},
    )
    assert steps_above_peak([possible], []) == ()


def test_a_point_whose_flops_are_wrong_has_the_reasons_of_an_item():
    builder, _ = run_scene.scan_trace(kernels=False)
    manifest = run_scene.manifest()
    cpu = Calibration(
        created="2026",
        kind="cpu",
        name="CPU",
        compute_units=4,
        gemm_flops={"fp32": 5e8},
        copy_bytes_per_s=1e10,
    )
    points = tuple(msgspec.structs.replace(one, device="cpu") for one in manifest.points)
    summary = summarise_run(
        msgspec.structs.replace(manifest, points=points), builder.trace(), "run", (cpu,)
    )
    # 2 MFLOP per item at 500, 1000 and 1333 items/s: up to 5.33 times of the ceiling, which holds
    # for no point then
    for point in summary.points:
        for name in ("mfu", "flops_of_ceiling", "ceiling_flops", "roofline_share"):
            figure = point.metrics.get(name)
            assert figure is None or figure.value is None
        assert "on a quiet node" in point.metrics["ceiling_flops"].needs
        assert point.verdict is None or point.verdict.kind != "compute"
    (found,) = [one for one in summary.findings if one.id == "ceiling-not-believed"]
    assert found.severity == "warning"
    assert "the work is less than it is taken for" in found.message
    assert [one for one in summary.findings if one.id == "above-peak"] == []
    slower = summarise_run(
        msgspec.structs.replace(manifest, points=points),
        builder.trace(),
        "run",
        (msgspec.structs.replace(cpu, gemm_flops={"fp32": 1e11}),),
    )
    above = ("above-peak", "ceiling-not-believed")
    assert [one for one in slower.findings if one.id in above] == []
    assert slower.points[0].metrics["mfu"].value == pytest.approx(0.01, rel=0.05)


@pytest.mark.slow
def test_a_recorded_training_in_tf32_is_judged_by_the_peak_of_tf32(shared):
    """Counted from the file's text: products of fp32 matrices by kernels of the tensor cores, whose
    rate the vector units have not.
    """
    path = shared / "fixtures/kineto/a100_train_rank3of8_intus.json.gz"
    events = [
        one
        for one in json.loads(gzip.decompress(path.read_bytes()))["traceEvents"]
        if one.get("ph") == "X"
    ]
    calls = {
        one["args"]["correlation"]: one
        for one in events
        if one["cat"] == "cuda_runtime" and "correlation" in one["args"]
    }
    ops = defaultdict(list)
    for one in events:
        if one["cat"] == "cpu_op":
            ops[one["tid"]].append(one)
    spans = {
        tid: np.array([(op["ts"], op["ts"] + op["dur"]) for op in group]).T
        for tid, group in ops.items()
    }
    of_op = defaultdict(list)
    for kernel in (
        one
        for one in events
        if one["cat"] == "kernel" and one["dur"] > 0 and one["args"]["correlation"] in calls
    ):
        call = calls[kernel["args"]["correlation"]]
        starts, ends = spans.get(call["tid"], np.empty((2, 0)))
        around = np.flatnonzero((starts <= call["ts"]) & (call["ts"] <= ends)).tolist()
        if around:
            group = ops[call["tid"]]
            inner = max((group[at] for at in around), key=lambda op: (op["ts"], -op["dur"]))
            of_op[id(inner)].append(kernel)
    peak, above = 108 * 1.41e9 * 128, []
    for op in (
        one
        for group in ops.values()
        for one in group
        if id(one) in of_op
        and one["name"] in ("aten::mm", "aten::addmm", "aten::bmm", "aten::baddbmm")
    ):
        left, right = [dims for dims in op["args"]["Input Dims"] if dims][-2:]
        if (
            2 * np.prod(left) * right[-1] / (sum(one["dur"] for one in of_op[id(op)]) * 1e-6)
            > 1.05 * peak
        ):
            above += of_op[id(op)]
    assert len(above) == 514
    assert all(
        "tensorop_s1688gemm" in one["name"] or "splitKreduce" in one["name"] for one in above
    )
    summary = summarise_trace(readers.read(path), str(path))
    assert [one for one in summary.findings if one.id == "above-peak"] == []
    assert summary.metrics["mfu"].note.startswith("of data sheet, tf32;")
