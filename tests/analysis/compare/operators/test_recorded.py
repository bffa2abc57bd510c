"""H100 against MI300X: the same model on devices of two vendors, beside what TraceLens reports of
each.

TraceLens' `ops_summary.csv` has the time of the kernels that each operator launched, in float64
microseconds, so that sums over a few hundred kernels agree to a tenth of a microsecond. It differs
in one way that matters here: work whose launch is not in the file has no operator in either.
"""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

import pytest

from profharness.analysis.compare.operators.records import WorkRow
from profharness.analysis.compare.records import Comparison
from profharness.understand.loose.sides import compare_sides, read_side

PAIRS = ("qwen0.5b_prefill", "bert_small")
ROUNDING_NS = 100
CLASSES = {
    "qwen0.5b_prefill": {
        "aten::mm": 0.30,
        "aten::mul": -0.33,
        "aten::_flash_attention_forward": 0.44,
    },
    "bert_small": {"aten::addmm": -0.12},
}
"""What MI300X (B) takes more than H100 (A) by operator, to a per cent."""


@cache
def comparison(shared: Path, pair: str) -> Comparison:
    folder = shared / "fixtures" / "kineto"
    return compare_sides(
        *(read_side(folder / f"{device}_{pair}.json.gz") for device in ("h100", "mi300x"))
    )


def reported(shared: Path, name: str) -> dict[str, tuple[float, int]]:
    """Time in ns and calls by operator, as TraceLens has them."""
    path = shared / "fixtures" / "kineto" / "expected" / name / "ops_summary.csv"
    with path.open(newline="") as file:
        return {
            row["name"]: (float(row["total_direct_kernel_time_sum"]) * 1e3, int(row["Count"]))
            for row in csv.DictReader(file)
        }


@pytest.mark.parametrize("pair", PAIRS)
def test_times_by_operator_are_those_of_tracelens_on_both_devices(shared, pair):
    found = comparison(shared, pair)
    rows: dict[str, WorkRow] = {row.name: row for row in found.operators.rows if row.side != "rest"}
    for device, time, calls in (("h100", "a_ns", "calls_a"), ("mi300x", "b_ns", "calls_b")):
        for name, (ns, count) in reported(shared, f"{device}_{pair}").items():
            assert getattr(rows[name], time) == pytest.approx(ns, abs=ROUNDING_NS)
            assert getattr(rows[name], calls) >= count  # calls without a kernel count here, too
    for name, change in CLASSES[pair].items():
        assert rows[name].ratio - 1 == pytest.approx(change, abs=0.005)


def test_tables_sum_to_both_windows_and_name_what_one_vendor_adds(shared):
    found = comparison(shared, "qwen0.5b_prefill")
    step = found.step
    assert (step.clock, step.steps_a, step.steps_b) == ("device", 1, 1)
    # from the end of the work that was launched before to the end of the step's own
    assert (step.whole_a_ns, step.whole_b_ns) == (35_183_362, 33_755_369)
    assert step.difference_ns == step.whole_b_ns - step.whole_a_ns
    assert step.change == pytest.approx(-0.0406, abs=1e-4)
    for table in found.work:
        assert sum(row.a_ns or 0 for row in table.rows) == step.whole_a_ns
        assert sum(row.b_ns or 0 for row in table.rows) == step.whole_b_ns
        assert sum(row.difference_ns for row in table.rows) == step.difference_ns
    alone = [row for row in found.operators.rows if row.side in ("only-a", "only-b")]
    assert [(row.name, row.side, row.reason) for row in alone] == [
        (
            "aten::fill_",
            "only-b",
            "only in B, inside aten::_flash_attention_forward, which both have",
        )
    ]
    assert not any(reason.kind == "kernels-switched" for reason in found.reasons)
    rows = {row.name: row for row in found.categories.rows}
    parts = [reason for reason in found.reasons if reason.effect is not None]
    for reason in parts:
        row = rows[reason.message.partition(":")[0]]
        assert reason.effect == row.difference_ns / (step.whole_a_ns / step.parts[0])
    along = [one.effect * step.difference_ns > 0 for one in parts]
    assert along == sorted(along, reverse=True)


def test_modules_and_inputs_of_two_vendors_are_matched(shared):
    found = comparison(shared, "qwen0.5b_prefill")
    modules = {row.name: row for row in found.modules.rows}
    linear = modules["Qwen2Model/Qwen2DecoderLayer/Qwen2MLP/Linear"]
    assert (linear.calls_a, linear.calls_b) == (72, 72)
    assert linear.ratio == pytest.approx(1.30, abs=0.01)
    same = [row for row in found.shapes.rows if row.side == "both"]
    assert sum(row.a_ns for row in same) > 0.99 * sum(
        row.a_ns for row in found.operators.rows if row.side == "both"
    )
    mm = next(row for row in found.operators.rows if row.name == "aten::mm")
    assert (mm.same_a_ns, mm.same_b_ns) == (mm.a_ns, mm.b_ns)
    categories = {row.name: row.ratio for row in found.categories.rows}
    # by TraceLens mm, addmm and bmm take 9.001 and 11.646 ms, attention 2.723 and 3.909 ms
    assert categories["gemm"] == pytest.approx(1.2938, abs=0.0001)
    assert categories["attention"] == pytest.approx(1.4356, abs=0.0001)
