"""The trace as columns: one frozen table per kind of record, declared once with type, unit and
meaning.

Times are int64 nanoseconds of the clock that the trace's source stamps; after `trace.clocks.align`
they are CLOCK_BOOTTIME of the reference host. Strings are int32 codes into `Trace.strings`. `NULL`
(-1) stands for "not recorded" in integer columns and NaN in float columns; geometry is never
guessed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

import numpy as np
import numpy.typing as npt

from profharness.findings import Severity
from profharness.trace.columns.strings import Strings as Strings  # noqa: PLC0414  part of the model
from profharness.trace.columns.table import Table, code, float64, index, int32, int64, ns
from profharness.trace.places import Device as Device  # noqa: PLC0414  part of the model
from profharness.trace.places import Named as Named  # noqa: PLC0414  part of the model
from profharness.trace.places import Stream as Stream  # noqa: PLC0414  part of the model
from profharness.trace.places import ToolCeiling as ToolCeiling  # noqa: PLC0414  part of the model
from profharness.trace.statistics import StatRow, ToolMetric

I32 = npt.NDArray[np.int32]
I64 = npt.NDArray[np.int64]
F64 = npt.NDArray[np.float64]


class ClockDomain(str, Enum):
    """The clock that a source stamps. RUN is the aligned clock: BOOTTIME of the reference host."""

    REALTIME = "realtime"
    MONOTONIC = "monotonic"
    MONOTONIC_RAW = "monotonic_raw"
    BOOTTIME = "boottime"
    UNKNOWN = "unknown"
    RUN = "run"


@dataclass(frozen=True, eq=False)
class Kernels(Table):
    """Device kernels: every record that the tool stamps as one, whatever its name."""

    start_ns: I64 = ns("start on the device")
    dur_ns: I64 = ns("duration; zero is allowed")
    name: I32 = code("full name as recorded, demangled where the tool did so")
    device: I32 = index("devices", "where it ran")
    stream: I32 = index("streams", "stream (or hardware queue where the tool knows no stream)")
    queue: I64 = int64("hardware queue as the tool numbers it")
    host: I32 = code("host name")
    rank: I32 = int32("global rank of the process")
    pid: I64 = int64("process that launched it")
    tid: I64 = int64("thread that launched it")
    correlation: I64 = int64("id shared with the launching call, unique within (source, pid)")
    dispatch: I64 = int64("dispatch number as the tool counts")
    graph: I64 = int64("executable graph that it is a node of, as the tool numbers it")
    workgroups: I64 = int64("workgroups (thread blocks) of the launch", "workgroups")
    workgroup_count_x: I32 = int32("grid in workgroups, x", "workgroups")
    workgroup_count_y: I32 = int32("grid in workgroups, y", "workgroups")
    workgroup_count_z: I32 = int32("grid in workgroups, z", "workgroups")
    workgroup_size_x: I32 = int32("workgroup size, x", "work-items")
    workgroup_size_y: I32 = int32("workgroup size, y", "work-items")
    workgroup_size_z: I32 = int32("workgroup size, z", "work-items")
    vgpr: I32 = int32(
        "architectural vector registers per work-item (registers per thread on NVIDIA)"
    )
    accum_vgpr: I32 = int32("accumulation vector registers per work-item")
    sgpr: I32 = int32("scalar registers per wave")
    lds_bytes: I64 = int64("static LDS (shared memory) per workgroup", "B")
    lds_dynamic_bytes: I64 = int64("dynamic LDS (shared memory) per workgroup", "B")
    scratch_bytes: I64 = int64("scratch per work-item", "B")
    op: I32 = index("ops", "innermost framework op that launched it")
    collective: I32 = code("what a collective does, as text of `trace.collectives`")
    point: I32 = code("point of the scan")
    source: I32 = index("sources", "where the record came from")


@dataclass(frozen=True, eq=False)
class Copies(Table):
    """Copies and fills by the tool's own copy and memset categories."""

    start_ns: I64 = ns("start on the device")
    dur_ns: I64 = ns("duration")
    kind: I32 = code("h2d, d2h, d2d, p2p, h2h, fill or unknown")
    name: I32 = code("name as recorded")
    bytes: I64 = int64("size; NULL where the tool's figure cannot be right", "B")
    device: I32 = index("devices", "device whose engine ran it")
    src_device: I32 = index("devices", "source device")
    dst_device: I32 = index("devices", "destination device")
    stream: I32 = index("streams", "stream")
    host: I32 = code("host name")
    rank: I32 = int32("global rank of the process")
    pid: I64 = int64("process")
    correlation: I64 = int64("id shared with the launching call")
    op: I32 = index("ops", "innermost framework op that asked for it")
    point: I32 = code("point of the scan")
    source: I32 = index("sources", "where the record came from")


