"""A run directory made by hand that has some of everything: two hosts, four ranks, three passes,
points, steps, telemetry, markers.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from profharness.rundir.manifest import (
    Artifact,
    ClockSnapshot,
    Manifest,
    NodeRecord,
    PassRecord,
    PointRecord,
)
from profharness.rundir.paths import RunDir
from profharness.telemetry.records import Layout, encode_header
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import Call, Program, program
from tests.readers.kineto.kineto_files import document, event, kernel, launch, op, write
from tests.rundir.test_telemetry import Gpus, Host

BOOT = 63_857_000_000_000
SLEPT = 7_000_000_000  # CLOCK_BOOTTIME less CLOCK_MONOTONIC
EPOCH = 1_751_000_000_000_000_000  # CLOCK_REALTIME less CLOCK_BOOTTIME of the first host
LATER = 60_000_000_000  # from the torch pass to that of rocprofv3
POINTS = ("b4", "b8")


def run_of(
    root: Path, *, seed: int = 1, ranks: int = 4, kernels: int = 40, lend: bool = True
) -> RunDir:
    """The run; `lend`: a pass of rocprofv3 has the launch geometry that the one of torch.profiler
    lacks.
    """
    run = RunDir.create(root)
    artifacts: list[Artifact] = []
    for rank in range(ranks):
        host, pid = f"n{rank // 2}", 100 + rank % 2
        given = _in_points(program(seed + rank, kernels, pid=pid, host=host, counters=False))
        artifacts += _torch(run, given, rank, seed)
        if lend:
            path = write_rocpd(
                run.artifacts_dir("rocprofv3", host, str(rank)) / f"{pid}_results.db", _later(given)
            )
            artifacts.append(
                Artifact(
                    path=run.relative(path),
                    layer="rocprofv3",
                    format="rocpd",
                    pass_name="rocprofv3",
                    host=host,
                    pid=pid,
                    rank=rank,
                )
            )
        _steps(run, given, host, rank)
    for number, name in enumerate(("n0", "n1")):
        _telemetry(run, name, number)
    _trials(run)
    run.write_manifest(
        Manifest(
            id="r",
            created="2026-01-02T03:04:05Z",
            profharness="0",
            kind="command",
            argv=("profharness", "run"),
            ranks=ranks,
            artifacts=tuple(artifacts),
            nodes=(NodeRecord(host="n0"), NodeRecord(host="n1")),
            clocks=tuple(_clocks()),
            passes=(
                PassRecord(name="bare", start_boot_ns=BOOT - LATER),
                PassRecord(name="torch", layers=("torch",), start_boot_ns=BOOT),
                PassRecord(name="rocprofv3", layers=("rocprofv3",), start_boot_ns=BOOT + LATER),
            ),
            points=tuple(
                PointRecord(id=point, pass_name="bare", host="n0", pid=99) for point in POINTS
            ),
        )
    )
    return run


def _in_points(given: Program) -> Program:
    """The program with its own calls; the first half of its launches is one point, the rest the
    other.
    """
    middle = given.kernels[len(given.kernels) // 2].start - 2000
    first, last = (
        min(call.start for call in given.calls) - 600,
        max(call.end for call in given.calls) + 10,
    )
    kept = [call for call in given.calls if not call.message]
    spans = ((POINTS[0], first, middle), (POINTS[1], middle, last))
    marks = [
        Call(
            "MARKER_CORE_RANGE_API",
            "roctxThreadRangeA",
            start,
            end,
            9100 + number,
            given.pid,
            f"profharness.point:{point}",
        )
        for number, (point, start, end) in enumerate(spans)
    ]
    return replace(given, calls=(*kept, *marks))


def _later(given: Program) -> Program:
    def moved(one: Any) -> Any:
        return replace(one, start=one.start + LATER, end=one.end + LATER)

    return replace(
        given,
        **{
            name: tuple(moved(one) for one in getattr(given, name))
            for name in ("kernels", "copies", "calls")
        },
    )


def _us(ns: int) -> float:
    return ns // 1000 + ns % 1000 / 1000


def _torch(run: RunDir, given: Program, rank: int, seed: int) -> list[Artifact]:
    """A Kineto file without launch geometry, and a marker file of the same process with its
    sidecar. Times count from a base.
    """
    host, base = f"n{rank // 2}", EPOCH + BOOT + (rank // 2) * 1_000_000
    names = {symbol.number: symbol.name for symbol in given.symbols}

    def at(ns: int) -> float:
        return _us(ns - BOOT)

    events: list[dict[str, Any]] = []
    for number, call in enumerate(call for call in given.calls if call.domain == "HIP_RUNTIME_API"):
        events += [
            op(
                f"aten::op{number % 5}",
                at(call.start - 300),
                1.5,
                2 * number + 1,
                pid=given.pid,
                tid=call.tid,
            ),
            launch(
                call.name,
                at(call.start),
                _us(call.end - call.start),
                call.correlation,
                tid=call.tid,
            ),
        ]
        events[-1]["pid"] = given.pid
    events += [
        kernel(
            names[k.symbol],
            at(k.start),
            _us(k.end - k.start),
            device=k.agent - 2,
            stream=k.stream,
            correlation=k.correlation,
        )
        for k in given.kernels
    ]
    events += [
        event(
            "gpu_memcpy",
            "Memcpy HtoD (Host -> Device)",
            at(c.start),
            _us(c.end - c.start),
            pid=0,
            tid=0,
            device=0,
            stream=0,
            correlation=c.correlation,
            bytes=c.bytes,
        )
        for c in given.copies
    ]
    events += [
        event(
            "user_annotation",
            call.message,
            at(call.start),
            _us(call.end - call.start),
            pid=given.pid,
            tid=given.pid,
        )
        for call in given.calls
        if call.message
    ]
    starts = [k.start - 2500 for k in given.kernels]
    events += [
        event(
            "user_annotation",
            f"ProfilerStep#{number}",
            at(start),
            _us(end - start),
            pid=given.pid,
            tid=given.pid,
        )
        for number, (start, end) in enumerate(
            zip(starts[::8], [*starts[8::8], starts[-1] + 50_000], strict=True), seed
        )
    ]
    folder = run.artifacts_dir("torch", host, str(rank))
    head = {
        "baseTimeNanoseconds": base,
        "hip_runtime_version": 60400000,
        "distributedInfo": {"rank": rank, "world_size": 4},
    }
    trace = write(folder / "trace.json.gz", document(events, **head))
    marks = [
        event(
            "user_annotation",
            f"profharness.marker:{i}",
            at(BOOT + 1_000_000 * i + 2_000),
            3.0,
            pid=given.pid,
            tid=given.pid,
        )
        for i in range(3)
    ]
    marker = write(folder / "marker.json", document(marks, **head))
    brackets = [
        (BOOT - SLEPT + 1_000_000 * i + 1_000, BOOT - SLEPT + 1_000_000 * i + 6_000 + 100 * rank)
        for i in range(3)
    ]
    Path(f"{marker}.profharness.json").write_text(
        json.dumps(
            {
                "v": 1,
                "host": host,
                "pid": given.pid,
                "rank": rank,
                "role": "marker",
                "markers": brackets,
            }
        )
    )
    return [
        Artifact(
            path=run.relative(path),
            layer="torch",
            format=form,
            pass_name="torch",
            host=host,
            pid=given.pid,
            rank=rank,
        )
        for path, form in ((trace, "kineto"), (marker, "kineto-marker"))
    ]


def _steps(run: RunDir, given: Program, host: str, rank: int) -> None:
    lines = [
        {"n": number, "monotonic_ns": kernel.start - SLEPT, "items": 32}
        for number, kernel in enumerate(given.kernels[::10])
    ]
    path = run.artifacts_dir("steps", host, str(rank)) / f"steps-{given.pid}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))


def _telemetry(run: RunDir, host: str, number: int) -> None:
    layout = Layout((Host(), Gpus()))
    run.telemetry.mkdir(exist_ok=True)
    facts = {
        "host": host,
        "pid": 42,
        "hz": 10.0,
        "period_ns": 100_000_000,
        "clock": "monotonic",
        "profharness": "9.9",
        "missing": [],
    }
    rows = b""
    for tick in range(50):
        at = BOOT - SLEPT + tick * 100_000_000
        rows += layout.row.pack(
            at,
            at + SLEPT,
            0,
            at + 1000,
            at + 3000,
            10_000_000 * tick,
            1000 + tick,
            at + 4000,
            at + 8000,
            300.0 + number + tick,
            at + SLEPT,
            200.0,
            1000 * tick,
        )
    (run.telemetry / f"{host}.samples.bin").write_bytes(encode_header(layout, facts) + rows)


def _trials(run: RunDir) -> None:
    for number, point in enumerate(POINTS):
        folder = run.root / "points" / "bare" / point
        folder.mkdir(parents=True)
        start = BOOT - SLEPT - LATER + number * 1_000_000_000
        rows = "".join(
            f"{i},{'trial' if i else 'warmup'},{start + i * 50_000_000},40000000,"
            f"{4 * (number + 1)}\n"
            for i in range(6)
        )
        (folder / "trials.csv").write_text("trial,kind,start_monotonic_ns,dur_ns,items\n" + rows)


def _clocks() -> list[ClockSnapshot]:
    """Two readings per host; the second host was started at another time, and its wall clock is 1
    ms ahead.
    """
    found = []
    for number, host in enumerate(("n0", "n1")):
        for phase, at in (("before", BOOT - 2 * LATER), ("after", BOOT + 2 * LATER)):
            found.append(
                ClockSnapshot(
                    host=host,
                    phase=phase,
                    boot_ns=at,
                    monotonic_ns=at - SLEPT,
                    monotonic_raw_ns=at - SLEPT,
                    realtime_ns=at + EPOCH + number * 1_000_000,
                    width_ns=200,
                )
            )
    return found
