"""Queueing theory as an oracle: times in a first-come-first-served queue with equal servers and one
constant service time.

`stationary_quantile` is exact for Poisson arrivals (M/D/c), `sojourn_times` for any given arrivals.
Neither shares anything with the analysis.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Times = npt.NDArray[np.float64]


def sojourn_times(arrivals: Times, servers: int, service: float) -> Times:
    """Wait and service of each arrival, in the unit of `service`; `arrivals` ascend.

    With a constant service time jobs leave in the order of their arrival, so that job i gets the
    server of job i - c, and each c-th job sees a queue with one server: start = max(arrival, end of
    the one before) (Lindley 1952; Kiefer and Wolfowitz 1955).
    """
    times = np.empty(len(arrivals))
    for first in range(servers):
        own = arrivals[first::servers] / service
        number = np.arange(len(own))
        starts = np.maximum.accumulate(own - number) + number
        times[first::servers] = (starts - own + 1) * service
    return times


def stationary_waiting(servers: int, load: float, most: float = 40.0) -> tuple[Times, Times]:
    """(x, P(W <= x)) of M/D/c at a grid of x in service times. G. J. Franx, A simple solution for
    the M/D/c waiting time distribution (Operations Research Letters 29, 2001): for (k - 1) D <= x <
    k D, with y = lambda (k D - x), P(W <= x) = exp(-y) sum_{j < k c} Q_{k c - 1 - j} y^j / j!, Q_m
    the probability of at most m waiting.
    """
    queue = np.cumsum(_numbers(servers, load, int(most + 2) * servers * 2))[servers:]
    x = np.arange(0, most, 0.005)
    found = np.empty(len(x))
    for at, when in enumerate(x):
        k = int(when + 1e-9) + 1
        y = servers * load * (k - when)
        terms = _poisson(y, k * servers)
        found[at] = float(queue[: k * servers][::-1] @ terms)
    return x, found


def stationary_quantile(servers: int, load: float, share: float) -> float:
    """Of the sojourn time (wait and service) in an M/D/c queue at this load per server, in service
    times.
    """
    x, probability = stationary_waiting(servers, load)
    assert probability[-1] > share, "the grid ends before the quantile"
    return 1 + float(np.interp(share, probability, x))


def _poisson(mean: float, count: int) -> Times:
    """Probabilities of 0 .. count - 1."""
    numbers = np.arange(count)
    logs = np.array([math.lgamma(number + 1) for number in numbers])
    return np.asarray(np.exp(numbers * math.log(mean) - mean - logs))


def _numbers(servers: int, load: float, states: int) -> Times:
    """Stationary probabilities of 0, 1, ... in the system: a service time later those in service
    have left and Poisson ones have come (Crommelin 1932). By iteration from the empty system until
    it stays.
    """
    arriving = _poisson(servers * load, states)
    now = np.zeros(states)
    now[0] = 1
    while True:
        left = np.concatenate([[now[: servers + 1].sum()], now[servers + 1 :]])
        then = np.convolve(left, arriving)[:states]
        then /= then.sum()
        if np.abs(then - now).max() < 1e-13:
            return then
        now = then
