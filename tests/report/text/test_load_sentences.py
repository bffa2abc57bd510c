"""The answer of a served scan: where its knee is, or that it is not known; what one level alone can
say.
"""

from __future__ import annotations

import msgspec
import pytest

from profharness.analysis.curves.records import Knee, Recommended, Series
from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.findings import finding
from profharness.report.page import content as page
from profharness.report.text.labels import point_name
from profharness.report.text.sentences import sentences
from tests.report.samples import cpu_scan, empty


def level(concurrency: int, rate: float, *, p99: Figure | None = None) -> PointSummary:
    metrics = {"throughput": Figure(value=rate, unit="items/s", low=0.99 * rate, high=1.01 * rate)}
    return PointSummary(
        point=f"torch-b1-c{concurrency}",
        backend="torch",
        batch_size=1,
        concurrency=concurrency,
        mode="closed",
        throughput=rate,
        metrics=metrics if p99 is None else {**metrics, "latency_p99": p99},
    )


def scan(
    rates: dict[int, float], *, recommended: int, limit: str = "", p99: Figure | None = None
) -> Summary:
    """A search that says that its peak lies beyond its range."""
    points = tuple(level(at, rate, p99=p99) for at, rate in rates.items())
    series = Series(
        key={"backend": "torch"},
        axis="concurrency",
        levels=tuple(map(float, rates)),
        throughput=tuple(rates.values()),
        throughput_sem=(None,) * len(rates),
        latency_ms=(None,) * len(rates),
        knee=Knee(n=47.3, low=33.3, high=61.2),
        jobs_per_device=43,
        recommended=Recommended(at=recommended, throughput=rates[recommended]),
        findings=(finding("peak-beyond-range", "beyond"),),
    )
    run = cpu_scan().run
    assert run is not None
    return msgspec.structs.replace(
        empty(),
        points=points,
        series=(series,),
        run=msgspec.structs.replace(run, asked={"latency_limit": limit} if limit else {}),
    )


def test_a_curve_that_still_rises_bounds_its_knee_from_below_only() -> None:
    summary = scan({1: 40.0, 64: 900.0, 128: 1535.0}, recommended=128)
    said = sentences(summary).answer
    assert "Not full in this scan: throughput still rises at concurrency 128" in said
    assert (
        "The knee is at 47.3 clients (33.3 to 61.2) or more: plan with at least 43 jobs per device."
        in said
    )
    fits = page.fit_table(summary)
    assert fits is not None
    assert [row[2].text for row in fits.rows if row[1].text in ("knee", "jobs per device")] == [
        "at least 47.30 (33.30 to 61.20)",
        "at least 43",
    ]


def test_a_curve_that_is_flat_at_its_end_does_not_rise() -> None:
    said = sentences(scan({1: 40.0, 128: 1343.0, 256: 1344.0}, recommended=128)).answer
    assert "gives its best from concurrency 128" in said
    assert "The knee is at 47.3 clients (33.3 to 61.2): plan with 43 jobs per device." in said


@pytest.mark.parametrize(
    ("p99", "words"),
    [
        (
            Figure(value=None, unit="ms", needs="1000 requests"),
            (
                "No level is known to keep the p99 of 60 ms; small ones need 1000 requests to "
                "tell: raise --time."
            ),
        ),
        (Figure(value=75.0, unit="ms"), "No level is known to keep the p99 of 60 ms."),
        (
            Figure(value=55.0, unit="ms"),
            "Within the p99 of 60 ms it gives 1.34 k items/s at concurrency 128.",
        ),
    ],
)
def test_a_latency_limit_is_answered(p99: Figure, words: str) -> None:
    assert (
        words
        in sentences(
            scan({1: 40.0, 128: 1344.0}, recommended=128, limit="p99=60ms", p99=p99)
        ).answer
    )


def test_one_level_is_named_by_its_load_and_asks_for_more_of_it() -> None:
    run = cpu_scan().run
    summary = msgspec.structs.replace(empty(), points=(level(2, 99.0),), run=run)
    assert point_name(summary, summary.points[0]) == "concurrency 2"
    said = sentences(summary)
    assert "at concurrency 2" in said.answer
    assert said.next == (
        "Scan several levels, such as --concurrency 1..64, to see where the throughput levels off."
    )
    opened = msgspec.structs.replace(level(2, 99.0), concurrency=None, rate=10.0, mode="open")
    assert point_name(msgspec.structs.replace(summary, points=(opened,)), opened) == "10 requests/s"


def test_the_report_of_another_model_is_called_by_the_model() -> None:
    summary = cpu_scan()
    assert summary.run is not None
    run = msgspec.structs.replace(
        summary.run, scan="particlenet", asked={"model": "/models/tagger.onnx,sleep:5ms"}
    )
    assert page.title(msgspec.structs.replace(summary, run=run)) == "tagger.onnx, sleep:5ms"
    assert (
        page.title(
            msgspec.structs.replace(
                summary, run=msgspec.structs.replace(run, asked={"model": "particlenet"})
            )
        )
        == "particlenet"
    )


def test_a_server_elsewhere_is_not_told_to_be_profiled_from_here() -> None:
    summary = scan({1: 40.0, 2: 40.2}, recommended=1)
    assert summary.run is not None
    assert "add --profile" in sentences(summary).next
    remote = msgspec.structs.replace(
        summary, run=msgspec.structs.replace(summary.run, asked={"url": "grpc://node:8001"})
    )
    said = sentences(remote)
    assert said.next == (
        "Why it is not faster can be measured where the server starts: profile it there, "
        "by --server-command."
    )
    assert said.answer.startswith("This server gives its best from concurrency 1")
