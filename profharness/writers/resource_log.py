"""The classic ResourceLog.csv: local time, GPU, GPU memory, CPU and RAM in per cent; what each
column means goes beside it. A run of several nodes has one log of all of them and of all their
devices, with the host and the device in front.

Its ancestor is a shell loop over vendor tools, whose "GPU Mem" changed its meaning between their
versions: here it is allocated memory, always. A cell without a value is empty.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import numpy as np

from profharness.rundir.paths import write_atomic
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Trace

MOST_ROWS = 1_000_000
"""Of a joint log: some 60 MB."""
HEADER = "Timestamp, GPU Util (%), GPU Mem (%), CPU Util (%), RAM Util (%)"


@dataclass(frozen=True)
class Machine:
    """What the percentages of CPU and RAM refer to (0 where nobody said), and how the clock of the
    samples becomes the wall clock.
    """

    cpus: int
    memory_bytes: int
    monotonic_to_realtime_ns: int


def write(
    trace: Trace, folder: Path, machine: Machine, device: int | None, step_ns: int
) -> tuple[Path, Path]:
    """Write ResourceLog.csv and ResourceLog.txt for one device (its place in the trace; None
    without one), a row per `step_ns`.
    """
    samples = trace.samples
    place = NULL if device is None else device
    grid = (
        np.arange(_begin(trace, place), int(samples.until_ns.max()) + 1, step_ns)
        if len(samples)
        else np.zeros(0, np.int64)
    )
    log, about = folder / "ResourceLog.csv", folder / "ResourceLog.txt"
    lines = [HEADER, *(", ".join(cells) for _, *cells in _rows(trace, machine, device, grid))]
    write_atomic(log, ("\n".join(lines) + "\n").encode())
    write_atomic(about, _about(trace, device).encode())
    return log, about


def write_joint(
    nodes: Sequence[tuple[Trace, Machine]], folder: Path, step_ns: int, note: str = ""
) -> tuple[Path, Path]:
    """Write one ResourceLog.csv of several nodes, and ResourceLog.txt: a row per `step_ns`, node
    and device (an empty device where a node has none), in order of time, then as given.

    The traces stand on one clock, or each on its own with a `Machine` that brings it to the wall
    clock. The step is lengthened until there are no more than `MOST_ROWS` rows; `note` is added to
    the explanation.
    """
    series = [
        (trace, machine, device)
        for trace, machine in nodes
        for device in (range(len(trace.devices)) if trace.devices else (None,))
    ]
    spans = [_span(trace, device) for trace, _, device in series]
    steps = sum((end - begin) // step_ns + 1 for begin, end in spans)
    step_ns *= max(math.ceil(steps / MOST_ROWS), 1)
    rows: list[tuple[int, int, str]] = []
    for order, ((trace, machine, device), (begin, end)) in enumerate(
        zip(series, spans, strict=True)
    ):
        offset = machine.monotonic_to_realtime_ns
        first = -(-(begin + offset) // step_ns) * step_ns - offset  # one grid for all nodes
        grid = np.arange(first, end + 1, step_ns)
        named = f"{trace.sources[0].host}, {'' if device is None else trace.devices[device].index}"
        rows += (
            (at, order, f"{named}, {', '.join(cells)}")
            for at, *cells in _rows(trace, machine, device, grid)
        )
    rows.sort(key=lambda row: row[:2])
    log, about = folder / "ResourceLog.csv", folder / "ResourceLog.txt"
    lines = [f"Host, Device, {HEADER}", *(text for _, _, text in rows)]
    write_atomic(log, ("\n".join(lines) + "\n").encode())
    write_atomic(about, _about_nodes([trace for trace, _ in nodes], step_ns, note).encode())
    return log, about


def _span(trace: Trace, device: int | None) -> tuple[int, int]:
    """From when on every value was sampled once, to the last sample; an empty one without any."""
    if not len(trace.samples):
        return 0, -1
    return _begin(trace, NULL if device is None else device), int(trace.samples.until_ns.max())


def _rows(
    trace: Trace, machine: Machine, device: int | None, grid: I64
) -> Iterator[tuple[int, str, str, str, str, str]]:
    """The wall clock in ns, and the classic cells, at each instant of the grid."""
    place = NULL if device is None else device
    none = np.full(len(grid), np.nan)
    used, total = (
        held(trace, "gpu_memory_used", place, grid),
        held(trace, "gpu_memory_total", place, grid),
    )
    columns = (
        none if device is None else held(trace, "gpu_percent", place, grid),
        100 * used / total,
        np.minimum(
            100 * held(trace, "cpu_node", NULL, grid) / machine.cpus, 100
        )  # ticks of 10 ms may end in the next interval
        if machine.cpus
        else none,
        100 * held(trace, "memory_node_used", NULL, grid) / machine.memory_bytes
        if machine.memory_bytes
        else none,
    )
    for at, *values in zip(
        (grid + machine.monotonic_to_realtime_ns).tolist(),
        *(column.tolist() for column in columns),
        strict=True,
    ):
        gpu, memory, cpu, ram = ("" if math.isnan(value) else f"{value:.2f}" for value in values)
        yield at, _local(at), gpu, memory, cpu, ram


def write_marks(begins: Sequence[tuple[int, int]], folder: Path, machine: Machine) -> Path:
    """Write ResourceLog.marks.txt: a line per point of a scan with its batch size and local begin,
    in order of time.

    `begins` are instants of CLOCK_MONOTONIC in ns with the batch size that began. The line is the
    one that the published scans print for their figures of resources, to the microsecond.
    """
    path = folder / "ResourceLog.marks.txt"
    lines = [
        f"Starting batch size {size} at time: {_local(at + machine.monotonic_to_realtime_ns, 6)}\n"
        for at, size in sorted(begins)
    ]
    write_atomic(path, "".join(lines).encode())
    return path


def _begin(trace: Trace, device: int) -> int:
    """When every value of the log that was sampled at all has been sampled once."""
    samples = trace.samples
    wanted = (
        ("gpu_percent", device),
        ("gpu_memory_used", device),
        ("cpu_node", NULL),
        ("memory_node_used", NULL),
    )
    kept = [
        samples.at_ns[(samples.metric == trace.strings.find(metric)) & (samples.device == place)]
        for metric, place in wanted
    ]
    return max((int(at.min()) for at in kept if len(at)), default=int(samples.at_ns.min()))


def held(trace: Trace, metric: str, device: int, grid: I64) -> F64:
    """The last value at or before each instant; NaN before the first one. A mean holds from the
    start of its interval.
    """
    samples = trace.samples
    rows = np.flatnonzero(
        (samples.metric == trace.strings.find(metric))
        & (samples.metric != NULL)
        & (samples.device == device)
    )
    if not len(rows):
        return np.full(len(grid), np.nan)
    rows = rows[np.argsort(samples.at_ns[rows], kind="stable")]
    place = np.searchsorted(samples.at_ns[rows], grid, "right") - 1
    return np.where(place >= 0, samples.value[rows[np.maximum(place, 0)]], np.nan)


def _local(realtime_ns: int, digits: int = 1) -> str:
    """`2026-11-20 09:31:07.3`, as `date '+%F %T.%1N'` prints it."""
    moment = datetime.fromtimestamp(realtime_ns // 1_000_000_000).astimezone()
    return f"{moment:%Y-%m-%d %H:%M:%S}.{realtime_ns % 1_000_000_000:09d}"[: digits - 9]


def _rates(trace: Trace) -> str:
    """How often each column was read."""
    facts = dict(trace.sources[0].details)
    columns = {
        "GPU Util": "gpu_percent",
        "GPU Mem": "gpu_memory_used",
        "CPU Util": "cpu_node",
        "RAM Util": "memory_node_used",
    }
    return "times a second that it was read: " + ", ".join(
        f"{title} {facts.get(f'hz.{metric}', facts.get('hz', '?'))}"
        for title, metric in columns.items()
    )


def _about(trace: Trace, device: int | None) -> str:
    if device is None:
        gpu = "empty: no accelerator was sampled"
    else:
        named = trace.devices[device]
        gpu = f"device {named.index} ({named.name}, {named.identity})"
    return f"""\
