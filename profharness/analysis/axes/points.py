"""The points of a scan over axes: their rates over all executions, from the manifest
(docs/metrics.md#axes).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np

from profharness.analysis.axes.noise import Executions, PointMeans, point_means
from profharness.analysis.axes.records import AxisLevels, PointRate
from profharness.errors import UsageError
from profharness.rundir.executions.axes import Requirement, axes_of, requirement, requirements_of
from profharness.rundir.executions.records import ExecutionRecord
from profharness.rundir.manifest import Manifest, PointRecord
from profharness.trace.model import F64, I64
from profharness.units import several

BARE = "bare"
UNITS = {"items": "items/s", "steps": "steps/s", "runs": "runs/s", "figures": "units/s"}
"""What a rate is counted in, by the unit of its record."""


@dataclass(frozen=True, eq=False)
class RatedPoints:
    """The measured points in the order of the design: their rates, the places of their values on
    the axes (points, axes), and the noise. `unmeasured` are those that failed, at `failed_places`;
    `searched`: results chose the points.
    """

    axes: tuple[AxisLevels, ...]
    points: tuple[PointRate, ...]
    places: I64
    means: PointMeans
    unit: str
    requires: tuple[Requirement, ...]
    unmeasured: tuple[str, ...] = ()
    searched: bool = False
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
    requires = _requires(manifest.scan.settings)
    searched = bool(manifest.scan.settings.get("search"))
    ordered = [by_id[name] for name in order]
    means = replace(
        point_means(_executions(ordered, in_rounds=not searched), len(order)),
        within=_within(ordered),
    )
    return RatedPoints(
        axes=axes,
        points=tuple(
            _point(by_id[name], means, at, names, requires) for at, name in enumerate(order)
        ),
        places=np.array([_place(axes, by_id[name][0]) for name in order], np.int64).reshape(
            len(order), len(axes)
        ),
        means=means,
        unit=_unit([one for name in order for one in by_id[name]], manifest.scan.item),
        requires=requires,
        searched=searched,
        unmeasured=tuple(dict.fromkeys(record.id for record in bare if record.id in failed)),
        failed_places=tuple(sorted(failed_places)),
    )


def _unit(records: Sequence[PointRecord], item: str) -> str:
    """`jets/s` where the scan knows what its items are called."""
    unit = next((one.execution.unit for one in records if one.execution is not None), "runs")
    return f"{several(item)}/s" if unit == "items" else UNITS[unit]


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


def _requires(settings: Mapping[str, object]) -> tuple[Requirement, ...]:
    """Those that can be read; a run of elsewhere may hold others."""
    texts, limit = settings.get("require"), settings.get("latency_limit")
    found: list[Requirement] = []
    for text in texts if isinstance(texts, list | tuple) else ():
        try:
            found.append(requirement(str(text)))
        except UsageError:
            continue
    with suppress(UsageError):
        found += requirements_of((), str(limit or ""))
    return tuple(found)


def _place(axes: Sequence[AxisLevels], record: PointRecord) -> tuple[int, ...]:
    return tuple(axis.values.index(record.parameters[axis.name]) for axis in axes)


def _rate(record: PointRecord) -> float | None:
    """The rate of an execution that counted; None without one above 0."""
    rate = None if record.execution is None else record.execution.rate
    return rate if rate is not None and math.isfinite(rate) and rate > 0 else None


def _within(points: Sequence[Sequence[PointRecord]]) -> F64 | None:
    """The standard error of each point's mean as its levels tell it, in logarithms; None for
    executions of a command, which tell none.
    """
    found = []
    for records in points:
        errors = [
            record.result.throughput_sem / rate
            for record in records
            if record.result is not None
            and record.result.throughput_sem is not None
            and (rate := _rate(record))
        ]
        if not errors:
            return None
        found.append(math.sqrt(sum(error**2 for error in errors)) / len(errors))
    return np.array(found)


def _executions(points: Sequence[Sequence[PointRecord]], *, in_rounds: bool) -> Executions:
    """`in_rounds`: the n-th executions of all points were made together."""
    rows = [
        (at, record.repeat if in_rounds else 0, math.log(_rate(record) or 1.0))
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
        kept=all(one.kept_by(values) for one in requires),
        values=values,
    )


def _values(executions: Sequence[ExecutionRecord]) -> dict[str, float]:
    """The mean of each named figure over the executions that gave it."""
    given: dict[str, list[float]] = {}
    for execution in executions:
        for name, value in execution.values.items():
            given.setdefault(name, []).append(value)
    return {name: sum(values) / len(values) for name, values in given.items()}
