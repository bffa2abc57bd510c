"""A made-up run: manifest and merged trace of a scan with a bare and a torch pass, on the run
clock.
"""

from __future__ import annotations

import numpy as np

from profharness.rundir.manifest import (
    DeviceRecord,
    GitState,
    Manifest,
    NodeRecord,
    PassRecord,
    PointRecord,
    ScanRecord,
)
from profharness.trace.columns.table import concat
from profharness.trace.model import (
    ClockDomain,
    Device,
    Kernels,
    Marks,
    Samples,
    Source,
    Stream,
    Strings,
    Trace,
)

SIZES = (1, 4, 16)
MS = 1_000_000
BARE_MS = {1: 2.0, 4: 4.0, 16: 12.0}
SLOWDOWN = 1.25
BUSY = 0.4  # of a traced trial


class Builder:
    """Collects sources and records; every source stands at position `len(sources) - 1`."""

    def __init__(self):
        self.strings = Strings()
        self.sources = []
        self.marks = []
        self.kernels = []
        self.samples = []
        self.now = 10**12

    def trials(self, pass_name, key, batch, durations, *, layer="trials", start=None, items=True):
        self.sources.append(
            Source(
                path=f"points/{pass_name}/{key}/trials.csv",
                format="trials",
                clock=ClockDomain.RUN,
                host="node",
                pid=77,
                pass_name=pass_name,
                layer=layer,
                point=key,
                has_host_calls=False,
            )
        )
        durations = np.asarray(durations, np.int64)
        begin = self.now if start is None else start
        starts = begin + np.concatenate([[0], np.cumsum(durations + 1000)[:-1]])
        self.marks.append(
            Marks.build(
                len(durations),
                start_ns=starts,
                dur_ns=durations,
                kind=self.strings.code("trial"),
                name=self.strings.code("trial"),
                point=self.strings.code(key),
                items=batch if items else -1,
                source=len(self.sources) - 1,
            )
        )
        if start is None:
            self.now = int(starts[-1] + durations[-1]) + 10 * MS
        return starts

    def kernel_source(self, pass_name, layer="torch"):
        self.sources.append(
            Source(
                path=f"artifacts/{layer}/node/77/trace.json",
                format="kineto",
                clock=ClockDomain.RUN,
                host="node",
                pid=77,
                pass_name=pass_name,
                layer=layer,
                residual_ns=5,
                bound_ns=300,
            )
        )
        return len(self.sources) - 1

    def add_kernels(self, source, key, starts, durations, names=("gemm",)):
        """One kernel after the start of each trial, which takes BUSY of it."""
        lengths = (np.asarray(durations) * BUSY).astype(np.int64)
        codes = np.resize(self.strings.codes(names), len(starts))
        self.kernels.append(
            Kernels.build(
                len(starts),
                start_ns=np.asarray(starts) + 1000,
                dur_ns=lengths,
                name=codes,
                device=0,
                stream=0,
                host=self.strings.code("node"),
                pid=77,
                point=self.strings.code(key),
                source=source,
            )
        )

    def telemetry(self, metric, at, until, values):
        self.sources.append(
            Source(
                path="telemetry/node.parquet",
                format="telemetry",
                clock=ClockDomain.RUN,
                host="node",
                layer="telemetry",
            )
        )
        self.samples.append(
            Samples.build(
                len(at),
                at_ns=at,
                until_ns=until,
                metric=self.strings.code(metric),
                value=values,
                source=len(self.sources) - 1,
            )
        )

    def trace(self):
        devices = (Device(index="0", host="node", name="made up"),) if self.kernels else ()
        streams = (Stream(device=0, name="7"),) if self.kernels else ()
        return Trace(
            sources=tuple(self.sources),
            strings=self.strings,
            devices=devices,
            streams=streams,
            marks=concat(self.marks) if self.marks else Marks.empty(),
            kernels=concat(self.kernels) if self.kernels else Kernels.empty(),
            samples=concat(self.samples) if self.samples else Samples.empty(),
        )


def trial_ns(batch, seed, n, *, slow=1.0, cv=0.01):
    return np.rint(
        BARE_MS[batch]
        * slow
        * MS
        * np.exp(cv * np.random.default_rng([seed, batch]).standard_normal(n))
    ).astype(np.int64)


def manifest(**changes):
    points = [
        PointRecord(
            id=f"torch-b{b}",
            pass_name=name,
            backend="torch",
            batch_size=b,
            trials=n,
            warmup_trials=5,
            warmup_ns=9 * MS,
            items_per_trial=b,
            device="cuda:0",
            notes={"flops_per_item": "2000000.0"},
            pid=77,
            host="node",
        )
        for name, n in (("bare", 40), ("torch", 10))
        for b in SIZES
    ]
    points += [
        PointRecord(
            id=f"torch-b{b}",
            pass_name="bare",
            backend="torch",
            batch_size=b,
            repeat=1,
            trials=40,
            items_per_trial=b,
        )
        for b in (SIZES[0], SIZES[-1])
    ]
    settings = {
        "id": "made-up",
        "created": "2026-01-01T00:00:00Z",
        "profharness": "0",
        "kind": "scan",
        "argv": ("profharness", "run"),
        "state": "done",
        "scan": ScanRecord(name="particlenet"),
        "git": GitState(commit="0123456789abcdef", branch="main", dirty=True),
        "nodes": (
            NodeRecord(
                host="node",
                cpu_model="CPU",
                cpus_allowed=(0, 1, 2, 3),
                devices=(DeviceRecord(index=0, kind="cuda", name="GPU"),),
            ),
        ),
        "passes": (
            PassRecord(
                name="bare", state="done", start_boot_ns=10**12, end_boot_ns=10**12 + 3 * 10**9
            ),
            PassRecord(
                name="torch",
                layers=("torch",),
                state="done",
                start_boot_ns=2 * 10**12,
                end_boot_ns=2 * 10**12 + 10**9,
            ),
        ),
        "points": tuple(points),
    }
    return Manifest(**(settings | changes))


def scan_trace(*, drift=1.0, tool_marks=True, kernels=True, seed=0):
    """The scan's trace; `drift` multiplies the repeated points' times."""
    builder = Builder()
    spans = {}
    for batch in SIZES:
        starts = builder.trials("bare", f"torch-b{batch}", batch, trial_ns(batch, seed, 40))
        spans[batch] = (int(starts[0]), builder.now - 10 * MS)
    for batch in (SIZES[0], SIZES[-1]):
        builder.trials(
            "bare", f"torch-b{batch}~1", batch, trial_ns(batch, seed + 1, 40, slow=drift)
        )
    source = None
    for batch in SIZES:
        durations = trial_ns(batch, seed + 2, 10, slow=SLOWDOWN)
        starts = builder.trials("torch", f"torch-b{batch}", batch, durations)
        if tool_marks:
            builder.trials(
                "torch",
                f"torch-b{batch}",
                batch,
                durations,
                layer="torch",
                start=int(starts[0]),
                items=False,
            )
        if kernels:
            source = builder.kernel_source("torch") if source is None else source
            builder.add_kernels(source, f"torch-b{batch}", starts, durations)
    return builder, spans
