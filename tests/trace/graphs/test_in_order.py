"""Longest matches in order, against the quadratic table of textbooks."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profharness.trace.columns.table import NULL
from profharness.trace.graphs.in_order import longest_match

sequences = st.lists(st.integers(0, 4), max_size=24)


def length_by_table(first: list[int], second: list[int]) -> int:
    above = [0] * (len(second) + 1)
    for one in first:
        row = [0]
        for place, other in enumerate(second):
            row.append(above[place] + 1 if one == other else max(above[place + 1], row[place]))
        above = row
    return above[-1]


@given(sequences, sequences)
def test_partners_are_equal_in_order_and_as_many_as_can_be(
    first: list[int], second: list[int]
) -> None:
    partner = longest_match(first, second)
    assert len(partner) == len(first)
    found = [(row, place) for row, place in enumerate(partner.tolist()) if place != NULL]
    assert all(first[row] == second[place] for row, place in found)
    places = [place for _, place in found]
    assert places == sorted(set(places))
    assert len(found) == length_by_table(first, second)


def test_a_sequence_matches_itself_and_what_it_was_before_something_was_left_out() -> None:
    whole = [1, 2, 3, 1, 2, 3, 4]
    assert longest_match(whole, whole).tolist() == list(range(7))
    assert longest_match([1, 2, 1, 2, 3, 4], whole).tolist() == [0, 1, 3, 4, 5, 6]
    assert longest_match([9, 9], whole).tolist() == [NULL, NULL]
    assert longest_match([], whole).tolist() == []
