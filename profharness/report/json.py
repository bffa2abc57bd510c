"""`run --json`, `metrics --json` and `summary.json`, from a `Summary`.

Fields that do not apply to a point are left out; a figure always carries value, unit, low, high and
from, null where there is none. Numbers that are not finite become null.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.axes.records import AxesScan, Prediction
from profharness.analysis.critical.records import NO_CHANGE, CriticalPath, Forecast
from profharness.analysis.curves.plans import compare_plans
from profharness.analysis.curves.records import Series
from profharness.analysis.records import (
    SCHEMA,
    Estimate,
    Figure,
    IdleCauses,
    Partition,
    PointSummary,
    StepSummary,
    Summary,
)
from profharness.analysis.verdict.evidence import CAUSES
from profharness.analysis.verdict.records import KernelParts, Verdict
from profharness.findings import Finding
from profharness.report.table import as_objects
from profharness.report.tables.comparison import breach_table
from profharness.report.tables.results import point_results
from profharness.report.text.findings import all_findings
from profharness.rundir.shown.screen import encoded

if TYPE_CHECKING:
    from profharness.analysis.compare.gate import Breach
    from profharness.analysis.compare.records import Comparison


def run_json(summary: Summary) -> bytes:
    """`run --json`: one object per point over all passes, then the verdict on the whole window,
    findings and problems. Ends with a newline.
    """
    return _document(
        {
            "schema": SCHEMA,
            "run": summary.run.path if summary.run is not None else summary.source,
            "points": [
                {**_always(point), **row, **judged(point)}
                for row, point in zip(
                    as_objects(point_results(summary)), summary.points, strict=True
                )
            ],
            **judged(summary),
            "findings": [_finding(finding) for finding in all_findings(summary)],
            "problems": summary.problems,
            **({"sharing": summary.sharing} if summary.sharing else {}),
            **({"ragged": summary.ragged} if summary.ragged else {}),
            **({"axes": axes_object(summary.axes)} if summary.axes is not None else {}),
            **({"plans": plans} if (plans := compare_plans(summary.points)) is not None else {}),
            **(
                {"forecasts": _forecasts(summary.critical_path)}
                if summary.critical_path is not None
                else {}
            ),
        }
    )


def _always(point: PointSummary) -> dict[str, object]:
    """What a point of a scan of a command always has, also where it failed."""
    return {"point": point.point, "parameters": {}, "throughput": None} if point.parameters else {}


def _forecasts(path: CriticalPath) -> dict[str, object]:
    """What changes would be worth, process by process, and batch sizes, without the paths."""
    return {
        "processes": [
            {
                "process": process.process,
                "point": process.point,
                "rank": process.rank,
                "what_if": [told(made) for made in process.what_if[1:] if made.touched],
            }
            for process in path.processes
        ],
        "batches": path.batches,
        "refused": path.refused,
    }


def told(made: Forecast) -> Forecast:
    """A forecast without its value, of which no interval is known: its bound stays."""
    if made.change == NO_CHANGE:
        return made
    return msgspec.structs.replace(made, forecast_ns=None)


def told_path(path: CriticalPath | None) -> CriticalPath | None:
    """A path whose forecasts are as reports show them."""
    if path is None:
        return None
    processes = tuple(
        msgspec.structs.replace(one, what_if=tuple(map(told, one.what_if)))
        for one in path.processes
    )
    return msgspec.structs.replace(path, processes=processes)


def metrics_json(summary: Summary, beside: Mapping[str, object] = {}) -> bytes:
    """`metrics FILE|RUN --json`: whole-file counts, figures per device, point and window; `beside`
    stands behind them. Ends with a newline.
    """
    return _document({**metrics_object(summary), **beside})


def metrics_object(summary: Summary) -> dict[str, object]:
    """The object of `metrics --json`."""
    return {
        "schema": SCHEMA,
        "source": summary.source,
        "trace": summary.trace,
        "devices": summary.devices,
        "points": [
            {
                "point": point.point,
                "metrics": {name: _point_figure(figure) for name, figure in point.metrics.items()},
                **judged(point),
            }
            for point in summary.points
        ],
        "metrics": {
            name: {**_figure(figure), "needs": figure.needs}
            for name, figure in summary.metrics.items()
        },
        **judged(summary),
        "findings": [_finding(finding) for finding in all_findings(summary)],
        "problems": summary.problems,
        **({"communication": summary.communication} if summary.communication is not None else {}),
        **(
            {"operator_share": summary.operator_share} if summary.operator_share is not None else {}
        ),
        **({"memory": summary.memory} if summary.memory is not None else {}),
        **({"copies_by": summary.copies_by} if summary.copies_by else {}),
        **({"log": summary.log} if summary.log is not None else {}),
        **({"host_lines": summary.host_lines} if summary.host_lines is not None else {}),
        **({"counters": summary.counters} if summary.counters else {}),
        **({"nodes": summary.nodes} if summary.nodes is not None else {}),
        **({"modules": summary.modules} if summary.modules else {}),
        **({"queues": summary.queues} if summary.queues else {}),
        **({"host": summary.host} if summary.host is not None else {}),
        **({"batches": summary.batches} if summary.batches is not None else {}),
        **({"steps_from": summary.steps_from} if summary.steps_from else {}),
        **({"steps": [_step(step) for step in summary.steps]} if summary.steps else {}),
    }


def summary_json(summary: Summary) -> bytes:
    """`summary.json`: all of the summary, with verdicts and partitions as in `metrics --json`. Ends
    with a newline.
    """
    critical = told_path(summary.critical_path)
    document = msgspec.to_builtins(
        msgspec.structs.replace(summary, pictures=None, critical_path=critical)
    )
    del document["device_names"]  # a run's devices stand in its manifest
    del document["pictures"]
    if summary.host_lines is None:
        del document["host_lines"]
    if summary.nodes is None:
        del document["nodes"]
    if not summary.modules:
        del document["modules"]
    _show_judged(document, summary)
    for shown, point in zip(document["points"], summary.points, strict=True):
        _show_judged(shown, point)
    for shown, step in zip(document["steps"], summary.steps, strict=True):
        shown["partition"] = partition_object(step.partition)
    return msgspec.json.format(encoded(document), indent=1) + b"\n"


def _show_judged(shown: dict[str, object], record: Summary | PointSummary) -> None:
    """Put the forms that JSON has into a record that was turned into an object."""
    del shown["grounds"]
    shown.update(judged(record))


def judged(record: Summary | PointSummary) -> dict[str, object]:
    """The verdict of a window or point, what it needs where there is none, its partition, and how
    much of its matrix work is known.
    """
    return {
        "verdict": verdict_object(record.verdict),
        "verdict_needs": record.verdict_needs or None,
        "partition": partition_object(record.partition),
        "work": record.work,
    }


def verdict_object(verdict: Verdict | None) -> dict[str, object] | None:
    """A verdict as JSON shows it."""
    if verdict is None:
        return None
    return {"kind": verdict.kind, "text": verdict.text, "at_most": verdict.at_most}


def partition_object(partition: Partition | None) -> dict[str, int] | None:
    """A partition as JSON shows it: `window_ns`, and disjoint parts in ns that sum to it."""
    if partition is None:
        return None
    kernels = partition.kernel_parts or KernelParts(unknown_work_ns=partition.compute_ns)
    causes = partition.idle_causes or IdleCauses(no_host_record_ns=partition.idle_ns)
    return {
        "window_ns": partition.window_ns,
        **{name: getattr(kernels, name) for name in KernelParts.__struct_fields__},
        "exposed_communication_ns": partition.exposed_communication_ns,
        "exposed_copy_ns": partition.exposed_copy_ns,
        **{f"idle_{name}": getattr(causes, name) for name in CAUSES},
        "idle_or_not_recorded_ns": partition.idle_or_not_recorded_ns,
    }


def _step(step: StepSummary) -> dict[str, object]:
    return {
        "step": step.step,
        "number": step.number,
        "start_ns": step.start_ns,
        "dur_ns": step.dur_ns,
        "processes": step.processes,
        "metrics": {name: _point_figure(figure) for name, figure in step.metrics.items()},
    }


def _document(value: dict[str, object]) -> bytes:
    return msgspec.json.format(encoded(value), indent=2) + b"\n"


def _figure(figure: Figure) -> dict[str, object]:
    shown: dict[str, object] = {
        "value": figure.value,
        "unit": figure.unit,
        "low": figure.low,
        "high": figure.high,
        "from": figure.source,
    }
    if figure.coverage is not None:
        shown["coverage"] = figure.coverage
        shown["coverage_of"] = figure.coverage_of
    if figure.note:
        shown["note"] = figure.note
    return shown


def _point_figure(figure: Figure) -> dict[str, object]:
    return {**_figure(figure), "needs": figure.needs} if figure.needs else _figure(figure)


def _finding(finding: Finding) -> dict[str, object]:
    shown: dict[str, object] = {
        "id": finding.id,
        "severity": finding.severity,
        "message": finding.message,
        "figures": finding.figures,
    }
    if finding.advice:
        shown["advice"] = finding.advice
    if finding.point:
        shown["point"] = finding.point
    return shown


def comparison_json(
    comparison: Comparison, breaches: Sequence[Breach], beside: Mapping[str, object] = {}
) -> str:
    """`compare --json`: what was compared, and the broken limits; `beside` stands behind them. Ends
    with a newline.
    """
    document = msgspec.to_builtins(comparison)
    return _document(
        {**document, "breaches": as_objects(breach_table(breaches)), **beside}
    ).decode()


def axes_object(scan: AxesScan) -> dict[str, object]:
    """A scan of a command without its points and curves, which stand beside it."""
    made: dict[str, object] = msgspec.to_builtins(scan)
    del made["points"], made["curves"]
    return made


def axes_json(scan: AxesScan, predictions: Sequence[Prediction] = ()) -> str:
    """`saturation RUN --json` of a scan of a command. Ends with a newline."""
    return _document(
        {
            "schema": SCHEMA,
            "series": [msgspec.to_builtins(curve) for curve in scan.curves],
            **axes_object(scan),
            **({"predictions": predictions} if predictions else {}),
        }
    ).decode()


def saturation_json(
    curves: Sequence[Series], devices: Sequence[Estimate | None] | None = None
) -> str:
    """`saturation --json`: every series, with its number of `devices` where jobs were asked for.

    Ends with a newline.
    """
    return _document(saturation_object(curves, devices)).decode()


def saturation_object(
    curves: Sequence[Series], devices: Sequence[Estimate | None] | None = None
) -> dict[str, object]:
    """The object of `saturation --json`."""
    rows = [msgspec.to_builtins(series) for series in curves]
    for row, needed in zip(rows, devices or (), strict=False):
        row["devices"] = msgspec.to_builtins(needed)
    return {"schema": SCHEMA, "series": rows}
