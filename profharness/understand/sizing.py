"""The levels of a served run as a simulated fleet needs them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from profharness.analysis.fleet.measured import MeasuredLevel, closed
from profharness.analysis.fleet.records import Fleet, Load, Model, OpenLoad
from profharness.analysis.load.run_levels import Levels, LoadedLevel, collect
from profharness.analysis.run.trials import base_of
from profharness.errors import InputError
from profharness.rundir.levels import ServerStats
from profharness.rundir.manifest import Manifest, PointRecord
from profharness.stats.estimate import Estimate
from profharness.stats.level_result import in_window
from profharness.stats.package_figures import power_figures
from profharness.stats.packages import packages
from profharness.stats.streams import idle_window, streams
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Requests
from profharness.trace.wanted import Wanted
from profharness.understand.load_run import load_run

_LEAST_S = 1e-9


def measured_device(path: Path) -> tuple[tuple[MeasuredLevel, ...], Fleet, Estimate | None]:
    """The levels that the run measured without a profiler, one device with its instances, the
    largest batch and the time for which it holds back, and what it draws in W when it is idle.

    Raises InputError for a run without levels of a server that tells its times, and for one of
    several models or backends.
    """
    records = load_run(path, Wanted.TIMES)
    every_level = collect(records.trace, records.manifest)
    found = _levels(every_level, records.manifest)
    if not found:
        raise InputError(
            f"{path}: no level of a server that tells how long it took",
            "measure some: profharness run particlenet --via triton --concurrency 1..16",
        )
    names = sorted({record.backend for record, _ in found if record.backend})
    if len(names) > 1:
        raise InputError(
            f"{path}: its levels are of {', '.join(names)}",
            "a fleet serves one model by one backend: measure it in a run of its own",
        )
    settings = records.manifest.scan.settings if records.manifest.scan else {}
    delay = settings.get("queue_delay_us") or 0
    most = max((_most(record, loaded) for record, loaded in found), default=1)
    fleet = Fleet(
        devices=1,
        instances=max(loaded.level.instances for _, loaded in found) or 1,
        models=(
            Model(
                service_s=(0.0,) * most,
                queue_delay_s=float(delay) / 1e6 if isinstance(delay, int | float) else 0.0,
            ),
        ),
    )
    every = streams(records.trace)
    meters = packages(every, idle_window(records.trace))

    def drawn(loaded: LoadedLevel) -> Estimate | None:
        """Power over the level's window; None where no telemetry tells."""
        power = power_figures(every, meters, loaded.span, None, "").get("power_w")
        if power is None or power.value is None:
            return None
        return Estimate(value=power.value, low=power.low, high=power.high)

    drift = _drift(every_level)
    levels = tuple(
        replace(_measured(record, loaded), power_w=drawn(loaded), rate=_rate(loaded, drift))
        for record, loaded in found
    )
    idle = [meter.idle_w for meter in meters]
    known = [one for one in idle if one is not None]
    resting = Estimate(value=sum(known)) if known and len(known) == len(idle) else None
    return levels, fleet, resting


def _drift(loaded: Levels) -> float:
    """The largest relative change of the throughput of a level that was measured again."""
    return max(
        (
            abs(again.figures.throughput.value / first.figures.throughput.value - 1)
            for (name, key), again in loaded.items()
            if (first := loaded.get((name, base_of(key)))) is not None
            and first is not again
            and again.figures.throughput.value
            and first.figures.throughput.value
        ),
        default=0.0,
    )


def _rate(loaded: LoadedLevel, drift: float) -> Estimate:
    """Its throughput, the drift on both sides of the interval."""
    rate = loaded.figures.throughput
    margin = drift * (rate.value or 0.0)
    return Estimate(
        value=rate.value,
        low=None if rate.low is None else max(rate.low - margin, 0.0),
        high=None if rate.high is None else rate.high + margin,
    )


