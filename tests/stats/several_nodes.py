"""Telemetry of several nodes as one trace on the run clock, with known power and clock of every
device, which have the same addresses on each node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from profharness.trace.columns.table import NULL, concat
from profharness.trace.model import ClockDomain, Device, Samples, Source, Strings, Trace

MS, S = 1_000_000, 1_000_000_000
ADDRESSES = ("0000:c1:00.0", "0000:c6:00.0")


def cluster(
    watts: Mapping[str, Sequence[float]],
    *,
    node_watts: Mapping[str, float] | None = None,
    clocks: Mapping[str, Sequence[float]] | None = None,
    seconds: float = 8.0,
    seed: int = 1,
    noise: float = 0.01,
) -> Trace:
    """Power of each device by host, 20 samples a second, all of which rise and fall together by
    half (the job's own phases), with independent noise. `node_watts` is each node's own meter.
    """
    rng = np.random.default_rng(seed)
    strings, parts, sources, devices = Strings(), [], [], []
    at = np.arange(0, round(seconds * S), 50 * MS)
    phases = 1 + 0.5 * np.sign(np.sin(at / 3e8))
    phases /= phases.mean()

    def add(metric: str, device: int, values: object, until: object = None) -> None:
        parts.append(
            Samples.build(
                len(at),
                at_ns=at,
                until_ns=at if until is None else until,
                device=device,
                metric=strings.code(metric),
                value=values,
                source=len(sources) - 1,
            )
        )

    for host, powers in watts.items():
        sources.append(
            Source(
                f"telemetry/{host}.samples.bin",
                "telemetry",
                ClockDomain.RUN,
                host,
                layer="telemetry",
            )
        )
        for number, power in enumerate(powers):
            devices.append(Device(str(number), host, ADDRESSES[number], "MI300X", "amd"))
            place = len(devices) - 1
            add("power_w", place, power * phases * rng.normal(1, noise, len(at)))
            add("gpu_percent", place, np.full(len(at), 90.0))
            if clocks is not None:
                add("clock_gpu", place, clocks[host][number] * rng.normal(1, noise, len(at)))
        add("cpu_tree", NULL, np.full(len(at), 2.0), at + 50 * MS)
        if node_watts is not None and host in node_watts:
            add("power_node_energy", NULL, np.full(len(at), node_watts[host]), at + 50 * MS)
    return Trace(tuple(sources), strings, tuple(devices), samples=concat(parts))
