"""Figures of a fleet over a time in which the number of its working devices changes: those of each
number, weighted by its share of time (docs/fleet.md#failures).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.fleet.records import Fleet
from profharness.analysis.fleet.steady import SHARES, Steady, estimate, figure_of
from profharness.stats.estimate import Estimate

F64 = npt.NDArray[np.float64]
UNBOUND = Estimate(value=None)


@dataclass(frozen=True, eq=False)
class State:
    """The steady part of a simulation of `up` devices, and its `share` of time."""

    up: int
    share: float
    rest: Steady


@dataclass(frozen=True, eq=False)
class OverTime:
    """`fleet` over a long time. `too_few` are the numbers of devices that do not bear the load,
    with their shares of time: all of them are busy then. `held_up` is the share of requests that
    meet these, and `catches_up` says whether they are answered later, in place of being not asked.
    """

    fleet: Fleet
    states: tuple[State, ...]
    too_few: tuple[tuple[int, float], ...] = ()
    held_up: float = 0.0
    catches_up: bool = False

    def throughput(self) -> Estimate:
        """Answers per second."""
        return self.of_all(lambda rates, _: self.rate(rates))

    def utilisation(self) -> Estimate:
        """The busy time of instances over the time of all, those of failed devices included."""
        full = sum(up * share for up, share in self.too_few)
        found = self.of_all(
            lambda _, busy: (
                (full + sum(one.share * one.up * used for one, used in self.with_states(busy)))
                / self.fleet.devices
            )
        )
        assert found.high is not None
        return Estimate(value=found.value, low=found.low, high=min(found.high, 1.0))

    def of_all(self, figure: Callable[[F64, F64], float]) -> Estimate:
        """What comes of the states' throughputs and of the utilisations of their devices."""
        instances = self.fleet.instances
        found = [one.rest.rates(one.up * instances) for one in self.states]
        every = np.array(found).transpose(1, 0, 2)  # of which, state, whole and batches
        whole, *batches = [figure(*every[:, :, at]) for at in range(every.shape[2])]
        return estimate(whole, np.array(batches))

    def of_latency(self, name: str, kind: int | None = None) -> Estimate:
        """A percentile of all latencies in ms, of the requests for one model if `kind` says so;
        without bound (None) where so many are held up. The mean is of those that are not.
        """
        if len(self.states) == 1 and not self.held_up:
            return self.states[0].rest.of_latency(figure_of(name), kind)
        if name != "mean" and self.held_up >= 1 - SHARES[name]:
            return UNBOUND
        parts = [one.rest.batches_ms(kind) for one in self.states]
        rates = [one.share * (one.rest.throughput().value or 0.0) for one in self.states]
        found = [self._mixed(name, rates, batch) for batch in zip(*parts, strict=True)]
        whole = [np.concatenate(part) for part in parts]
        return estimate(self._mixed(name, rates, whole), np.array(found))

    def _mixed(self, name: str, rates: list[float], parts: Sequence[F64]) -> float:
        values = np.concatenate(parts)
        each = [rate / max(len(part), 1) for rate, part in zip(rates, parts, strict=True)]
        weights = np.repeat(each, [len(part) for part in parts])
        if name == "mean":
            return float(np.average(values, weights=weights))
        order = np.argsort(values)
        reached = np.cumsum(weights[order])
        share = SHARES[name] / (1 - self.held_up)
        return float(
            values[order][min(np.searchsorted(reached, share * reached[-1]), len(order) - 1)]
        )

    def rate(self, rates: F64) -> float:
        """Answers per second over all time, from those of each state."""
        total = sum(one.share for one in self.states) if self.catches_up else 1.0
        return sum(one.share * rate for one, rate in self.with_states(rates)) / total

    def with_states(self, values: F64) -> list[tuple[State, float]]:
        """Each state with its value."""
        return list(zip(self.states, values.tolist(), strict=True))
