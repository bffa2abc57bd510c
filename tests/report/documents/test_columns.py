"""Columns of a table on a page: all of them, in blocks that fit."""

from __future__ import annotations

from profharness.report.documents.columns import GAP, blocks
from profharness.report.table import Column, Table, row_of

COLUMNS = (Column("point"), Column("figure"), Column("A", "right"), Column("what it says"))


def wide(text: str) -> float:
    return 5.0 * len(text)


def table(*rows: tuple[str, str, str, str]) -> Table:
    return Table("Changes", COLUMNS, tuple(row_of(*row) for row in rows))


def test_what_fits_stands_side_by_side() -> None:
    title, found = blocks(table(("b1", "busy", "1 %", "same"), ("b2", "x", "2", "")), 9, 500, wide)
    assert title == "Changes"
    ((*columns,),) = found
    assert [column.texts for column in columns] == [
        ("point", "b1", "b2"),
        ("figure", "busy", "x"),
        ("A", "1 %", "2"),
        ("what it says", "same", ""),
    ]
    assert [column.width for column in columns] == [25, 30, 15, 60]


def test_a_first_column_that_is_the_same_everywhere_joins_the_title() -> None:
    title, found = blocks(table(("run", "a", "1", "x"), ("run", "b", "2", "y")), 9, 500, wide)
    assert title == "Changes: run"
    assert [column.texts[0] for column in found[0]] == ["figure", "A", "what it says"]


def test_sentences_that_do_not_fit_stand_below_with_the_names_of_their_rows() -> None:
    says = "within the noise of both of them"
    _, found = blocks(table(("b1", "busy", "1 %", says), ("b2", "busy", "2 %", "")), 9, 200, wide)
    assert [[column.texts[0] for column in block] for block in found] == [
        ["point", "figure", "A"],
        ["point", "figure", "what it says"],
    ]
    assert found[1][2].texts[1] == says


def test_long_names_are_cut_in_their_middle_until_all_columns_fit() -> None:
    rows = (("b1", "k" * 80, "1 %", "same"), ("b2", "short", "2 %", ""))
    _, (block,) = blocks(table(*rows), 9, 300, wide)
    assert sum(column.width for column in block) + 3 * GAP <= 300
    name = block[1].texts[1]
    assert name.count("…") == 1
    assert name.strip("k") == "…"
    assert block[1].texts[2] == "short"
    assert block[3].texts[1] == "same"


def test_columns_without_a_text_are_left_out() -> None:
    _, (block,) = blocks(table(("b1", "busy", "", ""), ("b2", "idle", "", "")), 9, 500, wide)
    assert [column.texts[0] for column in block] == ["point", "figure"]
