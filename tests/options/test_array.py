"""`--array`: which texts name tasks, and which tasks they are."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.errors import UsageError
from profharness.options import array


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("7", (7,)),
        ("0-3", (0, 1, 2, 3)),
        ("3,7", (3, 7)),
        ("0-9:3%2", (0, 3, 6, 9)),
        ("5,1-3,2", (1, 2, 3, 5)),
        ("all", None),
        ("missing%4", None),
    ],
)
def test_tasks_in_the_form_of_sbatch(text: str, numbers: tuple[int, ...] | None) -> None:
    array.check(text)
    assert array.numbers(text) == numbers


@pytest.mark.parametrize(
    "text",
    [
        "x",
        "-1",
        "3-",
        "5-2",
        "1,,2",
        "0-9%",
        "all,3",
        "0-9 ",
        "1\n#SBATCH -N9",
        "0-999999",
        "0-3%٤",
    ],
)
def test_a_text_that_names_none_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--array"):
        array.check(text)


@given(st.sets(st.integers(0, 200), min_size=1))
def test_what_is_spelled_is_read_again(tasks: set[int]) -> None:
    text = array.spelled(sorted(tasks), "all%3")
    array.check(text)
    assert text.endswith("%3")
    assert array.numbers(text) == tuple(sorted(tasks))
