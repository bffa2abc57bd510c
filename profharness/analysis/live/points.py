"""The figures of a point as soon as it has its record, by the same statistics as the report's."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from profharness.analysis.axes.points import rated_points
from profharness.analysis.live.records import LivePoint
from profharness.analysis.records import Figure, PointSummary
from profharness.analysis.run.recorded import as_recorded
from profharness.analysis.run.trials import PointTrials
from profharness.rundir.manifest import Manifest, PointRecord
from profharness.stats.throughput import common_window, summarise_trials

_MS = 1e6
_OF_A_SCAN = re.compile(
    r"(?P<backend>.+)-b(?P<batch>\d+)(?:-(?P<kind>[cnr])(?P<level>\d+(?:\.\d+)?(?:e[+-]\d+)?))?"
)


def key_of(record: PointRecord) -> str:
    """The key of the point that the record is of; repeats end in ~1, ~2 ..."""
    return f"{record.id}~{record.repeat}" if record.repeat else record.id


def point_words(key: str) -> str:
    """`torch-b16` as people call it, `torch batch 16`; what has another form stays as it is."""
    point, _, repeat = key.partition("~")
    match = _OF_A_SCAN.fullmatch(point)
    if match is None:
        return f"{point}, time {int(repeat) + 1}" if repeat.isdigit() else key
    level = match["level"]
    load = {
        "c": f", concurrency {level}",
        "n": f", {level} process{'es' if level != '1' else ''}",
        "r": f", {level} requests/s",
    }.get(match["kind"] or "", "")
    return f"{match['backend']} batch {match['batch']}{load}{' again' if repeat else ''}"


def summary_of(record: PointRecord, trials: PointTrials | None) -> PointSummary:
    """A point by its record, with throughput and latency where they were measured: by its trials,
    else by what the harness made of its requests, else by its execution.
    """
    summary = msgspec.structs.replace(
        as_recorded(PointSummary(point=record.id), record), parameters=record.parameters
    )
    if record.state != "ok":
        return summary
    if record.execution is not None:
        rate, wall_s = record.execution.rate, record.execution.wall_ns / 1e9
        return msgspec.structs.replace(summary, throughput=rate, wall_s=wall_s)
    if record.result is not None:
        result = record.result
        return msgspec.structs.replace(
            summary,
            throughput=result.throughput,
            throughput_sem=result.throughput_sem,
            latency_ms=result.latency_ms,
            requests=None if record.level is None else record.level.requests,
        )
    return summary if trials is None else _with_trials(summary, trials)


def _with_trials(summary: PointSummary, trials: PointTrials) -> PointSummary:
    stats = summarise_trials(
        trials.durations_ns, trials.items, f"{trials.pass_name}/{trials.key.partition('~')[0]}"
    )
    several = None
    if trials.processes > 1:
        several = common_window(trials.starts_ns, trials.durations_ns, trials.items, trials.owner)
    throughput, sem = (
        (stats.throughput, stats.sem) if several is None else (several.throughput, several.sem)
    )
    low, high = (stats.low, stats.high) if several is None else (several.low, several.high)
    return msgspec.structs.replace(
        summary,
        trials=stats.trials,
        throughput=throughput,
        throughput_sem=sem,
        latency_ms=stats.latency_mean_ns / _MS,
        metrics={"throughput": Figure(value=throughput, unit="", low=low, high=high)},
    )


def curve_of(
    manifest: Manifest, points: Iterable[LivePoint], pass_name: str
) -> tuple[PointSummary, ...]:
    """The points of a pass, each once: of a scan of a command over all executions so far, else its
    first measurement.
    """
    rated = rated_points(manifest)
    if rated is not None:
        return tuple(
            PointSummary(
                point=point.point,
                throughput=point.throughput,
                parameters=point.parameters,
                metrics={
                    "throughput": Figure(
                        value=point.throughput, unit=rated.unit, low=point.low, high=point.high
                    )
                },
            )
            for point in rated.points
        )
    first = {
        point.summary.point: point.summary
        for point in points
        if point.pass_name == pass_name and "~" not in point.key
    }
    return tuple(first.values())
