"""Telemetry and requests: what samplers and load generators write, alone and inside of a run."""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from tests.hostile.bombs.bomb import Bomb, lines, pack, scaled
from tests.hostile.bombs.runs import run_with

_SECOND = 10**9
_BOOT = 7 * _SECOND


def _header(columns: list[dict[str, Any]], width: int, devices: int) -> bytes:
    facts = {
        "v": 2, "host": "n0", "pid": 42, "hz": 10.0, "period_ns": 10**8, "clock": "monotonic",
        "profharness": "9.9", "missing": [],
        "devices": [
            {"number": str(n), "identity": f"0000:{n:02x}:00.0", "name": "MI300X", "vendor": "amd"}
            for n in range(devices)
        ],
        "width": width, "columns": columns,
    }  # fmt: skip
    text = json.dumps(facts, separators=(",", ":")).encode()
    text = text.ljust(-(-len(text) // 8) * 8)
    return b"PHTELEM1" + struct.pack("<I4x", len(text)) + text


def _columns(metrics: list[tuple[str, str, str]], devices: int) -> tuple[list[dict[str, Any]], int]:
    """The columns of a row with these metrics of each device, and how wide it is."""
    roles = [("deadline", ""), ("boot", ""), ("missed", ""), ("before", "gpus"), ("after", "gpus")]
    columns: list[dict[str, Any]] = [
        {"role": role, "type": "q", "at": 8 * at, **({"source": source} if source else {})}
        for at, (role, source) in enumerate(roles)
    ]
    for device in range(devices):
        for metric, unit, form in metrics:
            columns.append(
                {"role": "value", "type": "q", "source": "gpus", "metric": metric, "unit": unit,
                 "form": form, "scale": 1.0, "device": device, "at": 8 * len(columns)}
            )  # fmt: skip
    return columns, 8 * len(columns)


def samples(rows: int, series: int, devices: int, form: str = "instant") -> Iterator[bytes]:
    """A file of the sampler: so many rows of so many series."""
    each = max(1, series // devices)
    known = [
        ("power", "W"), ("clock", "MHz"), ("temperature", "C"), ("busy", "share"),
        ("memory_used", "B"),
    ]  # fmt: skip
    metrics = [(*(known[n] if n < len(known) else (f"metric_{n}", "W")), form) for n in range(each)]
    columns, width = _columns(metrics, devices)
    yield _header(columns, width, devices)
    values = struct.pack(f"<{each * devices}q", *range(1, each * devices + 1))
    for row in range(rows):
        at = _BOOT + row * 10**6
        yield struct.pack("<5q", at, at + _BOOT, 0, at + 1000, at + 3000) + values


def alone(folder: Path, scale: float, *, rows: int, series: int, devices: int, form: str) -> Path:
    """Telemetry as a file by itself."""
    made = samples(scaled(rows, scale), scaled(series, scale), scaled(devices, scale), form)
    return pack(folder / "n0.samples.bin.gz", made)


def in_run(folder: Path, scale: float, *, rows: int, series: int, devices: int, hosts: int) -> Path:
    """A run with telemetry of hosts, and points within it."""
    rows = scaled(rows, scale)
    run = run_with(folder, levels=9, second=rows * 10**5)
    (run / "telemetry").mkdir()
    for host in range(scaled(hosts, scale)):
        path = run / "telemetry" / f"n{host}.samples.bin"
        made = samples(rows, scaled(series, scale), scaled(devices, scale))
        path.write_bytes(b"".join(made))
    return run


def sources(folder: Path, scale: float, *, count: int) -> Path:
    """Telemetry of thousands of columns of one block, each a sum over it."""
    count = scaled(count, scale)
    columns, _ = _columns([], 1)
    block = 65_536
    columns.append({"role": "block", "type": f"{block}s", "source": "gpus", "at": 40})
    taken = [40, "B", block, 255, False]
    columns += [
        {"role": "value", "type": "q", "source": "gpus", "metric": f"m{n}", "unit": "W",
         "form": "instant", "scale": 1.0, "device": 0, "taken": [taken], "how": "mean"}
        for n in range(count)
    ]  # fmt: skip
    rows = b"".join(
        struct.pack("<5q", _BOOT + n, _BOOT + n, 0, _BOOT + n, _BOOT + n) + bytes([1]) * block
        for n in range(400)
    )
    return pack(folder / "n0.samples.bin.gz", (_header(columns, 40 + block, 1), rows))


def requests(folder: Path, scale: float, *, count: int) -> Path:
    """A served run with a table of so many requests, which compress to nearly nothing."""
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from profharness.rundir.requests import COLUMNS

    count = scaled(count, scale)
    run = run_with(folder, levels=2, served=count, second=count * 1000)
    at = np.arange(count, dtype=np.int64) * 1000
    columns = dict.fromkeys(COLUMNS, np.ones(count, np.int64))
    for number, name in enumerate(("intended_ns", "sent_ns", "done_ns")):
        columns[name] = at + number
    table = pa.table({name: pa.array(column) for name, column in columns.items()})
    for level in (1, 2):
        place = run / "points" / "bare" / f"c{level}"
        place.mkdir(parents=True)
        # zstd of steps that are always the same
        pq.write_table(
            table, place / "requests.parquet", compression="zstd", use_dictionary=False,
            column_encoding=dict.fromkeys(COLUMNS, "DELTA_BINARY_PACKED"),
        )  # fmt: skip
    return run


def raw_requests(folder: Path, scale: float, *, count: int, clients: int) -> Path:
    """A served run that was killed: raw rows of requests of thousands of clients."""
    count = scaled(count, scale)
    run = run_with(folder, levels=2, served=count, second=count * 1000)
    for level in (1, 2):
        place = run / "points" / "bare" / f"c{level}"
        place.mkdir(parents=True)
        for client in range(scaled(clients, scale)):
            rows = (
                struct.pack("<8q", n, 1000 * n, 1000 * n + 1, 1000 * n + 2, 1, 0, 0, 0)
                for n in range(max(1, count // clients))
            )
            (place / f"requests-{client}.i64").write_bytes(b"".join(rows))
    return run


def steps(folder: Path, scale: float, *, count: int) -> Path:
    """A run whose hooks logged so many steps."""
    count = scaled(count, scale)
    run = run_with(folder, levels=2)
    place = run / "artifacts" / "steps" / "n0" / "0"
    place.mkdir(parents=True)
    (place / "steps-9.jsonl").write_text(
        "".join(f'{{"n":{n},"monotonic_ns":{_BOOT + n}}}\n' for n in range(count))
    )
    return run


def clock_readings(folder: Path, scale: float, *, count: int) -> Path:
    """A run with so many readings of clocks in its manifest."""
    count = scaled(count, scale)
    one = (
        '{{"host":"n{0}","phase":"during","boot_ns":{1},"monotonic_ns":{1},"monotonic_raw_ns":{1},'
        '"realtime_ns":{1},"width_ns":200}}'
    )
    listed = ",".join(one.format(n % 9, _BOOT + n) for n in range(count))
    return run_with(folder, levels=2, clocks=f"[{listed}]")


_ALONE = ("metrics", "merge {} -o m.pftrace")
_RUN = ("metrics", "report", "merge {} -o m.pftrace", "plot {} --resources -o r.pdf")
BOMBS = (
    Bomb(
        "telemetry 19,000 series",
        partial(alone, rows=200, series=19_000, devices=500, form="instant"),
        lines(*_ALONE),
    ),
    Bomb(
        "telemetry 19,000 counters",
        partial(alone, rows=200, series=19_000, devices=500, form="counter"),
        lines(*_ALONE),
    ),
    Bomb(
        "telemetry 400,000 rows",
        partial(alone, rows=400_000, series=5, devices=1, form="instant"),
        lines(*_ALONE),
    ),
    Bomb("telemetry blocks", partial(sources, count=10_000), lines(*_ALONE)),
    Bomb(
        "run telemetry 60,000 rows",
        partial(in_run, rows=60_000, series=5, devices=1, hosts=1),
        lines(*_RUN),
    ),
    Bomb(
        "run telemetry 2,000 series",
        partial(in_run, rows=300, series=2_000, devices=100, hosts=1),
        lines(*_RUN),
    ),
    Bomb(
        "run telemetry 2,000 hosts",
        partial(in_run, rows=9, series=5, devices=1, hosts=2_000),
        lines(*_RUN),
    ),
    Bomb("run 2 x 1.5 M requests", partial(requests, count=1_500_000), lines("metrics", "report")),
    Bomb(
        "run raw requests",
        partial(raw_requests, count=40_000, clients=1_000),
        lines("metrics", "report"),
    ),
    Bomb("run 130,000 steps", partial(steps, count=130_000), lines("metrics", "report")),
    Bomb(
        "run 40,000 clock readings",
        partial(clock_readings, count=40_000),
        lines("metrics", "report"),
    ),
)
