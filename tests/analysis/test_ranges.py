"""Shares of a window in which work may not be recorded: ranges in figures, verdicts, joined files
and comparisons, and no point that would be false.
"""

from __future__ import annotations

import json

import pytest

from profharness.analysis.certificate.criterion import at_least
from profharness.analysis.compare.gate import breaches, parse
from profharness.analysis.compare.runs import compare
from profharness.analysis.files_figure import figure_of_files
from profharness.analysis.records import Figure, Summary
from profharness.analysis.summarise import summarise_trace
from profharness.errors import UsageError
from profharness.report.json import summary_json
from profharness.report.md.metrics import metrics_markdown
from profharness.report.tables.figures import figure_values, figures_table, unmeasured
from profharness.report.text.comparison import comparison_text
from profharness.report.text.figures import figure_text
from profharness.report.text.metrics import metrics_text
from profharness.trace.model import Device
from tests.analysis.scene import Scene

US, MS = 1_000, 1_000_000
GPU = Device("0", name="MI210", vendor="AMD", compute_units=104)


def steps_of(busy: int, unknown: int, host: int, count: int = 20, name: str = "k") -> Scene:
    """Steps of a kernel, of time in which the host does nothing, and of a second kernel that is
    late by so much; all in ns.
    """
    scene = Scene(devices=(GPU,))
    at = 0
    for _ in range(count):
        first = scene.launch(at, at + 2 * US)
        scene.kernel(at + 5 * US, at + 5 * US + busy, first, name=name, workgroups=500)
        at += 5 * US + busy + host
        late = scene.launch(at, at + 2 * US)
        begin = at + 2 * US + MS + unknown  # 1 ms is the usual latency of so few starts
        scene.kernel(begin, begin + 10 * US, late, name=name, workgroups=500)
        at = begin + 10 * US
    return scene


def summary_of(scene: Scene) -> Summary:
    return summarise_trace(scene.build(), "made.json")


def test_shares_are_ranges_and_the_parts_are_not():
    summary = summary_of(steps_of(10 * MS, 30 * MS, 5 * MS))
    split = summary.partition
    assert split is not None
    assert split.idle_or_not_recorded_ns == 20 * 30 * MS
    busy, idle = summary.metrics["busy"], summary.metrics["idle"]
    assert busy.value is idle.value is None
    unknown = split.idle_or_not_recorded_ns / split.window_ns
    assert busy.low == pytest.approx(split.compute_ns / split.window_ns)
    assert busy.high == pytest.approx(split.compute_ns / split.window_ns + unknown)
    assert idle.low is not None
    assert idle.high is not None
    assert (idle.low, idle.high) == pytest.approx((1 - busy.high, 1 - busy.low))
    assert summary.metrics["idle_host_not_ready"].value == pytest.approx(
        20 * 5 * MS / split.window_ns, rel=1e-3
    )
    assert summary.metrics["sum_busy"].high is None
    gap = summary.metrics["idle_longest_gap"]
    assert gap.value is None
    assert gap.low is not None
    assert gap.high is not None
    assert gap.high - gap.low == 30 * MS


def test_what_would_not_be_seen_makes_no_range():
    summary = summary_of(steps_of(100 * MS, 30 * US, 5 * MS))
    split = summary.partition
    assert split is not None
    assert 0 < split.idle_or_not_recorded_ns < 0.0005 * split.window_ns
    busy, idle = summary.metrics["busy"].value, summary.metrics["idle"].value
    assert busy is not None
    assert idle is not None
    assert busy + idle == pytest.approx(1)
    assert "not recorded" not in metrics_text(summary)


def test_the_verdict_holds_where_both_ends_say_the_same():
    summary = summary_of(steps_of(10 * MS, 5 * MS, 60 * MS))
    split, verdict = summary.partition, summary.verdict
    assert split is not None
    assert verdict is not None
    assert verdict.kind == "idle-host-not-ready"
    # the gain is that of the idle time that is known
    assert verdict.at_most == pytest.approx(split.window_ns / (split.window_ns - split.idle_ns))
    assert "without this idle time the work would run at most" in verdict.text
    share = 100 * split.idle_or_not_recorded_ns / split.window_ns
    assert f"{share:.1f} % of the time is idle or not recorded" in verdict.text


