"""What `--scan` says, and where its values go."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.errors import UsageError
from profharness.options import axes
from profharness.options.settings import COMMAND_LINE, from_mapping
from profharness.rundir.executions.axes import Axis, requirement

NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,6}", fullmatch=True)
TEXTS = st.text(st.characters(exclude_characters="{}\0"), max_size=12)


def values(text: str) -> tuple[str, ...]:
    table = axes.parse({"a": text}, "--scan")
    assert isinstance(table, dict)
    return table["a"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8,16,32", "8 16 32"),
        ("8..64", "8 16 32 64"),
        ("8..63", "8 16 32"),
        ("0..8:1", "0 1 2 3 4 5 6 7 8"),
        ("0..8:4,16", "0 4 8 16"),
        ("0,1..8", "0 1 2 4 8"),
        ("0", "0"),
        ("0.1, 1e-3", "0.1 1e-3"),
        ("float32,bfloat16", "float32 bfloat16"),
        ("1..1", "1"),
    ],
)
def test_values(text: str, expected: str) -> None:
    assert values(text) == tuple(expected.split())


@pytest.mark.parametrize("text", ["8..4", "0..8", "0..8:0", "0..9999:1"])
def test_values_that_are_none(text: str) -> None:
    with pytest.raises(UsageError, match="a:"):
        values(text)


@given(low=st.integers(1, 1000), doublings=st.integers(0, 12), rest=st.integers(0, 10**6))
def test_a_range_doubles_and_ends_in_time(low: int, doublings: int, rest: int) -> None:
    last = low * 2**doublings
    high = last + rest % last
    levels = list(map(int, values(f"{low}..{high}")))
    assert levels == [low * 2**at for at in range(doublings + 1)]


@given(low=st.integers(0, 50), step=st.integers(1, 9), count=st.integers(0, 60))
def test_steps_count(low: int, step: int, count: int) -> None:
    high = low + step * count
    assert list(map(int, values(f"{low}..{high}:{step}"))) == list(range(low, high + 1, step))


@pytest.mark.parametrize("text", ["x..3", "3..x", "1..", "..3", "0.5..2", "-1..3", "3..x:1"])
def test_what_was_meant_as_a_range_is_no_category(text: str) -> None:
    with pytest.raises(UsageError, match="is no range"):
        values(text)


@pytest.mark.parametrize("text", ["../data", "a..b", "a/../3", "v1..2.pt", ".."])
def test_dots_in_a_text_are_text(text: str) -> None:
    assert values(text) == (text,)


@pytest.mark.parametrize(
    ("words", "numbers"),
    [
        (("1", "2.5", "-3", "1e4", ".5"), True),
        (("1", "a"), False),
        (("nan", "1"), False),
        (("inf",), False),
        (("1_000",), False),
        (("0x10",), False),
    ],
)
def test_an_axis_with_any_text_is_a_category(words: tuple[str, ...], numbers: bool) -> None:
    axis = Axis("a", words)
    assert axis.is_number is numbers
    assert all(isinstance(axis.typed(word), str) is not numbers for word in words)


@given(st.dictionaries(NAMES, TEXTS, min_size=1), st.lists(st.one_of(TEXTS, NAMES)))
def test_only_names_of_axes_are_replaced_and_each_once(
    texts: dict[str, str], parts: list[str]
) -> None:
    """Oracle: the text is made of parts whose own replacement is known."""
    given_text, expected = "", ""
    for part in parts:
        given_text += "{" + part + "}"
        expected += texts.get(part, "{" + part + "}")
    assert axes.filled(given_text, texts) == expected


def test_a_value_is_not_searched_again() -> None:
    assert axes.filled("{a} {b} {c}", {"a": "{b}", "b": "2"}) == "{b} 2 {c}"


def request(**settings: object) -> object:
    return from_mapping({"command": ("x", "{n}"), "axes": {"n": "1,2"}, **settings}, COMMAND_LINE)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"axes": {"n": "1,2", "m": "3,4"}}, r"no \{m\}"),
        ({"axes": {"n": "1,1"}}, "twice"),
        ({"axes": {"n": "1,1.0"}}, "twice"),
        ({"axes": {"n": ""}}, "no values"),
        ({"axes": {"1n": "1,2"}}, "no name"),
        ({"axes": {"n": "1,2", "env:1X": "1"}}, "no name"),
        ({"axes": {"n": "1,2", "shape:t": "1"}}, "shapes are of a model"),
        ({"axes": {}, "repeats": 2}, "goes with --scan"),
        ({"axes": {}, "setup": "x"}, "goes with --scan"),
        ({"repeats": 0}, "out of range"),
        ({"design": "lhs:5"}, "only 2 points"),
        ({"design": "lhs:1"}, "not a design"),
        ({"design": "random"}, "not a design"),
        ({"rate_regex": "img/s"}, "groups"),
        ({"rate_regex": "(x)(y)"}, "groups"),
        ({"rate_regex": "("}, "regular expression"),
        ({"require": ("accuracy",)}, "NAME>=NUMBER"),
        ({"launcher": "slurm"}, "not in jobs"),
        ({"axes": {"ranks": "0,2"}}, "no number of ranks"),
        ({"axes": {"ranks": "1,2"}, "ranks": 2}, "both say how many"),
        ({"ranks": 2, "rank_limit": 5.0}, "with a profharness each"),
        ({"axes": {"n": "0..999:1", "env:M": "0..999:1"}}, "1000000 points"),
    ],
)
def test_what_cannot_be_scanned_is_a_usage_error(settings: dict[str, object], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        request(**settings)


def test_a_word_that_is_no_axis_is_a_usage_error() -> None:
    for words in (["n"], ["=1"], ["n=1", "n=2"]):
        with pytest.raises(UsageError, match="--scan"):
            axes.gather(words)


def test_a_scan_file_holds_lists_numbers_and_texts() -> None:
    table = {"n": [1, 0.5, "x"], "m": "0..2:1", "k": 7, "b": [True, False]}
    read = axes.parse(table, "my.toml: axes")
    assert read == {
        "n": ("1", "0.5", "x"),
        "m": ("0", "1", "2"),
        "k": ("7",),
        "b": ("true", "false"),
    }
    assert axes.in_file({"scan": table, "repeats": 2}) == {"axes": table, "repeats": 2}
    assert axes.in_file({"scan": "particlenet"}) == {"scan": "particlenet"}


@pytest.mark.parametrize(
    ("text", "value", "holds"),
    [
        ("accuracy>=0.7", 0.7, True),
        ("accuracy >= 0.7", 0.69, False),
        ("loss<2e-1", 0.2, False),
        ("loss<=.2", 0.2, True),
        ("x>-1", 0.0, True),
    ],
)
def test_requirements(text: str, value: float, holds: bool) -> None:
    read = requirement(text)
    assert read.holds(value) is holds
    assert re.split(r"[ <>=]", text)[0] == read.name
