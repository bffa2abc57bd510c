"""One point of a run over all of its passes: throughput and latency from the bare pass, device
figures from the traced one.

What needs two passes (overhead, busy and fill against the bare trial time) is joined by point,
never by time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import msgspec

from profharness.analysis.load import run_levels
from profharness.analysis.load.findings import level_findings
from profharness.analysis.load.run_levels import LoadedLevel
from profharness.analysis.point_errors import figure_ends, sem_of
from profharness.analysis.power.run_telemetry import figures_in
from profharness.analysis.records import Estimate, Figure, PointSummary
from profharness.analysis.run.executions import of_executions, of_settings
from profharness.analysis.run.overhead import layer_overhead
from profharness.analysis.run.processes import classic, process_figures, window_of_processes
from profharness.analysis.run.provider_findings import SUPPORTED, recompiled
from profharness.analysis.run.recorded import as_recorded
from profharness.analysis.run.trial_findings import trial_findings
from profharness.analysis.run.trials import BARE, PointTrials
from profharness.analysis.run.view import PointResult, RunView
from profharness.analysis.run.work import ceilings_of, number, work_figures
from profharness.findings import Finding, finding
from profharness.rundir.levels import SHARED
from profharness.rundir.manifest import Manifest, PassRecord, PointRecord
from profharness.stats.package_figures import power_figures
from profharness.stats.throughput import TrialStats, widened
from profharness.units import format_ns, several

BACKENDS = frozenset({"torch", "onnxruntime", "tensorflow"})
UNTIMED_LAYERS = frozenset({"telemetry"})
NOT_COMPILED = "failed-to-compile"
_MS = 1e6


def summarise(view: RunView, point: str, device: PointSummary | None) -> PointResult:
    """Join everything about one point. `device` holds the figures of the pass that speaks for
    kernels, if any.
    """
    records, stats = view.records(point), view.stats(point)
    record = records[0] if records else None
    base = device if device is not None else PointSummary(point=point)
    summary = base if record is None else as_recorded(base, record)
    metrics = dict(base.metrics)
    if record is not None:
        metrics |= _record_figures(record)
    if (
        level := view.levels.get((view.reference, point))
    ) is not None and level.figures.requests + level.figures.failed:
        result = _of_level(view, summary, level, metrics, records)
        return result if view.rated is None else of_settings(view, result)
    if view.rated is not None and (record is None or not record.backend or stats is None):
        return of_executions(view, summary, metrics)
    if stats is None:
        return PointResult(
            msgspec.structs.replace(summary, metrics=metrics), tuple(_record_findings(records))
        )
    trials = view.trials[(view.reference, point)]
    backend = record.backend if record is not None else ""
    metrics |= _timing_figures(view, trials, stats, backend)
    metrics |= _bare_figures(view, point, base.metrics, stats)
    metrics |= figures_in(view.telemetry, trials.span, f"{view.reference} pass, telemetry")
    metrics |= _work_figures(view, record, stats, metrics)
    metrics |= power_figures(
        view.telemetry,
        view.packages,
        trials.span,
        int(trials.items.sum()),
        f"{view.reference} pass, telemetry",
    )
    summary = msgspec.structs.replace(
        summary,
        trials=stats.trials,
        throughput=_throughput(trials, stats),
        throughput_sem=_sem(metrics, stats.sem if trials.processes == 1 else None),
        drift=abs(view.drifts.get(backend, view.drifts[""]).relative),
        classic=classic(trials, _model(view.manifest)),
        latency_ms=stats.latency_mean_ns / _MS,
        consistency=stats.consistency if trials.processes == 1 else None,
        overhead=overheads(view, [point], backend),
        metrics=metrics,
        trials_ms=tuple((trials.durations_ns / _MS).tolist()),
    )
    findings = trial_findings(trials.durations_ns, stats, point)
    if any(record.device == "cpu" for record in records):
        # a CPU runs in the timed thread: there is no device to wait for, fast trials are the
        # machine's doing
        findings = tuple(item for item in findings if item.id != "missing-sync")
    result = PointResult(summary, (*findings, *_record_findings(records)))
    return result if view.rated is None else of_settings(view, result)


def _of_level(
    view: RunView,
    summary: PointSummary,
    level: LoadedLevel,
    metrics: dict[str, Figure],
    records: list[PointRecord],
) -> PointResult:
    """A point of a served scan: its load stands where a direct scan has trials."""
    figures, point = level.figures, summary.point
    origin = f"{view.reference} pass, {figures.requests} requests"
    drift = view.drifts.get(summary.backend, view.drifts[""])
    metrics = {
        name: figure
        for name, figure in metrics.items()
        if name not in ("warmup_trials", "warmup_time")
    }
    metrics |= run_levels.level_metrics(level, rate_unit(view), origin, drift)
    metrics |= figures_in(view.telemetry, level.span, f"{view.reference} pass, telemetry")
    metrics |= {"energy_per_item": Figure(value=None, unit="J/item", needs="power")}
    metrics |= power_figures(
        view.telemetry,
        view.packages,
        level.span,
        figures.items,
        f"{view.reference} pass, telemetry",
    )
    latency = level.latency
    largest, instances = run_levels.server_limits(view.manifest, level.level)
    summary = msgspec.structs.replace(
        summary,
        mode=level.level.mode,
        rate=level.level.rate,
        requests=figures.requests,
        failed=figures.failed,
        trials=0,
        warmup_trials=0,
        throughput=figures.throughput.value,
        throughput_sem=_sem(metrics, figures.throughput_sem),
        drift=abs(drift.relative),
        latency_ms=None
        if latency is None or latency.mean.value is None
        else latency.mean.value / _MS,
        overhead=overheads(view, [point], summary.backend),
        metrics=metrics,
    )
    copies = instances * max(
        1, len(set(level.level.models))
    )  # of several models at once each has its own
    findings = level_findings(figures, point, max_batch_size=largest, instances=copies)
    return PointResult(summary, (*findings, *_record_findings(records)))


def _model(manifest: Manifest) -> str:
    return str(manifest.scan.settings.get("model", "")) if manifest.scan is not None else ""


def _origin(view: RunView, stats: TrialStats) -> str:
    return (
        f"{view.reference or 'loose'} pass, {stats.trials} "
        f"{'trial' if stats.trials == 1 else 'trials'}"
    )


def rate_unit(view: RunView) -> str:
    """`jets/s`, by what the scan's items are called."""
    return f"{several(view.manifest.scan.item if view.manifest.scan is not None else 'item')}/s"


