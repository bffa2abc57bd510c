"""Where a trace and the driver's own figures cannot both be right: idle in the one, busy in the
other (docs/findings.md#idle-contradicted).

The driver's GPU % alone proves little: it counts short gaps as busy, lags by its averaging time,
and some parts show 100 % for an idle process. So only gaps of a second and more count, without
their first part, and power (or else the clock) must say the same as the GPU %. Another process may
be the reason, where the driver shows one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.analysis.time.counts import devices_with_work
from profharness.findings import Finding, Severity, finding
from profharness.stats.intervals import Intervals, complement, contains, lasting, merge
from profharness.stats.intervals import union as union_of
from profharness.stats.streams import Stream, mean_in
from profharness.trace.model import Device, Trace
from profharness.units import format_ns

GAP_NS = 1_000_000_000
SETTLE_NS = (
    300_000_000  # at the begin of a span: what the driver's figures still say of the time before
)
MIN_SAMPLES = 3
BUSY_PERCENT = 50.0
IDLE_PERCENT = 1.0
LIKE_WORK = (
    0.5  # of the way from the lowest to the working value, from which power or clock says busy
)
OTHERS = "gpu_processes_other"


@dataclass(frozen=True, eq=False)
class _Seen:
    """One device: when the trace has work on it and when none for long, and what telemetry has of
    it.
    """

    name: str
    work: Intervals
    gaps: Intervals
    streams: dict[str, Stream]
    certain: bool  # that the trace was being recorded in the gaps

    def mean(self, metric: str, when: Intervals) -> float | None:
        """None with fewer than three samples there."""
        stream = self.streams.get(metric)
        if stream is None or int(contains(when, stream.samples.at_ns).sum()) < MIN_SAMPLES:
            return None
        return mean_in(stream, when)

    @property
    def percent(self) -> str:
        return "gpu_activity_mean" if "gpu_activity_mean" in self.streams else "gpu_percent"


def idle_contradicted(trace: Trace, every: Sequence[Stream]) -> tuple[Finding, ...]:
    """Both directions, per device with records in a trace that is aligned with the telemetry."""
    return tuple(
        item
        for seen in _devices(trace, every)
        for item in (*_busy_in_gaps(seen), *_idle_at_work(seen))
    )


def _busy_in_gaps(seen: _Seen) -> Iterator[Finding]:
    busy = seen.mean(seen.percent, seen.gaps)
    if busy is None or busy < BUSY_PERCENT:
        return
    witnesses = [
        (words, share)
        for metric, words in (("power_w", "power"), ("clock_gpu", "clock"))
        if (share := _like_work(seen, metric)) is not None
    ]
    if witnesses and witnesses[0][1] < LIKE_WORK:
        return  # nothing draws power: the driver's figure is one that stays high
    other_processes = seen.mean(OTHERS, seen.gaps) or 0.0
    proof = f" and its {witnesses[0][0]} is that of work" if witnesses else ""
    why = (
        f"; {other_processes:.1f} other processes used it meanwhile"
        if other_processes
        else "; no other process is seen on it"
        if OTHERS in seen.streams
        else ""
    )
    # work of others explains it: then the trace may be whole
    grave: Severity = "error" if witnesses and seen.certain and not other_processes else "warning"
    yield finding(
        "idle-contradicted",
        f"the trace has no work on device {seen.name} for {format_ns(seen.gaps.total)} in which "
        f"the driver says {busy:.0f} % busy{proof}{why}",
        severity=grave,
        idle_ns=seen.gaps.total,
        gpu_percent=busy,
        other_processes=other_processes,
    )


def _idle_at_work(seen: _Seen) -> Iterator[Finding]:
    """The reverse: work in the trace, and a device that does nothing by the driver's figures."""
    spans = _without_begin(_joined(seen.work))
    busy = seen.mean(seen.percent, spans)
    if busy is None or busy >= IDLE_PERCENT:
        return
    yield finding(
        "idle-contradicted",
        f"the trace has work on device {seen.name} for {format_ns(spans.total)} in which the "
        f"driver says {busy:.0f} % busy: "
        "its times are not those of the telemetry, or it is another device",
        severity="warning",
        busy_ns=spans.total,
        gpu_percent=busy,
    )