@dataclass(frozen=True, eq=False)
class Api(Table):
    """Host calls into a runtime, driver or communication library."""

    start_ns: I64 = ns("call")
    dur_ns: I64 = ns("until return")
    name: I32 = code("function")
    domain: I32 = code("hip, hsa, cuda, cuda_driver, rccl, runtime")
    kernel: I32 = code("kernel that it launches, as the call itself names it")
    host: I32 = code("host name")
    rank: I32 = int32("global rank")
    pid: I64 = int64("process")
    tid: I64 = int64("thread")
    correlation: I64 = int64("id shared with the device record")
    point: I32 = code("point of the scan")
    source: I32 = index("sources", "where the record came from")


@dataclass(frozen=True, eq=False)
class Ops(Table):
    """Framework operators (torch cpu_op, onnxruntime Node); nested per thread."""

    start_ns: I64 = ns("start")
    dur_ns: I64 = ns("duration with children")
    name: I32 = code("operator")
    host: I32 = code("host name")
    rank: I32 = int32("global rank")
    pid: I64 = int64("process")
    tid: I64 = int64("thread")
    depth: I32 = int32("nesting depth in its thread, 0 outermost")
    replay: I64 = int64("number of the graph replay that ran it, NULL for a call of the host")
    external: I64 = int64("framework's id that kernels refer to")
    shapes: I32 = code("input shapes as recorded")
    dtype: I32 = code("input types as recorded")
    concrete: I32 = code("values of the inputs that are no tensors, as recorded")
    strides: I32 = code("input strides as recorded")
    sequence: I64 = int64("number of its node in the graph of gradients")
    forward_tid: I64 = int64("thread of the forward operator, above 0 for backward ones only")
    flops: F64 = float64("floating-point operations", "FLOP")
    point: I32 = code("point of the scan")
    source: I32 = index("sources", "where the record came from")


MarkKind = Literal[
    "trial",
    "warmup",
    "step",
    "phase",
    "range",
    "request",
    "execution",
    "point",
    "marker",
    "frame",
    "gc",
    "path",
]


@dataclass(frozen=True, eq=False)
class Marks(Table):
    """Spans that give the workload's own structure: points, trials, steps, user ranges; Python
    functions and modules (`frame`), where they were asked for; and Python's garbage collections
    (`gc`).
    """

    start_ns: I64 = ns("start")
    dur_ns: I64 = ns("duration")
    name: I32 = code("label")
    kind: I32 = code("one of MarkKind")
    point: I32 = code("point of the scan")
    items: I64 = int64("items processed inside", "items")
    number: I64 = int64("which step it is, where its name does not say it")
    cpu_ns: I64 = int64("processor time that its thread took inside", "ns")
    collective: I32 = code("what a collective on the CPU does, as text of `trace.collectives`")
    host: I32 = code("host name")
    rank: I32 = int32("global rank")
    pid: I64 = int64("process")
    tid: I64 = int64("thread")
    source: I32 = index("sources", "where the record came from")


@dataclass(frozen=True, eq=False)
class Samples(Table):
    """Telemetry: one value of one metric at one time. Units are in `trace.sample_metrics`."""

    at_ns: I64 = ns("time that the value holds from (start of the interval for means and deltas)")
    until_ns: I64 = ns("end of the interval for means and deltas; equal to at_ns for instants")
    device: I32 = index("devices", "device, NULL for the host")
    metric: I32 = code("name in trace.sample_metrics")
    value: F64 = float64("value in the metric's unit")
    source: I32 = index("sources", "where the record came from")


@dataclass(frozen=True, eq=False)
class Counters(Table):
    """Hardware counters per dispatch."""

    kernel: I64 = int64("row in kernels")
    name: I32 = code("counter")
    value: F64 = float64("value as the tool gives it")
    source: I32 = index("sources", "where the record came from")


@dataclass(frozen=True, eq=False)
class Requests(Table):
    """Served requests."""

    intended_ns: I64 = ns("when the load plan wanted it sent")
    sent_ns: I64 = ns("when it was sent")
    done_ns: I64 = ns("when the answer was complete")
    think_ns: I64 = ns("pause of the client before it")
    point: I32 = code("point of the scan")
    items: I64 = int64("items in the request", "items")
    ok: I32 = int32(
        "1 for an answer, 0 for an error or none in time; NULL where the window's end cut it off"
    )
    client: I32 = int32("client that sent it")
    server_start_ns: I64 = ns("when the model began on it; NULL where the server does not tell")
    server_queue_ns: I64 = ns("time in the server's queue")
    server_compute_ns: I64 = ns("time in the model")
    execution: I64 = int64("number of the execution that served it, in its server")
    source: I32 = index("sources", "where the record came from")


