"""The points of a scan over axes: a latency that is required is shown once, and the page opens with
the point that the scan recommends.
"""

from __future__ import annotations

from msgspec.structs import replace

from profharness.analysis.axes.records import AxesScan, AxisLevels
from profharness.analysis.records import Figure, PointSummary, Summary, Verdict
from profharness.report.page.verdict import headroom_tile, opening_verdict
from profharness.report.tables.scan import scan_table
from tests.report.samples import gpu_scan

SLOW = Verdict(kind="idle", text="The device is idle.", at_most=3.0)
FAST = Verdict(kind="memory", text="Saturated by memory bandwidth.", at_most=1.4)


def point(instances: int, **changed: object) -> PointSummary:
    name = f"i{instances}"
    made = PointSummary(
        point=name,
        backend="torch",
        batch_size=1,
        throughput=100.0 * instances,
        requests=220,
        parameters={"instances": instances},
        values={"p50_ms": 8.92 * instances},
        metrics={"latency_p50": Figure(value=8.88 * instances, unit="ms")},
        verdict=FAST if instances == 2 else SLOW,
    )
    return replace(made, **changed)


def scan(*points: PointSummary, requires: tuple[str, ...] = ("p50_ms <= 500",)) -> Summary:
    axes = AxesScan(
        axes=(AxisLevels(name="instances", values=(1, 2), is_number=True),),
        unit="jets/s",
        requires=requires,
        best="i2",
        recommended="i2",
    )
    return replace(gpu_scan(), points=points, axes=axes, verdict=SLOW)


def column(summary: Summary, title: str) -> list[str]:
    table = scan_table(summary)
    assert table is not None
    titles = [one.title for one in table.columns]
    assert titles.count(title) == 1, titles
    return [row[titles.index(title)].text for row in table.rows]


def test_a_latency_that_is_required_is_shown_once_as_the_limit_took_it() -> None:
    assert column(scan(point(1), point(2)), "latency p50") == ["8.920 ms", "17.84 ms"]


def test_the_99th_percentile_of_a_server_too() -> None:
    tail = {"latency_p99": Figure(value=30.1, unit="ms")}
    points = [point(n, mode="closed", values={"p99_ms": 30.2}, metrics=tail) for n in (1, 2)]
    found = scan(*points, requires=("p99_ms <= 500",))
    assert column(found, "latency p99") == ["30.20 ms", "30.20 ms"]
    table = scan_table(found)
    assert table is not None
    assert "p99" not in [one.title for one in table.columns]


def test_one_that_is_not_required_or_that_no_point_has_is_the_trials_own() -> None:
    free = [point(n, values={"accuracy": 0.71}) for n in (1, 2)]
    assert column(scan(*free, requires=()), "latency p50") == ["8.880 ms", "17.76 ms"]
    assert column(scan(*free, requires=("accuracy >= 0.7",)), "accuracy") == ["0.71", "0.71"]


def test_a_script_may_name_its_figure_as_it_likes() -> None:
    """It need not be the latency of a request: it keeps its name, and stands beside the trials'."""
    found = scan(*(point(n, requests=None) for n in (1, 2)))
    assert column(found, "p50_ms") == ["8.920 ms", "17.84 ms"]
    assert column(found, "latency p50") == ["8.880 ms", "17.76 ms"]
    table = scan_table(found)
    assert table is not None
    (own,) = [one for one in table.columns if one.title == "p50_ms"]
    assert own.meaning == "a figure of the script, mean over the executions"


def test_a_failed_point_has_no_mark() -> None:
    failed = point(1, state="failed", error="it ended", kept=False)
    assert column(scan(failed, point(2)), "") == ["", "best, recommended"]


def test_the_page_opens_with_the_recommended_point_and_not_with_all_settings_in_turn() -> None:
    found = scan(point(1), point(2))
    assert opening_verdict(found) == "At instances 2: saturated by memory bandwidth."
    tile = headroom_tile(found)
    assert tile is not None
    assert (tile.text, tile.note) == ("1.40", "times as fast at most at instances 2")


def test_of_a_point_without_a_verdict_it_says_what_that_takes() -> None:
    found = scan(point(1), point(2, verdict=None, verdict_needs="a longer time"))
    assert opening_verdict(found) == "At instances 2: no verdict: needs a longer time"
    assert headroom_tile(found) is None
    assert opening_verdict(scan(point(1), point(2, verdict=None))) == ""
