"""The levels of a served run: requests by pass and point, and what each says about its point."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import msgspec
import numpy as np

from profharness.analysis.records import Figure
from profharness.rundir.levels import Level
from profharness.rundir.manifest import Manifest
from profharness.stats import load_parts
from profharness.stats.intervals import Intervals, window
from profharness.stats.level_result import block_rates, in_window
from profharness.stats.load import level_figures
from profharness.stats.load_figures import Latency, LevelFigures
from profharness.stats.throughput import Drift
from profharness.trace.model import F64, Requests, Trace

FEW_PARTS = (8, 5, 3, 2, 1)  # parts of a window, the most that have answers being taken
PART_NAMES = {
    load_parts.TRANSPORT_OUT: "part_transport_out",
    load_parts.BEFORE: "part_before",
    load_parts.QUEUE: "part_queue",
    load_parts.COMPUTE_INPUT: "part_input",
    load_parts.HAND_OVER: "part_hand_over",
    load_parts.MODEL: "part_model",
    load_parts.COMPUTE_INFER: "part_infer",
    load_parts.COMPUTE_OUTPUT: "part_output",
    load_parts.TRANSPORT_BACK: "part_transport_back",
    load_parts.AFTER: "part_after",
    load_parts.TRANSPORT: "part_transport",
}
"""Metric names of a request's parts, in the order in which they happen."""
_MS, _S = 1e6, 1e9


@dataclass(frozen=True, eq=False)
class LoadedLevel:
    """One level and all of its requests, both on the trace's clock."""

    level: Level
    requests: Requests

    @cached_property
    def figures(self) -> LevelFigures:
        return level_figures(self.requests, self.level)

    @property
    def span(self) -> Intervals:
        """The level's window."""
        return window(self.level.window_start_ns, self.level.window_end_ns)

    @property
    def latency(self) -> Latency | None:
        """What clients see: in an open loop from the time that a request was meant to be sent."""
        return self.figures.corrected if self.level.mode == "open" else self.figures.service

    @cached_property
    def rates(self) -> F64 | None:
        """Items/s in a few equal parts of the window, so few that none is without an answer; None
        where that cannot be.
        """
        ended = in_window(self.requests, self.level)
        good = ended.take(ended.ok == 1)
        parts = (block_rates(good.done_ns, good.items, self.level, count) for count in FEW_PARTS)
        return next((rates for rates in parts if len(rates) and (rates > 0).all()), None)


Levels = dict[tuple[str, str], LoadedLevel]


def collect(trace: Trace, manifest: Manifest) -> Levels:
    """Levels by (pass, point key); those without requests or without a window are left out.

    The load generator's window is on CLOCK_MONOTONIC, the trace on the run's clock: the mark of the
    level's point has it.
    """
    requests, marks = trace.requests, trace.marks
    records = {
        (record.pass_name, f"{record.id}~{record.repeat}" if record.repeat else record.id): record
        for record in manifest.points
    }
    windows = {
        (source.pass_name, source.point): position
        for position, source in enumerate(trace.sources)
        if source.format == "level"
    }
    levels: Levels = {}
    for position, source in enumerate(trace.sources):
        key = (source.pass_name, source.point)
        record, source_window = records.get(key), windows.get(key)
        if (
            source.format != "requests"
            or record is None
            or record.level is None
            or record.level.window_ns <= 0
            or source_window is None
        ):
            continue
        start = int(marks.start_ns[np.flatnonzero(marks.source == source_window)[0]])
        level = msgspec.structs.replace(
            record.level, window_start_ns=start, window_end_ns=start + record.level.window_ns
        )
        level_requests = requests.take(requests.source == position)
        if len(level_requests):
            levels[key] = LoadedLevel(level, level_requests)
    return levels


def drifts(levels: Levels, reference: str) -> tuple[Drift, ...]:
    """Every repeated level of the reference pass against its first measurement."""
    repeat_drifts = []
    for (pass_name, key), repeat in levels.items():
        point, _, number = key.partition("~")
        first = levels.get((reference, point))
        if pass_name != reference or not number or first is None or not first.figures.requests:
            continue
        values = [float(level.figures.throughput.value or 0.0) for level in (first, repeat)]
        change = values[1] / values[0] - 1
        widths = [level.figures.throughput_half_width for level in (first, repeat)]
        noise = math.hypot(*(width or 0.0 for width in widths))
        repeat_drifts.append(
            Drift(
                change,
                significant=None not in widths and abs(change) > max(0.01, noise),
                point=point,
            )
        )
    return tuple(repeat_drifts)


