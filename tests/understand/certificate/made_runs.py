"""Run directories of a scan on a made-up A100, whose saturation is known because it was put in.

The throughput follows `top * b / (b + half)`, of which the largest batch size reaches a known
share. The kernels of the traced pass fill a known share of the time and of the units, and the FLOPs
per item a known share of the peak.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profharness.rundir.manifest import (
    Artifact,
    ClockSnapshot,
    DeviceRecord,
    Manifest,
    NodeRecord,
    PassRecord,
    PointRecord,
    ScanRecord,
)
from profharness.rundir.paths import RunDir
from profharness.telemetry.records import Layout, encode_header
from profharness.telemetry.sources import Column, Missing, SampledDevice
from tests.readers.kineto.kineto_files import document, kernel, launch, write

HOST, PID = "node", 77
START = 10**12
EPOCH = 1_751_000_000_000_000_000
UNITS = 108
PEAK = 312e12
"""FLOP/s of 16-bit matrix products on an A100, by its data sheet."""
TOP = 40_000.0
SECOND = 1_000_000_000
SLOWED = 1.04


@dataclass(frozen=True)
class Made:
    """What is put into a run. `of_peak` is the share of the peak at the plateau, `filled` the
    workgroups of a kernel over the compute units, `others` further processes on the device.
    """

    batches: tuple[int, ...] = (1, 4, 16, 64, 256, 1024)
    half: float = 8.0
    noise: float = 0.002
    trials: int = 40
    busy: float = 0.97
    filled: float = 4.0
    of_peak: float = 0.8
    state: str = "done"
    telemetry: bool = True
    traced: bool = True
    others: float = 0.0
    thermal: float = 0.0
    limits: tuple[float, float] = (400.0, 400.0)
    secret: str = ""

    def rate(self, batch: int) -> float:
        """Items/s at this batch size."""
        return TOP * batch / (batch + self.half)


class Sampled:
    """The sampler's source of the device."""

    name = "nvml"
    max_hz = 10.0
    devices = (SampledDevice("0", "0000:c1:00.0", "NVIDIA A100-SXM4-80GB", "nvidia"),)
    columns = tuple(
        Column(name, unit, "instant", 1.0, "d", 0)
        for name, unit in (
            ("gpu_percent", "%"),
            ("power_limit", "W"),
            ("clock_gpu", "MHz"),
            ("throttle_thermal", "share"),
            ("gpu_processes_other", "processes"),
        )
    )

    def probe(self) -> tuple[Missing, ...]:
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        raise NotImplementedError


SATURATED = Made()
UNSATURATED = Made(batches=(1, 2, 4, 8, 16), half=512.0, busy=0.3, filled=0.2, of_peak=0.5)


def make(root: Path, made: Made = SATURATED) -> RunDir:
    """The run directory, as `run` leaves it but for what `report` makes."""
    run = RunDir.create(root)
    times = _times(made)
    points: list[PointRecord] = []
    artifacts: list[Artifact] = []
    at = START
    for name, share, slowed in (("bare", 1.0, 1.0), ("torch", 0.25, SLOWED)):
        if name == "torch" and not made.traced:
            continue
        for batch in made.batches:
            durations = np.rint(times[batch][: round(share * made.trials)] * slowed).astype(int)
            starts = at + np.concatenate([[0], np.cumsum(durations)[:-1]])
            _trials(run, name, batch, starts, durations)
            points.append(_point(made, name, batch, starts, durations))
            if name == "torch":
                artifacts.append(_traced(run, made, batch, starts, durations / slowed))
            at = int(starts[-1] + durations[-1]) + SECOND // 50
    if made.telemetry:
        _telemetry(run, made, at)
    (run.control_dir("bare") / "worker-torch-1.log").write_text(f"started\n{made.secret}\n")
    run.write_manifest(_manifest(made, points, artifacts, at))
    return run


def _times(made: Made) -> dict[int, np.ndarray]:
    """ns of each trial, by batch size."""
    return {
        batch: 1e9
        * batch
        / made.rate(batch)
        * np.exp(made.noise * np.random.default_rng([7, batch]).standard_normal(made.trials))
        for batch in made.batches
    }


def _trials(run: RunDir, name: str, batch: int, starts: np.ndarray, durations: np.ndarray) -> None:
    rows = "".join(
        f"{number},trial,{start},{length},{batch}\n"
        for number, (start, length) in enumerate(zip(starts, durations, strict=True))
    )
    folder = run.point_dir(name, f"torch-b{batch}")
    (folder / "trials.csv").write_text("trial,kind,start_monotonic_ns,dur_ns,items\n" + rows)
    (folder / "stdout.log").write_text("")


