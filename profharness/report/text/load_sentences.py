"""What a served scan adds to the answer: how many clients one device carries, what keeps a latency
limit, how an open loop fares, what sharing costs.
"""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.curves.members import members
from profharness.analysis.curves.records import Series
from profharness.analysis.load.ragged_records import RaggedWay
from profharness.analysis.load.sharing_records import SharedLevel
from profharness.analysis.records import Estimate, PointSummary, Summary
from profharness.report.text import names
from profharness.report.text.figures import figure_text, finite
from profharness.report.text.labels import level_name, rate_text
from profharness.rundir.latency_limit import LatencyLimit, parse_latency_limit


def load_sentences(summary: Summary, series: Series, *, rising: bool) -> tuple[str, ...]:
    """Sentences for a curve over clients, which may still be `rising` at its largest level; none
    for other scans.
    """
    if series.axis != "concurrency" or not any(point.mode for point in summary.points):
        return ()
    return tuple(_sentences(summary, series, rising=rising))


def _sentences(summary: Summary, series: Series, *, rising: bool) -> Iterator[str]:
    if series.knee is not None and series.knee.n is not None:
        ends = (
            ""
            if series.knee.low is None or series.knee.high is None
            else f" ({_rounded(series.knee.low)} to {_rounded(series.knee.high)})"
        )
        jobs = series.jobs_per_device
        # a curve that still rises bounds the knee from below only
        least, more = ("at least ", " or more") if rising else ("", "")
        of = f" of {series.clients_per_job} clients" if series.clients_per_job > 1 else ""
        yield (
            f"The knee is at {_rounded(series.knee.n)} "
            f"client{'s' * (_rounded(series.knee.n) != '1')}{ends}{more}"
            + (
                f"; there is no plan: {series.no_plan}."
                if series.no_plan
                else "."
                if jobs is None
                else f": plan with {least}{jobs} {'job' if jobs == 1 else 'jobs'}{of} per device."
            )
        )
    limit = (
        parse_latency_limit(summary.run.asked.get("latency_limit", ""))
        if summary.run is not None
        else None
    )
    if limit is not None:
        yield _within(summary, series, limit)
    opened = _easiest_open_loop(summary, series)
    if opened is not None:
        latency = next(
            (
                opened.metrics[name]
                for name in (names.LATENCY_P99, names.LATENCY_P50)
                if name in opened.metrics and finite(opened.metrics[name].value) is not None
            ),
            None,
        )
        if latency is not None:
            percentile = "p99" if latency is opened.metrics.get(names.LATENCY_P99) else "p50"
            yield (
                f"Requests that come by themselves at {opened.rate:g}/s take "
                f"{figure_text(latency, interval=False)} ({percentile})."
            )


def _rounded(clients: float) -> str:
    return f"{clients:.1f}".removesuffix(".0")


def _within(summary: Summary, series: Series, limit: LatencyLimit) -> str:
    """The best level that keeps the limit."""
    name = "latency_mean" if limit.name == "mean" else f"latency_{limit.name}"
    shown = f"{limit.name.replace('_', '.')} of {limit.limit_ms:g} ms"
    curve_points = [
        point
        for point in members(summary.points, (series,), blank_is_any=True)[0]
        if point.throughput and getattr(point, series.axis) not in series.flagged
    ]
    kept = [
        point
        for point in curve_points
        if (value := _value(point, name)) is not None and value <= limit.limit_ms
    ]
    if not kept:
        needs = next(
            (
                figure.needs
                for point in curve_points
                if (figure := point.metrics.get(name)) is not None
                and figure.value is None
                and figure.needs
            ),
            "",
        )
        return f"No level is known to keep the {shown}" + (
            f"; small ones need {needs} to tell: raise --time." if needs else "."
        )
    best = max(kept, key=lambda point: point.throughput or 0.0)
    return (
        f"Within the {shown} it gives {rate_text(summary, best.throughput or 0.0)} at "
        f"{level_name(series.axis, getattr(best, series.axis))}."
    )


