"""Made-up summaries of the kinds that users meet. Every number here is invented; none was
measured.
"""

from __future__ import annotations

import math
import random

import msgspec

from profharness.analysis.curves.records import BatchCurve, Recommended, Series
from profharness.analysis.operators.coverage import KnownWork
from profharness.analysis.records import (
    DeviceCounts,
    Estimate,
    Figure,
    HotspotRow,
    Hotspots,
    IdleCauses,
    Partition,
    PassRow,
    PointSummary,
    ProblemRow,
    RunInfo,
    SourceRow,
    Summary,
    TelemetryRow,
    TraceCounts,
)
from profharness.analysis.use.records import DeviceUse, OperatorCounter, Roof, UseRow
from profharness.analysis.verdict.records import Verdict
from profharness.analysis.verdict.wording import verdict_of
from profharness.findings import finding

KERNELS = (
    (
        "Cijk_Ailk_Bljk_HHS_BH_MT128x128x64_MI32x32x8x1_SN_1LDSB0_APM1_ABV0_ACED0_AF0EM8_AF1EM1",
        "gemm",
        0.312,
        1240,
    ),
    (
        (
            "void at::native::vectorized_gather_kernel<16, long>(char*, char*, long*, int, long, "
            "long, long, long, bool)"
        ),
        "other",
        0.204,
        1860,
    ),
    (
        (
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, "
            "at::native::MeanOps<float, float, float, float>, "
            "unsigned int, float, 4> >(at::native::ReduceOp<float, at::native::MeanOps<float, "
            "float, float, float>, unsigned int, "
            "float, 4>)"
        ),
        "reduction",
        0.151,
        930,
    ),
    (
        (
            "void at::native::elementwise_kernel<128, 4, "
            "at::native::gpu_kernel_impl<at::native::BinaryFunctor<float, float, float, "
            "at::native::binary_internal::MulFunctor<float> > "
            ">(at::TensorIteratorBase&)::{lambda(int)#1}>(int, lambda)"
        ),
        "elementwise",
        0.118,
        4960,
    ),
    ("MIOpenBatchNormFwdInferSpatialEst.kd", "normalisation", 0.083, 1240),
    ("__amd_rocclr_copyBuffer", "copy", 0.031, 620),
    (
        (
            "void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, false, "
            "false>(float*, float const*, int, int)"
        ),
        "normalisation",
        0.022,
        310,
    ),
)


def gpu_scan() -> Summary:
    """A finished scan on an accelerator: two backends, three passes, telemetry, calibrated
    ceilings.
    """
    torch = tuple(_gpu_point("torch", 2**k, 25_300.0) for k in range(2, 12))
    onnx = tuple(_gpu_point("onnxruntime", 2**k, 19_800.0) for k in range(2, 12))
    return Summary(
        source="traces/20261120T0931-particlenet",
        trace=TraceCounts(
            pass_name="rocprofv3",
            kernels=41_230,
            copies=620,
            devices=1,
            streams=2,
            ranks=1,
            span_ns=24_000_000_000,
            busy_ns=17_100_000_000,
            busy_any_ns=17_300_000_000,
            sum_kernel_ns=17_650_000_000,
            unlinked_kernels=0,
            distinct_kernels=58,
        ),
        devices={
            "0": DeviceCounts(
                kernels=41_230,
                busy_ns=17_100_000_000,
                busy_any_ns=17_300_000_000,
                span_ns=24_000_000_000,
            )
        },
        points=torch + onnx,
        metrics={
            "ceiling_flops": Figure(
                value=121e12, unit="FLOP/s", source="calibrate: measured fp16 GEMM"
            ),
            "ceiling_bandwidth": Figure(
                value=3.9e12, unit="B/s", source="calibrate: measured copy"
            ),
            "energy_per_item": Figure(value=None, unit="J/jet", needs="--min-seconds 4"),
            "hfu": Figure(value=None, unit="share", needs="a counter pass (--pmc)"),
            "occupancy": Figure(
                value=0.41, unit="share", source="rocprofv3 pass, kernels table", coverage=0.97
            ),
        },
        findings=(
            finding(
                "cold-cache",
                "compile caches were cold: the first forward took 41 s",
                point="torch-b4",
                compile_s=41.2,
            ),
            finding(
                "profiler-overhead",
                "torch slowed the point by 7.9 %, mostly between launches",
                point="torch-b4",
                overhead_share=0.079,
            ),
            finding("clock-residual", "telemetry is aligned to 40 µs only", residual_ns=40_000),
        ),
        problems=(
            ProblemRow(
                source="artifacts/rocprofv3/node7/4242/trace.csv",
                severity="warning",
                count=3,
                message="rows without an end time were left out",
            ),
        ),
        run=_run("AMD Instinct MI300X (fictitious)"),
        passes=(
            PassRow(name="bare", layers=(), seconds=58.2, state="done"),
            PassRow(
                name="torch",
                layers=("torch",),
                seconds=31.4,
                state="done",
                overhead={"torch": Estimate(value=0.031, low=0.027, high=0.035)},
            ),
            PassRow(
                name="rocprofv3",
                layers=("rocprofv3",),
                seconds=44.9,
                state="done",
                overhead={"rocprofv3": Estimate(value=0.018, low=0.012, high=0.024)},
            ),
        ),
        series=(_series("torch", torch, 25_300.0), _series("onnxruntime", onnx, 19_800.0)),
        sources=(
            _source("artifacts/torch/node7/4240/trace.json.gz", "kineto", "torch", 210, 300),
            _source(
                "artifacts/rocprofv3/node7/4242/trace.csv",
                "rocprofv3-csv",
                "rocprofv3",
                900,
                1_900,
                (-400, 800),
            ),
            _source("telemetry/node7.parquet", "telemetry", "telemetry", 21_000, 40_000),
        ),
        hotspots=(gpu_hotspots(), gpu_categories()),
        telemetry=gpu_telemetry(),
    )


