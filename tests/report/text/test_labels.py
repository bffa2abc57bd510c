from __future__ import annotations

import pytest

from profharness.analysis.records import Figure, PointSummary, Summary, TraceCounts
from profharness.findings import finding
from profharness.report.page.findings import finding_boxes
from profharness.report.tables.figures import point_figures
from profharness.report.text.labels import point_name, point_names
from profharness.report.text.limits import label_of
from tests.report.samples import gpu_scan
from tests.steps import calls_of


def test_the_names_of_points_are_those_of_each_alone() -> None:
    summary = gpu_scan()
    assert point_names(summary, summary.points) == tuple(
        point_name(summary, point) for point in summary.points
    )
    assert len(set(point_names(summary, summary.points))) == len(summary.points)


def test_figures_of_many_points_take_as_many_steps_as_there_are_points() -> None:
    def summary(count: int) -> Summary:
        figure = Figure(value=1.0, unit="s", source="trials")
        points = tuple(
            PointSummary(point=f"b{size}", batch_size=size, metrics={"launch_latency": figure})
            for size in range(1, count + 1)
        )
        return Summary(source="run", trace=TraceCounts(), points=points)

    few, many = summary(100), summary(1000)
    assert [name for name, _ in point_figures(few, few.points)][:2] == ["batch 1", "batch 2"]
    once = calls_of(lambda: point_figures(few, few.points))
    assert (
        calls_of(lambda: point_figures(many, many.points)) < 15 * once
    )  # each once, not a step for each pair


def test_findings_of_many_points_take_as_many_steps_as_there_are_findings() -> None:
    def summary(count: int) -> Summary:
        points = tuple(
            PointSummary(point=f"b{size}", batch_size=size, metrics={})
            for size in range(1, count + 1)
        )
        found = tuple(
            finding("drift", "it drifts", point=one.point, drift_share=0.1) for one in points
        )
        return Summary(source="run", trace=TraceCounts(), points=points, findings=found)

    few, many = summary(100), summary(1000)
    assert finding_boxes(few)[0].lines[0] == "batch 1: it drifts (drift 10.0 %)"
    assert calls_of(lambda: finding_boxes(many)) < 15 * calls_of(lambda: finding_boxes(few))


@pytest.mark.parametrize(
    ("kind", "label"),
    [
        ("idle-waiting", "waiting"),
        ("idle-launch-in-progress", "launches"),
        ("copy", "copies"),
        ("undetermined", "undetermined"),
        ("of-a-later-version", "of-a-later-version"),
        ("", ""),
    ],
)
def test_the_label_of_a_kind_of_verdict(kind: str, label: str) -> None:
    assert label_of(kind) == label
