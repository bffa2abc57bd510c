"""A whole run as one Summary: every point over all passes, curves, overheads, findings, telemetry,
provenance.

The pass that speaks for kernels gives device figures (`passes.choose`), the bare pass throughput
and latency; nothing is summed over passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import msgspec

from profharness.analysis.compare.kernel_match import kernels_differ
from profharness.analysis.kernels.facts import Yardstick
from profharness.analysis.load import run_levels
from profharness.analysis.load.ragged import of_levels, ragged_findings
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.power import run_telemetry
from profharness.analysis.power.contradictions import idle_contradicted
from profharness.analysis.power.device_counters import for_verdict
from profharness.analysis.power.module_map import module_map
from profharness.analysis.power.nodes import findings as node_findings
from profharness.analysis.power.nodes import nodes
from profharness.analysis.power.records import Nodes
from profharness.analysis.power.run_energy import step_energy
from profharness.analysis.records import Figure, PassRow, PointSummary, Summary
from profharness.analysis.run import kernel_pass as passes
from profharness.analysis.run import points as run_points
from profharness.analysis.run.captures import capture_findings
from profharness.analysis.run.ceilings import against_points, ceilings_not_believed
from profharness.analysis.run.checks import mask_findings, telemetry_findings
from profharness.analysis.run.executions import axes_fields, in_order_of_axes
from profharness.analysis.run.growing import growing_steps
from profharness.analysis.run.passes import (
    allowed_cores,
    drifts,
    of_all_passes,
    pass_rows,
    repeats,
    run_info,
)
from profharness.analysis.run.provider_findings import provider_findings
from profharness.analysis.run.series import eased_by_pressure, run_series
from profharness.analysis.run.source_rows import source_rows
from profharness.analysis.run.step_cores import step_cores
from profharness.analysis.run.steps import step_figures
from profharness.analysis.run.trial_findings import drift_finding
from profharness.analysis.run.trials import BARE, Trials, base_of, collect, reference_pass
from profharness.analysis.run.view import PointResult, RunView
from profharness.analysis.run.work import ceilings_of_points
from profharness.analysis.summarise import problem_row, summarise_trace
from profharness.analysis.verdict.above_peak import above_peak
from profharness.analysis.verdict.gpu_times import of_releases
from profharness.analysis.verdict.telemetry import telemetry_verdict, units_counted
from profharness.analysis.verdict.window import Judgement, judge
from profharness.findings import Finding, Grouped, about, by_point, finding
from profharness.node.ceilings import Calibration
from profharness.rundir.levels import SHARED
from profharness.rundir.manifest import Manifest, NodeRecord
from profharness.stats.energy import OF_COMMAND, OF_SCAN
from profharness.stats.intervals import window
from profharness.stats.package_figures import power_figures
from profharness.stats.packages import calibrated, package_findings, packages
from profharness.stats.streams import Stream, idle_window, streams
from profharness.trace.model import Trace

HIGH_OVERHEAD = 0.05
_UNSLOWED = "a trace without counters or logs, which change the times of kernels"


def summarise_run(
    manifest: Manifest,
    trace: Trace,
    source: str,
    calibrations: tuple[Calibration, ...] = (),
    operator_input: OperatorInput = NO_INPUT,
) -> Summary:
    """The summary of a run from its manifest and its merged, aligned trace; `source` names the run.

    Works on what a killed run left: points without trials keep their state, missing passes leave
    figures out. `calibrations` are ceilings measured on its devices.
    """
    slowing = _perturbing(manifest)
    chosen, records = passes.choose(trace, perturbing=slowing, order=manifest.kernel_order())
    cores, node = allowed_cores(manifest), manifest.nodes[0] if manifest.nodes else None
    versions, counted = node.versions if node else None, trace if len(trace.counters) else None
    view = _view(manifest, trace, chosen)
    yardstick = Yardstick(calibrations, versions, counted, operator_input, telemetry=view.telemetry)
    device = summarise_trace(records, source, allowed_cores=cores, yardstick=yardstick)
    view = _against(view, yardstick, trace, node)
    by_id, named = {each.point: each for each in device.points}, _points(manifest, view.trials)
    results = [run_points.summarise(view, point, by_id.get(point)) for point in named]
    rows, figures = pass_rows(view, trace), _run_figures(view, trace)
    cores_of_steps = step_cores(manifest, trace, view.telemetry)
    of_nodes = nodes(manifest, trace, view.telemetry, view.packages)
    of_telemetry = _of_telemetry(view, trace, figures, of_nodes)
    measured = _measured_findings(view, trace, device, results)
    eased = eased_by_pressure(measured, [each.summary for each in results], of_telemetry)
    of = by_point(findings := _unique((*eased, *_overhead_findings(rows), *of_telemetry)))
    points = _in_order(tuple(_judged(each.summary, of, cores) for each in results), view)
    metrics = {
        **device.metrics,
        **ceilings_of_points(points[0].metrics if points else None, device.metrics),
        **figures,
        **step_figures(manifest, trace),
        **cores_of_steps.shown,
        **step_energy(view, trace),
    }
    verdict_figures = for_verdict({**metrics, **cores_of_steps.verdict}, trace)
    judged = _judged_run(device, verdict_figures, findings, slowed=chosen in slowing)
    on_curves = tuple(point for point in points if point.backend not in SHARED)
    return msgspec.structs.replace(
        device,
        points=points,
        metrics=metrics,
        findings=findings,
        problems=tuple(problem_row(problem) for problem in trace.problems),
        run=run_info(manifest, source),
        passes=rows,
        series=run_series(on_curves, findings, source, run_levels.clients_per_job(manifest)),
        sources=source_rows(trace),
        partition=judged.partition,
        verdict=judged.verdict,
        verdict_needs=judged.needs,
        telemetry=run_telemetry.rows(trace, records),
        nodes=of_nodes,
        modules=module_map(view.telemetry, view.packages),
        **of_levels(points, manifest.points, view.levels, view.reference, view.drifts),
        **(of_all_passes(trace, node, device.memory, on_curves) | axes_fields(view, points)),
    )


def _of_telemetry(
    view: RunView, trace: Trace, figures: Mapping[str, Figure], of_nodes: Nodes | None
) -> tuple[Finding, ...]:
    return (
        *telemetry_findings(trace, figures),
        *idle_contradicted(trace, view.telemetry),
        *node_findings(of_nodes),
        *package_findings(view.packages),
    )


def _judged_run(
    device: Summary, metrics: Mapping[str, Figure], findings: Sequence[Finding], *, slowed: bool
) -> Judgement:
    """By the partition of the device's time; by telemetry alone where there is no trace of the
    device, but its compute units were counted. None of `slowed` times, which a pass of counters,
    samples or logs has changed.
    """
    if slowed and device.partition is not None:
        return Judgement(None, _UNSLOWED, None)
    if device.partition is None and units_counted(metrics):
        return telemetry_verdict(metrics)
    return judge(device.partition, metrics, findings, device.grounds)


def _measured_findings(
    view: RunView, trace: Trace, device: Summary, results: Sequence[PointResult]
) -> tuple[Finding, ...]:
    """What the manifest, the traced pass and the points say, each once."""
    # a point's share of a peak is judged when it stands with its device's figures; all steps tell
    # more than those that a trace holds
    of_device = (item for item in device.findings if item.id != "above-peak" or item.point is None)
    of_device = (item for item in of_device if item.id != "steps-grow")
    of_records = (*provider_findings(records := view.manifest.points), *ragged_findings(records))
    if any(item.id == "nodes-on-cpu" for item in of_records):  # a profile shows fewer of them
        of_device = (item for item in of_device if item.id != "nodes-on-cpu")
    return _unique(
        (
            *view.manifest.findings,
            *mask_findings(view.manifest),
            *capture_findings(view.manifest, trace),
            *growing_steps(view.manifest, trace),
            *ceilings_not_believed(view),
            *of_records,
            *of_releases(trace, (node.versions.get("rocm", "") for node in view.manifest.nodes)),
            *of_device,
            *(item for result in results for item in result.findings),
            *(item for drift in view.repeats for item in drift_finding(drift)),
            *kernels_differ(trace, view.trials),
            *_beyond_bare([result.summary for result in results]),
            *(
                item
                for result in results
                if result.summary.state == "ok"
                for item in above_peak(result.summary.metrics, result.summary.point)
            ),
        )
    )


def _perturbing(manifest: Manifest) -> frozenset[str]:
    """Names of the passes whose times are never used: counters and logs."""
    return frozenset(record.name for record in manifest.passes if record.perturbing)


def _view(manifest: Manifest, trace: Trace, chosen: str | None) -> RunView:
    items = {
        record.id: record.items_per_trial for record in manifest.points if record.items_per_trial
    }
    # no time of a pass that perturbs the workload is ever used
    trials = {
        key: point_trials
        for key, point_trials in collect(trace, items).items()
        if key[0] not in _perturbing(manifest)
    }
    levels = {
        key: level
        for key, level in run_levels.collect(trace, manifest).items()
        if key[0] not in _perturbing(manifest)
    }
    reference = reference_pass(
        {**trials, **levels}, tuple(record.name for record in manifest.passes)
    )
    backends = {record.id: record.backend for record in manifest.points}
    every = _concerned(manifest, streams(trace))
    repeated = repeats(manifest, trials, levels, reference)
    return RunView(
        manifest,
        trials,
        reference,
        chosen,
        every,
        drifts(repeated, backends),
        packages(every, idle_window(trace)),
        repeats=repeated,
        levels=levels,
    )


def _against(view: RunView, yardstick: Yardstick, trace: Trace, node: NodeRecord | None) -> RunView:
    """The view with what the run is measured against, the powers of its packages included."""
    cpu_model = node.cpu_model if node else ""
    watts = calibrated(view.packages, trace, yardstick.calibrations, yardstick.software, cpu_model)
    return against_points(replace(view, yardstick=yardstick, packages=watts))


def _concerned(manifest: Manifest, every: tuple[Stream, ...]) -> tuple[Stream, ...]:
    """The telemetry that concerns the run. Where every point ran on the node's CPU, its
    accelerators are left out: what they do and draw is the work of other programs.

    Where the server was running before the run began, the figures of the run's own processes are
    left out: there were none to follow.
    """
    if manifest.scan is not None and manifest.scan.settings.get("url"):
        every = tuple(stream for stream in every if not stream.metric.endswith("_tree"))
    on_cpu = bool(manifest.points) and all(record.device == "cpu" for record in manifest.points)
    return tuple(stream for stream in every if not stream.device) if on_cpu else every


def _points(manifest: Manifest, trials: Trials) -> list[str]:
    """Points in the order of the manifest, then those that only the trace knows; repeats belong to
    their point.
    """
    return list(
        dict.fromkeys(
            [*(record.id for record in manifest.points), *(base_of(key) for _, key in trials)]
        )
    )


def _in_order(points: tuple[PointSummary, ...], view: RunView) -> tuple[PointSummary, ...]:
    """Levels of load from small to large, closed loops first; several axes by their values."""
    if view.rated is not None:
        return in_order_of_axes(points, view.rated.axes)
    if not all(point.mode for point in points):
        return points
    backends = list(dict.fromkeys(point.backend for point in points))
    return tuple(
        sorted(
            points,
            key=lambda point: (
                backends.index(point.backend),
                point.batch_size or 0,
                point.rate or 0.0,
                point.concurrency or 0,
            ),
        )
    )


def _unique(findings: tuple[Finding, ...]) -> tuple[Finding, ...]:
    return tuple({(item.id, item.point, item.message): item for item in findings}.values())


def _judged(point: PointSummary, findings: Grouped, cores: float | None) -> PointSummary:
    """The verdict once the figures of all passes stand together; none for a point that failed."""
    metrics = dict(point.metrics)
    known = metrics.get("cores_allowed")
    if cores is not None and (known is None or known.value is None):
        metrics["cores_allowed"] = Figure(value=cores, unit="cores", source="the probe")
    of_point = about(point.point, findings)
    judged = (
        judge(point.partition, metrics, of_point, point.grounds)
        if point.state == "ok"
        else Judgement(
            None, f"the point to be measured: its state is {point.state}", point.partition
        )
    )
    return msgspec.structs.replace(
        point,
        metrics=metrics,
        partition=judged.partition,
        verdict=judged.verdict,
        verdict_needs=judged.needs,
    )


def _overhead_findings(rows: tuple[PassRow, ...]) -> tuple[Finding, ...]:
    """Above 5 %, unless the interval leaves that open."""
    findings = []
    for row in rows:
        for layer, estimate in row.overhead.items():
            certain = estimate.value if estimate.low is None else estimate.low
            if estimate.value is not None and certain is not None and certain > HIGH_OVERHEAD:
                findings.append(
                    finding(
                        "profiler-overhead",
                        f"{layer} slowed the {row.name} pass by {100 * estimate.value:.1f} %",
                        layer=layer,
                        overhead_share=estimate.value,
                    )
                )
    return tuple(findings)


def _beyond_bare(points: list[PointSummary]) -> tuple[Finding, ...]:
    """More kernel time in a traced trial than a bare trial lasts: the two passes cannot have run
    the same.
    """
    findings = []
    for point in points:
        busy = point.metrics.get("busy_bare")
        if busy is not None and busy.value is not None and busy.value > 1:
            findings.append(
                finding(
                    "kernels-differ",
                    f"kernels of a traced trial take {busy.value:.2f} times a bare trial",
                    point=point.point,
                    busy_bare=float(busy.value),
                )
            )
    return tuple(findings)


def _run_figures(view: RunView, trace: Trace) -> dict[str, Figure]:
    """Telemetry over the pass that throughput comes from, or over the whole run where no trials
    show. Hardware counters of the devices come from the pass that has them.
    """
    if not view.telemetry:
        return {}
    spans = _spans(view, view.reference)
    if spans:
        when = window(min(first for first, _ in spans), max(last for _, last in spans))
        where = f"{view.reference} pass, telemetry"
    else:
        when = window(*_active(view, trace))
        where = "the whole run, telemetry"
    longer = OF_COMMAND if view.manifest.kind == "command" else OF_SCAN
    return {
        **run_telemetry.counted_figures(
            view.manifest, view.telemetry, lambda name: _spans(view, name)
        ),
        **run_telemetry.figures_in(view.telemetry, when, where),
        **power_figures(view.telemetry, view.packages, when, None, where, longer),
    }


def _spans(view: RunView, pass_name: str) -> list[tuple[int, int]]:
    """From when to when each point of a pass was measured."""
    spans = [
        (int(trials.starts_ns[0]), int((trials.starts_ns + trials.durations_ns).max()))
        for (name, _), trials in view.trials.items()
        if name == pass_name
    ]
    spans += [
        (level.level.window_start_ns, level.level.window_end_ns)
        for (name, _), level in view.levels.items()
        if name == pass_name
    ]
    return spans


def _active(view: RunView, trace: Trace) -> tuple[int, int]:
    """The time of the passes as the manifest has it, else of all samples."""
    pass_times = [
        (record.start_boot_ns, record.end_boot_ns)
        for record in view.manifest.passes
        if record.start_boot_ns is not None and record.end_boot_ns is not None
    ]
    bare = view.manifest.pass_named(BARE)
    if bare is not None and bare.start_boot_ns is not None and bare.end_boot_ns is not None:
        return bare.start_boot_ns, bare.end_boot_ns
    if pass_times:
        return min(start for start, _ in pass_times), max(end for _, end in pass_times)
    return int(trace.samples.at_ns.min()), int(trace.samples.until_ns.max()) + 1
