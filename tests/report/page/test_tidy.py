"""What the page leaves out of tables and boxes, since it tells a reader nothing."""

from __future__ import annotations

import msgspec

from profharness.analysis.records import Figure, ProblemRow
from profharness.findings import finding
from profharness.report.page.findings import MOST_LINES, finding_boxes
from profharness.report.page.templating import environment
from profharness.report.page.tidy import figures_told_once, filled
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.tables.figures import figures_table
from profharness.report.tables.sources import problems_table
from tests.report.samples import gpu_scan


def test_a_column_without_any_text_is_left_out() -> None:
    columns = (Column("name"), Column("FLOP/s"), Column("excess"))
    rows = ((Cell("mm"), Cell(), Cell(bar=3.0)), (Cell("add"), Cell(), Cell()))
    shown = filled(Table("operators", columns, rows, marked=frozenset({1})))
    assert shown is not None
    assert [column.title for column in shown.columns] == ["name", "excess"]
    assert [len(row) for row in shown.rows] == [2, 2]
    assert shown.marked == {1}
    whole = Table("whole", columns[:2], (row_of("mm", "3"), row_of("add", "")))
    assert filled(whole) == whole
    assert filled(None) is None


def test_the_one_source_of_all_figures_and_a_common_remark_are_said_once() -> None:
    inflated = "inflated by the profiler"
    figures = {
        name: Figure(value=0.5, unit="share", source="kineto: 1 step", note=inflated)
        for name in ("busy", "compute", "idle")
    }
    shown, said = figures_told_once(figures_table("figures", figures))
    assert shown is not None
    assert [column.title for column in shown.columns] == ["figure", "value", "remarks"]
    assert [row[2].text for row in shown.rows] == ["inflated"] * 3
    assert said.startswith("From kineto: 1 step. ")
    assert said.count("nflated") == 1
    figures["fill"] = Figure(value=0.5, unit="share", source="telemetry", coverage=1.0)
    shown, said = figures_told_once(figures_table("figures", figures))
    assert shown is not None
    assert [row[-1].text for row in shown.rows] == ["inflated"] * 3 + ["from telemetry"]
    assert said.startswith("From kineto: 1 step, unless the remarks name another source. ")


def test_figures_of_several_sources_keep_the_column() -> None:
    figures = {
        name: Figure(value=0.5, unit="share", source=name) for name in ("busy", "compute", "idle")
    }
    shown, said = figures_told_once(figures_table("figures", figures))
    assert shown is not None
    assert [row[2].text for row in shown.rows] == ["busy", "compute", "idle"]
    assert said == ""


def test_findings_that_ask_for_the_same_stand_in_one_box() -> None:
    scan = gpu_scan()
    drifts = tuple(finding("drift", "it drifts", point=one.point) for one in scan.points[:3])
    other = finding("clock-residual", "telemetry is aligned to 40 µs only", residual_ns=40_000)
    boxes = finding_boxes(msgspec.structs.replace(scan, findings=(*drifts, other)))
    together = next(box for box in boxes if box.lines)
    assert together.place == "drift (3 times)"
    assert together.lines[0] == "batch 4 (torch): it drifts"
    assert (together.count, together.left_out) == (3, 0)
    assert sum(box.count for box in boxes) == 4
    single = next(box for box in boxes if not box.lines)
    assert (single.message, single.figures) == (other.message, ())


def test_a_box_of_many_findings_counts_those_that_it_does_not_list() -> None:
    many = tuple(finding("drift", f"it drifts {at}") for at in range(MOST_LINES + 5))
    (box,) = finding_boxes(msgspec.structs.replace(gpu_scan(), findings=many))
    assert (len(box.lines), box.left_out) == (MOST_LINES, 5)


def test_what_a_source_could_not_sample_for_one_reason_is_one_problem() -> None:
    def problem(message: str, source: str = "n0") -> ProblemRow:
        return ProblemRow(source=source, severity="info", count=1, message=message)

    table = problems_table(
        msgspec.structs.replace(
            gpu_scan(),
            problems=(
                problem("power was not sampled: no counters"),
                problem("rows were left out"),
                problem("energy was not sampled: no counters"),
                problem("limit was not sampled: no counters"),
                problem("limit was not sampled: no counters", "n1"),
                problem("rows were left out"),
            ),
        )
    )
    assert table is not None
    assert [(row[1].text, row[2].text) for row in table.rows] == [
        ("3", "power, energy, limit were not sampled: no counters"),
        ("1", "rows were left out"),
        ("1", "limit was not sampled: no counters"),
        ("1", "rows were left out"),
    ]


def test_what_stands_in_backticks_is_code_and_stays_escaped() -> None:
    coded = environment("profharness.report.page").filters["coded"]
    assert coded("use `a <b>` or <c>") == "use <code>a &lt;b&gt;</code> or &lt;c&gt;"
    assert coded("a lone ` stays") == "a lone ` stays"