def level_metrics(level: LoadedLevel, unit: str, source: str, drift: Drift) -> dict[str, Figure]:
    """Throughput, latencies, the parts of a request, the load generator's cost and the server's."""
    figures = level.figures
    rate, margin = figures.throughput, abs(drift.relative) * (figures.throughput.value or 0.0)
    metrics = {
        "throughput": Figure(
            value=rate.value,
            unit=unit,
            low=None if rate.low is None else max(rate.low - margin, 0.0),
            high=None if rate.high is None else rate.high + margin,
            source=source,
        ),
        "requests_per_s": Figure(value=figures.request_rate, unit="requests/s", source=source),
        "failed_share": Figure(value=figures.failed_share, unit="share", source=source),
        "in_flight": Figure(
            value=figures.little.held if level.level.mode == "closed" else figures.little.expected,
            unit="requests",
            source=source,
        ),
    }
    metrics |= _latencies(
        "latency",
        level.latency,
        source,
        "from the time that it was meant to be sent" if level.level.mode == "open" else "",
    )
    if level.level.mode == "open":
        metrics |= _latencies(
            "service_latency", figures.service, source, "from the time that it was sent"
        )
    return metrics | dict(_parts(figures, source)) | dict(_costs(figures, source))


def _latencies(name: str, latency: Latency | None, source: str, note: str) -> dict[str, Figure]:
    if latency is None:
        return {}
    mean = latency.mean
    figures = {
        f"{name}_mean": Figure(
            value=_ms(mean.value),
            unit="ms",
            low=_ms(mean.low),
            high=_ms(mean.high),
            source=source,
            note=note,
        ),
        f"{name}_std": Figure(
            value=_ms(latency.std_ns),
            unit="ms",
            source=source,
            needs="" if latency.std_ns is not None else "more requests",
        ),
    }
    for percentile in latency.percentiles:
        figures[f"{name}_p{percentile.q:g}".replace(".", "_")] = Figure(
            value=_ms(percentile.value_ns),
            unit="ms",
            low=_ms(percentile.low_ns),
            high=_ms(percentile.high_ns),
            source=source,
            note=note,
            needs=percentile.needs,
        )
    return figures


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / _MS


def _parts(figures: LevelFigures, source: str) -> Iterator[tuple[str, Figure]]:
    if figures.parts is not None:
        for part in figures.parts.parts:
            yield PART_NAMES[part.name], Figure(value=part.mean_ns / _MS, unit="ms", source=source)
        yield (
            "parts_sum",
            Figure(
                value=figures.parts.sum_ns / figures.parts.latency_ns,
                unit="share",
                source=source,
                note="of the mean service latency",
            ),
        )
    if figures.batches is not None:
        yield (
            "server_batch",
            Figure(value=figures.batches.mean, unit="items", source="the server's statistics"),
        )


def _costs(figures: LevelFigures, source: str) -> Iterator[tuple[str, Figure]]:
    level, generator = figures.level, figures.generator
    if level.cpu_ns is not None:
        yield (
            "client_cores",
            Figure(value=level.cpu_ns / level.window_ns, unit="cores", source=source),
        )
    if generator.cpu_ns_per_request is not None:
        yield (
            "client_cpu_per_request",
            Figure(value=generator.cpu_ns_per_request, unit="ns", source=source),
        )
    if figures.server_cores is not None:
        yield "server_cores", Figure(value=figures.server_cores, unit="cores", source=source)
    if level.network_bytes is not None:
        for name, count in (
            ("load_sent", level.network_bytes.tx),
            ("load_received", level.network_bytes.rx),
        ):
            yield name, Figure(value=count / level.window_ns * _S, unit="B/s", source=source)


def server_limits(manifest: Manifest, level: Level) -> tuple[int | None, int]:
    """Largest batch and instances: of our own server as asked, of a foreign one as it reported;
    (None, 1) where that is not known.
    """
    settings = manifest.scan.settings if manifest.scan is not None else {}
    if settings.get("url") or settings.get("server_command"):
        return level.gathers, level.instances or 1
    largest, instances = settings.get("max_batch_size"), settings.get("instances")
    return largest if isinstance(largest, int) else None, instances if isinstance(
        instances, int
    ) else 1


def clients_per_job(manifest: Manifest) -> int:
    """Requests that one job keeps in flight, as asked."""
    asked = manifest.scan.settings.get("clients_per_job") if manifest.scan is not None else None
    return asked if isinstance(asked, int) else 1
