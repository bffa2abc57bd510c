"""Models alone and together: exact arithmetic on requests that were made by hand."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from profharness.analysis.load.run_levels import LoadedLevel
from profharness.analysis.load.sharing import by_model, shared_levels
from profharness.analysis.records import Figure, PointSummary
from profharness.report.json import run_json
from profharness.report.tables.load.sharing import sharing_table
from profharness.report.text import load_sentences
from profharness.report.text.sentences import sentences
from profharness.report.text.terminal import render
from profharness.rundir.levels import TOGETHER, Level, ServerStats
from profharness.stats.estimate import Estimate
from profharness.stats.throughput import Drift
from profharness.trace.model import Requests
from tests.report.samples import cpu_scan

S, MS = 1_000_000_000, 1_000_000
STEADY = Drift(0.0, significant=False)
KEY = "together-b4-c2"


def loop(client: int, slots: int, service_ns: int, items: int) -> list[tuple[int, int, int, int]]:
    """`slots` requests in flight of one client process for 10 s: (sent, done, client, items)."""
    return [
        (at, at + service_ns, client, items)
        for _ in range(slots)
        for at in range(0, 10 * S, service_ns)
    ]


def loaded() -> LoadedLevel:
    """Model a has two client processes of one slot each and takes 20 ms; b has one process of two
    slots and takes 50 ms; batches of 4.
    """
    rows = sorted((*loop(0, 1, 20 * MS, 4), *loop(1, 1, 20 * MS, 4), *loop(2, 2, 50 * MS, 4)))
    sent, done, client, items = np.array(rows, np.int64).T
    level = Level(
        mode="closed",
        concurrency=4,
        window_start_ns=0,
        window_end_ns=10 * S,
        clients=3,
        models=("a", "a", "b"),
        cpu_ns=S,
        server_stats={
            "a": ServerStats(success=1000, count=4000, exec_count=1000),
            "b": ServerStats(success=400, count=1600, exec_count=400),
        },
    )
    return LoadedLevel(
        level,
        Requests.build(
            len(rows),
            intended_ns=sent,
            sent_ns=sent,
            done_ns=done,
            think_ns=0,
            items=items,
            ok=1,
            client=client,
        ),
    )


def point(
    backend: str,
    rate: float,
    p50: float,
    *,
    low: float | None = None,
    high: float | None = None,
    concurrency: int = 2,
) -> PointSummary:
    figure = Figure(value=rate, unit="items/s", low=low, high=high)
    return PointSummary(
        point=f"{backend}-b4-c{concurrency}",
        backend=backend,
        batch_size=4,
        concurrency=concurrency,
        mode="closed",
        throughput=rate,
        metrics={"throughput": figure, "latency_p50": Figure(value=p50, unit="ms")},
    )


POINTS = (
    point("a", 800.0, 10.0, low=760.0, high=840.0),
    point("b", 160.0, 50.0, low=150.0, high=170.0),
    point(TOGETHER, 560.0, 30.0),
)


def test_the_requests_of_a_shared_level_fall_apart_by_client() -> None:
    figures = by_model(loaded())
    assert {name: one.throughput.value for name, one in figures.items()} == pytest.approx(
        {"a": 400.0, "b": 160.0}
    )
    assert sum(one.throughput.value or 0 for one in figures.values()) == pytest.approx(
        loaded().figures.throughput.value
    )
    assert all(one.little.holds and one.little.expected == 2 for one in figures.values()), (
        "each has half of the requests in flight"
    )
    assert all(
        one.generator.cpu_share is None and one.batches is None for one in figures.values()
    ), "what is of all models is no figure of one"


def test_the_slowdown_is_the_rate_alone_over_the_rate_together() -> None:
    (level,) = shared_levels(POINTS, {("bare", KEY): loaded()}, "bare", {"": STEADY})
    assert (level.point, level.batch_size, level.concurrency, level.total.value) == (
        KEY,
        4,
        2,
        560.0,
    )
    a, b = level.models
    assert (a.target, a.alone, a.latency_alone_ms) == (
        "a",
        Estimate(value=800.0, low=760.0, high=840.0),
        10.0,
    )
    assert a.slowdown.value == pytest.approx(2.0)
    assert b.slowdown.value == pytest.approx(1.0)
    assert (a.latency_together_ms, b.latency_together_ms) == (
        pytest.approx(20.0),
        pytest.approx(50.0),
    )
    assert a.together.low is not None
    assert a.together.high is not None
    assert a.slowdown.low == pytest.approx(760.0 / a.together.high)
    assert a.slowdown.high == pytest.approx(840.0 / a.together.low)


def test_drift_widens_what_was_found_together() -> None:
    steady, drifting = (
        shared_levels(POINTS, {("bare", KEY): loaded()}, "bare", {"": drift})[0].models[0].together
        for drift in (STEADY, Drift(-0.1, significant=True))
    )
    assert steady.low is not None
    assert steady.high is not None
    assert (drifting.low, drifting.high) == (
        pytest.approx(steady.low - 40.0),
        pytest.approx(steady.high + 40.0),
    )


def test_a_model_that_failed_alone_has_no_slowdown_and_other_passes_do_not_count() -> None:
    (level,) = shared_levels(POINTS[1:], {("bare", KEY): loaded()}, "bare", {"": STEADY})
    assert [one.slowdown.value for one in level.models] == [None, pytest.approx(1.0)]
    assert shared_levels(POINTS, {("torch", KEY): loaded()}, "bare", {"": STEADY}) == ()
    assert shared_levels(POINTS[:2], {("bare", KEY): loaded()}, "bare", {"": STEADY}) == ()


def test_the_reports_show_both_and_say_what_may_be_noise() -> None:
    shared = shared_levels(POINTS, {("bare", KEY): loaded()}, "bare", {"": STEADY})
    summary = msgspec.structs.replace(cpu_scan(), points=POINTS, sharing=shared)
    said = load_sentences.shared_sentence(summary)
    assert said == (
        "Together the 2 models give 560 items/s at concurrency 2 each; sharing slows them: "
        "a 2.00 times, b 1.00 times (within noise)."
    )
    table = sharing_table(summary)
    assert table is not None
    assert [[cell.text for cell in row][1:3] for row in table.rows] == [
        ["a", "800 ± 40"],
        ["b", "160 ± 10"],
        ["all", "960"],
    ]
    assert "2.00 (" in render(summary, 110, color=False)
    answer = json.loads(run_json(summary))
    assert [one["target"] for one in answer["sharing"][0]["models"]] == ["a", "b"]
    alone = msgspec.structs.replace(summary, sharing=())
    assert load_sentences.shared_sentence(alone) == ""
    assert sharing_table(alone) is None
    assert "sharing" not in json.loads(run_json(alone))


def test_one_shared_level_is_answered_though_there_is_no_curve() -> None:
    shared = shared_levels(POINTS, {("bare", KEY): loaded()}, "bare", {"": STEADY})
    said = sentences(
        msgspec.structs.replace(cpu_scan(), points=POINTS, series=(), sharing=shared)
    ).answer
    assert said.startswith("The best of 2 points is concurrency 2 (a): 800 ± 40 items/s")
    assert "Together the 2 models give 560 items/s at concurrency 2 each" in said
    failed = tuple(
        msgspec.structs.replace(one, throughput=None, state="failed") for one in POINTS[:2]
    )
    assert sentences(
        msgspec.structs.replace(cpu_scan(), points=(*failed, POINTS[2]), series=(), sharing=shared)
    ).answer.startswith("The best of 2 points is concurrency 2 (together)")