@dataclass(frozen=True, eq=False)
class HostSamples(Table):
    """Where a thread of Python stood at one time, as a sampler in its process saw it. Instants, not
    spans: what the thread did between two of them is told by its processor time alone.
    """

    at_ns: I64 = ns("when the sampler saw the thread: no earlier than it wanted to, by `delay_ns`")
    host: I32 = code("host name")
    rank: I32 = int32("global rank")
    pid: I64 = int64("process")
    tid: I64 = int64("thread")
    stack: I32 = code("lines of Python as text of `trace.columns.stacks`; NULL where not known")
    cpu_ns: I64 = int64("processor time that the thread has taken since it began", "ns")
    delay_ns: I64 = int64("how much later than wanted: native code held the interpreter", "ns")
    source: I32 = index("sources", "where the record came from")


@dataclass(frozen=True, eq=False)
class Allocations(Table):
    """What a framework's allocator gave out and took back, in order of time per process."""

    at_ns: I64 = ns("when")
    address: I64 = int64("where the memory lies; used again once it is free")
    bytes: I64 = int64("size that was given out or taken back", "B")
    is_release: I32 = int32("1 where it was taken back, else 0")
    allocated: I64 = int64("held by the process on this device from then on", "B")
    reserved: I64 = int64("taken from this device by the allocator, from then on", "B")
    device: I32 = index("devices", "device, NULL for the host")
    host: I32 = code("host name")
    rank: I32 = int32("global rank of the process")
    pid: I64 = int64("process")
    tid: I64 = int64("thread")
    op: I32 = index("ops", "innermost framework op that was open")
    point: I32 = code("point of the scan")
    source: I32 = index("sources", "where the record came from")


@dataclass(frozen=True)
class Source:
    """One file (or in-memory origin) of records, and where it stands on the clocks.

    `pass_name` and `layer` are filled in from the manifest. `residual_ns` and `bound_ns` are the
    marker self-check (docs/metrics.md#clocks); `alignment` says in words how its times got onto the
    trace's axis. `names` are those of its processes and threads, `units` those of counters that
    only this file knows, by their names.
    """

    path: str
    format: str
    clock: ClockDomain = ClockDomain.UNKNOWN
    host: str = ""
    rank: int | None = None
    world_size: int | None = None
    pid: int | None = None
    tool_version: str = ""
    pass_name: str = ""
    layer: str = ""
    point: str = ""
    alignment: str = ""
    residual_ns: int | None = None
    bound_ns: int | None = None
    has_host_calls: bool = True
    details: tuple[tuple[str, str], ...] = ()
    names: tuple[Named, ...] = ()
    units: tuple[tuple[str, str], ...] = ()


TABLES = "tables"
"""Entry of `Source.details` where a tool writes one file per kind of record: the kinds that were
read.
"""
PUT_ON = "clock.put_on"
"""Entry of `Source.details`: the file on whose clock collectives put the times."""
FIRST_STEP, STEPS = "capture.first_step", "capture.steps"
"""Entries of `Source.details` where a capture went by steps: the first one and their number, in
digits.
"""

INTRA_OP_THREADS, THREAD_VARIABLE = "threads.intra_op", "threads.variable."
"""Entries of `Source.details` where torch computed on the CPU: the number of its threads, in
digits, and the beginning of entries of a variable of OpenMP, MKL or OpenBLAS that was set.
"""

NODES = "nodes"
"""Beginning of entries of `Source.details` in profiles of onnxruntime: behind it an execution
provider, as the value its nodes by operator (`MatMul 2, Relu 1`), each node once.
"""


@dataclass(frozen=True)
class Problem:
    """Something that a reader dropped, repaired or could not link: counted, with a sentence."""

    severity: Severity
    source: str
    count: int
    message: str


_TABLES = (
    "kernels",
    "copies",
    "api",
    "ops",
    "marks",
    "samples",
    "counters",
    "requests",
    "host_samples",
    "allocations",
)


@dataclass(frozen=True)
class Trace:
    """All records of one or several sources, with the pools that their columns refer to."""

    sources: tuple[Source, ...]
    strings: Strings
    devices: tuple[Device, ...] = ()
    streams: tuple[Stream, ...] = ()
    kernels: Kernels = field(default_factory=Kernels.empty)
    copies: Copies = field(default_factory=Copies.empty)
    api: Api = field(default_factory=Api.empty)
    ops: Ops = field(default_factory=Ops.empty)
    marks: Marks = field(default_factory=Marks.empty)
    samples: Samples = field(default_factory=Samples.empty)
    counters: Counters = field(default_factory=Counters.empty)
    requests: Requests = field(default_factory=Requests.empty)
    host_samples: HostSamples = field(default_factory=HostSamples.empty)
    allocations: Allocations = field(default_factory=Allocations.empty)
    problems: tuple[Problem, ...] = ()
    statistics: tuple[StatRow, ...] = ()
    tool_metrics: tuple[ToolMetric, ...] = ()

    def tables(self) -> tuple[tuple[str, Table], ...]:
        """Name and table of each kind of record, in the order of docs/formats.md#tables."""
        return tuple((name, getattr(self, name)) for name in _TABLES)
