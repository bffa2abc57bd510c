"""Answer and Next for a scan: where the throughput levels off, what a small level wastes, and what
to try.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from profharness.analysis.curves.members import members
from profharness.analysis.curves.records import Series
from profharness.analysis.records import PointSummary, Summary
from profharness.analysis.verdict.wording import NOT_KNOWN
from profharness.findings import ways
from profharness.report.axes import plans as plan_words
from profharness.report.axes import words as axes_words
from profharness.report.text import names
from profharness.report.text.command_sentences import (
    PROFILED,
    quieter,
    start_with,
    under_pressure,
)
from profharness.report.text.figures import cores_text, figure_text, finite
from profharness.report.text.labels import (
    device_word,
    item_unit,
    level_name,
    on_cpu,
    point_name,
    rate_text,
    series_name,
)
from profharness.report.text.limits import clause_of, gain_text, limit_of
from profharness.report.text.load_sentences import load_sentences, ragged_sentence, shared_sentence
from profharness.report.text.measured.curves import best_rate, still_rising
from profharness.report.text.measured.held_cores import held, may_do_better, not_told_apart
from profharness.report.text.rates import throughput_text, unproven
from profharness.rundir.levels import SHARED
from profharness.units import format_number, format_share

_MOST_OTHERS = 10  # series that a sentence can name besides the best one
FULL = 0.5  # below half of the compute units docs/metrics.md#fill calls kernel time underfilled


def answer(summary: Summary) -> str:
    """Where the best series is full, and how little the driver's GPU % says at its first level."""
    if summary.axes is not None:
        return axes_words.answer(summary.axes)
    plans = plan_words.plans_of(summary)
    if plans is not None:
        return plan_words.answer(summary, plans)
    series = best_series(summary)
    if series is None or series.recommended is None:
        return " ".join(
            part
            for part in (
                _without_curve(summary),
                shared_sentence(summary),
                ragged_sentence(summary),
            )
            if part
        )
    parts = [
        *_best_level(summary, series),
        *load_sentences(summary, series, rising=still_rising(series)),
        _other_series(summary, series),
        shared_sentence(summary),
        ragged_sentence(summary),
        _misleading(summary, series),
    ]
    return " ".join(part for part in parts if part)


def _best_level(summary: Summary, series: Series) -> tuple[str, ...]:
    """From which level on it is full; what it stands for where other work held the cores."""
    points = points_of(summary, series)
    disturbed = held(points) if on_cpu(summary) else ()
    if _held_at_best(summary, series):
        best = best_rate(series)
        where = level_name(series.axis, series.levels[series.throughput.index(best)])
        return (not_told_apart(f"{rate_text(summary, best)} at {where}", device_word(summary)),)
    return (
        _saturation(summary, series),
        _cores(summary, series),
        _unproven(summary, series),
        may_do_better(_level(series, point) for point in disturbed) if disturbed else "",
    )


def _held_at_best(summary: Summary, series: Series) -> bool:
    """Whether other work held the cores at the level that would be called the best."""
    point = recommended_point(summary, series)
    return on_cpu(summary) and point is not None and bool(held((point,)))


def best_series(summary: Summary) -> Series | None:
    """The series with the highest measured throughput."""
    shown = [series for series in summary.series if series.throughput]
    return max(shown, key=best_rate, default=None)


def points_of(summary: Summary, series: Series) -> tuple[PointSummary, ...]:
    """The measured points of a series, smallest level first."""
    return points_of_each(summary, (series,))[0]


def points_of_each(
    summary: Summary, series: Sequence[Series]
) -> tuple[tuple[PointSummary, ...], ...]:
    """The measured points of each of the series, smallest level first."""
    found = members(summary.points, series, blank_is_any=True)
    return tuple(_at_levels(points, one) for points, one in zip(found, series, strict=True))


def _at_levels(points: Sequence[PointSummary], series: Series) -> tuple[PointSummary, ...]:
    wanted = set(series.levels)
    measured = [
        point
        for point in points
        if getattr(point, series.axis) in wanted and finite(point.throughput) is not None
    ]
    return tuple(sorted(measured, key=lambda point: getattr(point, series.axis)))


def recommended_point(summary: Summary, series: Series) -> PointSummary | None:
    """The measured point that the series recommends."""
    return recommended_among(points_of(summary, series), series)


def recommended_among(points: Iterable[PointSummary], series: Series) -> PointSummary | None:
    """The one of the series' measured points that it recommends."""
    at = None if series.recommended is None else series.recommended.at
    return next((point for point in points if getattr(point, series.axis) == at), None)