def test_no_verdict_where_the_ends_differ():
    summary = summary_of(steps_of(10 * MS, 60 * MS, 5 * MS))
    assert summary.verdict is None
    assert summary.verdict_needs.startswith("all work of the device")
    assert summary.verdict_needs.endswith("of the time is idle or not recorded")


def test_every_form_says_the_range():
    summary = summary_of(steps_of(10 * MS, 30 * MS, 5 * MS))
    split, figure = summary.partition, summary.metrics["busy"]
    assert split is not None
    low, high = 100 * (figure.low or 0), 100 * (figure.high or 0)
    words = f"{low:.1f} to {high:.1f} %"
    unknown = 100 * split.idle_or_not_recorded_ns / split.window_ns
    assert figure_text(figure) == words
    text = metrics_text(summary)
    assert f"window    busy {words}   compute {low:.1f} %" in text
    assert f"not recorded {unknown:.1f} %" in text
    assert words in metrics_markdown(summary)
    table = figures_table("all", summary.metrics)
    assert table is not None
    assert words in {cell.text for row in table.rows for cell in row}
    shown = json.loads(summary_json(summary))
    assert shown["metrics"]["busy"]["value"] is None
    assert shown["metrics"]["busy"]["low"] == figure.low
    assert shown["metrics"]["busy"]["high"] == figure.high
    assert shown["partition"]["idle_or_not_recorded_ns"] == split.idle_or_not_recorded_ns
    (row,) = [row for row in figure_values(summary).rows if row[1].value == "busy"]
    assert [row[place].value for place in (2, 4, 5)] == [None, figure.low, figure.high]
    assert "busy" not in [
        title for _, titles in unmeasured(summary) for title in titles.split(", ")
    ]


def test_a_figure_with_one_end_says_so():
    assert figure_text(Figure(value=None, unit="share", low=0.25)) == "25.0 % or more"
    assert figure_text(Figure(value=None, unit="ns", low=MS, high=2 * MS)) == "1.000 ms to 2.000 ms"
    assert figure_text(Figure(value=None, unit="share", needs="x")) == "not measured: needs x"


def test_files_are_joined_end_by_end():
    wide = Figure(value=None, unit="share", low=0.2, high=0.8, note="why")
    found = figure_of_files([(wide, 100), (Figure(value=0.4, unit="share"), 300)], highest=False)
    assert found.value is None
    assert (found.low, found.high) == pytest.approx((0.35, 0.5))
    open_end = Figure(value=None, unit="share", low=0.2)
    assert figure_of_files([(open_end, 1), (wide, 1)], highest=False).high is None


def test_two_runs_are_compared_by_their_ranges():
    a, b = summary_of(steps_of(10 * MS, 30 * MS, 5 * MS)), summary_of(steps_of(20 * MS, 0, 5 * MS))
    found = {one.name: one for one in compare(a, b).run_ranges}
    assert not found["busy"].apart
    assert found["idle"].b.value is not None
    narrow = summary_of(steps_of(10 * MS, 3 * MS, 5 * MS))
    apart = {one.name: one for one in compare(narrow, b).run_ranges}
    assert apart["busy"].apart
    text = comparison_text(compare(narrow, b), ())
    assert "changed: the ranges lie apart" in text
    with pytest.raises(UsageError, match="of 'busy' only between which values"):
        breaches(compare(narrow, b), parse("busy<-5%"))


def test_a_criterion_is_met_only_by_the_whole_range():
    assert at_least(0.9, None, 0.92, 0.99) == "met"
    assert at_least(0.9, None, 0.2, 0.8) == "not met"
    assert at_least(0.9, None, 0.2, 0.95) == "not judged"
    assert at_least(0.9, None, None, None) == "not judged"
