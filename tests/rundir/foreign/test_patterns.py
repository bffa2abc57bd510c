"""Regular expressions of a manifest: those of our layers pass, and none that passes is slow."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness import layers
from profharness.rundir.foreign.patterns import why_not
from profharness.rundir.older_layers import OLDER


def test_what_our_layers_state_is_used() -> None:
    stated = [facts.patterns for facts in OLDER.values()]
    stated += [about.facts.patterns for about in layers.descriptions()]
    assert sum(map(len, stated)) > 50
    assert [
        (pattern, why) for each in stated for pattern in each if (why := why_not(pattern))
    ] == []


@pytest.mark.parametrize(
    "pattern",
    [r"(train|val) step \d+", r"ProfilerStep#\d+", r"(a|b)+", r"(\d{2}:)+x", r"epoch [0-9]+"],
)
def test_names_of_steps_are_used(pattern: str) -> None:
    assert not why_not(pattern)


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(a+)+$", "repeats a repetition"),
        ("(a|aa)+$", "repeats a repetition or a choice"),
        ("(aa?)+$", "repeats a repetition"),
        ("((ab)*c?){20}", "repeats a repetition"),
        ("(?:a{0,9})+", "repeats a repetition"),
        ("a?" * 30 + "a" * 30, "too many"),
        (".*.*.*.*x", "too many"),
        ("(", "no regular expression"),
        ("(?P<a>x)(?P<a>y)", "no regular expression"),
        ("a" * 501, "more than 500 characters"),
        ("(" * 240 + ")" * 240, ""),
    ],
)
def test_what_can_take_for_ever_is_not(pattern: str, why: str) -> None:
    assert why in why_not(pattern)
    assert bool(why_not(pattern)) == bool(why)


_PIECES = st.sampled_from(
    [
        "a",
        ".",
        "[ab]",
        "a*",
        "a+?",
        "a?",
        ".*",
        "a{0,3}",
        "(a|b)",
        "(a|ab)",
        "(a*)",
        "(a?b)*",
        r"\1",
    ]
)


@given(st.lists(_PIECES, max_size=6).map("".join), st.sampled_from(["", "+", "{3}", "*?"]))
def test_what_is_used_is_quick_on_a_long_name(pieces: str, often: str) -> None:
    pattern = f"(({pieces}){often})c"
    if why_not(pattern):
        return
    before = time.process_time()
    re.fullmatch(pattern, "a" * 40)
    assert time.process_time() - before < 10  # what is refused takes years