def _saturation(summary: Summary, series: Series) -> str:
    assert series.recommended is not None
    best, at = best_rate(series), series.recommended.at
    where = level_name(series.axis, at)
    name = f" with {series_name(series)}" if len(summary.series) > 1 and series.key else ""
    device = device_word(summary)
    if still_rising(series):
        return (
            f"Not full in this scan: throughput{name} still rises at "
            f"{level_name(series.axis, max(series.levels))}, "
            f"the largest (best {rate_text(summary, best)})."
        )
    within = f"(within 5 % of the best {rate_text(summary, best)})"
    fill = _value(recommended_point(summary, series), names.FILL_BARE, names.FILL, names.WAVE_FILL)
    if on_cpu(summary) or fill is None:
        return f"This {device}{name} gives its best from {where} {within}."
    if fill < FULL:
        return (
            f"Throughput{name} levels off from {where} {within}, but the {device} is not full: "
            f"{_percent(fill)} of its compute units work."
        )
    return f"This {device}{name} is full from {where} {within}."


def _unproven(summary: Summary, series: Series) -> str:
    point = recommended_point(summary, series)
    if point is None or not unproven(point, points_of(summary, series)):
        return ""
    return "The intervals overlap: no level is proven best."


def _other_series(summary: Summary, best: Series) -> str:
    if len(summary.series) < 2:
        return ""
    others = [series for series in summary.series if series is not best and series.throughput]
    if len(others) > _MOST_OTHERS:
        others = sorted(others, key=best_rate, reverse=True)
    sentences = [
        f"{series_name(series)} reaches {rate_text(summary, best_rate(series))}"
        + (f" from {level_name(series.axis, series.recommended.at)}" if series.recommended else "")
        for series in others[:_MOST_OTHERS]
    ]
    if len(others) > _MOST_OTHERS:
        sentences.append(f"and {len(others) - _MOST_OTHERS} further series less")
    return f"{', '.join(sentences)}." if sentences else ""


def _misleading(summary: Summary, series: Series) -> str:
    first = next(iter(points_of(summary, series)), None)
    gpu, fill = (
        _value(first, names.GPU_PERCENT),
        _value(first, names.FILL_BARE, names.FILL, names.WAVE_FILL),
    )
    if first is None or gpu is None or gpu < 90 or fill is None or fill >= FULL:
        return ""
    return (
        f'"GPU {gpu:.0f} %" already shows at {_level(series, first)}, '
        f"where {_percent(fill)} of the compute units work."
    )


def _cores(summary: Summary, series: Series) -> str:
    point = recommended_point(summary, series)
    used, allowed = _value(point, names.CORES_USED), _value(point, names.CORES_ALLOWED)
    if allowed is None and names.CORES_ALLOWED in summary.metrics:
        allowed = finite(summary.metrics[names.CORES_ALLOWED].value)
    if point is None or used is None or not on_cpu(summary):
        return ""
    of = "" if allowed is None else f" of {format_number(allowed)}"
    return f"It keeps {cores_text(used)}{of} cores busy there."


def _without_curve(summary: Summary) -> str:
    measured = [point for point in summary.points if finite(point.throughput) is not None]
    points = [
        point for point in summary.points if point.backend not in SHARED
    ]  # the sum of several models is no point of one
    of_one_model = [point for point in measured if point.backend not in SHARED]
    best = max(
        of_one_model or measured,
        key=lambda point: point.throughput or 0.0,
    )
    assert best.throughput is not None
    rate = f"{throughput_text(best)} {item_unit(summary)}"
    p50 = best.metrics.get(names.LATENCY_P50)
    latency = (
        f", latency p50 {figure_text(p50, interval=False)}"
        if p50 is not None and p50.value is not None
        else ""
    )
    if len(points) == 1:
        return (
            f"{rate} at {point_name(summary, best)}{latency}. "
            "One point says nothing about saturation."
        )
    if len(of_one_model) == 1:
        return (
            f"Of {len(points)} points only {point_name(summary, best)} has figures: "
            f"{rate}{latency}. One point says nothing about saturation."
        )
    doubt = " The intervals overlap: none is proven best." if unproven(best, points) else ""
    return (
        f"The best of {len(points)} points is {point_name(summary, best)}: {rate}{latency}.{doubt}"
    )


def next_step(summary: Summary) -> str:
    """The advice that follows from the smallest point's waste, or from what was not measured."""
    if summary.axes is not None:
        return axes_words.next_step(summary.axes)
    plans = plan_words.plans_of(summary)
    if plans is not None and plan_words.held_at_best(summary, plans):
        return quieter(summary)
    if plans is not None:
        return plan_words.next_step(plans)
    series = best_series(summary)
    if series is None:
        levels = (
            "--concurrency 1..64"
            if any(point.mode for point in summary.points)
            else "--batch-sizes 1..1024"
        )
        return f"Scan several levels, such as {levels}, to see where the throughput levels off."
    largest = max(series.levels)
    parts = [_larger(series, largest)] if still_rising(series) else []
    parts += [_small_level(summary, series), _at_recommended(summary, series)]
    if _held_at_best(summary, series):
        parts = [quieter(summary), start_with(summary, series.key.get("backend", ""))]
    elif on_cpu(summary) or not any(point.verdict is not None for point in summary.points):
        parts.append(_quiet_first(summary))
        parts.append(start_with(summary, series.key.get("backend", "")))
    return " ".join(part for part in parts if part) or _unknown(summary, series)


