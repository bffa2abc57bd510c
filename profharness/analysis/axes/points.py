"""The points of a scan of a command: their rates over all executions, from the manifest
(docs/metrics.md#axes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from profharness.analysis.axes.noise import Executions, PointMeans, point_means
from profharness.analysis.axes.records import AxisLevels, PointRate
from profharness.errors import UsageError
from profharness.rundir.executions.axes import Requirement, axes_of, requirement
from profharness.rundir.executions.records import ExecutionRecord
from profharness.rundir.manifest import Manifest, PointRecord
from profharness.trace.model import I64

BARE = "bare"
UNITS = {"items": "items/s", "steps": "steps/s", "runs": "runs/s", "figures": "units/s"}
"""What a rate is counted in, by the unit of its record."""


@dataclass(frozen=True, eq=False)
class RatedPoints:
    """The measured points in the order of the design: their rates, the places of their values on
    the axes (points, axes), and the noise. `unmeasured` are those that failed, at `failed_places`.
    """

    axes: tuple[AxisLevels, ...]
    points: tuple[PointRate, ...]
    places: I64
    means: PointMeans
    unit: str
    requires: tuple[Requirement, ...]
    unmeasured: tuple[str, ...] = ()
    failed_places: tuple[tuple[int, ...], ...] = ()


def rated_points(manifest: Manifest) -> RatedPoints | None:
    """None for a run that is no scan of a command."""
    if manifest.scan is None or not is_axes_scan(manifest):
        return None
    axes = _axes(manifest.scan.settings["axes"])
    bare = [record for record in manifest.points if record.pass_name == BARE]
    names = [axis.name for axis in axes]
    failed = {record.id for record in bare if record.state != "ok"}
    by_id: dict[str, list[PointRecord]] = {}
    failed_places: set[tuple[int, ...]] = set()
    for record in bare:
        fits = all(record.parameters.get(axis.name) in axis.values for axis in axes)
        if fits and record.id in failed:
            failed_places.add(_place(axes, record))
        elif fits and _rate(record):
            by_id.setdefault(record.id, []).append(record)
    order = sorted(by_id, key=lambda name: _place(axes, by_id[name][0]))
    requires = _requires(manifest.scan.settings.get("require"))
    means = point_means(_executions([by_id[name] for name in order]), len(order))
    return RatedPoints(
        axes=axes,
        points=tuple(
            _point(by_id[name], means, at, names, requires) for at, name in enumerate(order)
        ),
        places=np.array([_place(axes, by_id[name][0]) for name in order], np.int64).reshape(
            len(order), len(axes)
        ),
        means=means,
        unit=UNITS[
            next(
                (one.execution.unit for name in order for one in by_id[name] if one.execution),
                "runs",
            )
        ],
        requires=requires,
        unmeasured=tuple(dict.fromkeys(record.id for record in bare if record.id in failed)),
        failed_places=tuple(sorted(failed_places)),
    )


def is_axes_scan(manifest: Manifest) -> bool:
    """Whether the run is a scan of a command over axes."""
    return manifest.scan is not None and bool(manifest.scan.settings.get("axes"))


def _axes(table: object) -> tuple[AxisLevels, ...]:
    """The axes of the settings, numbers in ascending order."""
    if not isinstance(table, Mapping):
        return ()
    found = []
    for axis in axes_of({str(name): list(map(str, values)) for name, values in table.items()}):
        values = [axis.typed(value) for value in axis.values]
        if axis.is_number:
            values.sort(key=float)
        found.append(AxisLevels(name=axis.name, values=tuple(values), is_number=axis.is_number))
    return tuple(found)


def _requires(texts: object) -> tuple[Requirement, ...]:
    """Those that can be read; a run of elsewhere may hold others."""
    found = []
    for text in texts if isinstance(texts, list | tuple) else ():
        try:
            found.append(requirement(str(text)))
        except UsageError:
            continue
    return tuple(found)


def _place(axes: Sequence[AxisLevels], record: PointRecord) -> tuple[int, ...]:
    return tuple(axis.values.index(record.parameters[axis.name]) for axis in axes)


def _rate(record: PointRecord) -> float | None:
    """The rate of an execution that counted; None without one above 0."""
    rate = None if record.execution is None else record.execution.rate
    return rate if rate is not None and math.isfinite(rate) and rate > 0 else None


def _executions(points: Sequence[Sequence[PointRecord]]) -> Executions:
    rows = [
        (at, record.repeat, math.log(_rate(record) or 1.0))
        for at, records in enumerate(points)
        for record in records
    ]
    return Executions(
        np.array([row[0] for row in rows], np.int64),
        np.array([row[1] for row in rows], np.int64),
        np.array([row[2] for row in rows], np.float64),
    )


def _point(
    records: Sequence[PointRecord],
    means: PointMeans,
    at: int,
    names: Sequence[str],
    requires: Sequence[Requirement],
) -> PointRate:
    rates = [rate for record in records if (rate := _rate(record))]
    mean, half = sum(rates) / len(rates), means.half_width(at)
    values = _values([record.execution for record in records if record.execution is not None])
    return PointRate(
        point=records[0].id,
        parameters={name: records[0].parameters[name] for name in names},
        throughput=mean,
        low=None if half is None else mean * math.exp(-half),
        high=None if half is None else mean * math.exp(half),
        executions=len(rates),
        kept=all(one.name in values and one.holds(values[one.name]) for one in requires),
        values=values,
    )


def _values(executions: Sequence[ExecutionRecord]) -> dict[str, float]:
    """The mean of each named figure over the executions that gave it."""
    given: dict[str, list[float]] = {}
    for execution in executions:
        for name, value in execution.values.items():
            given.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in given.items()}
