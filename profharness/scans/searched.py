"""What the levels of a scan over axes came to, as its search and its layers take them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from profharness.errors import InputError, UsageError
from profharness.rundir.executions.axes import Axis, Requirement, requirements_of
from profharness.rundir.manifest import PointRecord
from profharness.rundir.paths import RunDir
from profharness.scans.design import settings_of
from profharness.scans.settings_search import Measured
from profharness.stats.chosen import Rated, chosen_points, scatter_of, smoothed_rates

BARE = "bare"
_BETWEEN_RUNS = 0.1
"""How far a point of an earlier run is taken to be off, as a logarithm: it was another day."""
_OVER = 0.5
"""How far a setting that fails, or does not keep what is required, is taken to miss that, as a
logarithm; others keep it by as much."""
_OVER_SIGMA = 0.3
_TIME_SIGMA = 0.1
"""The same of a time under a limit, of which more is known: by how much it keeps or misses it."""


def measured_of(
    records: Sequence[PointRecord], places: Mapping[str, int], requires: Sequence[Requirement]
) -> tuple[Measured, ...]:
    """One for each execution, in their order; `places` are those of the settings by id."""
    rates = [_log_rate(record) for record in records]
    told = bool(requires) or any(rate is None for rate in rates)
    by_setting: dict[str, list[float]] = {}
    for record, rate in zip(records, rates, strict=True):
        if rate is not None:
            by_setting.setdefault(record.id, []).append(math.exp(rate))
    sigma = scatter_of(by_setting.values())
    return tuple(
        Measured(
            places[record.id],
            rate,
            sigma,
            *(_over(record, rate, requires) if told else (None, _OVER_SIGMA)),
        )
        for record, rate in zip(records, rates, strict=True)
    )


def earlier_points(
    runs: Iterable[str], axes: Sequence[Axis], require: Sequence[str], latency_limit: str = ""
) -> tuple[Measured, ...]:
    """What earlier runs over the same axes measured of settings of this grid, as a search takes it.
    Raises UsageError for a run without such points.
    """
    grid = settings_of(axes, "grid", 0)
    places: dict[tuple[int | float | str | None, ...], int] = {
        _typed(axes, setting): at for at, setting in enumerate(grid)
    }
    requires = requirements_of(require, latency_limit)
    found: list[Measured] = []
    for run in runs:
        of_grid = {
            record.id: places[setting]
            for record in _points_of(run)
            if (setting := _setting(axes, record)) in places
        }
        records = [record for record in _points_of(run) if record.id in of_grid]
        if not records:
            raise UsageError(
                f"--warm-start: {run} has no point of this grid",
                "name a run whose --scan has the same axes, and values of them in common",
            )
        found += [_of_another_day(one) for one in measured_of(records, of_grid, requires)]
    return tuple(found)


def chosen_of(
    values: Mapping[str, Sequence[str]],
    axes: Sequence[Axis],
    done: Sequence[PointRecord],
    requires: Sequence[Requirement],
    *,
    searched: bool,
) -> tuple[str, ...]:
    """The first setting of the design, the recommended and the best one among those that were
    measured; `values` are the settings by id. Empty before anything was. Of a search those count
    that were measured again.
    """
    levels = [axis.values for axis in axes]
    rated = _rated(values, done, requires, levels if searched else None)
    if not rated:
        return ()
    times = Counter(record.id for record in done)
    again = [one for one in rated if times[one.name] > 1] if searched else []
    best, recommended = chosen_points(again or rated, levels)
    first = next(name for name in values if name in {one.name for one in rated})
    return first, recommended.name, best.name


def _rated(
    values: Mapping[str, Sequence[str]],
    done: Sequence[PointRecord],
    requires: Sequence[Requirement],
    smooth: Sequence[Sequence[str]] | None,
) -> list[Rated]:
    """Mean rates of the points that were measured without failure and keep what is required; all
    that were measured, where none does. With the levels of the axes, rates that are smoothed over
    all of them.
    """
    failed = {record.id for record in done if record.state != "ok"}
    rates: dict[str, list[float]] = {}
    kept: dict[str, bool] = {}
    for record in done:
        rate = None if record.execution is None else record.execution.rate
        if record.id in failed or record.id not in values or rate is None or rate <= 0:
            continue
        rates.setdefault(record.id, []).append(rate)
        keeps = record.execution is not None and all(
            one.kept_by(record.execution.values) for one in requires
        )
        kept[record.id] = kept.get(record.id, True) and keeps
    settings = [tuple(values[name]) for name in rates]
    means = [sum(each) / len(each) for each in rates.values()]
    if smooth is not None and rates:
        sigma = scatter_of(rates.values())
        means = smoothed_rates(
            settings,
            smooth,
            [sum(map(math.log, each)) / len(each) for each in rates.values()],
            [sigma / math.sqrt(len(each)) for each in rates.values()],
        )
    found = [
        Rated(name, setting, mean, kept[name])
        for name, setting, mean in zip(rates, settings, means, strict=True)
    ]
    return [one for one in found if one.kept] or found


def _points_of(run: str) -> list[PointRecord]:
    try:
        manifest = RunDir.open(Path(run)).read_manifest()
    except InputError as error:
        raise UsageError(
            f"--warm-start: {error.message}", "name a directory that `profharness run` left"
        ) from error
    return [record for record in manifest.points if record.pass_name == BARE]


def _setting(axes: Sequence[Axis], record: PointRecord) -> tuple[int | float | str | None, ...]:
    return tuple(record.parameters.get(axis.name) for axis in axes)


def _of_another_day(one: Measured) -> Measured:
    return replace(
        one,
        sigma=math.hypot(one.sigma, _BETWEEN_RUNS),
        over_sigma=math.hypot(one.over_sigma, _BETWEEN_RUNS),
    )


def _typed(axes: Sequence[Axis], setting: Sequence[str]) -> tuple[int | float | str | None, ...]:
    return tuple(axis.typed(value) for axis, value in zip(axes, setting, strict=True))


def _log_rate(record: PointRecord) -> float | None:
    rate = None if record.execution is None else record.execution.rate
    return math.log(rate) if record.state == "ok" and rate is not None and rate > 0 else None


def _over(
    record: PointRecord, rate: float | None, requires: Sequence[Requirement]
) -> tuple[float, float]:
    """By how much an execution misses what is required of it (less than 0: keeps it), and how well
    that is known.
    """
    values = {} if record.execution is None else record.execution.values
    if rate is None or any(one.name not in values for one in requires):
        return _OVER, _OVER_SIGMA
    times = [one for one in requires if one.bound in ("<", "<=") and one.name.endswith("_ms")]
    if not all(one.kept_by(values) for one in requires if one not in times):
        return _OVER, _OVER_SIGMA
    if not times or any(one.limit <= 0 or values[one.name] <= 0 for one in times):
        return (-_OVER if all(one.kept_by(values) for one in times) else _OVER), _OVER_SIGMA
    return max(math.log(values[one.name] / one.limit) for one in times), _TIME_SIGMA