def _quiet_first(summary: Summary) -> str:
    """Where other work left no point with a verdict, that is what to mend first."""
    any_verdict = any(point.verdict is not None for point in summary.points)
    return quieter(summary) if under_pressure(summary) and not any_verdict else ""


def _larger(series: Series, largest: float) -> str:
    option = {"batch_size": "--batch-sizes", "concurrency": "--concurrency"}.get(
        series.axis, "--ranks"
    )
    return (
        f"Scan beyond {level_name(series.axis, largest)}: {option} "
        f"{largest:.0f}..{8 * largest:.0f}."
    )


def _small_level(summary: Summary, series: Series) -> str:
    """What the smallest level leaves on the table, why, and where to go instead."""
    points = points_of(summary, series)
    if not points or points[0].throughput is None or series.recommended is None:
        return ""
    first, wasted = points[0], 1 - points[0].throughput / best_rate(series)
    point = recommended_point(summary, series)
    if wasted < 0.1 or point is first or (point is not None and unproven(point, (first,))):
        return ""
    text = f"At {_level(series, first)} you leave {_percent(wasted)} on the table"
    target = _target(summary, series)
    verdict = first.verdict
    if verdict is None or verdict.kind in (*NOT_KNOWN, "idle-waiting"):
        return f"{text}: use {target}." if target else f"{text}."
    why, advice = (
        clause_of(verdict, first.partition, device_word(summary)),
        limit_of(verdict, first.partition).advice,
    )
    return f"{text}: {why}. Try {advice}{f', or {target}' if target else ''}."


def _target(summary: Summary, series: Series) -> str:
    point = recommended_point(summary, series)
    if point is None:
        return ""
    for name, title in ((names.LATENCY_P99, "p99"), (names.LATENCY_P50, "p50")):
        figure = point.metrics.get(name)
        if figure is not None and figure.value is not None:
            return f"{_level(series, point)} ({title} {figure_text(figure, interval=False)})"
    return _level(series, point)


def _at_recommended(summary: Summary, series: Series) -> str:
    point = recommended_point(summary, series)
    verdict = None if point is None else point.verdict
    if point is None or verdict is None or verdict.kind == "idle-waiting":
        return ""
    if verdict.kind in NOT_KNOWN:
        return (
            ""
            if on_cpu(summary) or not verdict.evidence
            else f"At {_level(series, point)} {verdict.evidence.rstrip('.')}."
        )
    first = points_of(summary, series)[0]
    if point is first or (verdict.at_most or 0.0) < 1.1:
        return ""
    if first.verdict is not None and limit_of(first.verdict, first.partition) is limit_of(
        verdict, point.partition
    ):
        return ""
    gain = gain_text(verdict)
    evidence = verdict.evidence.rstrip(".")
    limit = limit_of(verdict, point.partition).label
    return f"At {_level(series, point)} the limit is {limit}: {evidence}; {gain}."


def _unknown(summary: Summary, series: Series) -> str:
    waiting = next(
        (
            point.verdict.text
            for point in summary.points
            if point.verdict is not None and point.verdict.kind == "idle-waiting"
        ),
        "",
    )
    if waiting:
        return waiting
    if under_pressure(summary):
        return quieter(summary)
    if any(point.verdict is not None for point in summary.points):
        return "Nothing stands out: the next gain lies in the model or in a faster device."
    if summary.run is not None and summary.run.asked.get("url"):
        return (
            "Why it is not faster can be measured where the server starts: "
            "profile it there, by --server-command."
        )
    profiled = {layer for row in summary.passes for layer in row.layers}
    best = series.key.get("backend", "")
    measured = [best] if best in PROFILED else [point.backend for point in summary.points]
    backends = dict.fromkeys(backend for backend in measured if backend in PROFILED)
    layers = ",".join(backend for backend in backends or ("torch",) if backend not in profiled)
    if not layers or "rocprofv3" in profiled:
        return (
            "Why it is not faster cannot be told from these passes: "
            "`profharness hotspots` lists where the time goes."
        )
    return (
        "Why it is not faster was not measured: add --profile "
        f"{layers}{'' if on_cpu(summary) else ways.OR_ROCPROF}."
    )


def _level(series: Series, point: PointSummary) -> str:
    return level_name(series.axis, getattr(point, series.axis))


def _percent(share: float) -> str:
    return format_share(share) if share < 0.01 else f"{100 * share:.0f} %"


def _value(point: PointSummary | None, *choices: str) -> float | None:
    """The first of the named metrics that the point has."""
    figures = [point.metrics.get(name) for name in choices] if point is not None else []
    return next(
        (
            value
            for figure in figures
            if figure is not None and (value := finite(figure.value)) is not None
        ),
        None,
    )
