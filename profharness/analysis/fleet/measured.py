"""A fleet's device as a served run measured it: how long batches take and what a request spends
outside of the server; and each level forecast from the others (docs/fleet.md#from-a-run).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.analysis.curves.knee import NO_PLAN, told_apart
from profharness.analysis.fleet.answer import figures
from profharness.analysis.fleet.records import (
    CONSTANT,
    ClosedLoad,
    Fleet,
    Load,
    OpenLoad,
    Power,
    Scatter,
    Thinking,
)
from profharness.errors import UsageError
from profharness.stats.estimate import Estimate

F64 = npt.NDArray[np.float64]
FEWEST = 30
"""Executions that say how times scatter."""
_APART = 0.05
"""Uses of a device that differ by less say nothing of how its power grows."""
MOST_FACTORS = 20_000
"""More are thinned to so many: p99.9 still comes from twenty beyond it."""


_UNKNOWN = Estimate(value=None)


@dataclass(frozen=True, kw_only=True)
class MeasuredLevel:
    """One level of load as it was measured.

    `batch` is the mean number of requests in the batch of a request, `service_s` the mean time that
    its batch took, `outside_s` what of its latency was neither that nor the queue. `throughput` is
    in requests/s; `p99_s` is None where too few requests say. `batches` are (requests, seconds from
    when the model began until its answers were back) of each execution, where the server told.
    `executions` are those per second, `power_w` is what the device drew meanwhile, and `rate` is
    the throughput in items/s with its interval.
    """

    label: str
    load: Load
    batch: float
    service_s: float
    outside_s: float
    requests: int
    throughput: float
    p99_s: float | None
    batches: tuple[tuple[int, float], ...] = ()
    executions: float = 0.0
    power_w: Estimate | None = None
    rate: Estimate = _UNKNOWN


@dataclass(frozen=True)
class Device:
    """One device of a fleet, by its levels: a batch of n requests takes `fixed_s` and `each_s` for
    every request in it. `outside` are (level of load, seconds outside of the server). What requests
    of `fleet` spend there does not count.
    """

    fleet: Fleet
    fixed_s: float
    each_s: float
    outside: tuple[tuple[float, float], ...]

    def loaded(self, load: Load) -> Fleet:
        """The device under a load of the run's generator, with what its requests spend outside of
        the server where it asks for so much.
        """
        places, seconds = zip(*self.outside, strict=True)
        return self._with_outside(float(np.interp(_size(load), places, seconds)))

    def light(self) -> Fleet:
        """The device with what requests spend outside of the server where few are under way:
        clients of a fleet do not all share one machine.
        """
        return self._with_outside(self.outside[0][1])

    def _with_outside(self, outside_s: float) -> Fleet:
        models = tuple(replace(one, outside_s=outside_s) for one in self.fleet.models)
        return replace(self.fleet, models=models)


class HeldOut(msgspec.Struct, frozen=True, kw_only=True):
    """A measured level beside its forecast from all other levels: requests/s and p99 in ms, and by
    how much the forecast is off, as a share of what was measured.
    """

    level: str
    throughput: float
    throughput_forecast: Estimate
    throughput_error: float
    p99_ms: float | None = None
    p99_forecast_ms: Estimate | None = None
    p99_error: float | None = None


def device_of(levels: Sequence[MeasuredLevel], asked: Fleet) -> Device:
    """The device that the levels tell of; `asked` has its instances, and one model with a service
    time for each size of a batch, whose values do not count.

    Times of batches are a straight line through the levels, weighted by their requests: of batches
    of one size, all of it is fixed. They scatter as those of the levels' executions do around a
    line of their own. Raises UsageError without a level.
    """
    if not levels:
        raise UsageError("fleet: no level says how long the server took", "measure two or more")
    batch = np.array([level.batch for level in levels])
    service = np.array([level.service_s for level in levels])
    weight = np.array([float(level.requests) for level in levels])
    mean, usual = (float(np.average(values, weights=weight)) for values in (batch, service))
    spread = float(np.average((batch - mean) ** 2, weights=weight))
    slope = 0.0
    if spread > 1e-6 * mean**2:
        slope = float(np.average((batch - mean) * (service - usual), weights=weight)) / spread
    each = min(max(slope, 0.0), usual / mean)  # no batch takes less than nothing
    fixed = usual - each * mean
    (model,) = asked.models
    times = tuple(fixed + each * number for number in range(1, len(model.service_s) + 1))
    outside = {_size(level.load): level.outside_s for level in levels}
    executions = np.array([one for level in levels for one in level.batches], np.float64)
    scatter = scatter_of(executions.reshape(-1, 2), fixed, each)
    fleet = replace(asked, models=(replace(model, service_s=times, scatter=scatter),))
    return Device(fleet, fixed, each, tuple(sorted(outside.items())))


def require_told_apart(levels: Sequence[MeasuredLevel]) -> None:
    """Raises UsageError where the throughput of no closed loop is proven to differ from that of
    another: what the device carries is then noise.
    """
    rates = [level.rate for level in levels if isinstance(level.load, ClosedLoad)]
    ends = np.array(
        [[getattr(rate, end) for end in ("value", "low", "high")] for rate in rates], np.float64
    ).reshape(-1, 3)
    if not told_apart(*ends.T):
        raise UsageError(
            "fleet: the levels of the run are not told apart, so that they carry no plan",
            NO_PLAN,
        )


def power_of(
    levels: Sequence[MeasuredLevel], device: Device, idle: Estimate | None
) -> Power | None:
    """What the device draws, by a straight line through the power of the levels at their use of its
    instances, and the `idle` power at none; None without power. The ends of the intervals have
    lines of their own. Where all were used alike, power does not depend on the use.
    """
    known = [level for level in levels if level.power_w is not None]
    points = [(_use(level, device), level.power_w) for level in known]
    if idle is not None:
        points.append((0.0, idle))
    found = [(use, one) for use, one in points if one is not None and one.value is not None]
    if not known or not found:
        return None
    use = np.array([use for use, _ in found])
    lines = [_line(use, [one for _, one in found], end) for end in ("value", "low", "high")]
    both = tuple(zip(*lines, strict=True))
    idle_w, busy_w = (Estimate(value=ends[0], low=min(ends), high=max(ends)) for ends in both)
    return Power(idle_w, busy_w)


def _line(use: F64, power: Sequence[Estimate], end: str) -> tuple[float, float]:
    """Watts at no use and at full use, by the values or by one end of their intervals."""
    ends = (getattr(one, end) for one in power)
    watts = np.array([one.value if at is None else at for one, at in zip(power, ends, strict=True)])
    slope = float(np.polyfit(use, watts, 1)[0]) if np.ptp(use) > _APART else 0.0
    at_none = max(float(watts.mean() - slope * use.mean()), 0.0)
    return at_none, max(at_none + slope, 0.0)


def _use(level: MeasuredLevel, device: Device) -> float:
    """The share of time in which the device's instances worked, 0 to 1."""
    busy = device.fixed_s * level.executions + device.each_s * level.throughput
    return min(busy / device.fleet.instances, 1.0)


