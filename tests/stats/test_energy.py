"""Energy in windows, the check of energy counters, and what a power sensor can resolve: on made-up
waveforms of known truth.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.stats.energy import (
    OF_COMMAND,
    check_counter,
    energy_in,
    integrate_means,
    integrate_power,
    too_short,
    total,
)
from profharness.stats.intervals import EMPTY, of, window
from profharness.stats.package_figures import power_figures
from profharness.stats.packages import Package
from profharness.stats.sensor import response, sensor_period_ns, update_period
from profharness.trace.model import Samples

MS, S = 1_000_000, 1_000_000_000


def instants(at, watts):
    return Samples.build(len(at), at_ns=at, until_ns=at, value=watts)


def counted(at, joules):
    at, joules = np.asarray(at), np.asarray(joules)
    return Samples.build(
        len(at) - 1, at_ns=at[:-1], until_ns=at[1:], value=np.diff(joules) / (np.diff(at) / 1e9)
    )


def square(at):
    """300 W for half a second, 100 W for the next; and the joules since 0."""
    at = np.asarray(at)
    high = at // (S // 2) % 2 == 0
    whole, rest = at // S, at % S
    joules = whole * 200.0 + np.where(high, rest / 1e9 * 300, 150 + (rest / 1e9 - 0.5) * 100)
    return np.where(high, 300.0, 100.0), joules


def test_trapezoid_is_exact_on_lines_and_cut_at_the_ends():
    at = np.array([0, 10, 20]) * MS
    assert integrate_power(at, np.array([100.0, 200.0, 100.0]), window(0, 20 * MS)) == (
        pytest.approx(3.0),
        20 * MS,
    )
    # from 5 ms (150 W) to 15 ms (150 W) over 200 W at 10 ms
    assert integrate_power(at, np.array([100.0, 200.0, 100.0]), window(5 * MS, 15 * MS)) == (
        pytest.approx(1.75),
        10 * MS,
    )
    two = of([0, 15 * MS], [5 * MS, 40 * MS])
    assert integrate_power(at, np.array([100.0, 200.0, 100.0]), two) == (
        pytest.approx(0.625 + 0.625),
        10 * MS,
    )
    assert integrate_power(at[:1], np.array([1.0]), window(0, 1)) == (0.0, 0)
    assert integrate_power(at, np.ones(3), EMPTY) == (0.0, 0)


def test_a_gap_is_not_bridged():
    at = np.concatenate((np.arange(10), np.arange(100, 110))) * MS
    joules, covered = integrate_power(at, np.full(20, 100.0), window(0, 109 * MS))
    assert covered == 18 * MS
    assert joules == pytest.approx(1.8)
    assert (
        energy_in(instants(at, np.full(20, 100.0)), Samples.empty(), window(0, 109 * MS), MS)
        is None
    )


@given(
    st.lists(st.tuples(st.integers(1, 50), st.floats(0, 1000)), min_size=2, max_size=60),
    st.floats(0, 1),
    st.floats(0, 1),
)
def test_windows_add_up(steps, first, second):
    at = np.cumsum([step for step, _ in steps]) * MS
    watts = np.array([power for _, power in steps])
    low, high = int(at[0]), int(at[-1])
    cuts = sorted((low + int(first * (high - low)), low + int(second * (high - low))))
    edges = [low, *cuts, high]
    parts = [integrate_power(at, watts, window(start, end)) for start, end in pairwise(edges)]
    whole = integrate_power(at, watts, window(low, high))
    assert sum(part[0] for part in parts) == pytest.approx(whole[0], abs=1e-6)
    assert sum(part[1] for part in parts) == whole[1]
    assert 0 <= whole[0] <= watts.max() * (high - low) / 1e9 + 1e-9


@pytest.mark.parametrize(("hz", "tolerance"), [(20, 0.03), (100, 0.005)])
def test_energy_of_a_square_wave(hz, tolerance):
    at = np.arange(0, 10 * S, S // hz) + 3 * MS
    watts, joules = square(at)
    when = window(1 * S, 9 * S)
    by_power = energy_in(instants(at, watts), Samples.empty(), when, S // hz)
    assert by_power.by == "power"
    assert by_power.joules == pytest.approx(1600, rel=tolerance)
    assert by_power.low <= 1600 <= by_power.high
    by_counter = energy_in(instants(at, watts), counted(at, joules), when, S // hz)
    assert by_counter.by == "counter"
    assert by_counter.joules == pytest.approx(1600, rel=0.005)
    assert by_counter.watts == pytest.approx(200, rel=0.005)


def test_a_counter_must_move_and_agree():
    at = np.arange(0, 4 * S, 50 * MS)
    watts, joules = square(at)
    power = instants(at, watts)
    assert check_counter(counted(at, joules), power).why_not == ""
    assert check_counter(counted(at, joules), power).ratio == pytest.approx(1, abs=0.02)
    assert "2.00 times" in check_counter(counted(at, 2 * joules), power).why_not.replace(
        "1.99", "2.00"
    ).replace("2.01", "2.00")
    assert check_counter(counted(at, 0 * joules), power).why_not == "it never moved"
    assert check_counter(Samples.empty(), power).why_not == "there is no energy counter"
    assert check_counter(counted(at, joules), Samples.empty()).why_not == ""
    # the rounded resolution of vendor tools (15.3 instead of 15.2588 µJ) is within the tolerance,
    # and visible in the ratio
    assert (
        check_counter(counted(at, joules * 15.3 / 15.2588), power).ratio
        > check_counter(counted(at, joules), power).ratio
    )


def test_twenty_periods_are_needed():
    assert too_short(window(0, 2 * S), 100 * MS) == ""
    assert too_short(window(0, 2 * S - 1), 100 * MS) == "--min-seconds 2"
    assert too_short(window(0, 100 * MS), 33 * MS) == "--min-seconds 0.7"
    of_command = too_short(window(0, S), 100 * MS, OF_COMMAND)
    assert of_command == "a program that works for 2 s", "a command has no such option"


def test_packages_add_up():
    at = np.arange(0, 3 * S, 100 * MS)
    one = energy_in(instants(at, np.full(len(at), 100.0)), Samples.empty(), window(0, 2 * S), MS)
    both = total([one, one])
    assert (both.joules, both.watts, both.by) == (pytest.approx(400), pytest.approx(200), "power")


def test_update_period_of_a_sensor_that_is_read_more_often_than_it_refreshes():
    generator = np.random.default_rng(3)
    refreshed = generator.normal(300, 20, 400)
    at = np.arange(0, 20 * S, 10 * MS) + generator.integers(0, MS, 2000)
    found = update_period(at, refreshed[at // (100 * MS)])
    assert found.resolved
    assert found.period_ns == pytest.approx(100 * MS, rel=0.1)
    fast = update_period(at, generator.normal(300, 20, len(at)))
    assert not fast.resolved
    assert fast.period_ns == pytest.approx(10 * MS, rel=0.1)
    assert update_period(at, np.full(len(at), 300.0)) is None


@pytest.mark.parametrize(("delay", "width"), [(0, 1000), (300, 400), (100, 100)])
def test_delay_and_averaging_of_a_sensor_against_the_counter(delay, width):
    at = np.arange(0, 30 * S, 20 * MS)
    edges = np.cumsum(np.random.default_rng(5).integers(300, 2500, 40)) * MS
    level = np.where(np.searchsorted(edges, np.arange(0, 30 * S, MS)) % 2, 400.0, 100.0)
    joules = np.concatenate(([0.0], np.cumsum(level) * 1e-3))
    grid = np.arange(len(joules)) * MS
    energy = np.interp(at, grid, joules)
    end = at - delay * MS
    shown = (np.interp(end, grid, joules) - np.interp(end - width * MS, grid, joules)) / (
        width * 1e-3
    )
    found = response(at, shown, at, energy)
    assert found is not None
    assert found.determined
    assert found.delay_ns == pytest.approx(delay * MS, abs=60 * MS)
    assert found.window_ns == pytest.approx(width * MS, abs=100 * MS)
    assert sensor_period_ns(at, None, found) == max(found.window_ns, 20 * MS)


def shown_by(level: np.ndarray, delay: int, width: int, noise: float) -> tuple[np.ndarray, ...]:
    """A sensor's samples of a power that is given per ms, and the energy counter's."""
    at = np.arange(0, len(level) * MS, 20 * MS)
    joules = np.concatenate(([0.0], np.cumsum(level) * 1e-3))
    grid = np.arange(len(joules)) * MS
    end = at - delay * MS
    drawn = np.interp(end, grid, joules) - np.interp(end - width * MS, grid, joules)
    scatter = np.random.default_rng(delay + width).normal(0, noise, len(at))
    return at, drawn / (width * 1e-3) + scatter, at, np.interp(at, grid, joules)


@pytest.mark.parametrize("noise", [0.0, 5.0])
@pytest.mark.parametrize("period", [150, 400, 1000])
@pytest.mark.parametrize("delay", [0, 100, 700])
def test_a_load_that_repeats_does_not_tell_the_delay(period: int, delay: int, noise: float):
    """Steps of 0.4 s look alike after a delay of 0.3 s and of 0.7 s."""
    level = np.where(np.arange(30_000) % period < period // 2, 400.0, 100.0)
    found = response(*shown_by(level, delay, 100, noise))
    assert found is not None
    assert not found.determined
    assert found.low_ns <= delay * MS <= found.high_ns


def test_the_figure_of_an_undetermined_delay_says_why_it_has_none():
    level = np.where(np.arange(30_000) % 400 < 200, 400.0, 100.0)
    at, drawn, _, joules = shown_by(level, 300, 100, 0.0)
    package = Package("p", "package", (), instants(at, drawn), counted(at, joules))
    found = power_figures((), (package,), window(10 * S, 20 * S), None, "run")
    late = found["power_sensor_delay"]
    assert late.value is None
    assert late.needs.startswith("a load that does not repeat: delays between 300.0 ms and 1.900 s")


@pytest.mark.parametrize("delay", [0, 100, 700])
def test_a_load_that_repeats_less_often_than_any_delay_does(delay: int):
    level = np.where(np.arange(30_000) % 5000 < 2500, 400.0, 100.0)
    found = response(*shown_by(level, delay, 100, 5.0))
    assert found is not None
    assert found.determined
    assert found.delay_ns == pytest.approx(delay * MS, abs=60 * MS)


def test_nothing_is_said_of_a_level_power():
    at = np.arange(0, 10 * S, 100 * MS)
    assert response(at, np.full(len(at), 250.0), at, at / 1e9 * 250) is None


def test_means_over_intervals_are_cut():
    at, until = np.array([0, 10]) * MS, np.array([10, 20]) * MS
    assert integrate_means(at, until, np.array([100.0, 300.0]), window(5 * MS, 15 * MS)) == (
        pytest.approx(2.0),
        10 * MS,
    )
