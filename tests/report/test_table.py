from __future__ import annotations

import json

from profharness.report.csv import csv_text
from profharness.report.json import run_json
from profharness.report.page.later import LaterRows
from profharness.report.page.templating import environment
from profharness.report.table import Cell, Column, Table, as_objects, first_rows
from profharness.report.text.listing import listing
from tests.report.samples import failing

TABLE = Table(
    "Rates",
    (
        Column("backend", key="backend"),
        Column("rate", "right", "mean over the trials", key="rate", unit="items/s"),
    ),
    (
        (Cell("torch", value="torch"), Cell("1 024 ± 3", "from the bare pass", value=1024.5)),
        (Cell("onnx", value="onnx"), Cell("", "error", "error")),
    ),
)


def test_one_table_is_text_csv_json_and_html() -> None:
    assert list(listing(TABLE, heads=True)) == [
        "backend       rate",
        "torch    1 024 ± 3",
        "onnx",
    ]
    assert csv_text(TABLE) == "backend,rate (items/s)\ntorch,1024.5\nonnx,\n"
    assert as_objects(TABLE) == [{"backend": "torch", "rate": 1024.5}, {"backend": "onnx"}]
    parts = (
        environment("profharness.report.page")
        .get_template("parts.html.j2")
        .make_module({"shown_first": 40, "later": LaterRows(0)})
    )
    page = str(parts.table(TABLE))  # type: ignore[attr-defined]  # jinja makes macros attributes
    assert (
        '<td class="num " data-sort="1024.5"><span tabindex="0" title="from the bare pass">1 024 ± 3</span></td>'
        in page
    )
    assert '<td class="num error"></td>' in page


def test_the_points_of_the_json_leave_out_what_does_not_apply() -> None:
    points = json.loads(run_json(failing()))["points"]
    assert [point for point in points if "state" in point]
    assert all(point["error"] for point in points if "state" in point)
    always = {"verdict", "verdict_needs", "partition", "work"}
    assert all(
        value not in (None, "", {})
        for point in points
        for name, value in point.items()
        if name not in always
    )


def test_the_first_rows_know_how_many_follow() -> None:
    assert first_rows(TABLE, 2) is TABLE
    short = first_rows(first_rows(TABLE, 2), 1)
    assert (short.rows, short.left_out) == (TABLE.rows[:1], 1)
    assert first_rows(short, 0).left_out == 2
