"""Two runs against each other, point by point: what changed, and what is noise.

What counts as a change `deltas` says. With several points its bound is widened (Sidak), so that
comparing ten points of equal runs raises a false alarm in at most about one comparison of twenty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

import msgspec

from profharness.analysis.compare.deltas import changes, simultaneous
from profharness.analysis.compare.operator_reasons import operator_reasons, other_inputs, side
from profharness.analysis.compare.ranges import range_deltas
from profharness.analysis.compare.reasons import SAME_CALLS, Reason, Side, reasons
from profharness.analysis.compare.records import (
    Comparison,
    Delta,
    Difference,
    HotspotComparison,
    HotspotDelta,
    PointComparison,
)
from profharness.analysis.compare.row_reasons import row_reason
from profharness.analysis.kernels.mangled import one_spelling
from profharness.analysis.kernels.point_kernels import MOST as MOST_KERNELS
from profharness.analysis.point_errors import throughput_ends
from profharness.analysis.records import (
    Figure,
    HotspotRow,
    Hotspots,
    Partition,
    PointKernel,
    PointSummary,
    Summary,
)
from profharness.stats.bootstrap import Z95

_LATENCY = "latency"
NamedT = TypeVar("NamedT", HotspotRow, PointKernel)


def compare(a: Summary, b: Summary) -> Comparison:
    """Changes from `a` to `b` over the points that both measured, and over run-level figures."""
    a, b = _spelled_alike(a, b)
    in_a, in_b = {p.point: p for p in a.points}, {p.point: p for p in b.points}
    names = [name for name in in_a if name in in_b]
    widening = simultaneous(len(names)) / Z95
    points = tuple(_point(in_a[name], in_b[name], widening) for name in names)
    whole = tuple(changes(a.metrics, b.metrics, 1.0))
    return Comparison(
        run_a=a.source,
        run_b=b.source,
        points=points,
        run=whole,
        run_ranges=range_deltas(a.metrics, b.metrics),
        reasons=() if points else _run_reasons(a, b, whole),
        hotspots=tuple(_hotspots(a, b)),
        only_a=tuple(name for name in in_a if name not in in_b),
        only_b=tuple(name for name in in_b if name not in in_a),
        failed=tuple(
            name for name in names if in_b[name].state != "ok" and in_a[name].state == "ok"
        ),
        asked=_differences(_asked(a), _asked(b)),
        ran_on=_differences(_ran_on(a), _ran_on(b)),
        errors_a=_errors(a),
        errors_b=_errors(b),
    )


def _spelled_alike(a: Summary, b: Summary) -> tuple[Summary, Summary]:
    """Both with one name for each kernel that one names by its mangled form and the other not."""
    spelling = one_spelling(name for side in (a, b) for name in _kernel_names(side))
    if not spelling:
        return a, b
    first, second = (_spelled(side, spelling) for side in (a, b))
    return first, second


def _kernel_names(summary: Summary) -> Iterator[str]:
    for table in summary.hotspots:
        if table.by == "kernel":
            yield from (row.name for row in table.rows)
    for point in summary.points:
        yield from (kernel.name for kernel in point.kernels)


def _spelled(summary: Summary, spelling: Mapping[str, str]) -> Summary:
    def named(row: NamedT) -> NamedT:
        other = spelling.get(row.name)
        return row if other is None else msgspec.structs.replace(row, name=other)

    return msgspec.structs.replace(
        summary,
        hotspots=tuple(
            msgspec.structs.replace(table, rows=tuple(map(named, table.rows)))
            if table.by == "kernel"
            else table
            for table in summary.hotspots
        ),
        points=tuple(
            msgspec.structs.replace(point, kernels=tuple(map(named, point.kernels)))
            for point in summary.points
        ),
    )


def _errors(summary: Summary) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.id for item in summary.findings if item.severity == "error"))


def _asked(summary: Summary) -> dict[str, str]:
    return {} if summary.run is None else summary.run.asked


def _ran_on(summary: Summary) -> dict[str, str]:
    run = summary.run
    return (
        {}
        if run is None
        else {"host": run.host, "device": run.device, "CPU": run.cpu_model, "git": run.git}
        | run.versions
    )


def _differences(a: dict[str, str], b: dict[str, str]) -> tuple[Difference, ...]:
    """By name; none where one of the runs says nothing at all (a loose trace file)."""
    if not a or not b:
        return ()
    return tuple(
        Difference(name=name, a=a.get(name), b=b.get(name))
        for name in dict.fromkeys([*a, *b])
        if a.get(name) != b.get(name)
    )


def _point(a: PointSummary, b: PointSummary, widening: float) -> PointComparison:
    figures_a, figures_b = _with_basics(a), _with_basics(b)
    deltas = tuple(changes(figures_a, figures_b, widening, (a.drift, b.drift)))
    return PointComparison(
        point=a.point,
        backend=a.backend,
        batch_size=a.batch_size,
        concurrency=a.concurrency,
        processes=a.processes,
        deltas=deltas,
        ranges=range_deltas(figures_a, figures_b),
        reasons=_time_reasons(
            deltas, (a.partition, b.partition), (figures_a, figures_b), (a.kernels, b.kernels)
        ),
    )


TIMES = ("latency", "step_time")
RATES = ("throughput", "steps_per_second")
_NOTABLE = 0.05
"""A change that counts where its noise is not known."""

_Pair = tuple[Partition | None, Partition | None]


def _time_reasons(
    deltas: Sequence[Delta],
    splits: _Pair,
    figures: tuple[dict[str, Figure], dict[str, Figure]],
    kernels: tuple[Sequence[PointKernel], Sequence[PointKernel]],
) -> tuple[Reason, ...]:
    """The reasons of a change in time per trial or step; none where it is within the noise."""
    moved = _moved(deltas)
    if moved is None:
        return ()
    sides = [
        Side(time, split, values, kernel_rows)
        for time, split, values, kernel_rows in zip(
            _times(moved), splits, figures, kernels, strict=True
        )
    ]
    return reasons(sides[0], sides[1], moved.noise)


def _moved(deltas: Sequence[Delta]) -> Delta | None:
    """The rate (or time) of trials or steps, where it changed by more than the noise."""
    by_name = {delta.name: delta for delta in deltas}
    moved = next((by_name[name] for name in (*RATES, *TIMES) if name in by_name), None)
    noise = (
        moved is None
        or moved.significant is False
        or (moved.significant is None and abs(moved.change) < _NOTABLE)
    )
    return None if noise else moved


def _times(moved: Delta) -> tuple[float, float]:
    """Time per trial or step in both, in any unit."""
    return (moved.a, moved.b) if moved.name in TIMES else (1 / moved.a, 1 / moved.b)


def _run_reasons(a: Summary, b: Summary, deltas: tuple[Delta, ...]) -> tuple[Reason, ...]:
    """The reasons of a command's change in the time of a step; of loose traces without steps, in
    the window.
    """
    kernels = (_table_kernels(a), _table_kernels(b))
    if not any(delta.name in (*RATES, *TIMES) for delta in deltas):
        if (
            a.partition is None
            or b.partition is None
            or not a.partition.window_ns
            or not b.partition.window_ns
        ):
            return ()
        whole = Delta(
            name=_LATENCY,
            unit="ns",
            a=a.partition.window_ns,
            b=b.partition.window_ns,
            change=b.partition.window_ns / a.partition.window_ns - 1,
        )
        deltas = (*deltas, whole)
    why = _time_reasons(deltas, (a.partition, b.partition), (a.metrics, b.metrics), kernels)
    return (*_operators(a, b, deltas), *why)


def _operators(a: Summary, b: Summary, deltas: Sequence[Delta]) -> list[Reason]:
    """Reasons by operator, of commands without device work whose steps moved."""
    moved = _moved(deltas)
    if moved is None:
        return []
    before, after = (
        side(summary, time) for summary, time in zip((a, b), _times(moved), strict=True)
    )
    return (
        operator_reasons(before, after, moved.noise)
        if before is not None and after is not None
        else []
    )


def _table_kernels(summary: Summary) -> tuple[PointKernel, ...]:
    """The notable kernels of a whole trace, from its hotspot table."""
    return tuple(
        PointKernel(
            name=row.name,
            calls=row.calls,
            total_ns=row.total_ns,
            share=row.share,
            workgroups=row.workgroups,
        )
        for table in summary.hotspots
        if table.by == "kernel"
        for row in table.rows[:MOST_KERNELS]
        if row.total_ns is not None
        and row.share is not None
        and row.share >= 0.01
        and row.category != "communication"
    )


def _with_basics(point: PointSummary) -> dict[str, Figure]:
    """The point's figures with throughput and mean latency first, whatever the summary's reader
    kept.
    """
    basics: dict[str, Figure] = {}
    throughput = point.metrics.get("throughput")
    if throughput is None and point.throughput is not None:
        low, high = throughput_ends(point) or (None, None)
        throughput = Figure(value=point.throughput, unit="items/s", low=low, high=high)
    if throughput is not None:
        basics["throughput"] = throughput
    mean = point.metrics.get("latency_mean")
    if mean is None and point.latency_ms is not None:
        mean = Figure(value=point.latency_ms, unit="ms")
    if mean is not None:
        basics[_LATENCY] = mean
    return basics | {
        name: figure
        for name, figure in point.metrics.items()
        if name not in ("throughput", "latency_mean")
    }


def _hotspots(a: Summary, b: Summary) -> Iterator[HotspotComparison]:
    for first in a.hotspots:
        second = next((table for table in b.hotspots if table.by == first.by), None)
        if second is not None and (first.rows or second.rows):
            yield HotspotComparison(
                by=first.by,
                pass_a=first.pass_name,
                pass_b=second.pass_name,
                rows=tuple(_rows(first, second, _clock_ratio(a, b))),
            )


def _clock_ratio(a: Summary, b: Summary) -> float | None:
    """The mean device clock of b over that of a; None where one was not measured."""
    values = [
        None if (figure := summary.metrics.get("clock_gpu")) is None else figure.value
        for summary in (a, b)
    ]
    return float(values[1]) / float(values[0]) if values[0] and values[1] else None


def _with_inputs(reason: str, row_a: HotspotRow | None, row_b: HotspotRow | None) -> str:
    """Other inputs of an operator say more than that its time per call has changed."""
    inputs = other_inputs(row_a, row_b) if row_a is not None and row_b is not None else ""
    return "; ".join(
        part for part in ("" if inputs and reason == SAME_CALLS else reason, inputs) if part
    )


def _rows(a: Hotspots, b: Hotspots, clock: float | None) -> list[HotspotDelta]:
    in_a, in_b = {row.name: row for row in a.rows}, {row.name: row for row in b.rows}
    rows = []
    for name in dict.fromkeys([*in_a, *in_b]):
        row_a, row_b = in_a.get(name), in_b.get(name)
        present = row_a or row_b
        assert present is not None  # the name comes from one of them
        why = row_reason(row_a, row_b, (a, b), clock)
        rows.append(
            HotspotDelta(
                name=name,
                category=present.category,
                calls_a=row_a.calls if row_a else None,
                calls_b=row_b.calls if row_b else None,
                mean_a_ns=row_a.mean_ns if row_a else None,
                mean_b_ns=row_b.mean_ns if row_b else None,
                total_a_ns=row_a.total_ns if row_a else None,
                total_b_ns=row_b.total_ns if row_b else None,
                share_a=row_a.share if row_a else None,
                share_b=row_b.share if row_b else None,
                change=row_b.mean_ns / row_a.mean_ns - 1
                if row_a and row_b and row_a.mean_ns and row_b.mean_ns is not None
                else None,
                reason=_with_inputs(why.message, row_a, row_b),
                noise=why.noise,
                significant=why.significant,
            )
        )
    return sorted(
        rows, key=lambda row: (-abs((row.total_b_ns or 0) - (row.total_a_ns or 0)), row.name)
    )
