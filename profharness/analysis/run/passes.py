"""A run's passes, provenance and drift, from its manifest and trials."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profharness.analysis.axes.points import is_axes_scan
from profharness.analysis.host.line_tables import line_table
from profharness.analysis.kernels.counter_table import counter_rows
from profharness.analysis.load import run_levels
from profharness.analysis.load.run_levels import Levels
from profharness.analysis.memory.levels import over_batches
from profharness.analysis.memory.records import Memory
from profharness.analysis.records import TRACED_RANKS, Estimate, PassRow, PointSummary, RunInfo
from profharness.analysis.run.overhead import layer_overhead
from profharness.analysis.run.points import UNTIMED_LAYERS, overheads
from profharness.analysis.run.runtime_logs import runtime_log
from profharness.analysis.run.steps import steady_steps
from profharness.analysis.run.trials import BARE, Trials, base_of
from profharness.analysis.run.view import RunView
from profharness.rundir.manifest import Manifest, NodeRecord, PassRecord
from profharness.stats.throughput import Drift, drift_between, largest_drift, summarise_trials
from profharness.trace.model import FIRST_STEP, STEPS, Trace

# The settings of a scan that bear on throughput and latency; the others say what is recorded, and
# where.
_MEASURED = (
    "backend",
    "model",
    "device",
    "compile",
    "torchscript",
    "autocast",
    "batch_sizes",
    "trials",
    "min_seconds",
    "warmup",
    "order",
    "inputs",
    "shape",
    "seed",
    "threads",
    "isolate",
    "ranks",
    "python",
    "command",
)
_SERVED = (
    "via",
    "concurrency",
    "rate",
    "arrivals",
    "think_ms",
    "clients_per_job",
    "time",
    "warmup_time",
    "timeout",
    "latency_limit",
    "protocol",
    "shared_memory",
    "compression",
    "clients",
    "instances",
    "max_batch_size",
    "queue_delay_us",
    "url",
    "server_command",
    "ragged",
    "body",
)
FEWEST = 2
"""Steps from which a mean of them says something."""
_DIRECT = frozenset({"trials", "min_seconds", "warmup", "isolate", "order"})
_THREADS = frozenset(
    {
        "OMP_NUM_THREADS",
        "MKL_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "KMP_AFFINITY",
        "OMP_PROC_BIND",
        "OMP_PLACES",
    }
)


def repeats(
    manifest: Manifest, trials: Trials, levels: Levels, reference: str
) -> tuple[Drift, ...]:
    """The drift of every repeated point of the reference pass, each repeat against the first
    measurement; none where repeats are the noise, in a scan over axes.
    """
    if is_axes_scan(manifest):
        return ()
    repeat_drifts = list(run_levels.drifts(levels, reference))
    for (pass_name, key), repeat in trials.items():
        point = base_of(key)
        first = trials.get((reference, point))
        if pass_name != reference or key == point or first is None:
            continue
        repeat_drifts.append(
            drift_between(
                summarise_trials(first.durations_ns, first.items, point),
                summarise_trials(repeat.durations_ns, repeat.items, key),
                point,
            )
        )
    return tuple(repeat_drifts)


def drifts(every: Sequence[Drift], backends: dict[str, str]) -> dict[str, Drift]:
    """The drift that widens the intervals of each backend, and of all under the empty name: the
    largest, beyond chance or not.
    """
    groups: dict[str, list[Drift]] = {"": []}
    for drift in every:
        for backend in {"", backends.get(drift.point, "")}:
            groups.setdefault(backend, []).append(drift)
    return {backend: largest_drift(group) for backend, group in groups.items()}


def pass_rows(view: RunView, trace: Trace) -> tuple[PassRow, ...]:
    """Every pass with the overhead of its layers over all points (or steady steps) that it shares
    with the bare pass.
    """
    keys = sorted({point for _, point in view.trials if base_of(point) == point})
    windows = {record.name: captured(trace, record.name) for record in view.manifest.passes}
    return tuple(
        PassRow(
            name=record.name,
            layers=record.layers,
            seconds=_seconds(record),
            state="split" if record.split else record.state,
            overhead=_overhead(view, trace, record, keys),
            first_step=windows[record.name][0],
            captured_steps=windows[record.name][1],
        )
        for record in view.manifest.passes
    )


def captured(trace: Trace, pass_name: str) -> tuple[int | None, int | None]:
    """First step and number of steps that all captures of the pass agree on; (None, None) where
    they differ or say nothing.
    """
    stated = [dict(source.details) for source in trace.sources if source.pass_name == pass_name]
    windows = {
        (int(facts[FIRST_STEP]), int(facts[STEPS]))
        for facts in stated
        if FIRST_STEP in facts and STEPS in facts
    }
    return windows.pop() if len(windows) == 1 else (None, None)


def _overhead(
    view: RunView, trace: Trace, record: PassRecord, keys: list[str]
) -> dict[str, Estimate]:
    if view.manifest.kind == "scan":
        return _of_scan(view, record, keys)
    bare = view.manifest.pass_named(BARE)
    layers = [layer for layer in record.layers if layer not in UNTIMED_LAYERS]
    if bare is None or record.name == BARE or not layers or record.perturbing:
        return {}
    estimate = _of_steps(trace, record.name, view.manifest.hooked()) or _of_length(bare, record)
    return {} if estimate is None else dict.fromkeys(layers, estimate)


def _of_scan(view: RunView, record: PassRecord, keys: list[str]) -> dict[str, Estimate]:
    """Each layer over the points of the backends that it attaches to."""
    backends = {point.id: point.backend for point in view.manifest.points}
    by_layer: dict[str, Estimate] = {}
    for layer in record.layers:
        layer_keys = [
            key for key in keys if layer not in set(backends.values()) or backends.get(key) == layer
        ]
        of_layer = overheads(
            view, layer_keys, layer if layer in set(backends.values()) else "", record
        )
        by_layer |= {layer: of_layer[layer]} if layer in of_layer else {}
    return by_layer


def _of_steps(trace: Trace, pass_name: str, hooked: frozenset[str]) -> Estimate | None:
    """From the steady steps of both passes, the profiled ones of the second and those of the same
    numbers of the first, since a script's steps need not be alike; None where one of them shows
    fewer than two.
    """
    bare, layer = (
        steady_steps(trace, BARE, hooked=hooked),
        steady_steps(trace, pass_name, profiled=True, hooked=hooked),
    )
    if bare.numbers is not None and layer.numbers is not None:
        numbers = layer.numbers
        if layer.where == "inside" and len(layer) > FEWEST:  # the first one may hold the opening
            numbers = numbers[numbers > numbers.min()]
        common = np.intersect1d(bare.numbers, numbers)
        bare, layer = bare.of_numbers(common), layer.of_numbers(common)
    if min(len(bare), len(layer)) < FEWEST:
        return None
    return layer_overhead([bare.rates], [layer.rates], seed=pass_name)


def _of_length(bare: PassRecord, record: PassRecord) -> Estimate | None:
    """From the length of the two passes: one execution each, so without an interval."""
    first, second = _seconds(bare), _seconds(record)
    return Estimate(value=1 - first / second) if first and second else None


def _seconds(record: PassRecord) -> float | None:
    if record.start_boot_ns is None or record.end_boot_ns is None:
        return None
    return (record.end_boot_ns - record.start_boot_ns) / 1e9


def run_info(manifest: Manifest, path: str) -> RunInfo:
    """Identity and provenance. The device is the one that points name most, else the first node's
    accelerator, else its CPU.
    """
    node = manifest.nodes[0] if manifest.nodes else NodeRecord(host="")
    git = (
        ""
        if manifest.git is None
        else (
            f"{manifest.git.commit[:12]} ({manifest.git.branch or 'detached'}, "
            f"{'dirty' if manifest.git.dirty else 'clean'})"
        )
    )
    return RunInfo(
        id=manifest.id,
        path=path,
        kind=manifest.kind,
        created=manifest.created,
        profharness=manifest.profharness,
        argv=manifest.argv,
        state=manifest.state,
        exit_status=manifest.exit_status,
        host=node.host,
        device=_device(manifest, node),
        cpu_model=node.cpu_model,
        versions=node.versions,
        git=git,
        scan="" if manifest.scan is None else manifest.scan.name,
        capture=manifest.capture,
        command=manifest.command,
        asked=_asked(manifest, node),
        attached=manifest.attached,
    )


def _asked(manifest: Manifest, node: NodeRecord) -> dict[str, str]:
    """What was asked for and bears on the figures, by name: a scan's settings, or a command's words
    and capture; thread variables.
    """
    asked = {
        f"variable {name}": value for name, value in node.variables.items() if name in _THREADS
    }
    traced = ", ".join(map(str, manifest.traced_ranks))
    all_traced = len(manifest.traced_ranks) >= manifest.ranks
    if manifest.scan is None:
        return asked | {
            "command": " ".join(manifest.command),
            "capture": manifest.capture,
            "ranks": str(manifest.ranks),
            **({TRACED_RANKS: traced} if traced and not all_traced else {}),
        }
    served = any(point.mode is not None for point in manifest.points)
    names = (
        [*(name for name in _MEASURED if name not in _DIRECT), *_SERVED] if served else _MEASURED
    )
    settings = {name: manifest.scan.settings.get(name) for name in names}
    return (
        asked
        | {"scan": manifest.scan.name}
        | {
            name: _text(value)
            for name, value in settings.items()
            if value not in (None, "", [], {}, ())
        }
    )


def _text(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_text, value))
    if isinstance(value, dict):
        return ", ".join(f"{name}:{_text(part)}" for name, part in value.items())
    return f"{value:g}" if isinstance(value, float) else str(value)


def _device(manifest: Manifest, node: NodeRecord) -> str:
    named = [
        point.device for point in manifest.points if point.device not in ("", "cpu", "unknown")
    ]
    if named:
        return max(sorted(set(named)), key=named.count)
    accelerators = [device.name for device in node.devices if device.kind != "cpu"]
    return accelerators[0] if accelerators else node.cpu_model


def allowed_cores(manifest: Manifest) -> float | None:
    """CPU cores that the workload may run on, of the first node; None where the probe does
    not say.
    """
    cores = len(manifest.nodes[0].cpus_allowed) if manifest.nodes else 0
    return float(cores) if cores else None


def of_all_passes(
    trace: Trace, node: NodeRecord | None, memory: Memory | None, points: Sequence[PointSummary]
) -> dict[str, object]:
    """Fields of the summary that records of any pass may fill, and `memory` over the batch sizes of
    the points.
    """
    return {
        "memory": over_batches(memory, points, node.memory_bytes if node else None),
        "counters": counter_rows(trace),
        "log": runtime_log(trace),
        "host_lines": line_table(trace),
    }