def _levels(loaded: Levels, manifest: Manifest) -> list[tuple[PointRecord, LoadedLevel]]:
    """Levels of the first pass without layers (of the first pass, where all have some)."""
    plain = [one.name for one in manifest.passes if not one.layers]
    names = [name for name, _ in loaded]
    wanted = next((name for name in (*plain, *names) if name in names), "")
    found = []
    for record in manifest.points:
        level = loaded.get((wanted, record.id))
        if record.pass_name != wanted or record.repeat or level is None:
            continue
        if _stats(level) is not None and level.level.requests > level.level.failed:
            found.append((record, level))
    return found


def _stats(loaded: LoadedLevel) -> ServerStats | None:
    """What the server counted, where it has one model and served something."""
    stats = list((loaded.level.server_stats or {}).values())
    return stats[0] if len(stats) == 1 and stats[0].success else None


def _most(record: PointRecord, loaded: LoadedLevel) -> int:
    """The most requests that the server puts together."""
    return max((loaded.level.gathers or 1) // (record.batch_size or 1), 1)


def _measured(record: PointRecord, loaded: LoadedLevel) -> MeasuredLevel:
    level, stats = loaded.level, _stats(loaded)
    assert stats is not None
    ended = in_window(loaded.requests, level)
    good = ended.take(ended.ok == 1)
    began = good.intended_ns if level.mode == "open" else good.sent_ns
    latency_s = (good.done_ns - began) / 1e9
    computed = stats.compute_input_ns + stats.compute_infer_ns + stats.compute_output_ns
    service_s, queue_s = computed / stats.success / 1e9, stats.queue_ns / stats.success / 1e9
    outside_s = float(latency_s.mean()) - service_s - queue_s
    return MeasuredLevel(
        label=_label(level.concurrency, level.rate),
        load=_load(level.concurrency, level.rate, good.think_ns),
        batch=_batch(stats) / (record.batch_size or 1),
        service_s=max(service_s, _LEAST_S),
        outside_s=max(outside_s, 0.0),
        requests=len(good),
        throughput=len(good) / (level.window_ns / 1e9),
        p99_s=float(np.quantile(latency_s, 0.99)) if len(good) >= 1000 else None,
        batches=executions(loaded.requests, good),
        executions=stats.exec_count / (level.window_ns / 1e9),
    )


def executions(every: Requests, good: Requests) -> tuple[tuple[int, float], ...]:
    """Requests and seconds, from when the model began until the answers were back, of each
    execution in the window; empty where the server does not tell. The way back counts: no queue is
    in it, so that it scatters as the hand-over and the copies around the model do.
    """
    if (good.execution == NULL).any() or (good.server_start_ns == NULL).any():
        return ()
    number, found = np.unique(good.execution, return_inverse=True)
    took = np.bincount(found, (good.done_ns - good.server_start_ns) / 1e9) / np.bincount(found)
    with_all, counts = np.unique(every.execution, return_counts=True)
    sizes = counts[np.searchsorted(with_all, number)]
    return tuple(zip(sizes.tolist(), took.tolist(), strict=True))


def _batch(stats: ServerStats) -> float:
    """The mean number of items in the execution of an item."""
    sizes = {int(size): times for size, times in stats.batch_sizes.items()}
    items = sum(size * times for size, times in sizes.items())
    if not items:
        return stats.count / stats.exec_count if stats.exec_count else 1.0
    return sum(size * size * times for size, times in sizes.items()) / items


def _label(concurrency: int | None, rate: float | None) -> str:
    return f"{rate:g} requests/s" if concurrency is None else f"{concurrency} in flight"


def _load(concurrency: int | None, rate: float | None, think_ns: I64) -> Load:
    if concurrency is None:
        return OpenLoad(rate or 0.0)
    think_s = float(np.maximum(think_ns, 0).mean()) / 1e9 if len(think_ns) else 0.0
    return closed(concurrency, think_s)
