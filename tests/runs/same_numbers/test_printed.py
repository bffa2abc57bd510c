"""Reading printed numbers back, which the comparison of all forms rests on."""

from __future__ import annotations

import json
import zlib
from base64 import b64encode

import pytest

from profharness.report.text.figures import quantity_text
from tests.runs.same_numbers.printed import Tables, read_back, with_later_rows


@pytest.mark.parametrize(
    ("text", "unit", "value", "within"),
    [
        ("90.58 µs", "ns", 90_580, 5),
        ("151\u2009956 ± 49\u2009621 items/s", "items/s", 151_956, 0.5),
        ("151 956 ± 49 621 items/s", "items/s", 151_956, 0.5),
        ("152\u2009000 ± 50\u2009000 items/s", "items/s", 152_000, 500),
        ("150\u2009000 ± 49\u2009000", "", 150_000, 500),
        ("150\u2009000 ± 49\u2009500", "", 150_000, 50),
        ("200 ± 100 items/s", "items/s", 200, 5),
        ("20 ± 3 items/s", "items/s", 20, 0.5),
        ("6.4 ± 2.0 µs", "ns", 6_400, 50),
        ("13.29 µs (2.323 µs to 30.44 µs)", "ns", 13_290, 5),
        ("0.90", "share", 0.9, 0.005),
        ("90.2 %", "share", 0.902, 0.0005),
        ("71 %", "%", 71, 0.5),
        ("237.7 MiB", "B", 237.7 * 2**20, 0.05 * 2**20),
        ("19.5 MFLOP/s", "FLOP/s", 19.5e6, 0.05e6),
        ("24.4 k jets/s", "jets/s", 24_400, 50),
        ("1 process", "processes", 1, 0.5),
        ("0.348 cores", "cores", 0.348, 0.0005),
        ("2e-09", "share", 2e-9, 5e-10),
    ],
)
def test_a_printed_figure_is_read_back(text: str, unit: str, value: float, within: float) -> None:
    found = read_back(text, unit)
    assert found is not None
    assert found.value == pytest.approx(value)
    assert found.within == pytest.approx(within)
    assert found.is_of(value + 0.9 * within)
    assert not found.is_of(value + 1.1 * within)


def test_a_share_just_below_the_whole_is_read_back_as_that() -> None:
    found = read_back("> 99.9 %", "share")
    assert found is not None
    assert found.is_of(0.99997)
    assert not found.is_of(1.0)
    assert not found.is_of(0.9989)


@pytest.mark.parametrize(
    ("value", "unit"),
    [
        (1.234567e9, "ns"),
        (0.000123456, "share"),
        (0.123456, "share"),
        (1.5e13, "FLOP/s"),
        (123_456_789, "B"),
        (17, "kernels"),
        (3.25, "cores"),
        (1234567.8, "items/s"),
    ],
)
def test_what_is_printed_of_a_figure_is_that_figure(value: float, unit: str) -> None:
    found = read_back(quantity_text(value, unit), unit)
    assert found is not None
    assert found.is_of(value)
    assert not found.is_of(value * 1.06)


def test_a_wrong_unit_is_seen() -> None:
    with pytest.raises(ValueError, match="is no"):
        read_back("90.58 ms", "items/s")
    assert read_back("not measured", "ns") is None


def test_tables_are_read_by_their_captions() -> None:
    page = (
        "<table><caption>A &amp; B</caption><tr><th>x</th></tr>"
        "<tr><td><span title='t'>1 <b>ms</b></span></td></tr></table>"
    )
    assert Tables(page).tables == [("A & B", [["x"], ["1ms"]])]


def test_later_rows_are_put_into_their_tables() -> None:
    packed = b64encode(zlib.compress(b"<tr><td>2</td></tr>")).decode()
    page = (
        '<table><tbody><tr><td>1</td></tr></tbody></table><p data-later="t0"></p>'
        '<table><tbody><tr><td>3</td></tr></tbody></table><p data-later="t1"></p>'
        f'<script type="application/json" id="later-rows">{json.dumps({"t0": packed, "t1": ""})}'
        "</script>"
    )
    assert [rows for _, rows in Tables(with_later_rows(page)).tables] == [[["1"], ["2"]], [["3"]]]
    assert with_later_rows("<p></p>") == "<p></p>"