ResourceLog.csv, column by column. A cell without a value is empty.

Timestamp     local time of {trace.sources[0].host}, UTC{_zone()}; each row holds the latest \
values at that time
              ({_rates(trace)})
{_columns_text(gpu)}"""


def _about_nodes(nodes: Sequence[Trace], step_ns: int, note: str) -> str:
    devices = "; ".join(
        f"{named.host} {named.index}: {named.name}, {named.identity}"
        for trace in nodes
        for named in trace.devices
    )
    return f"""\
ResourceLog.csv of {len(nodes)} nodes, column by column. A cell without a value is empty.

Host          the node
Device        the vendor's number of a device of that node; empty where the node has none
Timestamp     local time, UTC{_zone()}, a row every {step_ns / 1e9:g} s for each device; each row \
holds the latest values
              of its node and device at that time. {note or "All nodes stand on one clock."}
{_columns_text(devices or "empty: no accelerator was sampled")}"""


def _zone() -> str:
    return f"{datetime.now().astimezone():%z}"


def _columns_text(gpu: str) -> str:
    return f"""\
GPU Util (%)  the driver's busy figure, the share of its own averaging time in which \
anything ran, however little: {gpu}
GPU Mem (%)   device memory allocated by all processes over the device's memory (not memory \
activity, which older tools printed here)
CPU Util (%)  share of all CPUs of the node that ran user, system or interrupt time; waiting \
for I/O counts as idle
RAM Util (%)  memory that is not available for new processes (MemTotal less \
MemAvailable) over all memory of the node
"""
