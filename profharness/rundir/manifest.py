"""The run's record: what was asked, what ran where and when, and which files came out. Typed <->
JSON.

`manifest.json` is the only thing besides the files themselves that the measuring half leaves for
the understanding half. Times are integer nanoseconds; `_boot_ns` is CLOCK_BOOTTIME of the node
named. Unknown fields are ignored on reading, so that a newer run can be read as far as it is
understood.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.errors import InputError
from profharness.findings import Finding
from profharness.rundir.capture import period
from profharness.rundir.executions.records import ExecutionRecord
from profharness.rundir.foreign.border import DAMAGED, reading
from profharness.rundir.foreign.patterns import why_not
from profharness.rundir.foreign.records import check_counts, check_names, check_numbers
from profharness.rundir.layer_facts import LayerFacts
from profharness.rundir.levels import Level, LevelResult, Mode
from profharness.rundir.older_layers import OLDER, hooked_layers, kernel_order

SCHEMA = 1
PassState = Literal["planned", "running", "done", "failed", "interrupted"]
PointState = Literal["ok", "failed", "skipped"]
RunState = Literal["running", "done", "failed", "interrupted"]


class _Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """Common settings: immutable, defaults left out of the JSON (kw_only is not inherited)."""


class ClockSnapshot(_Record, frozen=True, kw_only=True):
    """One bracketed reading of the node's clocks: best of many, all four within `width_ns`.

    `phase` is before, during or after. `boot_ns` is read in the middle of the bracket. Where the
    node asked that of rank 0 (`reference`), `reference_ns` is the CLOCK_BOOTTIME there at the same
    instant, within `reference_width_ns` to both sides.
    """

    host: str
    phase: str
    boot_ns: int
    monotonic_ns: int
    monotonic_raw_ns: int
    realtime_ns: int
    width_ns: int
    reference: str = ""
    reference_ns: int | None = None
    reference_width_ns: int = 0


class DeviceRecord(_Record, frozen=True, kw_only=True):
    """An accelerator or the CPU as the probe found it. `kind` is cpu, cuda or rocm."""

    index: int
    kind: str
    name: str
    identity: str = ""
    memory_bytes: int | None = None
    compute_units: int | None = None
    architecture: str = ""
    driver: str = ""


class NodeRecord(_Record, frozen=True, kw_only=True):
    """One node: how it is named, its boot, its CPUs (all, and those of the job), devices and
    versions (from wrappers/probe.py). `hidden_devices`: so many are kept from this job.
    """

    host: str
    boot_id: str = ""
    kernel: str = ""
    cpu_model: str = ""
    cpus: int | None = None
    cpus_allowed: tuple[int, ...] = ()
    memory_bytes: int | None = None
    devices: tuple[DeviceRecord, ...] = ()
    hidden_devices: int = 0
    versions: dict[str, str] = {}
    variables: dict[str, str] = {}


class GitState(_Record, frozen=True, kw_only=True):
    """Version control of the directory that the run was started in."""

    commit: str
    branch: str = ""
    dirty: bool = False


class ScanRecord(_Record, frozen=True, kw_only=True):
    """The scan as asked: `settings` holds every option, as a scan file would; `item` is what a
    batch is made of.

    `planned`: by pass, the keys of the points that it is to measure (repeats end in ~1), so that
    missing ones can be named.
    """

    name: str
    item: str = "item"
    settings: dict[str, object] = {}
    planned: dict[str, tuple[str, ...]] = {}


class HarnessRecord(_Record, frozen=True, kw_only=True):
    """The process that makes the run: enough to tell later, on the same machine, whether it still
    exists.

    `start_ticks` is field 22 of /proc/<pid>/stat (clock ticks since boot), `namespace` that of its
    process ids.
    """

    pid: int
    host: str
    boot_id: str
    start_ticks: int
    namespace: str = ""


class Artifact(_Record, frozen=True, kw_only=True):
    """One file that a layer left, relative to the run directory.

    `aside`: kept, but not read into the run's trace, since another file of the same process holds
    the same records or it holds none.
    """

    path: str
    layer: str
    format: str
    pass_name: str
    host: str = ""
    pid: int | None = None
    rank: int | None = None
    point: str = ""
    size_bytes: int | None = None
    aside: bool = False


class PassRecord(_Record, frozen=True, kw_only=True):
    """One execution of the workload under one set of layers. `argv` and `env` are what was started.

    `perturbing`: no time of this pass is ever used; `counters` are the hardware counters that it
    collects. `cut` is the capture window that the tool could not keep to by itself: it recorded
    everything, and what is outside is left out on reading. `split` names the passes that took the
    place of this one, whose counters the tool refused together. `groups`: the counters of each
    replay, where one execution counts several groups. `purpose` is what else the pass is for:
    pc-sampling or thread-trace.
    """

    name: str
    layers: tuple[str, ...] = ()
    counters: tuple[str, ...] = ()
    perturbing: bool = False
    state: PassState = "planned"
    argv: tuple[tuple[str, ...], ...] = ()
    env: dict[str, str] = {}
    executions: int = 0
    start_boot_ns: int | None = None
    end_boot_ns: int | None = None
    exit_status: int | None = None
    cut: str = ""
    split: tuple[str, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    purpose: str = ""


class StreamRecord(_Record, frozen=True, kw_only=True):
    """One process of a point that several measured: the CPUs that the kernel gave it, and how many
    batches it finished.
    """

    pid: int
    cpus: tuple[int, ...] = ()
    device: str = ""
    batches: int = 0


class PointRecord(_Record, frozen=True, kw_only=True):
    """One point in one pass. `repeat` counts further measurements of the same point (0 is the
    first).

    In a scan of a command each record is one execution: `parameters` are its values by axis, and
    one whose point has failed before is skipped.

    Of a served scan `mode` is how the load was made, `rate` what an open loop meant to send
    (requests/s), `level` the load generator's report and `result` what the harness made of its
    requests.
    """

    id: str
    pass_name: str
    backend: str = ""
    batch_size: int | None = None
    concurrency: int | None = None
    mode: Mode | None = None
    rate: float | None = None
    level: Level | None = None
    result: LevelResult | None = None
    processes: int | None = None
    cores_per_process: int | None = None
    repeat: int = 0
    state: PointState = "ok"
    error: str = ""
    trials: int = 0
    warmup_trials: int = 0
    warmup_ns: int | None = None
    compile_ns: int | None = None
    items_per_trial: int | None = None
    cold_cache: bool | None = None
    pid: int | None = None
    host: str = ""
    device: str = ""
    streams: tuple[StreamRecord, ...] = ()
    start_monotonic_ns: int | None = None
    end_monotonic_ns: int | None = None
    notes: dict[str, str] = {}
    parameters: dict[str, int | float | str] = {}
    execution: ExecutionRecord | None = None


ENDED_BY = "the program ended by "
"""How a message of the hooks begins that names the exception which ended the program."""


class Hello(_Record, frozen=True, kw_only=True):
    """What a hook wrote when it loaded in a process (wrappers/hooks); absence is a finding.

    `window` is what became of the capture window inside the process, `region` of the one that a
    tool around it was told of. `masks` are the variables there that hide devices.
    """

    pid: int
    parent_pid: int | None = None
    argv: tuple[str, ...] = ()
    executable: str = ""
    hooks: tuple[str, ...] = ()
    frameworks: dict[str, str] = {}
    rank: int | None = None
    host: str = ""
    forked: bool = False
    used: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    pass_name: str = ""
    window: str = ""
    region: str = ""
    masks: dict[str, str] = {}


class RankOutcome(_Record, frozen=True, kw_only=True):
    """How one rank of a command ended, written by its own harness under control/ranks/.

    `findings` are on the tool around this rank; `refused`: it did not take the counters of the
    pass; `cpus_allowed` are those that its launcher bound it to.
    """

    rank: int
    host: str
    pid: int
    exit_status: int
    pass_name: str
    start_boot_ns: int
    end_boot_ns: int
    findings: tuple[Finding, ...] = ()
    refused: bool = False
    cpus_allowed: tuple[int, ...] = ()


class LayerOutcome(_Record, frozen=True, kw_only=True):
    """How a layer fared over the run: its version, what it says about itself, its failure if any.

    `facts` is what reading the run needs to know of it; older runs do not hold them.
    """

    name: str
    available: bool = True
    version: str = ""
    why: str = ""
    facts: LayerFacts | None = None


class Manifest(_Record, frozen=True, kw_only=True, omit_defaults=False):
    """The whole record of one run. `step_range` is the regular expression of the ranges that are
    its steps, `container` the image, `attached` the process that ran already and was recorded for a
    time, None where the run started its own, `traced_ranks` the ranks that the layers stood around
    (empty for all), `seal` the mark of the user and host that made the run of a scan.
    """

    schema: int = SCHEMA
    id: str
    created: str
    profharness: str
    kind: Literal["scan", "command"]
    argv: tuple[str, ...]
    cwd: str = ""
    state: RunState = "running"
    scan: ScanRecord | None = None
    command: tuple[str, ...] = ()
    nodes: tuple[NodeRecord, ...] = ()
    git: GitState | None = None
    layers: tuple[LayerOutcome, ...] = ()
    passes: tuple[PassRecord, ...] = ()
    points: tuple[PointRecord, ...] = ()
    artifacts: tuple[Artifact, ...] = ()
    clocks: tuple[ClockSnapshot, ...] = ()
    processes: tuple[Hello, ...] = ()
    rank_outcomes: tuple[RankOutcome, ...] = ()
    findings: tuple[Finding, ...] = ()
    exit_status: int | None = None
    error: str = ""
    harness: HarnessRecord | None = None
    capture: str = "default"
    step_range: str = ""
    container: str = ""
    attached: int | None = None
    ranks: int = 1
    job: str = ""
    traced_ranks: tuple[int, ...] = ()
    seal: str = ""

    def pass_named(self, name: str) -> PassRecord | None:
        """The pass of that name, or None."""
        return next((record for record in self.passes if record.name == name), None)

    def layer_facts(self) -> dict[str, LayerFacts]:
        """What is known of each layer by its name: as this run says, else as it was when runs did
        not say it.
        """
        return OLDER | {layer.name: layer.facts for layer in self.layers if layer.facts is not None}

    def kernel_order(self) -> dict[str, int]:
        """Of the layers whose files may hold kernels, which speaks first: the smallest number."""
        return kernel_order(self.layer_facts())

    def hooked(self) -> frozenset[str]:
        """The layers that work inside the process, so that they cost time in their windows
        alone.
        """
        return hooked_layers(self.layer_facts())


def encode(manifest: Manifest) -> bytes:
    """Indented JSON, one trailing newline."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def decode(data: bytes, path: str) -> Manifest:
    """Read a manifest. Raises InputError (naming `path`) for damage, a newer schema, more records
    than a run can have, and names or numbers that no run has.
    """
    with reading(path):
        manifest = _typed(data, path)
        check_numbers(manifest, path)
        _check_names(manifest, path)
    return manifest