def _run(device: str, kind: str = "scan", **more: object) -> RunInfo:
    settings: dict[str, object] = {
        "id": "20261120T0931-particlenet",
        "path": "traces/20261120T0931-particlenet",
        "kind": kind,
        "created": "2026-11-20T09:31:07Z",
        "profharness": "0.1.0",
        "state": "done",
        "host": "node7",
        "device": device,
        "cpu_model": "Fictitious CPU 9000 64-Core",
        "argv": (
            "profharness",
            "run",
            "particlenet",
            "--device",
            "cuda",
            "--batch-sizes",
            "4..2048",
            "--profile",
            "torch,rocprofv3",
        ),
        "versions": {"python": "3.11.9", "torch": "2.13.0", "rocm": "7.2.0", "amdgpu": "6.14.0"},
        "git": "3f2a91c (main, clean)",
        "scan": "particlenet",
        "exit_status": 0,
    }
    return RunInfo(**(settings | more))  # type: ignore[arg-type]  # fields by name


def _source(
    path: str,
    form: str,
    layer: str,
    residual: int,
    bound: int,
    causal: tuple[int, int] | None = None,
) -> SourceRow:
    return SourceRow(
        path=path,
        format=form,
        clock="run",
        pass_name=layer,
        layer=layer,
        alignment="3 snapshots, piecewise linear",
        residual_ns=residual,
        bound_ns=bound,
        causal_low_ns=causal[0] if causal else None,
        causal_high_ns=causal[1] if causal else None,
        tool_version="1.2.3",
    )


