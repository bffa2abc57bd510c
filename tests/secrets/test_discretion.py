"""A trace without secrets: what a file says of itself is searched as a whole."""

from __future__ import annotations

import random

import pytest

from profharness.secrets.discretion import without_secrets
from profharness.secrets.names import MARKER
from profharness.secrets.patterns import clean_text
from profharness.trace.model import ClockDomain, Source, Strings, Trace
from tests.secrets.planted.kinds import KINDS
from tests.steps import calls_of

TOKEN = "hf_" + "Qx7z" * 9


def told(*values: str) -> Trace:
    details = tuple(("command", value) for value in values)
    return Trace(
        sources=(Source("a", "b", ClockDomain.UNKNOWN, details=details),), strings=Strings()
    )


def test_many_details_cost_no_search_each() -> None:
    trace = told(*(f"conv -n {number}" for number in range(5000)))
    assert calls_of(lambda: without_secrets(trace)) < 40 * 5000


def test_one_secret_among_details_is_replaced_and_the_others_stay() -> None:
    trace = without_secrets(told("conv -n 1", f"login {TOKEN} now", "conv -n 2"))
    values = [value for _, value in trace.sources[0].details]
    assert values[0::2] == ["conv -n 1", "conv -n 2"]
    assert TOKEN not in values[1]
    assert MARKER in values[1]


def test_one_secret_costs_no_search_of_each_other_detail() -> None:
    trace = told(f"login {TOKEN} now", *(f"conv -n {number}" for number in range(5000)))
    assert (
        calls_of(lambda: without_secrets(trace)) < 80 * 5000
    )  # by itself each costs more than 100


@pytest.mark.parametrize("others", [0, 30_000], ids=["few", "many"])
def test_every_kind_is_found_among_others_as_by_itself(others: int) -> None:
    """Of few texts and of many, which are looked through in another way."""
    draw = random.Random(7)
    planted = [f"{kind.variable}={kind.make(draw)}" for kind in KINDS]
    texts = [*(f"conv -n {number} a text of some length" for number in range(others)), *planted]
    trace = without_secrets(told(*texts))
    values = [value for _, value in trace.sources[0].details]
    assert values[:others] == texts[:others]
    assert values[others:] == [clean_text(text) for text in planted]
    assert sum(value != text for value, text in zip(values, texts, strict=True)) > 90
