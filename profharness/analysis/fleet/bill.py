"""What the requests of a fleet cost, in money and in energy (docs/fleet.md#cost)."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from profharness.analysis.fleet.over_time import OverTime
from profharness.analysis.fleet.records import Bill, Power
from profharness.stats.estimate import Estimate

F64 = npt.NDArray[np.float64]
MILLION, HOUR = 1e6, 3600.0


def bill_of(found: OverTime) -> Bill | None:
    """None where neither the price nor the power is known."""
    fleet, power = found.fleet, found.fleet.power
    if fleet.price_per_hour is None and power is None:
        return None
    cost = None
    if fleet.price_per_hour is not None:
        second = fleet.devices * fleet.price_per_hour / HOUR
        cost = found.of_all(lambda rates, _: _over(second * MILLION, found.rate(rates)))
    if power is None:
        return Bill(cost_per_million=cost)
    watts = found.of_all(lambda _, busy: _watts(found, busy, power))
    joules = found.of_all(lambda rates, busy: _over(_watts(found, busy, power), found.rate(rates)))
    return Bill(
        cost_per_million=cost,
        joules_per_request=_widened(joules, found, power),
        watts=_widened(watts, found, power),
    )


def _watts(found: OverTime, busy: F64, power: Power) -> float:
    """Of all devices, by the use of the working ones; one that failed draws nothing."""
    idle, more = _value(power.idle), _value(power.busy) - _value(power.idle)
    full = sum(up * share for up, share in found.too_few)
    return full * (idle + more) + sum(
        one.share * one.up * (idle + more * used) for one, used in found.with_states(busy)
    )


def _widened(found: Estimate, over: OverTime, power: Power) -> Estimate:
    """The interval with that of the measured power in it, as if the two were independent."""
    value = _value(found)
    used = _value(over.utilisation())
    mean = _mixed(_value(power.idle), _value(power.busy), used)
    ends = []
    for end, sign in (("low", -1), ("high", 1)):
        own = getattr(found, end)
        idle, busy = (getattr(one, end) for one in (power.idle, power.busy))
        measured = mean if idle is None or busy is None else _mixed(idle, busy, used)
        off = (measured / mean - 1) * value if mean else 0.0
        ends.append(max(value + sign * math.hypot(own - value, off), 0.0))
    return Estimate(value=value, low=ends[0], high=ends[1])


def _mixed(idle: float, busy: float, used: float) -> float:
    return idle + (busy - idle) * used


def _over(value: float, rate: float) -> float:
    return value / rate if rate else math.inf


def _value(found: Estimate) -> float:
    assert found.value is not None
    return found.value