def _gpu_point(backend: str, batch: int, best: float) -> PointSummary:
    generator = random.Random(f"{backend}{batch}")
    throughput = best * batch / (batch**1.4 + 34.0**1.4) ** (1 / 1.4)
    latency = batch / throughput * 1e3
    trials = tuple(latency * (1 + abs(generator.gauss(0, 0.012))) for _ in range(100))
    fill = min(0.04 * (batch / 4) ** 0.72, 0.97)
    idle = max(0.78 - 0.115 * math.log2(batch / 4), 0.03)
    power = min(0.11 + 0.53 * fill, 0.64)
    return PointSummary(
        point=f"{backend}-b{batch}",
        backend=backend,
        batch_size=batch,
        trials=100,
        warmup_trials=12,
        throughput=throughput,
        throughput_sem=throughput * 0.0019,
        latency_ms=latency * 1.01,
        consistency=1.0002,
        trials_ms=trials,
        overhead={
            "torch": Estimate(
                value=0.08 / math.sqrt(batch / 4),
                low=0.06 / math.sqrt(batch / 4),
                high=0.1 / math.sqrt(batch / 4),
            ),
            "rocprofv3": Estimate(value=0.018, low=0.012, high=0.024),
        },
        metrics={
            "throughput": Figure(
                value=throughput,
                unit="jets/s",
                low=throughput * 0.996,
                high=throughput * 1.004,
                source="bare pass, trials.csv",
            ),
            "latency_p50": Figure(
                value=latency * 1.007,
                unit="ms",
                low=latency * 1.004,
                high=latency * 1.011,
                source="bare pass, trials.csv",
            ),
            "latency_p99": Figure(value=None, unit="ms", needs="more trials (at least 1000)"),
            "latency_p90": Figure(
                value=latency * 1.02,
                unit="ms",
                low=latency * 1.015,
                high=latency * 1.03,
                source="bare pass, trials.csv",
            ),
            "gpu_percent": Figure(
                value=100.0, unit="%", source="bare pass, amd telemetry at 10 Hz"
            ),
            "busy": Figure(value=1 - idle, unit="share", source="rocprofv3 pass, kernels table"),
            "fill": Figure(
                value=fill,
                unit="share",
                low=fill * 0.98,
                high=min(fill * 1.02, 1.0),
                source="rocprofv3 pass, kernels table",
                coverage=0.97,
            ),
            "bandwidth_share": Figure(
                value=0.71 * fill, unit="share", source="counters pass over the calibrated copy"
            ),
            "power_saturation": Figure(
                value=power, unit="share", source="bare pass, amd telemetry at 10 Hz"
            ),
            "energy_per_item": Figure(
                value=0.009 + 0.25 / batch, unit="J/jet", source="bare pass, energy counter"
            ),
            "operational_intensity": Figure(
                value=best / 2800 * (1 + 0.1 * math.log2(batch)),
                unit="FLOP/B",
                source="counters pass",
            ),
            "achieved_flops": Figure(
                value=24e12 * fill, unit="FLOP/s", source="torch FLOP counter over kernel time"
            ),
        },
        partition=_partition(int(latency * 1e7), idle, 0.0, 0.004),
        verdict=_gpu_verdict(backend, idle),
    )


def _gpu_verdict(backend: str, idle: float) -> Verdict:
    if idle > 0.3:
        evidence = (
            f"the device is idle {100 * idle:.1f} % of the time: "
            f"launches in progress {86 * idle:.1f} %"
        )
        return verdict_of("idle-launch-in-progress", idle, evidence, 1 / (1 - idle))
    if backend == "torch":
        evidence = "EdgeConv gathers at 71 % of the measured copy"
        return verdict_of("bandwidth", 0.58, evidence, 1.4)
    evidence = (
        f"kernels fill the device {100 - 100 * idle:.1f} % of the time; "
        "whether by compute or by bandwidth is not measured"
    )
    return verdict_of("undetermined", 1 - idle, evidence)


def _partition(window: int, idle: float, communication: float, copy: float) -> Partition:
    idle_ns, comm_ns, copy_ns = int(window * idle), int(window * communication), int(window * copy)
    first, second, third = int(idle_ns * 0.86), int(idle_ns * 0.08), int(idle_ns * 0.04)
    causes = IdleCauses(
        launch_in_progress_ns=first,
        host_not_ready_ns=second,
        synchronisation_ns=third,
        queued_gap_ns=idle_ns - first - second - third,
        micro_ns=idle_ns // 3,
        macro_ns=idle_ns - idle_ns // 3,
    )
    return Partition(
        window_ns=window,
        compute_ns=window - idle_ns - comm_ns - copy_ns,
        exposed_communication_ns=comm_ns,
        exposed_copy_ns=copy_ns,
        idle_ns=idle_ns,
        communication_ns=int(window * communication * 2.3),
        copy_ns=copy_ns * 2,
        idle_causes=causes,
    )


