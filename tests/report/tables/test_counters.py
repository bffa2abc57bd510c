"""Hardware counters as text: numbers as everywhere in reports."""

from __future__ import annotations

import pytest

from profharness.report.tables.counters import value_text

THIN = "\u2009"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (7_602_851.0, f"7{THIN}602{THIN}851"),
        (2_534_283.67, f"2{THIN}534{THIN}284"),
        (0.71428, "0.7143"),
        (0.00012345, "0.00012"),
        (1.5e-9, "1.5e-09"),
    ],
)
def test_numbers_have_no_exponent_that_can_be_read_without(value: float, text: str) -> None:
    assert value_text(value) == text
