"""A trace as a Perfetto file: one plain protobuf `Trace`, written in chunks by a column encoder.

Kernels, copies and fills become GpuRenderStageEvents; host calls, ops, marks and requests TrackEvent
slices; telemetry TrackEvent counters. Times are written as they are, as CLOCK_BOOTTIME nanoseconds.
Equal traces and options give equal bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from profharness.trace.model import I64, Trace
from profharness.writers.counters import CounterWriter
from profharness.writers.device_slices import DeviceSliceWriter
from profharness.writers.device_work import DeviceWriter
from profharness.writers.gpus import Gpus
from profharness.writers.launches import find_launches
from profharness.writers.metadata import header
from profharness.writers.options import ClockReading, HostFacts, LeftOut, WriteOptions, WriteReport
from profharness.writers.output import Output, replacing
from profharness.writers.selection import select
from profharness.writers.slices import SliceWriter
from profharness.writers.spans import Laned, benchmark_spans, flat, lay_out, nested, thread_spans
from profharness.writers.tracks import Registry, track_packet

__all__ = ["ClockReading", "HostFacts", "LeftOut", "WriteOptions", "WriteReport", "write"]

_DEFAULT = WriteOptions()


def write(trace: Trace, path: Path, *, attributes: Mapping[str, str | int] | None = None,
          options: WriteOptions = _DEFAULT) -> WriteReport:
    """Write `trace` to `path` (compressed where it ends in .gz), replacing a file there only when complete.

    `attributes` show in the viewer's overview under `profharness.<key>`, beside what is known about each
    source. Raises OSError where the folder cannot be written.
    """
    chosen, left_out = select(trace, options)
    with replacing(path) as out:
        flows, slices = _Job(chosen, out, options).run(attributes or {})
    return WriteReport(
        kernels=len(chosen.kernels), copies=len(chosen.copies), slices=slices, samples=len(chosen.samples),
        flows=flows, bytes=path.stat().st_size, left_out=left_out,
    )


class _Job:
    """One file: ids are handed out while the tables are laid out, then everything is written in turn."""

    def __init__(self, trace: Trace, out: Output, options: WriteOptions) -> None:
        self._trace = trace
        self._out = out
        self._options = options
        self._registry = Registry(trace)
        self._gpus = Gpus(trace, self._registry)

    def run(self, attributes: Mapping[str, str | int]) -> tuple[int, int]:
        """Arrows and host slices written."""
        trace, registry = self._trace, self._registry
        sequence = registry.sequence()
        kernels, copies = (registry.process_rows(table) for table in (trace.kernels, trace.copies))
        calls = registry.process_rows(trace.api)
        launches = find_launches(trace)
        threads = lay_out(thread_spans(trace, registry, calls), nested)
        benchmark = lay_out(benchmark_spans(trace, registry), flat)
        queues = self._queues(kernels, copies)
        for packet in header(trace, sequence, registry.machines, attributes, self._options):
            self._out.write(packet)
        self._out.write(self._gpus.packets(sequence))
        for process in registry.processes:
            self._out.write(track_packet(sequence, process.machine, process.descriptor()))
        # host spans come first: an arrow of the track-event kind needs its start before its end where times are equal
        slices = SliceWriter(trace, registry, self._out, launches, self._options.gpu_repr)
        slices.write_threads(threads)
        slices.write_benchmark(benchmark)
        device = (DeviceWriter(trace, registry, self._gpus, self._out) if self._options.gpu_repr == "render-stage"
                  else DeviceSliceWriter(trace, registry, self._gpus, self._out, launches))
        device.write_kernels(kernels, queues[0])
        device.write_copies(copies, queues[1])
        CounterWriter(trace, registry, self._out).write()
        return int(launches.linked.sum()), _slices(threads) + _slices(benchmark)

    def _queues(self, kernels: I64, copies: I64) -> tuple[I64, I64]:
        trace = self._trace
        unknown = np.full(len(trace.copies), -1, np.int64)
        return (self._gpus.queue_rows(trace.kernels.source, kernels, trace.kernels.device, trace.kernels.stream,
                                      trace.kernels.queue),
                self._gpus.queue_rows(trace.copies.source, copies, trace.copies.device, trace.copies.stream, unknown))


def _slices(laned: Laned) -> int:
    return len(laned.spans)