def _series(
    backend: str,
    points: tuple[PointSummary, ...],
    best: float,
    half: float = 34.0,
    power: float = 1.4,
) -> Series:
    return Series(
        key={"backend": backend},
        axis="batch_size",
        levels=tuple(float(point.batch_size or 0) for point in points),
        throughput=tuple(point.throughput or 0.0 for point in points),
        throughput_sem=tuple(point.throughput_sem for point in points),
        latency_ms=tuple(point.latency_ms for point in points),
        recommended=Recommended(at=256, throughput=points[6].throughput or 0.0),
        batch=BatchCurve(
            t_max=Estimate(value=best, low=best * 0.993, high=best * 1.007),
            b_half=Estimate(value=half, low=0.96 * half, high=1.04 * half),
            p=Estimate(value=power, low=power - 0.04, high=power + 0.04),
            b90=Estimate(value=3.5 * half, low=3.2 * half, high=3.8 * half),
        ),
    )


def _row(name: str, category: str, share: float, calls: int, total: int) -> HotspotRow:
    mean = total * share / calls
    return HotspotRow(
        name=name,
        category=category,
        calls=calls,
        total_ns=int(total * share),
        share=share,
        mean_ns=mean,
        median_ns=mean * 0.98,
        min_ns=int(mean * 0.7),
        max_ns=int(mean * 2.4),
        std_ns=mean * 0.11,
        workgroups=1216,
        workgroup_size=(256, 1, 1),
        op="aten::mm" if category == "gemm" else None,
    )


def gpu_hotspots() -> Hotspots:
    """Kernels of the rocprofv3 pass, with the long names that templates give."""
    total = 17_650_000_000
    return Hotspots(
        by="kernel",
        pass_name="rocprofv3",
        total_ns=total,
        rows=tuple(_row(*kernel, total) for kernel in KERNELS),
    )


def gpu_categories() -> Hotspots:
    """The same time by category."""
    total = 17_650_000_000
    shares = (
        ("gemm", 0.34),
        ("other", 0.21),
        ("reduction", 0.16),
        ("elementwise", 0.13),
        ("normalisation", 0.12),
        ("copy", 0.04),
    )
    return Hotspots(
        by="category",
        pass_name="rocprofv3",
        total_ns=total,
        rows=tuple(_row(name, name, share, 2000, total) for name, share in shares),
    )


def gpu_telemetry() -> tuple[TelemetryRow, ...]:
    """Ten minutes at one sample per second."""
    at = tuple(float(i) for i in range(180))
    ramp = [min(1.0, i / 60) for i in range(180)]
    rows = (
        ("gpu_percent", "%", [100.0 if i % 19 else 20.0 for i in range(180)]),
        ("power_w", "W", [130 + 420 * x for x in ramp]),
        ("clock_mhz", "MHz", [2100 - 180 * x for x in ramp]),
        ("temperature_c", "°C", [41 + 27 * x for x in ramp]),
    )
    return tuple(
        TelemetryRow(
            metric=name,
            unit=unit,
            device="node7/0",
            mean=sum(values) / 180,
            low=min(values),
            high=max(values),
            samples=1800,
            at_s=at,
            values=tuple(values),
        )
        for name, unit, values in rows
    )