def _throughput(trials: PointTrials, stats: TrialStats) -> float:
    """Mean over trials of items/t; of several processes the items of their common window over its
    length.
    """
    common = window_of_processes(trials)
    return stats.throughput if common is None else common.throughput


def _sem(metrics: Mapping[str, Figure], of_trials: float | None) -> float | None:
    """That of the interval shown, which holds the drift of repeated points, and at least that of
    the trials or requests alone.
    """
    known = (sem_of(figure_ends(metrics["throughput"])), of_trials)
    return max((sem for sem in known if sem is not None), default=None)


def _timing_figures(
    view: RunView, trials: PointTrials, stats: TrialStats, backend: str
) -> dict[str, Figure]:
    origin = _origin(view, stats)
    note = "" if view.reference == BARE else "no bare pass: slowed by the profiler"
    unit = rate_unit(view)
    drift = view.drifts.get(backend, view.drifts[""])

    def timed(
        value: float | None, ends: tuple[float | None, float | None], needs: str = ""
    ) -> Figure:
        """A time with its interval, widened by the drift as throughput is."""
        margin = abs(drift.relative) * (value or 0.0)
        first, last = (
            None if end is None else max(end + sign * margin, 0.0)
            for end, sign in zip(ends, (-1, 1), strict=True)
        )
        return Figure(
            value=_ms(value),
            unit="ms",
            low=_ms(first),
            high=_ms(last),
            source=origin,
            note=note if not needs else "",
            needs=needs,
        )

    figures = {
        **_rates(trials, stats, unit, origin, note, widened(stats, drift)),
        "latency_mean": timed(stats.latency_mean_ns, (stats.latency_low_ns, stats.latency_high_ns)),
        "latency_std": Figure(
            value=_ms(stats.latency_std_ns),
            unit="ms",
            source=origin,
            needs="" if stats.trials > 1 else "more trials",
        ),
    }
    for percentile in stats.percentiles:
        name = f"latency_p{percentile.q:g}".replace(".", "_")
        figures[name] = timed(
            percentile.value_ns, (percentile.low_ns, percentile.high_ns), percentile.needs
        )
    if trials.processes > 1:
        figures |= process_figures(trials, origin, unit, drift)
    return figures


def _rates(
    trials: PointTrials,
    stats: TrialStats,
    unit: str,
    origin: str,
    note: str,
    ends: tuple[float | None, float | None],
) -> dict[str, Figure]:
    """Throughput by its three definitions; `ends` are those of the first one's interval."""
    low, high = ends
    mean = _throughput(trials, stats)
    return {
        "throughput": Figure(value=mean, unit=unit, low=low, high=high, source=origin, note=note),
        "throughput_median": Figure(
            value=stats.throughput_median, unit=unit, source=origin, note=note
        ),
        "throughput_of_mean_time": Figure(
            value=stats.rate_of_mean,
            unit=unit,
            source=origin,
            note="all items over the summed time",
        ),
    }


