"""When the passes of a run ran and its points were measured, on the axis of its telemetry."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profharness.analysis.pictures.records import Band
from profharness.rundir.manifest import Manifest
from profharness.stats.streams import streams
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace


def bands(trace: Trace, manifest: Manifest) -> tuple[Band, ...]:
    """Passes with known times, and the points in them from the first trial to the last; none
    without telemetry.
    """
    first = min((int(stream.samples.at_ns[0]) for stream in streams(trace)), default=None)
    if first is None:
        return ()
    passes = [
        Band(
            pass_name=record.name,
            start_s=(record.start_boot_ns - first) / 1e9,
            end_s=(record.end_boot_ns - first) / 1e9,
        )
        for record in manifest.passes
        if record.start_boot_ns is not None and record.end_boot_ns is not None
    ]
    return (*passes, *_points(trace, first))


def _points(trace: Trace, first: int) -> Iterator[Band]:
    marks = trace.marks
    rows = np.flatnonzero((marks.point != NULL) & (marks.kind == trace.strings.find("trial")))
    names = [source.pass_name for source in trace.sources]
    ends: dict[tuple[str, str], tuple[int, int]] = {}
    for source, point in sorted(
        set(zip(marks.source[rows].tolist(), marks.point[rows].tolist(), strict=True))
    ):
        of_point = rows[(marks.source[rows] == source) & (marks.point[rows] == point)]
        start = int(marks.start_ns[of_point].min())
        end = int((marks.start_ns[of_point] + marks.dur_ns[of_point]).max())
        key = (names[source], trace.strings[point])
        low, high = ends.get(key, (start, end))
        ends[key] = (min(low, start), max(high, end))
    for (pass_name, point), (start, end) in sorted(ends.items(), key=lambda item: item[1]):
        yield Band(
            pass_name=pass_name,
            point=point,
            start_s=(start - first) / 1e9,
            end_s=(end - first) / 1e9,
        )