def cpu_scan() -> Summary:
    """What most first users get: the built-in model on a laptop's CPU, one torch pass, no
    accelerator.
    """
    points = tuple(_cpu_point(2**k) for k in range(9))
    series = _series("torch", points, 812.0, 3.0, 1.2)
    return Summary(
        source="traces/20261120T0931-particlenet",
        trace=TraceCounts(pass_name="torch"),
        points=points,
        metrics={
            "cores_allowed": Figure(value=8, unit="cores", source="manifest"),
            "power_saturation": Figure(value=None, unit="share", needs="a readable RAPL counter"),
        },
        findings=(
            finding(
                "warmup-leak",
                "the first 2 trials are 3.1 times slower than the rest",
                point="torch-b1",
                leaked_trials=2,
                severity="warning",
            ),
        ),
        run=_run(
            "cpu",
            argv=("profharness", "run", "--profile", "torch"),
            host="laptop",
            cpu_model="Fictitious CPU 8-Core",
            versions={"python": "3.11.9", "torch": "2.13.0+cpu"},
        ),
        passes=(
            PassRow(name="bare", layers=(), seconds=41.0, state="done"),
            PassRow(
                name="torch",
                layers=("torch",),
                seconds=22.0,
                state="done",
                overhead={"torch": Estimate(value=0.052, low=0.031, high=0.073)},
            ),
        ),
        series=(
            Series(
                key={},
                axis="batch_size",
                levels=series.levels,
                throughput=series.throughput,
                throughput_sem=series.throughput_sem,
                latency_ms=series.latency_ms,
                batch=series.batch,
                recommended=Recommended(at=64, throughput=points[6].throughput or 0.0),
            ),
        ),
        sources=(
            _source("artifacts/torch/laptop/812/trace.json.gz", "kineto", "torch", 400, 900),
            _source("telemetry/laptop.parquet", "telemetry", "telemetry", 9_000, 12_000),
        ),
        hotspots=(cpu_ops(),),
        telemetry=tuple(
            TelemetryRow(
                metric=name,
                unit=unit,
                device="laptop",
                mean=0.9 * top,
                low=0.2 * top,
                high=top,
                samples=630,
                at_s=tuple(i / 2 for i in range(126)),
                values=tuple(top if i % 14 else 0.2 * top for i in range(126)),
            )
            for name, unit, top in (
                ("cpu_tree", "cores", 7.2),
                ("memory_tree", "B", 1.8e9),
                ("pressure_cpu", "share", 0.03),
            )
        ),
    )


def _cpu_point(batch: int) -> PointSummary:
    generator = random.Random(batch)
    throughput = 812.0 * batch / (batch**1.2 + 3.0**1.2) ** (1 / 1.2)
    latency = batch / throughput * 1e3
    leak = (3.2, 2.9) if batch == 1 else ()
    cores = min(1.4 + 1.1 * math.log2(batch), 7.6)
    trials = tuple(
        latency * factor
        for factor in (*leak, *(1 + abs(generator.gauss(0, 0.03)) for _ in range(60)))
    )
    return PointSummary(
        point=f"torch-b{batch}",
        backend="torch",
        batch_size=batch,
        trials=len(trials),
        warmup_trials=5,
        throughput=throughput,
        throughput_sem=throughput * 0.006,
        latency_ms=latency * 1.02,
        consistency=1.09 if batch == 1 else 1.001,
        trials_ms=trials,
        overhead={"torch": Estimate(value=0.052, low=0.031, high=0.073)},
        metrics={
            "throughput": Figure(
                value=throughput,
                unit="jets/s",
                low=throughput * 0.988,
                high=throughput * 1.012,
                source="bare pass, trials.csv",
            ),
            "latency_p50": Figure(
                value=latency,
                unit="ms",
                low=latency * 0.99,
                high=latency * 1.01,
                source="bare pass, trials.csv",
            ),
            "cores_used": Figure(value=cores, unit="cores", source="bare pass, CPU telemetry"),
        },
        verdict=verdict_of(
            "idle-cores" if cores < 4 else "undetermined",
            1 - cores / 8 if cores < 4 else cores / 8,
            f"the process ran on {cores:.1f} of 8 allowed cores",
            8 / cores if cores < 4 else None,
        ),
    )


def cpu_ops() -> Hotspots:
    """Operations of the torch pass on a CPU."""
    total = 8_400_000_000
    rows = (
        ("aten::addmm", "gemm", 0.36, 540),
        ("aten::mkldnn_convolution", "conv", 0.27, 810),
        ("aten::gather", "other", 0.14, 270),
        ("aten::topk", "other", 0.09, 270),
        ("aten::native_batch_norm", "normalisation", 0.06, 810),
    )
    return Hotspots(
        by="op", pass_name="torch", total_ns=total, rows=tuple(_row(*row, total) for row in rows)
    )


