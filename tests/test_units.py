from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness import units
from profharness.errors import UsageError

THIN = "\u2009"


@pytest.mark.parametrize(
    ("ns", "text"),
    [
        (0, "0 ns"),
        (412, "412 ns"),
        (118_300, "118.3 µs"),
        (1_700_000, "1.700 ms"),
        (83_810_000, "83.81 ms"),
        (2_000_000_000, "2.000 s"),
        (1_234_000_000_000, f"1{THIN}234 s"),
    ],
)
def test_durations_take_their_natural_scale(ns: int, text: str) -> None:
    assert units.format_ns(ns) == text


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (24331.4, 41.2, f"24{THIN}331 ± 41"),
        (149343.0, 44664.0, f"149{THIN}000 ± 45{THIN}000"),
        (1234.5, 99.7, f"1{THIN}234 ± 100"),
        (1234.5, 100.0, f"1{THIN}230 ± 100"),
        (12.0, 250.0, "10 ± 250"),
        (2357.04, 12.3, f"2{THIN}357 ± 12"),
        (0.07123, 0.00041, "0.07123 ± 0.00041"),
        (12.5, None, "12.50"),
        (0.0, None, "0"),
        (float("nan"), 1.0, "not measured"),
    ],
)
def test_digits_follow_the_uncertainty(value: float, error: float | None, text: str) -> None:
    assert units.format_with_uncertainty(value, error) == text


@pytest.mark.parametrize(
    ("text", "ns"),
    [
        ("30s", 30_000_000_000),
        ("250ms", 250_000_000),
        ("1.5 us", 1500),
        ("2min", 120_000_000_000),
        ("3", 3_000_000_000),
    ],
)
def test_durations_are_read(text: str, ns: int) -> None:
    assert units.parse_duration_ns(text, "--time") == ns


@pytest.mark.parametrize("text", ["", "s", "-3s", "3 weeks", "1e3s"])
def test_a_wrong_duration_names_its_option(text: str) -> None:
    with pytest.raises(UsageError, match="--time"):
        units.parse_duration_ns(text, "--time")


def test_counts_are_lists_and_powers_of_two() -> None:
    assert units.parse_counts("1,4,16", "x") == (1, 4, 16)
    assert units.parse_counts("4..2048", "x") == tuple(4 * 2**k for k in range(10))
    assert units.parse_counts("3..20,100", "x") == (3, 6, 12, 100)


@pytest.mark.parametrize("text", ["", "0", "a", "8..4", "1,,2", "1..2..3", "4,4", "-1"])
def test_wrong_counts_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--batch-sizes"):
        units.parse_counts(text, "--batch-sizes")


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=8, unique=True))
def test_any_list_of_counts_comes_back(values: list[int]) -> None:
    assert units.parse_counts(",".join(map(str, values)), "x") == tuple(values)


def test_bytes_and_clock() -> None:
    assert units.format_bytes(240 * 1024**2) == "240.0 MiB"
    assert units.format_bytes(12) == "12 B"
    assert units.format_clock(58.2) == "0:58"
    assert units.format_clock(724) == "12:04"


def test_a_share_below_the_whole_never_reads_as_the_whole():
    assert units.format_share(0.99997) == "> 99.9 %"
    assert units.format_share(0.9994) == "99.9 %"
    assert units.format_share(1.0) == units.format_share(1 - 1e-12) == "100.0 %"
    assert units.format_share(0.996, 0) == "> 99 %"
    assert units.format_share(0.28, 0) == "28 %"


def test_times_as_they_were_given():
    assert [
        units.format_exact_ns(ns) for ns in (250_000_000, 1_500_000_000, 30_000, 0, 1_234_567)
    ] == ["250 ms", "1.5 s", "30 µs", "0 s", "1.234567 ms"]


@pytest.mark.parametrize(
    ("item", "items"),
    [("jet", "jets"), ("batch", "batches"), ("box", "boxes"), ("phrase", "phrases")],
)
def test_items_have_a_plural(item: str, items: str) -> None:
    assert units.several(item) == items
    assert units.one_of(items) == item
