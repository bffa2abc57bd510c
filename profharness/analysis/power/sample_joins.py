"""Telemetry joined to records: the mean of a metric while certain kernels, copies or operators ran
(docs/metrics.md#hotspots).

A sample holds until the next one, at most for twice their usual distance, as a counter track shows
it; a value that covers an interval holds in it. A mean weights each value with the time of the
records in it, concurrent ones each by itself, so that the means of parts add up to that of the
whole by their total times.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels.filling import NEEDED_COVERAGE
from profharness.analysis.power.run_telemetry import figure_name
from profharness.analysis.records import Figure
from profharness.errors import UsageError
from profharness.stats.streams import Stream, streams
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Samples, Trace
from profharness.trace.sample_metrics import metric_of, unit_of
from profharness.units import format_ns

Integers = npt.NDArray[np.integer[Any]]
LONGEST_HOLD = 2
"""How many usual distances between samples a value speaks for where the next one is late."""


@dataclass(frozen=True, eq=False)
class Spans:
    """Records with a time, in ns: where each ran (position in `trace.devices`, NULL for the host)
    and who recorded it.
    """

    start_ns: I64
    end_ns: I64
    device: Integers
    source: Integers

    def take(self, rows: npt.NDArray[Any]) -> Spans:
        """The spans at these positions, or where the mask holds."""
        return Spans(self.start_ns[rows], self.end_ns[rows], self.device[rows], self.source[rows])


@dataclass(frozen=True, eq=False)
class Integrals:
    """For each record the integral of the metric over the part of its time that samples cover (unit
    times ns), and that part in ns.

    `every_ns` is the usual time that one value holds, `lacks` what would give values that are
    missing.
    """

    value: F64
    covered_ns: F64
    every_ns: int
    lacks: str = "samples in that time"


def named(text: str, trace: Trace) -> tuple[str, ...]:
    """The metrics that a list such as `power,clock` asks for: by name, or by first word the first
    of the table that was sampled.

    Raises UsageError for an empty list, an unknown name, and one of which the trace holds no
    sample.
    """
    sampled = list(dict.fromkeys(stream.metric for stream in streams(trace)))
    words = [word.strip() for word in text.split(",")]
    if not all(words):
        raise UsageError(
            f"--samples: {text!r} names no metrics",
            "names with commas between, as power_w,clock_gpu",
        )
    return tuple(dict.fromkeys(_metric_named(word, sampled, trace) for word in words))


def _metric_named(word: str, sampled: Sequence[str], trace: Trace) -> str:
    name = next((metric for metric in sampled if figure_name(metric) == word), word)
    if name in sampled:
        return name
    by_word = [metric for metric in sampled if metric.startswith(f"{name}_")]
    if by_word and metric_of(name) is None:
        return by_word[0]
    hint = (
        f"sampled here: {', '.join(sampled)}"
        if sampled
        else "nothing was sampled here: record a run with --telemetry"
    )
    if metric_of(name) is None:
        raise UsageError(f"--samples {word}: there is no such metric", hint)
    why = next(
        (
            text
            for source in trace.sources
            for key, text in source.details
            if key == f"missing.{name}"
        ),
        "",
    )
    raise UsageError(f"--samples {word}: not sampled here{f' ({why})' if why else ''}", hint)


def held(stream: Stream) -> Stream:
    """The stream with every instant holding until the next sample; what overlaps the next one ends
    there.
    """
    samples = stream.samples
    if not len(samples):
        return stream
    gaps = np.diff(samples.at_ns)
    usual = int(np.median(gaps)) if len(gaps) else 0
    until = np.where(
        samples.until_ns > samples.at_ns, samples.until_ns, samples.at_ns + LONGEST_HOLD * usual
    )
    until[:-1] = np.minimum(until[:-1], samples.at_ns[1:])
    if samples.until_ns[-1] <= samples.at_ns[-1]:
        until[-1] = samples.at_ns[-1] + usual
    return replace(stream, samples=samples.with_columns(until_ns=until))


def integrals(trace: Trace, metric: str, spans: Spans) -> Integrals:
    """The metric over each of the records, of the device (or the host) that it ran on."""
    value, covered = np.zeros(len(spans.start_ns)), np.zeros(len(spans.start_ns))
    every = 0
    by_place = _by_place(trace, metric)
    of_host = {host: samples for (host, device), samples in by_place.items() if device == NULL}
    pairs, owner = np.unique(np.stack((spans.source, spans.device)), axis=1, return_inverse=True)
    for number, (source, device) in enumerate(pairs.T.tolist()):
        host = trace.sources[source].host if source != NULL else ""
        samples = (
            by_place.get(_sampled_place(trace, by_place, host, device))
            or of_host.get(host)
            or _only(of_host)
        )
        if samples is None:
            continue
        rows = np.flatnonzero(owner.ravel() == number)
        value[rows], covered[rows] = _over(samples, spans.start_ns[rows], spans.end_ns[rows])
        every = max(every, int(np.median(samples.until_ns - samples.at_ns)))
    if not covered.any() and not of_host and by_place and bool((spans.device == NULL).all()):
        return Integrals(value, covered, every, "work on the device: these records are the host's")
    return Integrals(value, covered, every)


Places = dict[tuple[str, int], Samples]


def _by_place(trace: Trace, metric: str) -> Places:
    """The metric's held samples by host and device. A package's power stands for each of its
    devices.
    """
    samples, places = trace.samples, Places()
    rows = np.flatnonzero(samples.metric == trace.strings.find(metric))
    chosen = replace(trace, samples=samples.take(rows))
    hosts = np.array([source.host for source in trace.sources])
    owners = hosts[samples.source[rows]] if len(rows) else np.empty(0, hosts.dtype)
    package: dict[tuple[str, str], Samples] = {}
    for host in dict.fromkeys(owners.tolist()):
        for stream in streams(replace(chosen, samples=chosen.samples.take(owners == host))):
            kept = held(stream).samples
            places[host, int(kept.device[0])] = kept
            package[host, stream.package] = kept
    if metric.startswith("power"):
        for place, device in enumerate(trace.devices):
            of = (device.host, _package(trace, device.identity))
            if of in package and (device.host, place) not in places:
                places[device.host, place] = package[of]
    return places


def _package(trace: Trace, identity: str) -> str:
    key = f"package.{identity}"
    return (
        next((text for source in trace.sources for name, text in source.details if name == key), "")
        if identity
        else ""
    )


def _sampled_place(trace: Trace, sampled: Places, host: str, device: int) -> tuple[str, int]:
    """Where the device was sampled: itself, or what bears its number on its host where the record's
    tool gives no address.
    """
    if device == NULL or (host, device) in sampled or trace.devices[device].identity:
        return host, device
    numbered = [
        (sampled_host, place)
        for sampled_host, place in sampled
        if place != NULL and sampled_host == host
    ]
    same = [key for key in numbered if trace.devices[key[1]].index == trace.devices[device].index]
    return same[0] if same else numbered[0] if len(numbered) == 1 else (host, device)


def _only(of_host: dict[str, Samples]) -> Samples | None:
    """The only host's samples, for records that name no host."""
    return next(iter(of_host.values())) if len(of_host) == 1 else None


