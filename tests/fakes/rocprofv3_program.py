"""A small GPU program as rocprofv3 would see it, to be written in any of its output forms
(`rocprofv3_files`, `rocpd_files`).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(frozen=True)
class GpuAgent:
    """A GPU of the node; CPUs come before the GPUs and take the first numbers."""

    number: int
    handle: int
    name: str = "gfx942"
    product: str = "AMD Instinct MI300X"
    compute_units: int = 304
    dies: int = 8
    clock_mhz: int = 2100
    location: int = 0x7500
    domain: int = 0


@dataclass(frozen=True)
class Symbol:
    """A kernel as the compiler left it."""

    number: int
    name: str
    vgpr: int = 32
    accum_vgpr: int = 4
    sgpr: int = 48
    static_lds: int = 0


@dataclass(frozen=True)
class Kernel:
    symbol: int
    start: int
    end: int
    agent: int
    dispatch: int
    correlation: int
    grid: tuple[int, int, int]
    size: tuple[int, int, int]
    queue: int = 16
    stream: int = 0
    tid: int = 0
    lds: int = 0
    scratch: int = 0
    # values of one counter's instances
    counters: tuple[tuple[str, tuple[float, ...]], ...] = ()
    # executable graph that it is a node of; 0 for none
    graph: int = 0


@dataclass(frozen=True)
class Copy:
    direction: str
    start: int
    end: int
    bytes: int
    source: int
    target: int
    correlation: int
    stream: int = 0
    tid: int = 0


@dataclass(frozen=True)
class Call:
    domain: str
    name: str
    start: int
    end: int
    correlation: int
    tid: int = 0
    # what a marker says; the call's name is then the marker function's
    message: str = ""


@dataclass(frozen=True)
class Allocation:
    """`level` is REAL, VIRTUAL or SCRATCH; `kind` ALLOC, FREE, REALLOC or RECLAIM. A release has
    neither bytes nor agent of its own in the tool's files.
    """

    kind: str
    level: str
    start: int
    end: int
    bytes: int
    agent: int
    correlation: int
    tid: int = 0
    address: int = 0

    @property
    def operation(self) -> str:
        """What the tool calls it in CSV and JSON."""
        if self.level == "SCRATCH":
            return f"SCRATCH_MEMORY_{self.kind.replace('RECLAIM', 'ASYNC_RECLAIM')}"
        kind = {"ALLOC": "ALLOCATE"}.get(self.kind, self.kind)
        return f"MEMORY_ALLOCATION_{'VMEM_' if self.level == 'VIRTUAL' else ''}{kind}"


@dataclass(frozen=True)
class GraphLaunch:
    graph: int
    start: int
    end: int
    kernels: int
    tid: int = 0


@dataclass(frozen=True)
class Program:
    """`loose` are counter values that were taken of a device, beside any dispatch."""

    host: str = "node1"
    pid: int = 4711
    agents: tuple[GpuAgent, ...] = (GpuAgent(2, 37946), GpuAgent(3, 37947, location=0x0500))
    symbols: tuple[Symbol, ...] = ()
    kernels: tuple[Kernel, ...] = ()
    copies: tuple[Copy, ...] = ()
    calls: tuple[Call, ...] = field(default=())
    allocations: tuple[Allocation, ...] = ()
    loose: tuple[tuple[str, float], ...] = ()
    cpus: int = 2
    graphs: tuple[GraphLaunch, ...] = ()


def program(
    seed: int = 1, kernels: int = 40, *, pid: int = 4711, host: str = "node1", counters: bool = True
) -> Program:
    """Kernels of several names on two devices and streams with their launches, copies of all
    directions, ranges and counters.
    """
    rng = random.Random(seed)
    symbols = (
        Symbol(8, "__amd_rocclr_copyBuffer", 8, 0, 32),
        Symbol(10, 'void gemm<float, "a,b">(float*, int)', 128, 64, 112, 65536),
        Symbol(11, "relu(float const*, float*)", 12, 4, 16, 512),
    )
    launched, calls, copies = [], [], []
    now = 63_857_982_592_000
    for i in range(kernels):
        now += rng.randrange(1, 5000)
        correlation = 3 * i + 1
        tid = pid + rng.randrange(2)
        calls.append(
            Call(
                "HIP_RUNTIME_API",
                "hipLaunchKernel",
                now,
                now + rng.randrange(1, 900),
                correlation,
                tid,
            )
        )
        symbol = rng.choice(symbols)
        size = rng.choice(((256, 1, 1), (64, 4, 1)))
        grid = (size[0] * rng.randrange(1, 300), size[1] * rng.randrange(1, 5), 1)
        duration = rng.randrange(40_000)
        found = (
            (
                ("SQ_WAVES", (float(rng.randrange(1000)), float(rng.randrange(1000)))),
                ("GRBM_COUNT", (float(rng.randrange(10**6)),)),
            )
            if counters and i % 2
            else ()
        )
        launched.append(
            Kernel(
                symbol.number,
                now + 2000,
                now + 2000 + duration,
                rng.choice((2, 3)),
                i + 1,
                correlation,
                grid,
                size,
                16,
                rng.randrange(2),
                tid,
                symbol.static_lds + rng.choice((0, 1024)),
                rng.choice((0, 64)),
                found,
            )
        )
    for i, (direction, source, target) in enumerate(
        (
            ("HOST_TO_DEVICE", 0, 2),
            ("DEVICE_TO_HOST", 3, 0),
            ("DEVICE_TO_DEVICE", 2, 2),
            ("DEVICE_TO_DEVICE", 2, 3),
        )
    ):
        correlation = 3 * i + 2
        calls.append(
            Call("HIP_RUNTIME_API", "hipMemcpyAsync", now + i, now + i + 50, correlation, pid)
        )
        copies.append(
            Copy(
                direction,
                now + 100 * i,
                now + 100 * i + 80,
                1 << 20 | i,
                source,
                target,
                correlation,
                tid=pid,
            )
        )
    calls += [
        Call("HSA_CORE_API", "hsa_signal_store_relaxed", now, now + 9, 9001, pid),
        Call("RCCL_API", "ncclAllReduce", now + 3, now + 40, 9002, pid),
        Call(
            "MARKER_CORE_RANGE_API",
            "roctxThreadRangeA",
            now - 500,
            now + 900,
            9003,
            pid,
            "profharness.point:b4",
        ),
        Call(
            "MARKER_CORE_RANGE_API",
            "roctxThreadRangeA",
            now - 400,
            now + 800,
            9004,
            pid,
            "profharness.step:3:128",
        ),
        Call(
            "MARKER_CORE_RANGE_API",
            "roctxThreadRangeA",
            now - 300,
            now + 700,
            9005,
            pid,
            'forward "x"',
        ),
        Call("MARKER_CORE_RANGE_API", "roctxMarkA", now + 10, now + 10, 9006, pid, "instant"),
    ]
    return Program(
        host,
        pid,
        symbols=symbols,
        kernels=tuple(launched),
        copies=tuple(copies),
        calls=tuple(calls),
    )
