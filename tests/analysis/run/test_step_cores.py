"""Cores of a command's steps, apart from its start-up, and words that do not flip within noise."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from profharness.analysis.records import Figure
from profharness.analysis.run.step_cores import step_cores
from profharness.analysis.verdict.cpu import Withheld, cpu_verdict
from profharness.rundir.manifest import PassRecord
from profharness.stats.streams import Stream
from profharness.trace.model import Samples
from tests.analysis.run.run_scene import manifest
from tests.analysis.run.test_steps import MS, START, Log

TENTH_NS = 100 * MS


def sampled(cores: list[float], start: int) -> Stream:
    """Ten samples a second from `start` on."""
    at = start + TENTH_NS * np.arange(len(cores), dtype=np.int64)
    return Stream(
        "cpu_tree",
        "",
        Samples.build(len(cores), at_ns=at, until_ns=at + TENTH_NS, value=np.array(cores)),
    )


def command(begun: int):
    record = PassRecord(name="torch", layers=("torch",), start_boot_ns=begun)
    return manifest(kind="command", points=(), scan=None, passes=(record,))


def test_start_up_is_not_in_the_cores_of_the_steps() -> None:
    """Eight seconds on one core, then steps of 10 ms on 1.9 for four seconds."""
    log = Log()
    log.steps([10] * 400)
    begun = START - 8_000 * MS
    found = step_cores(command(begun), log.trace(), [sampled([1.0] * 80 + [1.9] * 40, begun)])
    assert found.shown["cores_used_steps"].value == pytest.approx(1.9)
    assert found.shown["startup_time"].value == 8_010 * MS
    used = found.verdict["cores_used"]
    assert (used.low, used.high) == (pytest.approx(1.9), pytest.approx(1.9))
    assert used.source == "torch pass, its steps, telemetry"


def test_start_up_ends_with_the_first_step_also_where_a_capture_window_follows() -> None:
    """A first step of 800 ms, 20 that a profiler slows, 20 s of writing the trace, 400 after it:
    the figures are of those 400, start-up is over before all of them.
    """
    log = Log()
    starts, ends = log.steps([800] + [10] * 5 + [25] * 20 + [20_000] + [10] * 400)
    log.window(starts[6] + 1000, ends[25] - 1000)
    begun = START - 8_000 * MS
    found = step_cores(command(begun), log.trace(), [sampled([1.0] * 400, begun)])
    assert found.shown["startup_time"].value == 8_800 * MS


def test_start_up_is_not_told_where_only_a_capture_window_shows_steps() -> None:
    log = Log()
    log.steps([10] * 400)
    log.sources = [replace(log.sources[0], layer="torch", format="kineto")]
    found = step_cores(command(START - 8_000 * MS), log.trace(), [sampled([1.0] * 120, START)])
    assert set(found.shown) == {"cores_used_steps"}


def test_the_interval_is_that_of_ten_parts() -> None:
    log = Log()
    log.steps([10] * 400)
    cores = [0.8, 1.2] * 20
    cores[20:] = [value + 0.2 for value in cores[20:]]
    used = step_cores(command(START), log.trace(), [sampled(cores, START)]).verdict["cores_used"]
    spread = float(np.std([1.0] * 5 + [1.2] * 5, ddof=1))
    assert used.value == pytest.approx(1.1)
    assert used.high == pytest.approx(1.1 + 2.262 * spread / 10**0.5, rel=1e-6)
    assert used.low == pytest.approx(1.1 - 2.262 * spread / 10**0.5, rel=1e-6)


def test_less_than_a_second_of_steps_does_not_speak_for_itself() -> None:
    log = Log()
    log.steps([10] * 90)
    found = step_cores(command(START), log.trace(), [sampled([1.0] * 40, START)])
    assert (found.shown, found.verdict) == ({}, {})


def opening(used: float, low: float | None = None, high: float | None = None) -> str:
    figures = {
        "cores_used": Figure(value=used, unit="cores", low=low, high=high),
        "cores_allowed": Figure(value=2.0, unit="cores"),
        "cpu_sampled": Figure(value=5e9, unit="ns"),
    }
    told = cpu_verdict(figures, ())
    assert told is not None
    assert not isinstance(told, Withheld)
    return told.text.partition(":")[0]


@pytest.mark.parametrize(
    ("used", "low", "high", "said"),
    [
        (0.987, None, None, "About half of the cores busy"),
        (0.989, None, None, "About half of the cores busy"),
        (1.011, None, None, "About half of the cores busy"),
        (1.2, None, None, "Cores busy"),
        (1.2, 0.99, 1.4, "About half of the cores busy"),
        (0.95, 0.94, 0.96, "Cores idle"),
        (0.91, None, None, "About one core busy"),
        (0.89, None, None, "About one core busy"),
        (0.7, None, None, "The process waits"),
        (0.7, 0.5, 0.95, "About one core busy"),
        (1.9, None, None, "Cores busy"),
    ],
)
def test_a_word_does_not_flip_within_the_interval(
    used: float, low: float | None, high: float | None, said: str
) -> None:
    assert opening(used, low, high) == said