def command() -> Summary:
    """A training script under rocprofv3: 20 captured steps, host-bound, no bare pass."""
    partition = Partition(
        window_ns=8_240_000_000,
        compute_ns=5_051_120_000,
        exposed_communication_ns=675_680_000,
        exposed_copy_ns=32_960_000,
        idle_ns=2_480_240_000,
        communication_ns=1_565_600_000,
        copy_ns=90_000_000,
        idle_causes=IdleCauses(
            host_not_ready_ns=1_788_080_000,
            synchronisation_ns=486_160_000,
            launch_in_progress_ns=173_040_000,
            queued_gap_ns=32_960_000,
            micro_ns=300_000_000,
            macro_ns=2_180_240_000,
        ),
    )
    return Summary(
        source="traces/20261120T1002-command",
        trace=TraceCounts(
            pass_name="rocprofv3",
            kernels=24_800,
            devices=1,
            streams=3,
            ranks=1,
            span_ns=8_240_000_000,
            busy_ns=5_726_800_000,
        ),
        devices={
            "0": DeviceCounts(
                kernels=24_800,
                busy_ns=5_726_800_000,
                busy_any_ns=5_759_760_000,
                span_ns=8_240_000_000,
            )
        },
        metrics={
            "gpu_percent": Figure(
                value=98.0, unit="%", low=96.0, high=99.0, source="amd telemetry at 10 Hz"
            ),
            "step_time": Figure(
                value=412_000_000,
                unit="ns",
                low=408_000_000,
                high=416_000_000,
                source="rocprofv3 pass, marks",
            ),
            "steps_per_second": Figure(
                value=2.43,
                unit="steps/s",
                low=2.40,
                high=2.46,
                source="rocprofv3 pass, marks",
                note="slowed by the profiler",
            ),
            "throughput": Figure(value=622.0, unit="items/s", source="rocprofv3 pass, marks"),
            "fill": Figure(
                value=0.55, unit="share", source="rocprofv3 pass, kernels table", coverage=0.99
            ),
            "mfu": Figure(value=None, unit="share", needs="--flops-per-item"),
        },
        run=_run(
            "AMD Instinct MI300X (fictitious)",
            "command",
            id="20261120T1002-command",
            path="traces/20261120T1002-command",
            argv=(
                "profharness",
                "run",
                "--profile",
                "rocprofv3",
                "--hip-trace",
                "--",
                "python",
                "train.py",
            ),
            command=("python", "train.py"),
            scan="",
            capture="steps=10:30",
        ),
        passes=(
            PassRow(
                name="rocprofv3",
                layers=("rocprofv3",),
                seconds=41.2,
                state="done",
                first_step=10,
                captured_steps=20,
            ),
        ),
        sources=(
            _source(
                "artifacts/rocprofv3/node7/4242/trace.csv",
                "rocprofv3-csv",
                "rocprofv3",
                900,
                1_900,
                (-400, 800),
            ),
            _source("telemetry/node7.parquet", "telemetry", "telemetry", 21_000, 40_000),
        ),
        partition=partition,
        hotspots=(gpu_hotspots(), gpu_categories()),
        telemetry=gpu_telemetry(),
        verdict=verdict_of(
            "idle-host-not-ready",
            0.301,
            (
                "the device is idle 30.1 % of the time (the host not ready 21.7 %, "
                "the host in a synchronisation call 5.9 %)"
            ),
            1.431,
        ),
        use=device_use(),
    )


def device_use() -> DeviceUse:
    """Operators and kernels of a pass of torch beside counters, all numbers made up."""
    operators = (
        UseRow(
            name="aten::addmm",
            calls=1240,
            device_ns=1_400_000_000,
            share=0.28,
            flops_per_s=2.6e14,
            bytes_per_s=1.3e12,
            intensity=200.0,
            peak_share=0.25,
            limiter="inside-kernel",
            excess_ns=1.0e9,
        ),
        UseRow(
            name="aten::convolution",
            calls=620,
            device_ns=900_000_000,
            share=0.18,
            flops_per_s=4.1e14,
            bytes_per_s=8.2e11,
            intensity=500.0,
            peak_share=0.4,
            limiter="compute",
            excess_ns=5.0e8,
        ),
        UseRow(
            name="aten::_index_put_impl_",
            calls=310,
            device_ns=600_000_000,
            share=0.12,
            limiter="undetermined",
        ),
    )
    gemm = msgspec.structs.replace(operators[0], name=KERNELS[0][0], device_ns=1_200_000_000)
    counter = OperatorCounter(
        operator="aten::addmm",
        counter="SQ_WAVES",
        unit="count",
        dispatches=40,
        recorded=0,
        in_order=40,
        sum=81_920.0,
        mean=2048.0,
    )
    return DeviceUse(
        pass_name="torch",
        device_ns=5_000_000_000,
        outside_ns=250_000_000,
        roofs=(Roof(value=1.0e15, source="calibrated GEMM, bf16", dtype="bf16"),),
        bandwidth=Roof(value=4.0e12, source="calibrated copy"),
        operators=operators,
        kernels=(gemm,),
        known=KnownWork(
            matrix_kernel_ns=2_500_000_000,
            known_ns=2_000_000_000,
            reasons={"graph replay": 500_000_000},
        ),
        counters=(
            counter,
            msgspec.structs.replace(
                counter, counter="MfmaUtil", unit="%", in_order=10, sum=None, mean=31.5
            ),
        ),
    )