def _value(point: PointSummary, name: str) -> float | None:
    figure = point.metrics.get(name)
    return None if figure is None else finite(figure.value)


def _easiest_open_loop(summary: Summary, series: Series) -> PointSummary | None:
    """The open loop of the lowest rate at the same backend and batch size."""
    open_loops = [
        point
        for point in summary.points
        if point.rate is not None
        and finite(point.throughput) is not None
        and all(str(getattr(point, name, value)) == value for name, value in series.key.items())
    ]
    return min(open_loops, key=lambda point: point.rate or 0.0, default=None)


BY_TRITON = "triton"  # the way of ragged batching that is Triton's own


def shared_sentence(summary: Summary) -> str:
    """For the level with the highest sum on one device: what all models give together, what that
    costs each, and what they give on a device each where that was measured. Empty without shared
    levels.
    """
    best = max(
        (level for level in summary.sharing if level.total.value and not level.spread),
        key=lambda level: level.total.value or 0.0,
        default=None,
    )
    if best is None:
        return ""
    costs = ", ".join(
        f"{model.target} {_cost(model.slowdown)}"
        for model in best.models
        if model.slowdown.value is not None
    )
    return (
        f"Together the {len(best.models)} models give "
        f"{rate_text(summary, best.total.value or 0.0)} at concurrency {best.concurrency} each"
        + (f"; sharing slows them: {costs}." if costs else ".")
        + _on_devices_of_their_own(summary, best)
    )


def ragged_sentence(summary: Summary) -> str:
    """How full Triton's own ragged batches were at the level where they served most, and what they
    give against the best of the other ways there. Empty where Triton batched none.
    """
    measured = [way for way in summary.ragged if way.throughput.value]
    best = max(
        (way for way in measured if way.way == BY_TRITON),
        key=lambda way: way.throughput.value or 0.0,
        default=None,
    )
    if best is None or best.requests_per_execution is None or best.most_lengths is None:
        return ""
    load = (best.target, best.batch_size, best.concurrency, best.rate)
    others = [
        way
        for way in measured
        if way.way != BY_TRITON and (way.target, way.batch_size, way.concurrency, way.rate) == load
    ]
    other = max(others, key=lambda way: way.throughput.value or 0.0, default=None)
    where = f"concurrency {best.concurrency}" if best.concurrency else f"{best.rate:g} requests/s"
    said = (
        f"At {where} Triton puts {best.requests_per_execution:.2g} requests of {best.target} in a "
        f"batch, of up to {best.most_lengths} lengths"
    )
    if other is None or not other.throughput.value or not best.throughput.value:
        return f"{said}."
    ratio = best.throughput.value / other.throughput.value
    unclear = _low(best) <= _high(other) and _low(other) <= _high(best)
    return (
        f"{said}, and serves {ratio:.2f} times as many items as {other.way} requests"
        f"{' (within noise)' if unclear else ''}."
    )


def _low(way: RaggedWay) -> float:
    """The lower end of its rate, the rate itself where none is known."""
    return (way.throughput.low if way.throughput.low is not None else way.throughput.value) or 0.0


def _high(way: RaggedWay) -> float:
    return (way.throughput.high if way.throughput.high is not None else way.throughput.value) or 0.0


def _on_devices_of_their_own(summary: Summary, shared: SharedLevel) -> str:
    """The same load on a device each, against that on one."""
    for level in summary.sharing:
        if (
            level.spread
            and (level.batch_size, level.concurrency) == (shared.batch_size, shared.concurrency)
            and level.total.value
            and shared.total.value
        ):
            return (
                f" On a device each they give {rate_text(summary, level.total.value)} "
                f"({level.total.value / shared.total.value:.2f} times as much)."
            )
    return ""


def _cost(slowdown: Estimate) -> str:
    """`1.90 times`, or that noise would explain it."""
    value = f"{slowdown.value or 0.0:.2f} times"
    unclear = slowdown.low is None or slowdown.high is None or slowdown.low <= 1 <= slowdown.high
    return f"{value} (within noise)" if unclear else value
