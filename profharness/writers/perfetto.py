"""A trace as a Perfetto file: one plain protobuf `Trace`, written in chunks by a column encoder.

Kernels, copies and fills become GpuRenderStageEvents; host calls, ops, marks, requests and sampled
lines of Python TrackEvent slices; telemetry TrackEvent counters. Times are written as they are, as
CLOCK_BOOTTIME nanoseconds. Equal traces and options give equal bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from profharness.trace.model import I64, Trace
from profharness.writers.colours import Colours
from profharness.writers.counters import CounterWriter
from profharness.writers.device_slices import DeviceSliceWriter
from profharness.writers.device_work import DeviceWriter
from profharness.writers.gpus import Gpus
from profharness.writers.launches import find_launches
from profharness.writers.metadata import Outline, header, outline
from profharness.writers.options import ClockReading, HostFacts, LeftOut, WriteOptions, WriteReport
from profharness.writers.output import Output, replacing
from profharness.writers.selection import select
from profharness.writers.slices import SliceWriter
from profharness.writers.spans import (
    benchmark_spans,
    flat,
    lay_out,
    nested,
    sampled_spans,
    thread_spans,
)
from profharness.writers.tracks import Registry, track_packet

__all__ = [
    "ClockReading",
    "HostFacts",
    "LeftOut",
    "Parts",
    "WriteOptions",
    "WriteReport",
    "write",
    "write_parts",
]

_DEFAULT = WriteOptions()


@dataclass(frozen=True)
class Parts:
    """A trace in parts, so that no more than one of them is in memory at once.

    `pools` holds all sources, devices and streams; its few records stand for all that share a
    process, queue or domain (`trace.parts.sketch`). Each part's positions and codes refer to it.
    """

    pools: Trace
    outlines: Sequence[Outline]
    traces: Iterable[Trace]


def write(
    trace: Trace,
    path: Path,
    *,
    attributes: Mapping[str, str | int] | None = None,
    options: WriteOptions = _DEFAULT,
) -> WriteReport:
    """Write `trace` to `path` (compressed where it ends in .gz), replacing a file there only when
    complete.

    `attributes` show in the viewer's overview under `profharness.<key>`, beside what is known about
    each source. Raises OSError where the folder cannot be written.
    """
    chosen, left_out = select(trace, options)
    report = _written(Parts(chosen, (outline(chosen),), (chosen,)), path, attributes or {}, options)
    return replace(report, left_out=left_out)


def write_parts(
    parts: Parts,
    path: Path,
    *,
    attributes: Mapping[str, str | int] | None = None,
    options: WriteOptions = _DEFAULT,
) -> WriteReport:
    """The same for a trace in parts; `max_kernels` holds for each part. Raises OSError where the
    folder cannot be written.
    """
    left: dict[tuple[str, str], int] = {}

    def chosen() -> Iterator[Trace]:
        for trace in parts.traces:
            kept, left_out = select(trace, options)
            for one in left_out:
                left[one.table, one.reason] = left.get((one.table, one.reason), 0) + one.count
            del trace
            yield kept
            del kept

    report = _written(replace(parts, traces=chosen()), path, attributes or {}, options)
    return replace(
        report,
        left_out=tuple(LeftOut(table, count, reason) for (table, reason), count in left.items()),
    )


def _written(
    parts: Parts, path: Path, attributes: Mapping[str, str | int], options: WriteOptions
) -> WriteReport:
    with replacing(path) as out:
        job = _Job(parts.pools, out, options)
        job.open(attributes, parts.outlines)
        for trace in parts.traces:
            job.add(trace)
            del trace  # the next part comes when this one is gone
    return replace(job.report, bytes=path.stat().st_size)


class _Job:
    """One file: ids are handed out while the tables of a part are laid out, then all of it is
    written in turn.
    """

    def __init__(self, pools: Trace, out: Output, options: WriteOptions) -> None:
        self._pools = pools
        self._out = out
        self._options = options
        self._registry = Registry(pools)
        self._colours = Colours(options.operator_kind)
        self._gpus = Gpus(pools, self._registry)
        self._declared: set[int] = set()
        self._events = 0
        self.report = WriteReport(kernels=0, copies=0, slices=0, samples=0, flows=0, bytes=0)

    def open(self, attributes: Mapping[str, str | int], outlines: Sequence[Outline]) -> None:
        """What comes before all records: who is who, and the GPUs."""
        sequence = self._registry.sequence()
        self._sequence = sequence
        pools, registry = self._pools, self._registry
        self._queues(
            pools, *(registry.process_rows(table) for table in (pools.kernels, pools.copies))
        )
        for packet in header(
            pools.sources, sequence, registry.machines, attributes, self._options, outlines
        ):
            self._out.write(packet)
        self._out.write(self._gpus.packets(sequence))

    def add(self, trace: Trace) -> None:
        """The records of one part."""
        registry = self._registry
        kernels, copies = (registry.process_rows(table) for table in (trace.kernels, trace.copies))
        launches = find_launches(trace, self._events)
        threads = lay_out(thread_spans(trace, registry, registry.process_rows(trace.api)), nested)
        benchmark = lay_out(benchmark_spans(trace, registry), flat)
        of_samples = sampled_spans(trace, registry)
        sampled = lay_out(of_samples.spans, nested)
        queues = self._queues(trace, kernels, copies)
        self._declare(
            np.concatenate(
                (
                    kernels,
                    copies,
                    *(one.spans.process for one in (threads, benchmark, sampled)),
                )
            )
        )
        # host spans come first: an arrow of the track-event kind needs its start before its end
        # where times are equal
        slices = SliceWriter(
            trace, registry, self._out, launches, self._options.gpu_repr, self._colours
        )
        slices.write_threads(threads)
        slices.write_benchmark(benchmark)
        slices.write_sampled(sampled, of_samples.widths)
        tell = self._options.tell_kernels
        figures = tell(trace) if tell is not None and len(trace.kernels) else None
        device = (
            DeviceWriter(trace, registry, self._gpus, self._out, self._events, figures)
            if self._options.gpu_repr == "render-stage"
            else DeviceSliceWriter(trace, registry, self._gpus, self._out, launches, figures)
        )
        device.write_kernels(kernels, queues[0])
        device.write_copies(copies, queues[1])
        CounterWriter(trace, registry, self._out, self._options).write()
        self._events += len(trace.kernels) + len(trace.copies)
        before = self.report
        self.report = replace(
            before,
            kernels=before.kernels + len(trace.kernels),
            copies=before.copies + len(trace.copies),
            slices=before.slices + sum(len(one.spans) for one in (threads, benchmark, sampled)),
            samples=before.samples + len(trace.samples),
            flows=before.flows + int(launches.linked.sum()),
        )

    def _declare(self, used: I64) -> None:
        """The processes that are seen for the first time."""
        for position in sorted(set(np.unique(used).tolist()) - self._declared):
            process = self._registry.processes[position]
            self._out.write(track_packet(self._sequence, process.machine, process.descriptor()))
            self._declared.add(position)

    def _queues(self, trace: Trace, kernels: I64, copies: I64) -> tuple[I64, I64]:
        unknown = np.full(len(trace.copies), -1, np.int64)
        return (
            self._gpus.queue_rows(
                trace.kernels.source,
                kernels,
                trace.kernels.device,
                trace.kernels.stream,
                trace.kernels.queue,
            ),
            self._gpus.queue_rows(
                trace.copies.source, copies, trace.copies.device, trace.copies.stream, unknown
            ),
        )
