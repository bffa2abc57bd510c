from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.readers.bytes.decimals import exact_ns, microseconds


def number(whole: int, fraction: str) -> bytes:
    return f"{whole}.{fraction}".encode() if fraction else str(whole).encode()


def expected(text: bytes) -> int:
    return int((Decimal(text.decode()) * 1000).to_integral_value(ROUND_HALF_EVEN))


plain = st.builds(number, st.integers(0, 9_223_372_036_854_774), st.text("0123456789", max_size=3))
longer = st.builds(number, st.integers(0, 10**15), st.text("0123456789", max_size=9))
signed = longer.map(lambda text: b"-" + text)
exponents = st.builds(lambda m, e: f"{m}e{e}".encode(), st.integers(0, 99999), st.integers(-6, 8))


@given(st.lists(plain, max_size=40))
def test_up_to_three_decimals_are_exact(texts: list[bytes]) -> None:
    times = microseconds(texts)
    assert times.ns.tolist() == [expected(t) for t in texts]
    assert times.valid.all()
    assert times.rounded == 0


@given(st.lists(st.one_of(plain, longer, signed, exponents), max_size=40))
def test_any_json_number_rounds_half_to_even(texts: list[bytes]) -> None:
    times = microseconds(texts)
    assert times.ns.tolist() == [expected(t) for t in texts]
    assert times.valid.all()
    assert times.rounded == sum(Decimal(t.decode()) * 1000 != expected(t) for t in texts)


@given(st.lists(st.integers(0, 10**15), min_size=1, max_size=30))
def test_three_decimals_everywhere_take_the_same_values(nanoseconds: list[int]) -> None:
    texts = [f"{ns // 1000}.{ns % 1000:03d}".encode() for ns in nanoseconds]
    assert microseconds(texts).ns.tolist() == nanoseconds
    assert microseconds([*texts, b"1"]).ns.tolist() == [*nanoseconds, 1000]


@given(
    st.integers(1, 18).flatmap(
        lambda digits: st.lists(
            st.integers(0, 10**digits - 1).map(lambda ns: f"{ns:0{max(digits, 4)}d}"),
            min_size=1,
            max_size=30,
        )
    ),
    st.data(),
)
def test_numbers_of_one_width(digits: list[str], data: st.DataObject) -> None:
    """Starts that lie near each other are as long as each other; one other character in the same
    room is still noticed.
    """
    texts = [f"{text[:-3]}.{text[-3:]}" for text in digits]
    assert microseconds([text.encode() for text in texts]).ns.tolist() == [
        int(text) for text in digits
    ]
    row = data.draw(st.integers(0, len(texts) - 1))
    place = data.draw(st.integers(0, len(texts[row]) - 1))
    texts[row] = (
        texts[row][:place] + data.draw(st.sampled_from('0159.-e",:/ ')) + texts[row][place + 1 :]
    )
    times = microseconds([text.encode() for text in texts])
    exact = [exact_ns(text.encode()) for text in texts]
    assert times.valid.tolist() == [found is not None for found in exact]
    assert times.ns.tolist() == [0 if found is None else found[0] for found in exact]


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        (b"1712166678123456.789", 1712166678123456789),
        (b"4458676522690.655", 4458676522690655),
        (b"0.0005", 0),
        (b"0.0015", 2),
        (b'"345068"', 345068000),
        (b"1e3", 1_000_000),
        (b"-4.25", -4250),
        (b"68.0", 68000),
        (b"9223372036854775.807", 2**63 - 1),
        (b"0e400", 0),
        (b"1e-400", 0),
    ],
)
def test_single_values(text: bytes, ns: int) -> None:
    assert microseconds([text]).ns.tolist() == [ns]
    assert exact_ns(text) is not None


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b'"Spans"',
        b"[1,2]",
        b"true",
        b"9223372036854775.808",
        b"1e400",
        b"123456789012345678",
        b'"\xc3\xa4"',
        b'"nan"',
        b"1_0",
        b"{}",
    ],
)
def test_what_is_no_time_is_invalid(text: bytes) -> None:
    times = microseconds([b"1", text, b"2.5"])
    assert times.valid.tolist() == [True, False, True]
    assert times.ns.tolist() == [1000, 0, 2500]


def test_no_values() -> None:
    assert microseconds([]).ns.tolist() == []
