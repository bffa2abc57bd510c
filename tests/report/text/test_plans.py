"""What the answer, the next step, the table and the JSON say of plans of processes by cores."""

from __future__ import annotations

import json

from msgspec.structs import replace

from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.analysis.verdict.cpu import QUIET_NODE
from profharness.report import json as as_json
from profharness.report.tables.scan import scan_table
from profharness.report.text.labels import point_names
from profharness.report.text.scan_sentences import answer, next_step
from tests.report.samples import cpu_scan


def plan(
    processes: int, cores: int, rate: float, half: float = 2.0, **more: object
) -> PointSummary:
    fields: dict[str, object] = {"backend": "torch", "batch_size": 16, "verdict_needs": "x"}
    return PointSummary(
        point=f"torch-b16-n{processes}-c{cores}",
        processes=processes,
        cores_per_process=cores,
        throughput=rate,
        trials=50,
        metrics={
            "throughput": Figure(value=rate, unit="jets/s", low=rate - half, high=rate + half)
        },
        **{**fields, **more},
    )


def scan(*points: PointSummary) -> Summary:
    return replace(cpu_scan(), points=points, series=())


EIGHT = (plan(1, 8, 50), plan(2, 4, 80), plan(4, 2, 100), plan(8, 1, 90))


def test_the_best_plan_is_named_with_what_the_others_reach() -> None:
    summary = scan(*EIGHT)
    said = answer(summary)
    assert said.startswith("Best of 4 plans is 100.0 ± 2.0 jets/s at 4 processes of 2 cores. ")
    assert "8 processes of 1 core 0.90 x (0.87 to 0.93); " in said
    assert "1 process of 8 cores 0.50 x (" in said
    assert said.endswith("No interval reaches 1: it is proven best.")
    assert next_step(summary) == "Use --streams 4 --cores-per-process 2."


def test_a_plan_that_may_be_as_fast_leaves_it_open() -> None:
    summary = scan(*EIGHT[:3], plan(8, 1, 99))
    assert answer(summary).endswith(
        "The intervals reach 1 for 8 processes of 1 core: the best is not proven."
    )
    assert "Repeat on a quiet node with a longer --time" in next_step(summary)


def test_where_other_work_held_the_cores_no_plan_is_called_best() -> None:
    summary = scan(plan(1, 2, 50), plan(2, 1, 80, verdict_needs=QUIET_NODE))
    assert "does not tell the levels apart" in answer(summary)
    assert "Best of" not in answer(summary)
    assert "--streams" not in next_step(summary)


def test_backends_and_batches_are_named_where_they_differ() -> None:
    other = replace(plan(2, 1, 90, batch_size=4), backend="onnxruntime", point="o")
    summary = scan(plan(1, 2, 50), other)
    said = answer(summary)
    assert "2 processes of 1 core, batch 4 (onnxruntime)" in said
    assert "1 process of 2 cores, batch 16 (torch)" in said
    assert point_names(summary, summary.points) == (
        "1 process of 2 cores, batch 16 (torch)",
        "2 processes of 1 core, batch 4 (onnxruntime)",
    )


def test_the_table_tells_plans_by_both_numbers() -> None:
    table = scan_table(scan(*EIGHT))
    assert table is not None
    assert [column.title for column in table.columns][:2] == ["processes", "cores each"]
    assert [(row[0].text, row[1].text) for row in table.rows] == [
        ("1", "8"),
        ("2", "4"),
        ("4", "2"),
        ("8", "1"),
    ]


def test_json_has_the_comparison() -> None:
    document = json.loads(as_json.run_json(scan(*EIGHT)))
    assert document["plans"]["best"] == "torch-b16-n4-c2"
    assert document["plans"]["overlaps_best"] == []
    shares = {one["point"]: one["of_best"]["value"] for one in document["plans"]["plans"]}
    assert shares["torch-b16-n2-c4"] == 0.8
    assert document["points"][0]["cores_per_process"] == 8
    assert "plans" not in json.loads(as_json.run_json(cpu_scan()))