def _over(samples: Samples, start: I64, end: I64) -> tuple[F64, F64]:
    """Integral and covered ns between `start` and `end`; the samples are in order and do not
    overlap.
    """
    origin = int(samples.at_ns[0])
    at, until = samples.at_ns - origin, samples.until_ns - origin
    length = until - at
    times, sums = (
        np.concatenate(([0], np.cumsum(column))) for column in (length, length * samples.value)
    )

    def before(instant: I64) -> tuple[F64, I64]:
        piece = np.searchsorted(at, instant - origin, "right") - 1
        inside = np.clip(instant - origin - at[piece], 0, length[piece])
        started = piece >= 0
        return np.where(started, sums[piece] + inside * samples.value[piece], 0.0), np.where(
            started, times[piece] + inside, 0
        )

    (value_end, time_end), (value_start, time_start) = before(end), before(start)
    return value_end - value_start, (time_end - time_start).astype(np.float64)


def mean_figure(metric: str, sampled: Integrals, sums: tuple[float, float, float, float]) -> Figure:
    """The mean over a group of records by the sums of their integrals, covered ns, ns, and number;
    not measured below 90 % coverage.
    """
    integral, covered_ns, total_ns, calls = sums
    unit, coverage = unit_of(metric), covered_ns / total_ns if total_ns else 0.0
    if coverage < NEEDED_COVERAGE:
        return Figure(
            value=None,
            unit=unit,
            source="telemetry",
            needs=sampled.lacks,
            coverage=coverage,
            coverage_of="the time",
        )
    note = ""
    if calls and sampled.every_ns > total_ns / calls:
        note = (
            f"one value every {format_ns(sampled.every_ns)}, longer than the records: "
            "it also holds what ran beside and between them"
        )
    return Figure(
        value=integral / covered_ns,
        unit=unit,
        source="telemetry",
        coverage=min(coverage, 1.0),
        coverage_of="the time",
        note=note,
    )


def concat_spans(parts: Iterable[Spans]) -> Spans:
    """All records of several tables."""
    every = list(parts)
    return Spans(
        *(
            np.concatenate([getattr(part, name) for part in every])
            for name in ("start_ns", "end_ns", "device", "source")
        )
    )