def failing() -> Summary:
    """Points that ran out of memory, and a trace that lost kernels: seven findings, two of them
    errors.
    """
    good = tuple(_gpu_point("torch", batch, 25_300.0) for batch in (64, 256))
    bad = tuple(
        PointSummary(
            point=f"torch-b{batch}",
            backend="torch",
            batch_size=batch,
            state="failed",
            error=(
                "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 48.00 GiB\n"
                "  at line 12"
            ),
        )
        for batch in (4096, 8192)
    )
    return Summary(
        source="traces/20261120T1100-particlenet",
        trace=TraceCounts(pass_name="torch", kernels=10),
        points=good + bad,
        findings=(
            finding(
                "kernels-missing",
                "1 240 of 41 230 launches have no kernel",
                point="torch-b256",
                missing_share=0.03,
            ),
            finding("drift", "the repeated points differ by 4.1 %", drift_share=0.041),
            finding("point-failed", "out of memory", point="torch-b4096"),
            finding("point-failed", "out of memory", point="torch-b8192"),
            finding("cpu-pressure", "other work took CPU time", pressure_percent=12.5),
            finding("too-few-trials", "10 trials", trials=10),
            finding("sampler-gaps", "the sampler paused", longest_s=2.4),
        ),
        run=_run("AMD Instinct MI300X (fictitious)", state="failed", exit_status=1),
        passes=(
            PassRow(name="bare", layers=(), seconds=12.0, state="done"),
            PassRow(name="torch", layers=("torch",), seconds=None, state="failed"),
        ),
        series=(
            Series(
                key={},
                levels=(64.0, 256.0),
                throughput=(good[0].throughput or 0.0, good[1].throughput or 0.0),
                throughput_sem=(None, None),
                latency_ms=(None, None),
                findings=(
                    finding("peak-beyond-range", "throughput still rises at the largest batch"),
                ),
                recommended=Recommended(at=256, throughput=good[1].throughput or 0.0),
            ),
        ),
    )


def empty() -> Summary:
    """A directory whose run was killed before anything was measured."""
    return Summary(source="traces/20261120T1200-particlenet", trace=TraceCounts())


def odd_numbers() -> Summary:
    """A point with figures that are not numbers, as a broken sensor gives them, and hostile
    text.
    """
    broken = Figure(
        value=math.nan, unit="W", low=math.nan, high=math.inf, source="<script>alert(1)</script>"
    )
    point = PointSummary(
        point="</script><b>x",
        backend="torch",
        batch_size=8,
        throughput=math.nan,
        throughput_sem=math.inf,
        latency_ms=None,
        metrics={
            "power_w": broken,
            "gpu_percent": broken,
            "fill": Figure(value=None, unit="share", needs="geometry"),
        },
        trials_ms=(math.nan, 1.0),
    )
    return Summary(
        source="</script><img src=http://example.invalid/x>",
        trace=TraceCounts(),
        points=(point,),
        metrics={"power_w": broken},
        telemetry=(
            TelemetryRow(
                metric="power_w",
                unit="W",
                device="0",
                mean=math.nan,
                low=math.nan,
                high=math.nan,
                samples=0,
                at_s=(0.0,),
                values=(math.nan,),
            ),
        ),
    )


SAMPLES = {
    "gpu_scan": gpu_scan,
    "cpu_scan": cpu_scan,
    "command": command,
    "failing": failing,
    "empty": empty,
    "odd_numbers": odd_numbers,
}