def scatter_of(batches: F64, fixed_s: float, each_s: float) -> Scatter:
    """How `batches` (rows of requests and seconds) scatter around their line, as shares of what
    `fixed_s` and `each_s` say; constant for fewer than `FEWEST`.

    What a batch is off its own line is added to the time by the other one, which may know of time
    that the batches do not, such as copies. No batch takes less than nothing.
    """
    if len(batches) < FEWEST:
        return CONSTANT
    size, seconds = batches.T
    apart, mean = size - size.mean(), seconds.mean()
    spread = float(apart @ apart)
    slope = float(apart @ (seconds - mean)) / spread if spread else 0.0
    factors = 1 + (seconds - mean - slope * apart) / (fixed_s + each_s * size)
    factors = np.sort(np.maximum(factors, 0.0))
    if len(factors) > MOST_FACTORS:
        ranks = (np.arange(MOST_FACTORS) + 0.5) * len(factors) / MOST_FACTORS
        factors = factors[ranks.astype(np.int64)]
    return Scatter(tuple((factors / factors.mean()).tolist()))


def held_out(levels: Sequence[MeasuredLevel], asked: Fleet, seed: int) -> tuple[HeldOut, ...]:
    """Each level beside its forecast from the others; none with fewer than three levels."""
    if len(levels) < 3:
        return ()
    return tuple(
        beside(level, device_of([one for one in levels if one is not level], asked), seed)
        for level in levels
    )


def beside(level: MeasuredLevel, device: Device, seed: int) -> HeldOut:
    """A level beside what the device is forecast to do under its load."""
    fleet, load = device.loaded(level.load), level.load
    measured_ms = None if level.p99_s is None else level.p99_s * 1e3
    if isinstance(load, OpenLoad) and load.rate >= fleet.capacity:
        most = fleet.capacity  # its queue grows: a latency would only say for how long
        return HeldOut(
            level=level.label,
            throughput=level.throughput,
            throughput_forecast=Estimate(value=most, low=most, high=most),
            throughput_error=most / level.throughput - 1,
            p99_ms=measured_ms,
        )
    found = figures(fleet, load, seed)
    rate, p99 = found.throughput, found.latency_ms.p99
    return HeldOut(
        level=level.label,
        throughput=level.throughput,
        throughput_forecast=rate,
        throughput_error=(rate.value or 0.0) / level.throughput - 1,
        p99_ms=measured_ms,
        p99_forecast_ms=p99,
        p99_error=None if not measured_ms else (p99.value or 0.0) / measured_ms - 1,
    )


def _size(load: Load) -> float:
    """How large a load is, among loads of one kind."""
    return load.rate if isinstance(load, OpenLoad) else float(load.clients)


def closed(clients: int, think_s: float) -> ClosedLoad:
    """The closed loop of a load generator, whose pauses are all as long."""
    return ClosedLoad(clients, think_s, Thinking.FIXED)
