"""Telemetry of a run: rows for the report, and figures over chosen times (a point's trials in the
bare pass).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from profharness.analysis.records import Figure, TelemetryRow
from profharness.analysis.run.checks import TOO_SLOW
from profharness.analysis.time.steps import measured
from profharness.rundir.manifest import Manifest
from profharness.stats.intervals import EMPTY, Intervals, contains, inside_ns, window
from profharness.stats.packages import used
from profharness.stats.streams import Stream, mean, mean_in, streams, weights
from profharness.trace.device_counters import FABRIC, SHADER
from profharness.trace.device_counters import NAME as COUNTERS
from profharness.trace.model import I64, Samples, Trace
from profharness.units import format_ns

PLOTTED = 400
CAPTURED_SAMPLES = 5
"""How many samples a window needs before their mean says anything of it."""
# Samples that cover twice the time asked for say as much about what came before and after.
SLOW_FACTOR = 2
# Peaks say what had to fit; a mean of memory would hide it.
_PEAKS = frozenset({"memory_tree", "memory_cgroup", "memory_node_used", "gpu_memory_used"})
# Over several nodes these add up; of memory the highest node counts, of all others the mean.
_NODE_SUMS = ("power_", "network_", "rdma_", "slingshot_", "lustre_", "nfs_", "tree_")
_NAMES = {"cpu_tree": "cores_used", "memory_tree": "memory_peak"}
# Over several devices these add up; of all other metrics the mean is given.
_SUMS = frozenset(
    {
        "power_w",
        "power_average",
        "power_energy",
        "power_limit",
        "pcie_sent",
        "pcie_received",
        "nvlink_sent",
        "nvlink_received",
        "xgmi_read",
        "xgmi_written",
        "gpu_memory_used",
        "gpu_memory_total",
        "gpu_processes",
        "gpu_processes_other",
    }
)


def rows(trace: Trace, records: Trace | None = None) -> tuple[TelemetryRow, ...]:
    """One row per metric and device over the whole run; `at_s` counts from the run's first
    sample. `records` is the pass on the run's clock whose window the figures are of.
    """
    captured = EMPTY if records is None else measured(records).when
    every = streams(trace)
    first = min((int(stream.samples.at_ns[0]) for stream in every), default=0)
    return tuple(_row(stream, first, captured) for stream in every)


def _row(stream: Stream, first: int, captured: Intervals) -> TelemetryRow:
    samples = stream.samples
    length = samples.until_ns - samples.at_ns
    weight = np.where(length > 0, length, 0) if length.any() else np.ones(len(samples), np.int64)
    at, values = _thinned(samples, first)
    return TelemetryRow(
        metric=stream.metric,
        unit=stream.unit,
        device=stream.device,
        host=stream.host,
        mean=mean(samples.value, weight),
        low=float(samples.value.min()),
        high=float(samples.value.max()),
        samples=len(samples),
        span_ns=int(samples.at_ns[-1] - samples.at_ns[0]),
        captured=_mean_inside(stream, captured),
        at_s=at,
        values=values,
    )


def _mean_inside(stream: Stream, when: Intervals) -> float | None:
    """The mean over the windows; None with too few samples whose whole interval lies in them."""
    samples = stream.samples
    length = np.maximum(samples.until_ns - samples.at_ns, 0)
    inside = inside_ns(Intervals(samples.at_ns, samples.at_ns + length), when)
    whole = contains(when, samples.at_ns) & (inside == length)
    return mean_in(stream, when) if int(whole.sum()) >= CAPTURED_SAMPLES else None


def _thinned(samples: Samples, first: int) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """At most 400 points, each the mean of as many samples: a plot of more hides what it shows."""
    size = -(-len(samples) // PLOTTED)
    starts = np.arange(0, len(samples), size)
    counts = np.diff(np.append(starts, len(samples)))
    values = np.add.reduceat(samples.value, starts) / counts
    return tuple(((samples.at_ns[starts] - first) / 1e9).tolist()), tuple(values.tolist())


def figure_name(metric: str) -> str:
    """What the figure of a sampled metric is called."""
    return _NAMES.get(metric, metric)


def figures_in(every: Sequence[Stream], when: Intervals, source: str) -> dict[str, Figure]:
    """Means (of memory: the peak) of every metric inside the windows; metrics without a sample
    there are left out.

    Of several devices each has its own figures, named by its number, and those that worked in the
    windows share the plain name. So has each of several nodes, named by its host.
    """
    several = len({stream.device for stream in every if stream.device}) > 1
    active = used(every, when) if several else ()
    figures: dict[str, Figure] = {}
    shared: dict[str, list[Figure]] = {}
    of_nodes: dict[str, list[Figure]] = {}
    for stream in every:
        figure = _figure(stream, when, source)
        if figure is None:
            continue
        name = figure_name(stream.metric)
        if stream.metric == "cpu_tree":
            covered = int(weights(stream.samples, when).sum())
            before = figures.get("cpu_sampled")
            figures["cpu_sampled"] = Figure(
                value=covered if before is None else min(covered, before.value or 0),
                unit="ns",
                source=source,
                note="time that CPU samples cover",
            )
        if several and stream.device:
            figures[f"{name}_{stream.device}"] = figure
            if stream.device in active:
                shared.setdefault(stream.metric, []).append(figure)
        elif stream.host and not stream.device:
            figures[f"{name}_{stream.host}"] = figure
            of_nodes.setdefault(stream.metric, []).append(figure)
        else:
            figures[name] = figure
    return figures | dict(_together(shared, active)) | dict(_over_nodes(of_nodes))


def counted_figures(
    manifest: Manifest,
    telemetry: Sequence[Stream],
    spans: Callable[[str], Sequence[tuple[int, int]]],
) -> dict[str, Figure]:
    """Figures of the counters over the pass that read them: from its first point to its last where
    `spans` knows of any, as other telemetry, else over all of it. Empty without such a pass.
    """
    record = next((record for record in manifest.passes if COUNTERS in record.layers), None)
    if record is None or record.start_boot_ns is None or record.end_boot_ns is None:
        return {}
    measured = spans(record.name) or [(record.start_boot_ns, record.end_boot_ns)]
    when = window(min(first for first, _ in measured), max(last for _, last in measured))
    found = figures_in(telemetry, when, f"{record.name} pass, telemetry")
    return {name: figure for name, figure in found.items() if name.startswith((*SHADER, *FABRIC))}


def _figure(stream: Stream, when: Intervals, source: str) -> Figure | None:
    weight = weights(stream.samples, when)
    if not weight.any():
        return None
    peak = stream.metric in _PEAKS
    value = (
        float(stream.samples.value[weight > 0].max())
        if peak
        else mean(stream.samples.value, weight)
    )
    return Figure(
        value=value,
        unit=stream.unit,
        source=source,
        note="highest sample" if peak else _slow(stream.samples, weight),
    )


def _slow(samples: Samples, weight: I64) -> str:
    """Says that intervals reach far beyond the time asked for: points next to each other then show
    the same figure.
    """
    length = samples.until_ns - samples.at_ns
    covered = int(length[weight > 0].sum())
    if covered <= SLOW_FACTOR * int(weight.sum()) or not (length > 0).all():
        return ""
    return (
        f"{TOO_SLOW}: every {format_ns(int(np.median(length)))}, so it holds time before or after"
    )


def _together(
    shared: dict[str, list[Figure]], active: Sequence[str]
) -> Iterator[tuple[str, Figure]]:
    """Several devices as one: sums of what adds up, means of shares."""
    who = (
        f"devices {', '.join(active)}"
        if len(active) > 1
        else f"device {active[0]}"
        if active
        else ""
    )
    for metric, figures in shared.items():
        values = [float(figure.value) for figure in figures if figure.value is not None]
        add = metric in _SUMS
        yield (
            metric,
            Figure(
                value=sum(values) if add else sum(values) / len(values),
                unit=figures[0].unit,
                source=figures[0].source,
                note=f"{'sum' if add else 'mean'} over {who}" if len(values) > 1 else who,
            ),
        )


def _over_nodes(of_nodes: dict[str, list[Figure]]) -> Iterator[tuple[str, Figure]]:
    """Several nodes as one: sums of power and traffic, the highest node's memory, else the mean."""
    for metric, figures in of_nodes.items():
        values = [float(figure.value) for figure in figures if figure.value is not None]
        if metric in _PEAKS:
            value, how = max(values), "highest sample of any of"
        elif metric.startswith(_NODE_SUMS):
            value, how = sum(values), "sum over"
        else:
            value, how = sum(values) / len(values), "mean over"
        yield (
            figure_name(metric),
            Figure(
                value=value,
                unit=figures[0].unit,
                source=figures[0].source,
                note=f"{how} {len(values)} nodes",
            ),
        )
