from __future__ import annotations

from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text.listing import fitting, listing

NAMES = Table(
    "kernels",
    (Column("name"), Column("calls", "right", width=4), Column("why", gap=" | ", wraps=True)),
    (row_of("gemm", "12", "a b"), row_of("add", "3", ""), row_of("relu", "123456", "c")),
)


def test_columns_are_as_wide_as_their_widest_cell_unless_a_width_is_given() -> None:
    assert list(listing(NAMES, heads=True)) == [
        "name  calls | why",
        "gemm    12 | a b",
        "add      3",
        "relu  123456 | c",
    ]


def test_nothing_follows_the_last_text_of_a_line() -> None:
    table = Table(
        "", (Column(), Column(width=8), Column()), (row_of("a", "b", ""), row_of("", "", ""))
    )
    assert list(listing(table, indent=2)) == ["  a  b", "  "]


def test_a_last_column_that_wraps_keeps_its_place() -> None:
    words = " ".join(["word"] * 20)
    table = Table(
        "", (Column(width=5), Column(wraps=True)), (row_of("a", f"{words}\nend"), row_of("b", ""))
    )
    assert list(listing(table, width=50)) == [
        "a      word word word word word word word word",
        "       word word word word word word word word",
        "       word word word word",
        "       end",
        "b",
    ]


def test_the_columns_that_tell_least_go_first() -> None:
    spares = {"concurrency": 0, "jets/s": 0, "p50": 8, "p99": 5, "batches": 3, "cores": 4}
    table = Table(
        "points",
        tuple(Column(title, "right", spare=spare) for title, spare in spares.items()),
        ((Cell("x" * 9),) * len(spares),),
    )
    titles = list(spares)
    assert [titles[index] for index in fitting(table, 45)] == ["concurrency", "jets/s", "p50"]
    assert "batches" not in [titles[index] for index in fitting(table, 70)]
