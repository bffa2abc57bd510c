"""What the analysis concludes, as typed records; their JSON form is the contract of
docs/json.md#summary.

Every figure carries its unit, an interval where it is estimated, where it came from, and what it
needs when it could not be had. Nothing is computed here.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.analysis.axes.records import AxesScan, Parameters
from profharness.analysis.batches.records import Batches
from profharness.analysis.communication.records import Communication
from profharness.analysis.critical.records import CriticalPath
from profharness.analysis.curves.records import Series
from profharness.analysis.host.line_records import LineTable
from profharness.analysis.host.records import HostTime
from profharness.analysis.kernels.counter_records import CounterRow
from profharness.analysis.load.ragged_records import RaggedWay
from profharness.analysis.load.sharing_records import SharedLevel
from profharness.analysis.memory.records import CopyRow, HeldPeak, Memory
from profharness.analysis.operators.records import KnownWork, OperatorShare
from profharness.analysis.pictures.records import Pictures
from profharness.analysis.power.records import ModulePlace, Nodes
from profharness.analysis.power.records import (
    TelemetryRow as TelemetryRow,  # noqa: PLC0414  handed on to those who import it from here
)
from profharness.analysis.run.runtime_logs import RuntimeLog
from profharness.analysis.time.records import (
    IdleCauses as IdleCauses,  # noqa: PLC0414  handed on to those who import it from here
)
from profharness.analysis.time.records import (
    Partition as Partition,  # noqa: PLC0414  handed on to those who import it from here
)
from profharness.analysis.use.records import DeviceUse
from profharness.analysis.verdict.records import Grounds, Verdict
from profharness.findings import Finding, Severity
from profharness.stats.estimate import Estimate as Estimate  # noqa: PLC0414  one of the records
from profharness.stats.estimate import Figure as Figure  # noqa: PLC0414  one of the records

SCHEMA = 2
"""Of the JSON documents (docs/json.md). 2: steps and windows are by what steps launched."""


class TraceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """Whole-file counts (docs/metrics.md#whole-file-counts). Spans and unions are of half-open
    intervals, in ns; None where kernels lie on no time axis, `sum_kernel_ns` where nobody recorded
    their times.
    """

    pass_name: str | None = msgspec.field(default=None, name="pass")
    kernels: int = 0
    copies: int = 0
    devices: int = 0
    streams: int = 0
    ranks: int = 0
    span_ns: int | None = 0
    busy_ns: int | None = 0
    busy_any_ns: int | None = 0
    sum_kernel_ns: int | None = 0
    unlinked_kernels: int | None = None
    graph_launches: int = 0
    kernels_in_graphs: int = 0
    distinct_kernels: int = 0


class DeviceCounts(msgspec.Struct, frozen=True, kw_only=True):
    """The counts and times of one device."""

    kernels: int
    busy_ns: int | None
    busy_any_ns: int | None
    span_ns: int | None


class ProblemRow(msgspec.Struct, frozen=True, kw_only=True):
    """A reader's counted problem."""

    source: str
    severity: Severity
    count: int
    message: str


class HotspotRow(msgspec.Struct, frozen=True, kw_only=True):
    """One group of kernels, ops or a category. Times in ns, None where a statistics file does not
    print them; all of them and `share` where nobody recorded the times of one of its records.

    `fill` and `occupancy` are shares, `flops_per_s` and `bytes_per_s` rates while the kernel runs,
    `shapes` and `dtypes` the inputs (JSON, as recorded) that an op had most often; None where not
    known.

    Of rows by op: `device_ns` is the time of the device records that belong to them, `inclusive`
    with those of nested operators; `flops`, `flops_full` and `bytes` are the work that is known, of
    as many calls as stand beside; `peak_share`, `limiter` and `excess_ns` how it was done, and
    `forward_op` the forward operator of a backward one (docs/metrics.md#hotspots).
    """

    name: str
    category: str
    calls: int
    total_ns: int | None
    share: float | None
    mean_ns: float | None
    median_ns: float | None
    min_ns: int | None
    max_ns: int | None
    std_ns: float | None
    kernel_ns: int | None = None
    workgroups: int | None = None
    workgroup_size: tuple[int, int, int] | None = None
    op: str | None = None
    fill: float | None = None
    occupancy: float | None = None
    flops_per_s: float | None = None
    bytes_per_s: float | None = None
    shapes: str | None = None
    dtypes: str | None = None
    device_ns: int | None = None
    device_share: float | None = None
    device_inclusive_ns: int | None = None
    flops: float | None = None
    flops_calls: int | None = None
    flops_full: float | None = None
    bytes: float | None = None
    bytes_calls: int | None = None
    peak_share: float | None = None
    limiter: str | None = None
    excess_ns: float | None = None
    forward_op: str | None = None


class SampledRow(HotspotRow, frozen=True, kw_only=True):
    """A row of hotspots with the means of telemetry over its device time, by metric."""

    samples: dict[str, Figure] = {}


class Hotspots(msgspec.Struct, frozen=True, kw_only=True):
    """A hotspot table, sorted by total_ns (falling, those without times last), then name.

    `busy_ns` (kernels) and `busy_any_ns` (with copies) are unions, `device_span_ns` is the time
    from a device's first start to its last end, each summed over devices; None where the trace
    holds no device work, or no timeline of it. `total_ns` is None where no row has times.
    """

    schema: int = SCHEMA
    by: Literal["kernel", "op", "shape", "module", "range", "stack", "category", "call"]
    pass_name: str | None = msgspec.field(default=None, name="pass")
    total_ns: int | None
    busy_ns: int | None = None
    busy_any_ns: int | None = None
    device_span_ns: int | None = None
    device_ns_outside: int | None = None
    conventions: dict[str, str] = {}
    rows: tuple[HotspotRow, ...]
    counters: tuple[CounterRow, ...] = ()


class PointKernel(msgspec.Struct, frozen=True, kw_only=True):
    """One kernel name in a window: calls that begin there, ns of it inside, and its share of all
    kernel time. Collectives are left out.
    """

    name: str
    calls: int
    total_ns: int
    share: float
    workgroups: int | None = None


class Classic(msgspec.Struct, frozen=True, kw_only=True):
    """What multi_process_benchmark.py of the DeepSparse examples prints: items/s summed over
    processes, ms per batch.
    """

    model: str
    batch_size: int
    throughput: float
    latency_mean_ms: float
    latency_median_ms: float
    latency_std_ms: float
    iterations: int


class PointSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One point over all passes. Throughput in items/s, latency mean in ms; `rate` is that of an
    open loop, in requests/s. `verdict_needs` says what a verdict would take where there is none.
    `providers` are onnxruntime's execution providers that it ran on, best first. `drift` is the
    relative drift of repeated points that the intervals of throughput and latency hold.

    Of a scan of a command, `parameters` are its values by axis, `executions` how many counted,
    `wall_s` their mean length, `values` the figures that the script gave, and `kept` whether they
    are as required.
    """

    point: str
    backend: str = ""
    batch_size: int | None = None
    concurrency: int | None = None
    mode: str = ""
    rate: float | None = None
    requests: int | None = None
    failed: int | None = None
    processes: int | None = None
    cores_per_process: int | None = None
    state: str = "ok"
    error: str = ""
    trials: int = 0
    warmup_trials: int = 0
    providers: tuple[str, ...] = ()
    throughput: float | None = None
    throughput_sem: float | None = None
    drift: float = 0.0
    latency_ms: float | None = None
    consistency: float | None = None
    overhead: dict[str, Estimate] = {}
    metrics: dict[str, Figure] = {}
    partition: Partition | None = None
    verdict: Verdict | None = None
    verdict_needs: str = ""
    grounds: Grounds = Grounds()
    trials_ms: tuple[float, ...] = ()
    work: KnownWork | None = None
    kernels: tuple[PointKernel, ...] = ()
    held: tuple[HeldPeak, ...] = ()
    classic: Classic | None = None
    parameters: Parameters = {}
    executions: int | None = None
    wall_s: float | None = None
    values: dict[str, float] = {}
    kept: bool = True


class QueueRow(msgspec.Struct, frozen=True, kw_only=True):
    """Queue depth of one stream over the window: the mean number of launched and unfinished pieces
    of work from each of `at_ns` to the next (the last one to `end_ns`), and the most at once.
    """

    device: str
    stream: str
    mean: float
    peak: int
    end_ns: int
    at_ns: tuple[int, ...]
    depth: tuple[float, ...]


class StepSummary(msgspec.Struct, frozen=True, kw_only=True):
    """One step (or trial): its label and own number (null: its mark has none), how many processes
    ran it, `dur_ns` from the first start to the last end.
    """

    step: str
    number: int | None = None
    start_ns: int
    dur_ns: int
    processes: int = 1
    partition: Partition | None = None
    metrics: dict[str, Figure] = {}


class SourceRow(msgspec.Struct, frozen=True, kw_only=True):
    """Provenance and alignment of one source. The causal interval is a shift that would keep
    causality.
    """

    path: str
    format: str
    clock: str
    pass_name: str = msgspec.field(default="", name="pass")
    layer: str = ""
    point: str = ""
    alignment: str = ""
    residual_ns: int | None = None
    bound_ns: int | None = None
    causal_low_ns: int | None = None
    causal_high_ns: int | None = None
    tool_version: str = ""


class PassRow(msgspec.Struct, frozen=True, kw_only=True):
    """One pass: its layers, how long it took, and the layers' overhead against the bare pass.

    `captured_steps` steps from `first_step` on are in its trace, where the capture went by steps.
    """

    name: str
    layers: tuple[str, ...]
    seconds: float | None
    state: str
    overhead: dict[str, Estimate] = {}
    first_step: int | None = None
    captured_steps: int | None = None


TRACED_RANKS = "traced ranks"
"""The setting that names the ranks under layers, where these are not all."""


class RunInfo(msgspec.Struct, frozen=True, kw_only=True):
    """Where a summary comes from: the run's identity and provenance; `asked` is what was to be
    measured, by setting, `attached` the process that ran already and was recorded for a time.
    """

    id: str
    path: str
    kind: str
    created: str
    profharness: str
    argv: tuple[str, ...]
    state: str
    exit_status: int | None = None
    host: str = ""
    device: str = ""
    cpu_model: str = ""
    versions: dict[str, str] = {}
    git: str = ""
    scan: str = ""
    capture: str = ""
    command: tuple[str, ...] = ()
    asked: dict[str, str] = {}
    attached: int | None = None


class Summary(msgspec.Struct, frozen=True, kw_only=True):
    """All that the reports print, and `summary.json`. A superset of `metrics --json`. `steps_from`:
    the ranges that are its steps, if not marks of tools. `use` is worked out for reports and plots
    alone, `pictures` for the report's page. `device_names` are those that trace files tell of their
    devices. JSON has no word of these three.
    `critical_path`, with what changes would be worth, is worked out for reports. `axes` is what a
    scan of a command over several axes came to.
    """

    schema: int = SCHEMA
    source: str
    trace: TraceCounts
    devices: dict[str, DeviceCounts] = {}
    points: tuple[PointSummary, ...] = ()
    metrics: dict[str, Figure] = {}
    findings: tuple[Finding, ...] = ()
    problems: tuple[ProblemRow, ...] = ()
    run: RunInfo | None = None
    passes: tuple[PassRow, ...] = ()
    series: tuple[Series, ...] = ()
    sources: tuple[SourceRow, ...] = ()
    partition: Partition | None = None
    verdict: Verdict | None = None
    verdict_needs: str = ""
    grounds: Grounds = Grounds()
    work: KnownWork | None = None
    operator_share: OperatorShare | None = None
    hotspots: tuple[Hotspots, ...] = ()
    telemetry: tuple[TelemetryRow, ...] = ()
    nodes: Nodes | None = None
    modules: tuple[ModulePlace, ...] = ()
    communication: Communication | None = None
    copies_by: tuple[CopyRow, ...] = ()
    memory: Memory | None = None
    steps: tuple[StepSummary, ...] = ()
    steps_from: str = ""
    sharing: tuple[SharedLevel, ...] = ()
    ragged: tuple[RaggedWay, ...] = ()
    counters: tuple[CounterRow, ...] = ()
    queues: tuple[QueueRow, ...] = ()
    use: DeviceUse | None = None
    log: RuntimeLog | None = None
    host_lines: LineTable | None = None
    device_names: tuple[str, ...] = ()
    pictures: Pictures | None = None
    host: HostTime | None = None
    batches: Batches | None = None
    critical_path: CriticalPath | None = None
    axes: AxesScan | None = None