def _point(
    made: Made, name: str, batch: int, starts: np.ndarray, durations: np.ndarray
) -> PointRecord:
    return PointRecord(
        id=f"torch-b{batch}",
        pass_name=name,
        backend="torch",
        batch_size=batch,
        trials=len(starts),
        items_per_trial=batch,
        pid=PID,
        host=HOST,
        device="cuda:0",
        start_monotonic_ns=int(starts[0]),
        end_monotonic_ns=int(starts[-1] + durations[-1]),
        notes={"flops_per_item": str(made.of_peak * PEAK / TOP), "dtype": "bf16"},
    )


def _traced(run: RunDir, made: Made, batch: int, starts: np.ndarray, bare: np.ndarray) -> Artifact:
    """One launch and one kernel of each trial, which takes its share of a bare trial's time."""
    events = []
    for number, (start, length) in enumerate(zip(starts, bare, strict=True), 1):
        begin = (start - START) / 1000
        events += [
            launch("cudaLaunchKernel", begin + 1, 2, number),
            kernel(
                "ampere_bf16_s16816gemm_bf16_128x128",
                begin + 4,
                made.busy * length / 1000,
                correlation=number,
                grid=[max(1, round(made.filled * UNITS)), 1, 1],
                block=[256, 1, 1],
            ),
        ]
    device = {"id": 0, "name": "NVIDIA A100-SXM4-80GB", "numSms": UNITS}
    folder = run.artifacts_dir("torch", HOST, str(PID))
    head = {"baseTimeNanoseconds": EPOCH + START, "deviceProperties": [device]}
    path = write(folder / f"torch-b{batch}.json.gz", document(events, **head))
    sidecar = {"v": 1, "host": HOST, "pid": PID, "point": f"torch-b{batch}", "role": "trace"}
    Path(f"{path}.profharness.json").write_text(json.dumps(sidecar))
    return Artifact(
        path=run.relative(path),
        layer="torch",
        format="kineto",
        pass_name="torch",
        host=HOST,
        pid=PID,
        point=f"torch-b{batch}",
    )


def _telemetry(run: RunDir, made: Made, until: int) -> None:
    layout = Layout((Sampled(),))
    facts = {
        "host": HOST,
        "pid": 42,
        "hz": 10.0,
        "period_ns": SECOND // 100,
        "clock": "monotonic",
        "profharness": "9.9",
        "missing": [],
    }
    rows = b""
    instants = range(START - SECOND, until + SECOND, SECOND // 100)
    for number, at in enumerate(instants):
        limit = made.limits[2 * number >= len(instants)]
        values = (100 * made.busy, limit, 1400.0, made.thermal, made.others)
        rows += layout.row.pack(at, at, 0, at + 1000, at + 3000, *values)
    run.telemetry.mkdir(exist_ok=True)
    (run.telemetry / f"{HOST}.samples.bin").write_bytes(encode_header(layout, facts) + rows)


def _manifest(
    made: Made, points: list[PointRecord], artifacts: list[Artifact], end: int
) -> Manifest:
    clocks = tuple(
        ClockSnapshot(
            host=HOST,
            phase=phase,
            boot_ns=at,
            monotonic_ns=at,
            monotonic_raw_ns=at,
            realtime_ns=at + EPOCH,
            width_ns=200,
        )
        for phase, at in (("before", START - SECOND), ("after", end + SECOND))
    )
    names = ("bare", "torch") if made.traced else ("bare",)
    planned = {name: tuple(f"torch-b{batch}" for batch in made.batches) for name in names}
    device = DeviceRecord(
        index=0,
        kind="cuda",
        name="NVIDIA A100-SXM4-80GB",
        identity="0000:c1:00.0",
        compute_units=UNITS,
        architecture="sm_80",
        driver="570.86",
    )
    return Manifest(
        id="made",
        created="2026-01-01T00:00:00Z",
        profharness="0.1",
        kind="scan",
        argv=("profharness", "run"),
        state=made.state,
        exit_status=0 if made.state == "done" else None,
        scan=ScanRecord(name="particlenet", item="jet", planned=planned),
        nodes=(
            NodeRecord(host=HOST, cpu_model="CPU", devices=(device,), versions={"torch": "2.13.0"}),
        ),
        passes=tuple(
            PassRecord(
                name=name,
                layers=() if name == "bare" else (name,),
                state="done",
                start_boot_ns=START,
                end_boot_ns=end,
                exit_status=0,
            )
            for name in names
        ),
        points=tuple(points),
        artifacts=tuple(artifacts),
        clocks=clocks,
    )
