"""The sampler's clock readings align what a process stamps, as its own bracketed markers show."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir import clock_files
from profharness.telemetry.clocks import read_clocks
from profharness.trace.clocks.align import align, conversion
from profharness.trace.clocks.checks import clock_findings, marker_check
from profharness.trace.model import ClockDomain, Marks, Source, Strings, Trace
from tests.telemetry.running import Sampler

CLOCKS = {
    ClockDomain.REALTIME: time.CLOCK_REALTIME,
    ClockDomain.MONOTONIC_RAW: time.CLOCK_MONOTONIC_RAW,
    ClockDomain.BOOTTIME: time.CLOCK_BOOTTIME,
    ClockDomain.MONOTONIC: time.CLOCK_MONOTONIC,
}


@pytest.mark.slow
def test_markers_on_every_clock_contain_no_error(tmp_path: Path) -> None:
    with Sampler(tmp_path, hz=10) as sampler:
        sampler.ready()
        spans = {clock: [] for clock in CLOCKS}
        for _ in range(20):
            for clock, number in CLOCKS.items():
                before = time.monotonic_ns()
                start = time.clock_gettime_ns(number)
                end = time.clock_gettime_ns(number)
                spans[clock].append((before, start, end, time.monotonic_ns()))
            time.sleep(0.06)
        sampler.stop()
    read = clock_files.read_clocks(sampler.file("clocks.jsonl"))
    allowed = max(snapshot.width_ns for snapshot in read)
    to_run = conversion(read, ClockDomain.MONOTONIC, ClockDomain.BOOTTIME)
    for clock, found in spans.items():
        before, start, end, after = np.array(found, np.int64).T
        trace = Trace(
            (Source("self", "test", clock, "node"),),
            Strings(),
            marks=Marks.build(start_ns=start, dur_ns=end - start, source=0),
        )
        aligned = align(trace, {"node": read}, "node").marks
        check = marker_check(
            aligned.start_ns, aligned.start_ns + aligned.dur_ns, to_run(before), to_run(after)
        )
        assert check is not None
        assert abs(check.residual_ns) <= allowed, clock
        assert check.bound_ns < 100_000
        assert clock_findings(trace, {"node": read}) == ()


def test_a_reading_holds_all_clocks_at_one_instant() -> None:
    before = {clock: time.clock_gettime_ns(number) for clock, number in CLOCKS.items()}
    reading = read_clocks()
    after = {clock: time.clock_gettime_ns(number) for clock, number in CLOCKS.items()}
    values = {
        ClockDomain.REALTIME: reading.realtime_ns,
        ClockDomain.MONOTONIC_RAW: reading.monotonic_raw_ns,
        ClockDomain.BOOTTIME: reading.boot_ns,
        ClockDomain.MONOTONIC: reading.monotonic_ns,
    }
    for clock, value in values.items():
        assert before[clock] - reading.width_ns <= value <= after[clock] + reading.width_ns
    assert reading.width_ns > 0
    again = read_clocks()
    assert again.boot_ns - reading.boot_ns == pytest.approx(
        again.monotonic_ns - reading.monotonic_ns, abs=reading.width_ns + again.width_ns
    )
