"""Several models on one server at once, against each alone under the same load. Pure.

A client process asks one model, so the requests of a shared level fall apart by client; throughput
of each model is judged as that of any level (`load.level_figures`), over the window that all of
them have in common.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec
import numpy as np

from profharness.analysis.load.run_levels import Levels, LoadedLevel
from profharness.analysis.load.sharing_records import SharedLevel, SharedModel
from profharness.analysis.records import PointSummary
from profharness.rundir.levels import SHARED, SPREAD
from profharness.stats.estimate import Estimate
from profharness.stats.load import level_figures
from profharness.stats.load_figures import LevelFigures
from profharness.stats.throughput import Drift

_MEDIAN = 50.0
_MS = 1e6


def shared_levels(
    points: Sequence[PointSummary], levels: Levels, reference: str, drifts: Mapping[str, Drift]
) -> tuple[SharedLevel, ...]:
    """Every shared level of the reference pass, in the points' order; `drifts` are those of each
    target's repeats, "" of all.
    """
    alone = {
        (point.backend, point.batch_size, point.concurrency): point
        for point in points
        if point.backend not in SHARED
    }
    shared = []
    for point in points:
        level = levels.get((reference, point.point))
        if point.backend not in SHARED or level is None:
            continue
        drift = drifts.get(point.backend, drifts[""])
        models = tuple(
            _model(target, alone.get((target, point.batch_size, point.concurrency)), figures, drift)
            for target, figures in by_model(level).items()
        )
        shared.append(
            SharedLevel(
                point=point.point,
                batch_size=point.batch_size,
                concurrency=point.concurrency,
                total=_rate(point),
                models=models,
                spread=point.backend == SPREAD,
            )
        )
    return tuple(shared)


def by_model(level: LoadedLevel) -> dict[str, LevelFigures]:
    """The figures of each model of a shared level, from the requests of its own clients."""
    asked = np.array(level.level.models)
    by_target = {}
    for target in dict.fromkeys(level.level.models):
        clients = np.flatnonzero(asked == target)
        held = (
            None
            if level.level.concurrency is None
            else level.level.concurrency // len(set(level.level.models))
        )
        # what was counted over all models is no figure of one
        of_target = msgspec.structs.replace(
            level.level,
            concurrency=held,
            clients=len(clients),
            cpu_ns=None,
            server_stats=None,
            server_cpu_ns=None,
            network_bytes=None,
        )
        by_target[target] = level_figures(
            level.requests.take(np.isin(level.requests.client, clients)), of_target
        )
    return by_target


def _model(
    target: str, alone: PointSummary | None, figures: LevelFigures, drift: Drift
) -> SharedModel:
    first, rate = _rate(alone), figures.throughput
    margin = abs(drift.relative) * (rate.value or 0.0)
    second = Estimate(
        value=rate.value,
        low=None if rate.low is None else max(rate.low - margin, 0.0),
        high=None if rate.high is None else rate.high + margin,
    )
    slowdown = Estimate(
        value=_ratio(first.value, second.value),
        low=_ratio(first.low, second.high),
        high=_ratio(first.high, second.low),
    )
    median = None if figures.service is None else figures.service.percentile(_MEDIAN).value_ns
    return SharedModel(
        target=target,
        alone=first,
        together=second,
        slowdown=slowdown,
        latency_alone_ms=_median(alone),
        latency_together_ms=None if median is None else median / _MS,
    )


def _rate(point: PointSummary | None) -> Estimate:
    figure = None if point is None else point.metrics.get("throughput")
    return (
        Estimate(value=None)
        if figure is None
        else Estimate(value=figure.value, low=figure.low, high=figure.high)
    )


def _median(point: PointSummary | None) -> float | None:
    figure = None if point is None else point.metrics.get("latency_p50")
    return None if figure is None or figure.value is None else float(figure.value)


def _ratio(above: float | None, below: float | None) -> float | None:
    return None if above is None or not below else above / below
