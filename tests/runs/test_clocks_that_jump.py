"""Runs on a host whose wall clock is set, or that sleeps, while they measure."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness.trace.model import Samples
from profharness.understand.load_run import load_run
from tests.fakes.clock import Clock

_WORK = "import time; end = time.monotonic() + 2.5\nwhile time.monotonic() < end: time.sleep(0.01)"


def _summary(place: Path, clock: Clock, move: str, by_s: float) -> dict[str, Any]:
    """Of a command in whose second second the clock moves; `--exit-limit` would end it at once, if
    it went by any clock that does.
    """
    run = place / "run"
    asked = ["run", "-o", str(run), "--exit-limit", "60", "--", sys.executable, "-c", _WORK]
    with subprocess.Popen(
        [sys.executable, "-m", "profharness", *asked],
        env={**os.environ, **clock.env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as started:
        clocks, given_up = run / "telemetry", time.monotonic() + 60
        # two readings of all clocks: the sampler takes one per second
        while _readings(clocks) < 2 and time.monotonic() < given_up:
            time.sleep(0.01)
        getattr(clock, move)(by_s)
        said, _ = started.communicate(timeout=120)
    assert started.returncode == 0, said
    assert "Traceback" not in said
    found: dict[str, Any] = json.loads((run / "summary.json").read_bytes())
    return found


def _readings(folder: Path) -> int:
    return sum(path.read_bytes().count(b"\n") for path in folder.glob("*.clocks.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("by_s", [-3600.0, pytest.param(7200.0, marks=pytest.mark.thorough)])
def test_a_wall_clock_that_is_set_moves_nothing(tmp_path: Path, by_s: float) -> None:
    summary = _summary(tmp_path, Clock(tmp_path), "set_wall", by_s)
    (told,) = [one for one in summary["findings"] if one["id"] == "clock-stepped"]
    assert told["severity"] == "info"
    assert abs(told["figures"]["step_ns"] - abs(by_s) * 1e9) < 1e8
    assert ("back" if by_s < 0 else "forward") in told["message"]
    (done,) = [one for one in summary["passes"] if one["state"] == "done"]
    assert 2 < done["seconds"] < 60
    samples = _samples(tmp_path)
    assert np.ptp(samples.at_ns) < 60e9
    assert (samples.until_ns >= samples.at_ns).all()


@pytest.mark.slow
def test_a_host_that_slept_is_told_and_nothing_is_judged(tmp_path: Path) -> None:
    summary = _summary(tmp_path, Clock(tmp_path), "sleep", 1800.0)
    (told,) = [one for one in summary["findings"] if one["id"] == "suspended-host"]
    assert abs(told["figures"]["slept_during_run_ns"] - 1800e9) < 1e9
    assert "clock-stepped" not in {one["id"] for one in summary["findings"]}
    assert summary["verdict"] is None
    assert "does not sleep" in summary["verdict_needs"]
    samples = _samples(tmp_path)
    assert 1800e9 < np.ptp(samples.at_ns) < 1860e9
    assert (samples.until_ns >= samples.at_ns).all()


def _samples(place: Path) -> Samples:
    """The run's telemetry on the run's clock."""
    samples = load_run(place / "run").trace.samples
    assert len(samples) > 10
    return samples
