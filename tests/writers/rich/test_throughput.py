"""Throughput is one counter per pass and backend, in the unit of the scan's items."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from profharness.trace.columns.table import concat
from profharness.trace.model import Samples, Source, Strings, Trace
from profharness.writers.options import WriteOptions
from profharness.writers.perfetto import write
from tests.trace_processor import LoadTrace, errors, load_trace, trace_processor_folder  # noqa: F401  fixtures
from tests.writers.decode import decode


def scan(*points: tuple[str, str, int]) -> Trace:
    """A trial of 10 ns and one of 5 ns in each point: (pass, point, start)."""
    sources = tuple(
        Source(f"{name}/{point}", "trials", host="n0", pass_name=name, point=point)
        for name, point, _ in points
    )
    starts = [at for _, _, start in points for at in (start, start + 10)]
    samples = Samples.build(
        at_ns=starts,
        until_ns=[at + length for at, length in zip(starts, (10, 5) * len(points), strict=True)],
        metric=0,
        value=[float(number) for number in range(len(starts))],
        source=[number for number in range(len(points)) for _ in range(2)],
    )
    return Trace(sources, Strings(("throughput",)), samples=samples)


def series(path: Path) -> dict[tuple[str, ...], list[tuple[int, float]]]:
    """The values of each counter track, by the names above it and its own."""
    got = decode(path)
    found: dict[tuple[str, ...], list[tuple[int, float]]] = {}
    for track, at, value in got.counters:
        found.setdefault(got.path(track), []).append((at, value))
    return found


def test_the_points_of_one_backend_are_one_series(tmp_path: Path) -> None:
    trace = scan(("bare", "torch-b1", 0), ("bare", "torch-b4", 20), ("bare", "ort-b1", 40))
    write(trace, tmp_path / "m.pftrace")
    assert series(tmp_path / "m.pftrace") == {
        ("Telemetry · bare · torch · n0", "throughput"): [
            *((0, 0.0), (10, 1.0), (15, 1.0)),
            *((20, 2.0), (30, 3.0), (35, 3.0)),
        ],
        ("Telemetry · bare · ort · n0", "throughput"): [(40, 4.0), (50, 5.0), (55, 5.0)],
    }


def test_points_that_ran_at_once_keep_their_own_series(tmp_path: Path) -> None:
    write(scan(("bare", "torch-b1", 0), ("bare", "torch-b4", 5)), tmp_path / "m.pftrace")
    tracks = Counter(t.name for t in decode(tmp_path / "m.pftrace").tracks.values())
    assert tracks["throughput"] == 2


def test_files_of_no_pass_are_not_joined(tmp_path: Path) -> None:
    write(scan(("", "torch-b1", 0), ("", "torch-b4", 20)), tmp_path / "m.pftrace")
    tracks = Counter(t.name for t in decode(tmp_path / "m.pftrace").tracks.values())
    assert tracks["throughput"] == 2


@pytest.mark.slow
def test_a_trace_processor_finds_the_unit_of_the_items(
    tmp_path: Path,
    load_trace: LoadTrace,  # noqa: F811
) -> None:
    trace = scan(("bare", "torch-b1", 0), ("bare", "torch-b4", 20))
    more = Samples.build(at_ns=[3], until_ns=[3], metric=1, value=[7.0], source=0)
    strings = Strings(("throughput", "power_w"))
    whole = replace(trace, strings=strings, samples=concat([trace.samples, more]))
    write(whole, tmp_path / "m.pftrace", options=WriteOptions(rate_unit="jets/s"))
    client = load_trace(tmp_path / "m.pftrace")
    assert errors(client) == []
    rows = client.query("SELECT name, unit FROM counter_track")
    assert [(r.name, r.unit) for r in rows] == [("throughput", "jets/s"), ("power_w", "W")]
    values = client.query("SELECT count(*) AS n, sum(value) AS total FROM counter")
    assert [(r.n, r.total) for r in values] == [(7, 0.0 + 1 + 1 + 2 + 3 + 3 + 7)]