def _like_work(seen: _Seen, metric: str) -> float | None:
    """Where the value in the gaps lies between the lowest value seen and that at work; None where
    it does not rise at work.
    """
    stream = seen.streams.get(metric)
    gaps, work = seen.mean(metric, seen.gaps), seen.mean(metric, seen.work)
    if stream is None or gaps is None:
        return None
    lowest = float(stream.samples.value.min())
    highest = max(work if work is not None else gaps, gaps)
    if highest <= lowest * 1.1:
        return (
            1.0
            if highest > 0 and metric == "power_w" and work is not None and gaps >= 0.9 * work
            else None
        )
    return (gaps - lowest) / (highest - lowest)


def _devices(trace: Trace, every: Sequence[Stream]) -> Iterator[_Seen]:
    for position in devices_with_work(trace):
        device = trace.devices[position]
        metrics = of_device(device, every)
        if not metrics.keys() & {"gpu_percent", "gpu_activity_mean"}:
            continue
        package = next(iter(metrics.values())).package
        for sampled in every:  # power is read once per package
            if sampled.metric == "power_w" and sampled.package == package:
                metrics.setdefault("power_w", sampled)
        yield _seen(trace, position, device.index, metrics)


def of_device(device: Device, every: Sequence[Stream]) -> dict[str, Stream]:
    """The streams of a device of a trace, by metric."""
    return {
        sampled.metric: sampled
        for sampled in every
        if sampled.device
        and sampled.host in ("", device.host)
        and _same(sampled, device.identity, device.index)
    }


def _same(stream: Stream, identity: str, index: str) -> bool:
    own = stream.device.removeprefix(f"{stream.host}/") if stream.host else stream.device
    return stream.identity == identity if identity else own == index


def _seen(trace: Trace, position: int, name: str, streams: dict[str, Stream]) -> _Seen:
    """Each source speaks for the time from its first record to its last; see `_silent`."""
    tables = (trace.kernels, trace.copies)
    work = union_of(
        *(
            merge(
                lasting(
                    table.start_ns[table.device == position], table.dur_ns[table.device == position]
                )
            )
            for table in tables
        )
    )
    sources = np.unique(
        np.concatenate([table.source[table.device == position] for table in tables])
    )
    silent = [_silent(trace, int(source), work) for source in sources]
    sure = merge(union_of(*(gaps for gaps, certain in silent if certain)))
    gaps = merge(union_of(*(gaps for gaps, _ in silent)))
    return _Seen(name, work, _without_begin(gaps), streams, certain=bool(len(sure)))


def _silent(trace: Trace, source: int, work: Intervals) -> tuple[Intervals, bool]:
    """Spans of a second and more between the source's records without work, and whether it recorded
    meanwhile.

    Where a source has host records, a span without any of them is one in which it was paused.
    """
    host = np.concatenate(
        [table.start_ns[table.source == source] for table in (trace.api, trace.ops)]
    )
    device = [
        (table.start_ns[table.source == source], table.dur_ns[table.source == source])
        for table in (trace.kernels, trace.copies)
    ]
    starts = np.concatenate([host, *(start for start, _ in device)])
    ends = np.concatenate([host, *(start + length for start, length in device)])
    gaps = complement(work, int(starts.min()), int(ends.max()))
    long = gaps.end - gaps.start >= GAP_NS
    silences = Intervals(gaps.start[long], gaps.end[long])
    if not len(host):
        return silences, False
    host = np.sort(host)
    recorded = np.searchsorted(host, silences.end) > np.searchsorted(host, silences.start, "right")
    return Intervals(silences.start[recorded], silences.end[recorded]), True


def _joined(work: Intervals) -> Intervals:
    """Work with no gap of a tenth of a second, where it lasts for a second."""
    if not len(work):
        return work
    apart = work.start[1:] - work.end[:-1] > GAP_NS // 10
    starts, ends = (
        work.start[np.concatenate(([True], apart))],
        work.end[np.concatenate((apart, [True]))],
    )
    long = ends - starts >= GAP_NS
    return Intervals(starts[long], ends[long])


def _without_begin(spans: Intervals) -> Intervals:
    return Intervals(spans.start + SETTLE_NS, spans.end)
