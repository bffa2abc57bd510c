"""A hotspot table with telemetry: the mean of each metric asked for while the kernels (or
operators) of a row ran.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from profharness.analysis.kernels.categories import CATEGORIES, category_codes
from profharness.analysis.kernels.hotspots import children
from profharness.analysis.power.sample_joins import (
    Integrals,
    Spans,
    concat_spans,
    integrals,
    mean_figure,
)
from profharness.analysis.records import Figure, HotspotRow, Hotspots, SampledRow
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Copies, Kernels, Trace

Owners = tuple[I64, F64, Spans]


def with_samples(table: Hotspots, records: Trace, trace: Trace, metrics: Sequence[str]) -> Hotspots:
    """The table of `records` (one pass of `trace`) whose rows have the means of the metrics over
    their device time.

    Rows by op: over the kernels that the operators launched; without any kernel in the trace, over
    the operators' own time.
    """
    group, sign, spans = _members(table, records)
    place = {row.name: number for number, row in enumerate(table.rows)}
    number_of = np.array(
        [
            place.get(name, NULL)
            for name in (CATEGORIES if table.by == "category" else records.strings.texts)
        ]
        + [NULL],
        np.int64,
    )
    rows = number_of[group]
    kept = rows != NULL
    owned = _Owned(
        rows[kept], sign[kept], _in_whole(spans, records, trace).take(kept), len(table.rows)
    )
    columns = {
        metric: owned.means(metric, integrals(trace, metric, owned.spans)) for metric in metrics
    }
    return msgspec.structs.replace(
        table,
        rows=tuple(
            _sampled(row, {metric: figures[number] for metric, figures in columns.items()})
            for number, row in enumerate(table.rows)
        ),
    )


@dataclass(frozen=True, eq=False)
class _Owned:
    """Records by the row that they belong to, of so many; those with `sign` -1 are taken off."""

    row: I64
    sign: F64
    spans: Spans
    count: int

    def means(self, metric: str, sampled: Integrals) -> list[Figure]:
        """One figure per row."""
        columns = (
            sampled.value,
            sampled.covered_ns,
            (self.spans.end_ns - self.spans.start_ns).astype(np.float64),
            (self.sign > 0).astype(np.float64),
        )
        sums: list[list[float]] = [
            np.bincount(self.row, weights=self.sign * column, minlength=self.count).tolist()
            for column in columns
        ]
        return [mean_figure(metric, sampled, row_sums) for row_sums in zip(*sums, strict=True)]


def _sampled(row: HotspotRow, samples: dict[str, Figure]) -> SampledRow:
    return SampledRow(
        **{name: getattr(row, name) for name in row.__struct_fields__ if name != "samples"},
        samples=samples,
    )


def _members(table: Hotspots, records: Trace) -> Owners:
    """Code of the group, sign and time of every record that counts for a row; a child of an
    operator counts against it.
    """
    kernels, ops = records.kernels, records.ops
    if table.by == "category":
        copies = records.copies
        codes = np.concatenate(
            (
                category_codes(kernels, records.strings),
                np.full(len(copies), CATEGORIES.index("copy"), np.int64),
            )
        )
        return codes, np.ones(len(codes)), concat_spans((_on_device(kernels), _on_device(copies)))
    if table.by == "kernel":
        return kernels.name.astype(np.int64), np.ones(len(kernels)), _on_device(kernels)
    if len(kernels):
        launched = kernels.take(kernels.op != NULL)
        return ops.name[launched.op].astype(np.int64), np.ones(len(launched)), _on_device(launched)
    child, holder = children(ops)
    end = ops.start_ns + ops.dur_ns
    start = np.maximum(ops.start_ns[child], ops.start_ns[holder])
    inner = Spans(
        start,
        np.maximum(np.minimum(end[child], end[holder]), start),
        np.full(len(child), NULL),
        ops.source[child],
    )
    whole = Spans(ops.start_ns, end, np.full(len(ops), NULL), ops.source)
    sign = np.concatenate((np.ones(len(ops)), np.full(len(child), -1.0)))
    return (
        np.concatenate((ops.name, ops.name[holder])).astype(np.int64),
        sign,
        concat_spans((whole, inner)),
    )


def _on_device(table: Kernels | Copies) -> Spans:
    return Spans(table.start_ns, table.start_ns + table.dur_ns, table.device, table.source)


def _in_whole(spans: Spans, part: Trace, whole: Trace) -> Spans:
    """The spans with positions in the whole trace, whose sources and devices its part shares."""

    def places(of_part: Sequence[object], of_whole: Sequence[object]) -> I64:
        positions = {id(item): number for number, item in enumerate(of_whole)}
        return np.array([*(positions.get(id(item), NULL) for item in of_part), NULL], np.int64)

    return replace(
        spans,
        device=places(part.devices, whole.devices)[spans.device],
        source=places(part.sources, whole.sources)[spans.source],
    )
