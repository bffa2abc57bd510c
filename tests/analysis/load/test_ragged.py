"""Ways of ragged batching, from notes and statistics that were made by hand."""

from __future__ import annotations

import json

import msgspec
import numpy as np
import pytest

from profharness.analysis.load.ragged import of_levels, ragged_findings, ragged_ways
from profharness.analysis.load.ragged_records import RaggedWay
from profharness.analysis.load.run_levels import Levels, LoadedLevel
from profharness.analysis.records import Figure, PointSummary, Summary
from profharness.report.json import run_json
from profharness.report.page.content import content
from profharness.report.tables.load.ragged import ragged_table
from profharness.report.text.load_sentences import ragged_sentence
from profharness.report.text.terminal import render
from profharness.rundir.levels import Level, ServerStats
from profharness.rundir.manifest import PointRecord
from profharness.stats.throughput import Drift
from profharness.trace.model import Requests
from tests.report.samples import cpu_scan

COMPARED = {
    "answers_compared": "16",
    "answers_differ": "0",
    "answers_largest": "1.2e-07",
    "answers_met": "7",
}
OF_TRITON = {
    "ragged": "triton",
    "padded_share": "0.0000",
    "particles_per_item": "6.00",
    "ragged_executions": "50",
    "ragged_requests": "200",
    "ragged_shapes": "150",
    "ragged_mixed": "40",
    "ragged_most_shapes": "7",
    "ragged_shortest": "3",
    "ragged_longest": "9",
    "ragged_calls": "50",
    "ragged_filled_share": "0.2500",
    **COMPARED,
}


def record(way: str, notes: dict[str, str], backend: str = "torch") -> PointRecord:
    label = f"{backend}@{way}"
    return PointRecord(
        id=f"{label}-b2-c8", pass_name="bare", backend=label, batch_size=2, notes=notes
    )


def point(way: str, rate: float, backend: str = "torch") -> PointSummary:
    return PointSummary(
        point=f"{backend}@{way}-b2-c8",
        backend=f"{backend}@{way}",
        batch_size=2,
        concurrency=8,
        mode="closed",
        requests=200,
        throughput=rate,
        metrics={
            "throughput": Figure(value=rate, unit="items/s", low=rate - 1, high=rate + 1),
            "latency_p50": Figure(value=8e3 / rate, unit="ms"),
        },
    )


def level(requests: int, executions: int) -> LoadedLevel:
    stats = ServerStats(success=requests, count=2 * requests, exec_count=executions)
    none = np.zeros(0, np.int64)
    return LoadedLevel(
        Level(window_start_ns=0, window_end_ns=10**9, server_stats={"model": stats}),
        Requests.build(0, intended_ns=none),
    )


RECORDS = (
    record("none", {}),
    record("padded", {"ragged": "padded", "padded_share": "0.4000", **COMPARED}),
    record("triton", OF_TRITON),
)
POINTS = (point("none", 60), point("padded", 100), point("triton", 180))
LEVELS: Levels = {
    ("bare", "torch@none-b2-c8"): level(200, 40),
    ("bare", "torch@padded-b2-c8"): level(200, 160),
    ("bare", "torch@triton-b2-c8"): level(200, 50),
}


@pytest.fixture
def ways() -> tuple[RaggedWay, ...]:
    return ragged_ways(POINTS, RECORDS, LEVELS, "bare")


def test_each_way_says_how_full_its_batches_were(ways: tuple[RaggedWay, ...]) -> None:
    none, padded, triton = ways
    assert [(way.target, way.way) for way in ways] == [
        ("torch", "none"),
        ("torch", "padded"),
        ("torch", "triton"),
    ]
    assert (padded.executions, padded.requests_per_execution) == (160, 1.25)
    assert (triton.requests_per_execution, triton.items_per_execution) == (4.0, 8.0)
    assert (triton.lengths_per_execution, triton.most_lengths) == (3.0, 7)
    assert (triton.mixed_share, triton.calls_per_execution) == (0.8, 1.0)
    assert (triton.shortest, triton.longest) == (3, 9)
    assert (padded.padded_share, triton.filled_share) == (0.4, 0.25)
    assert (triton.throughput.value, triton.throughput.low) == (180, 179)
    assert none.answers is None
    assert none.lengths_per_execution is None
    assert triton.answers is not None
    assert (triton.answers.compared, triton.answers.differ, triton.answers.met) == (16, 0, 7)


