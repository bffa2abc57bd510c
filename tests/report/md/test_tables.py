"""Tables as GitHub's Markdown."""

from __future__ import annotations

import pytest

from profharness.report.md.tables import escaped, heading, markdown
from profharness.report.table import Column, Table, row_of


def test_columns_are_aligned_and_numbers_stand_right() -> None:
    table = Table(
        "T",
        (Column("kernel"), Column("share"), Column("run"), Column("of", "right")),
        (
            row_of("gemm", "31.2 %", "0.1-command", ""),
            row_of("a_much_longer_name", "1\u2009240 x 2 ms", "b", "x"),
            row_of("none", "-", "", ""),
        ),
    )
    assert markdown(table).splitlines() == [
        "| kernel             |        share | run         |  of |",
        "| ------------------ | -----------: | ----------- | --: |",
        "| gemm               |       31.2 % | 0.1-command |     |",
        "| a_much_longer_name | 1\u2009240 x 2 ms | b           |   x |",
        "| none               |            - |             |     |",
    ]


def test_what_is_left_out_and_the_note_stand_below() -> None:
    table = Table("T", (Column("a"),), (row_of("x"),), note="of a|b", left_out=7)
    assert markdown(table).splitlines()[3:] == [
        "",
        "7 further rows are not shown.",
        "",
        r"of a\|b",
    ]


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a|b", r"a\|b"),
        ("a\nb", "a b"),
        ("x\n# forged", "x # forged"),
        ("void k<float>(int*)", r"void k\<float\>(int\*)"),
        ("vec_add_kernel", "vec_add_kernel"),
        ("_emphasis_", r"\_emphasis\_"),
        ("`code`", r"\`code\`"),
        ("@team", "@<!-- -->team"),
        ("fixes #12", "fixes #<!-- -->12"),
        ("https://x.y", "https:<!-- -->//x.y"),
        ("\x1b[31m", r"\\u001b\[31m"),
        ("back\\slash", r"back\\slash"),
        ("$x$ &lt;", r"\$x\$ \&lt;"),
    ],
)
def test_a_foreign_name_stays_a_name(name: str, shown: str) -> None:
    assert escaped(name) == shown


def test_a_heading() -> None:
    assert heading("Kernels of a|b") == "## Kernels of a\\|b\n\n"


def test_a_long_name_is_cut() -> None:
    assert len(escaped("x" * 100_000)) < 400