def _ms(value_ns: float | None) -> float | None:
    return None if value_ns is None else value_ns / _MS


def _bare_figures(
    view: RunView, point: str, traced: dict[str, Figure], stats: TrialStats
) -> dict[str, Figure]:
    """Device time per traced trial over the bare trial time (docs/metrics.md#traced-and-bare);
    needs trials of the point in both passes.
    """
    other = (
        None
        if view.chosen in (None, view.reference) or view.reference != BARE
        else view.stats(point, view.chosen)
    )
    figures: dict[str, Figure] = {}
    for name in ("busy", "fill"):
        figure = traced.get(name)
        if other is None or figure is None or "trial" not in figure.source:
            continue
        if not figure.is_known:
            continue
        stretch = other.latency_mean_ns / stats.latency_mean_ns
        low, high = (None if end is None else end * stretch for end in (figure.low, figure.high))
        figures[f"{name}_bare"] = Figure(
            value=None if figure.value is None else figure.value * stretch,
            unit=figure.unit,
            low=low,
            high=high,
            coverage=figure.coverage,
            coverage_of=figure.coverage_of,
            source=f"{figure.source}, over the trial time of the {view.reference} pass",
        )
    return figures


def _work_figures(
    view: RunView, record: PointRecord | None, stats: TrialStats, so_far: dict[str, Figure]
) -> dict[str, Figure]:
    """FLOPs and bytes against the ceilings of the point's device; energy needs power, which
    `power_figures` looks for.
    """
    figures = {"energy_per_item": Figure(value=None, unit="J/item", needs="power")}
    if record is None:
        return figures
    roofs = ceilings_of(view.manifest, record, view.yardstick)
    return figures | work_figures(record, stats, _origin(view, stats), roofs, so_far)


def _record_figures(record: PointRecord) -> dict[str, Figure]:
    origin = f"{record.pass_name} pass"
    figures = {
        "warmup_trials": Figure(
            value=record.warmup_trials,
            unit="trials",
            source=origin,
            note=record.notes.get("warmup", ""),
        )
    }
    if record.warmup_ns is not None:
        figures["warmup_time"] = Figure(value=record.warmup_ns, unit="ns", source=origin)
    if record.compile_ns is not None:
        figures["compile_time"] = Figure(value=record.compile_ns, unit="ns", source=origin)
    share = number(record.notes.get(SUPPORTED))
    if share is not None:
        figures[SUPPORTED] = Figure(value=share, unit="1", source=origin)
    peak = number(record.notes.get("peak_memory_bytes"))
    if peak is not None:
        figures["device_memory_peak"] = Figure(
            value=peak, unit="B", source=origin, note="reserved by the framework"
        )
    return figures


def _record_findings(records: list[PointRecord]) -> Iterator[Finding]:
    """Cold caches and failed compilation, once per point: of the first pass that says so; compiling
    in what was timed, pass by pass.
    """
    for record in records:
        yield from recompiled(record)
    cold = next((record for record in records if record.cold_cache), None)
    if cold is not None:
        took = "" if cold.compile_ns is None else f" (compiling took {format_ns(cold.compile_ns)})"
        yield finding(
            "cold-cache",
            f"compile caches were cold in the {cold.pass_name} pass{took}",
            point=cold.id,
        )
    eager = next((record for record in records if NOT_COMPILED in record.notes), None)
    if eager is not None:
        yield finding(
            "failed-to-compile",
            f"torch.compile fell back to eager: {eager.notes[NOT_COMPILED]}",
            point=eager.id,
        )


def overheads(
    view: RunView, points: list[str], backend: str = "", only: PassRecord | None = None
) -> dict[str, Estimate]:
    """Overhead per layer over the given points; passes with several layers give each the cost of
    all together.

    A framework's own layer is not counted where another backend ran. Empty without a bare pass.
    """
    by_layer: dict[str, Estimate] = {}
    if view.reference != BARE:
        return by_layer
    for record in view.manifest.passes if only is None else (only,):
        pairs = {
            point: (bare, under)
            for point in points
            if (bare := view.rates(BARE, point)) is not None
            and (under := view.rates(record.name, point)) is not None
        }
        shared = list(pairs)
        layers = [
            layer
            for layer in record.layers
            if layer not in UNTIMED_LAYERS
            and (
                layer not in BACKENDS
                or backend in ("", layer, *SHARED)
                or backend.startswith(f"{layer}@")
            )
        ]
        if record.name == BARE or not shared or not layers:
            continue
        first, second = ([pair[side] for pair in pairs.values()] for side in (0, 1))
        drift = view.drifts.get(backend, view.drifts[""])
        estimate = layer_overhead(first, second, drift, f"{record.name}/{'/'.join(shared)}")
        by_layer |= {layer: estimate for layer in layers if layer not in by_layer}
    return by_layer
