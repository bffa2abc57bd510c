"""A fleet's device as a served run measured it: how long batches take and what a request spends
outside of the server; and each level forecast from the others (docs/fleet.md#from-a-run).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import msgspec
import numpy as np

from profharness.analysis.fleet.answer import figures
from profharness.analysis.fleet.records import ClosedLoad, Fleet, Load, OpenLoad, Thinking
from profharness.errors import UsageError
from profharness.stats.estimate import Estimate


@dataclass(frozen=True, kw_only=True)
class MeasuredLevel:
    """One level of load as it was measured.

    `batch` is the mean number of requests in the batch of a request, `service_s` the mean time that
    its batch took, `outside_s` what of its latency was neither that nor the queue. `throughput` is
    in requests/s; `p99_s` is None where too few requests say.
    """

    label: str
    load: Load
    batch: float
    service_s: float
    outside_s: float
    requests: int
    throughput: float
    p99_s: float | None


@dataclass(frozen=True)
class Device:
    """One device of a fleet, by its levels: a batch of n requests takes `fixed_s` and `each_s` for
    every request in it. `outside` are (level of load, seconds outside of the server).
    """

    fleet: Fleet
    fixed_s: float
    each_s: float
    outside: tuple[tuple[float, float], ...]

    def measured_load(self, load: Load) -> Load:
        """The load of the run's generator, with what its requests spend outside of the server
        where it asks for so much.
        """
        places, seconds = zip(*self.outside, strict=True)
        return replace(load, outside_s=float(np.interp(_size(load), places, seconds)))

    def light_load(self, load: Load) -> Load:
        """A load with what requests spend outside of the server where few are under way: clients of
        a fleet do not all share one machine.
        """
        return replace(load, outside_s=self.outside[0][1])


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
    """The device that the levels tell of; `asked` has its instances, and a service time for each
    size of a batch, whose values do not count.

    Times of batches are a straight line through the levels, weighted by their requests: of batches
    of one size, all of it is fixed. Raises UsageError without a level.
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
    times = tuple(fixed + each * number for number in range(1, len(asked.service_s) + 1))
    outside = {_size(level.load): level.outside_s for level in levels}
    return Device(replace(asked, service_s=times), fixed, each, tuple(sorted(outside.items())))


def held_out(levels: Sequence[MeasuredLevel], asked: Fleet, seed: int) -> tuple[HeldOut, ...]:
    """Each level beside its forecast from the others; none with fewer than three levels."""
    if len(levels) < 3:
        return ()
    return tuple(
        _beside(level, device_of([one for one in levels if one is not level], asked), seed)
        for level in levels
    )


def _beside(level: MeasuredLevel, device: Device, seed: int) -> HeldOut:
    fleet, load = replace(device.fleet, devices=1), device.measured_load(level.load)
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
