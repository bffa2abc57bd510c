"""`profharness saturation RUN` of a scan of a command: its effects, curves and predictions."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from profharness.analysis.axes.points import RatedPoints, is_axes_scan, rated_points
from profharness.analysis.axes.records import AxesScan, AxisLevels, Parameters, Prediction, Value
from profharness.analysis.axes.scan import prediction
from profharness.cli.parsing.forms import Form
from profharness.errors import InputError, UsageError
from profharness.rundir.jobs.arrays import is_array
from profharness.rundir.paths import RunDir


@dataclass(frozen=True)
class ScannedAxes:
    """What the scan came to, and its points as predictions need them."""

    scan: AxesScan
    rated: RatedPoints


def load_axes(path: Path) -> ScannedAxes | None:
    """None for what is no run of such a scan. Raises InputError where none of its points gave a
    rate.
    """
    if not path.is_dir() or is_array(path):
        return None
    manifest = RunDir.open(path).read_manifest()
    if not is_axes_scan(manifest):
        return None
    from profharness.understand import report_run

    summary = report_run.summarise(report_run.load([path]))
    rated = rated_points(manifest)
    if summary.axes is None or rated is None or not rated.points:
        raise InputError(
            f"{path}: no point was measured",
            "see why in points/bare of the run, then: profharness run --resume --retry-failed",
        )
    return ScannedAxes(summary.axes, rated)


def show_axes(scanned: ScannedAxes, at: Sequence[str], *, form: Form) -> None:
    """Print the scan, with predictions for the points of `--at`. Raises UsageError for points that
    cannot be predicted.
    """
    from profharness.report.axes.text import axes_text
    from profharness.report.json import axes_json

    predictions = tuple(_predicted(scanned.rated, text) for text in at)
    if form is Form.JSON:
        sys.stdout.write(axes_json(scanned.scan, predictions))
        return
    text = axes_text(scanned.scan, predictions)
    sys.stdout.write(f"```text\n{text}```\n" if form is Form.MD else text)


def _predicted(rated: RatedPoints, text: str) -> Prediction:
    given = dict(part.partition("=")[::2] for part in text.split(",") if part.strip())
    axes = {axis.name: axis for axis in rated.axes}
    unknown = [name for name in given if name.strip() not in axes]
    missing = [name for name in axes if name not in map(str.strip, given)]
    if unknown or missing:
        raise UsageError(
            f"--at {text}: "
            + (f"there is no axis {unknown[0]}" if unknown else f"it has no {missing[0]}"),
            f"give each axis a value: {','.join(f'{name}=...' for name in axes)}",
        )
    parameters: Parameters = {
        name.strip(): _value(axes[name.strip()], value.strip()) for name, value in given.items()
    }
    found = prediction(rated, parameters)
    if found is None:
        raise UsageError(
            f"--at {text}: the measured points do not predict this one",
            "take values of the axes, or numbers between two of them; it takes three points that "
            "were measured",
        )
    return found


def _value(axis: AxisLevels, text: str) -> Value:
    if not axis.is_number:
        return text
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            f"--at: {axis.name} is an axis of numbers, and {text!r} is none", "write a number"
        ) from None
