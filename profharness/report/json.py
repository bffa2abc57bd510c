"""`run --json` and `metrics --json`: the shapes of docs/json.md#metrics, from a `Summary`.

Fields that do not apply to a point are left out; a figure always carries value, unit, low, high and
from, null where there is none. Numbers that are not finite become null.
"""

from __future__ import annotations

import msgspec

from profharness.analysis.records import SCHEMA, Figure, PointSummary, StepSummary, Summary
from profharness.findings import Finding
from profharness.report.text.findings import all_findings


def run_json(summary: Summary) -> bytes:
    """`run --json`: one object per point over all passes, then findings and problems. Ends with a
    newline.
    """
    return _document(
        {
            "schema": SCHEMA,
            "run": summary.run.path if summary.run is not None else summary.source,
            "points": [_run_point(point) for point in summary.points],
            "findings": [_finding(finding) for finding in all_findings(summary)],
            "problems": summary.problems,
            **({"sharing": summary.sharing} if summary.sharing else {}),
        }
    )


def metrics_json(summary: Summary) -> bytes:
    """`metrics FILE|RUN --json`: whole-file counts, figures per device, point and window. Ends with
    a newline.
    """
    return _document(
        {
            "schema": SCHEMA,
            "source": summary.source,
            "trace": summary.trace,
            "devices": summary.devices,
            "points": [
                {
                    "point": point.point,
                    "metrics": {
                        name: _point_figure(figure) for name, figure in point.metrics.items()
                    },
                }
                for point in summary.points
            ],
            "metrics": {
                name: {**_figure(figure), "needs": figure.needs}
                for name, figure in summary.metrics.items()
            },
            "findings": [_finding(finding) for finding in all_findings(summary)],
            "problems": summary.problems,
            **(
                {"communication": summary.communication}
                if summary.communication is not None
                else {}
            ),
            **({"counters": summary.counters} if summary.counters else {}),
            **({"steps_from": summary.steps_from} if summary.steps_from else {}),
            **({"steps": [_step(step) for step in summary.steps]} if summary.steps else {}),
        }
    )


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
    return msgspec.json.format(msgspec.json.encode(value), indent=2) + b"\n"


def _run_point(point: PointSummary) -> dict[str, object]:
    shown: dict[str, object] = {"point": point.point}
    for name in (
        "backend",
        "batch_size",
        "concurrency",
        "processes",
        "mode",
        "rate",
        "requests",
        "failed",
        "trials",
        "warmup_trials",
        "throughput",
        "throughput_sem",
        "latency_ms",
        "consistency",
    ):
        value = getattr(point, name)
        if value not in (None, "") and not (point.mode and name in ("trials", "warmup_trials")):
            shown[name] = value
    if point.overhead:
        shown["overhead"] = point.overhead
    if point.state != "ok":
        shown |= {"state": point.state, "error": point.error}
    return shown


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
