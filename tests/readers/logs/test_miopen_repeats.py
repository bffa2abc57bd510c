"""A log that says the same again and again, as that of a loop does."""

from __future__ import annotations

from profharness.readers.logs.miopen_log import parse_lines
from tests.steps import calls_of

LINE = "MIOpen(HIP): Command [Forward] ./bin/MIOpenDriver conv -n 1"


def test_a_repeated_line_is_taken_apart_once() -> None:
    assert calls_of(lambda: parse_lines([LINE] * 5000)) < 3 * 5000


def test_repeated_lines_count_as_often_as_they_stand() -> None:
    lines, others = parse_lines([LINE, "epoch"] * 3)
    assert (len(lines), others) == (3, 3)
    assert {line.level for line in lines} == {"Command"}