def test_a_scan_without_ragged_requests_has_none() -> None:
    plain = [msgspec.structs.replace(each, notes={}) for each in RECORDS]
    assert ragged_ways(POINTS, plain, LEVELS, "bare") == ()
    assert of_levels(POINTS, plain, LEVELS, "bare", {"": Drift(0.0, significant=False)}) == {
        "sharing": (),
        "ragged": (),
    }


def test_notes_of_several_models_are_no_numbers() -> None:
    notes = {**OF_TRITON, "ragged_executions": "24; 3", "ragged_most_shapes": "7; 1"}
    (way,) = ragged_ways(POINTS[2:], [record("triton", notes)], LEVELS, "bare")
    assert way.lengths_per_execution is None
    assert way.most_lengths is None
    assert way.requests_per_execution == 4.0


def test_a_target_that_names_a_model_keeps_its_name() -> None:
    label = "torch@tagger.triton"
    named = msgspec.structs.replace(RECORDS[2], id=f"{label}-b2-c8", backend=label)
    shown = msgspec.structs.replace(POINTS[2], point=named.id, backend=label)
    (way,) = ragged_ways([shown], [named], {}, "bare")
    assert (way.target, way.executions) == ("torch@tagger", None)
    alone = msgspec.structs.replace(RECORDS[2], id="torch-b2-c8", backend="torch")
    shown = msgspec.structs.replace(POINTS[2], point=alone.id, backend="torch")
    assert ragged_ways([shown], [alone], {}, "bare")[0].target == "torch"


def test_answers_that_change_with_the_batch_are_an_error_once() -> None:
    wrong = {**OF_TRITON, "answers_differ": "3", "answers_largest": "inf"}
    first = record("triton", wrong)
    again = msgspec.structs.replace(first, id="torch@triton-b2-c16")
    (found,) = ragged_findings([*RECORDS[:2], first, again])
    assert (found.id, found.severity, found.point) == ("answers-differ", "error", None)
    assert "3 of 16 requests of batch 2" in found.message
    (way,) = ragged_ways(POINTS[2:], [first], LEVELS, "bare")
    assert way.answers is not None
    assert way.answers.largest is None


def test_answers_that_stay_the_same_say_nothing() -> None:
    assert not list(ragged_findings(RECORDS))


def of_run(ways: tuple[RaggedWay, ...]) -> Summary:
    return msgspec.structs.replace(cpu_scan(), ragged=ways)


def test_the_reports_show_the_ways_of_a_level_one_below_the_other(
    ways: tuple[RaggedWay, ...],
) -> None:
    table = ragged_table(of_run(ways))
    assert table is not None
    rows = [[cell.text for cell in row] for row in table.rows]
    assert [row[:2] for row in rows] == [
        ["torch, batch 2, concurrency 8", "none"],
        ["", "padded"],
        ["", "triton"],
    ]
    assert rows[2][4:] == ["4.00", "3.00, ≤ 7", "1.00", "25%", "16 of 16"]
    assert ragged_table(cpu_scan()) is None
    assert "batched by" in str(render(of_run(ways), width=160, color=False))
    assert "batched by" not in str(render(cpu_scan(), width=160, color=False))
    assert content(of_run(ways)).ragged == table
    said = json.loads(run_json(of_run(ways)))["ragged"]
    assert said[2]["requests_per_execution"] == 4.0
    assert "ragged" not in json.loads(run_json(cpu_scan()))


def test_the_answer_says_what_triton_makes_of_it(ways: tuple[RaggedWay, ...]) -> None:
    assert ragged_sentence(of_run(ways)) == (
        "At concurrency 8 Triton puts 4 requests of torch in a batch, of up to 7 lengths, and "
        "serves 1.80 times as many items as padded requests."
    )
    wide = msgspec.structs.replace(ways[2].throughput, low=99.0)
    unclear = msgspec.structs.replace(ways[2], throughput=wide)
    assert ragged_sentence(of_run((ways[1], unclear))).endswith("requests (within noise).")
    assert ragged_sentence(of_run(ways[:2])) == ""
    assert ragged_sentence(of_run(ways[2:])).endswith("lengths.")