def check_schema(data: bytes, path: str) -> None:
    """Raises InputError for a manifest of a newer schema, and msgspec's errors for what is none."""
    version = msgspec.json.decode(data, type=_SchemaOnly).schema
    if version > SCHEMA:
        raise InputError(
            f"{path}: written by a newer profharness (schema {version}, known {SCHEMA})",
            "update profharness to read this run",
        )


def _typed(data: bytes, path: str) -> Manifest:
    try:
        check_schema(data, path)
        check_counts(data, path)
        return msgspec.json.decode(data, type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: not a readable manifest ({error})", "the run directory may be damaged"
        ) from error


def _check_names(manifest: Manifest, path: str) -> None:
    """What becomes a part of a path, or a search among names of files, must be fit for it."""
    check_names((record.name for record in manifest.passes), "pass", path)
    check_names((layer.name for layer in manifest.layers), "layer", path)
    for record in manifest.passes:
        check_names(record.layers, "layer", path)
        if record.cut:
            period(record.cut)
    known = [layer.facts for layer in manifest.layers if layer.facts is not None]
    check_names((facts.leaves.beside for facts in known if facts.leaves.beside), "file", path)
    for pattern in dict.fromkeys(pattern for facts in known for pattern in facts.patterns):
        if why := why_not(pattern):
            raise InputError(f"{path}: a name of a tool's files, {pattern[:80]!r}: {why}", DAMAGED)


class _SchemaOnly(msgspec.Struct):
    schema: int = 1
