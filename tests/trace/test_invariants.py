from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.trace.invariants import broken
from profharness.trace.model import Copies, Counters, Kernels, Source, Strings, Trace
from tests.trace.making import traces

LARGE = 2**62


def trace(**columns: object) -> Trace:
    table = {"start_ns": [0, 10], "dur_ns": [5, 5], "name": 0, "source": 0} | columns
    return Trace(
        sources=(Source("f", "kineto"),),
        strings=Strings(["k"]),
        kernels=Kernels.build(**table),
    )


@given(traces())
def test_sound_traces_break_nothing(one: Trace) -> None:
    assert broken(one) == ()


@pytest.mark.parametrize(
    ("columns", "words", "rows"),
    [
        ({"dur_ns": [5, -1]}, "kernels last less than no time", 1),
        ({"start_ns": [LARGE, LARGE], "dur_ns": [2 * (LARGE - 1), 5]}, "end beyond", 1),
        ({"dur_ns": [LARGE, LARGE]}, "together last longer", 2),
        ({"workgroups": [-7, 5]}, "a negative workgroups", 1),
        ({"stream": [3, -1]}, "name a stream that is not there", 1),
        ({"name": [0, -5]}, "name a name that is not there", 1),
    ],
)
def test_what_cannot_be_is_counted(columns: dict[str, object], words: str, rows: int) -> None:
    found = [one for one in broken(trace(**columns)) if words in one.what]
    assert [one.rows for one in found] == [rows]


def test_values_are_finite_and_sizes_not_below_zero() -> None:
    one = replace(
        trace(),
        counters=Counters.build(kernel=[0, 1, 1], value=[1.0, np.inf, np.nan], name=0),
        copies=Copies.build(start_ns=[0], dur_ns=[1], bytes=[-4096]),
    )
    assert {(part.what, part.rows) for part in broken(one)} == {
        ("counters have a value that is not finite", 1),
        ("copies have a negative bytes", 1),
    }


@given(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))
def test_any_times_are_looked_at_without_a_fault(start: int, lasts: int) -> None:
    found = broken(trace(start_ns=[start, 0], dur_ns=[lasts, 0]))
    assert bool(found) == (lasts < 0 or start + lasts > 2**63 - 1 or lasts >= 2**63 - 1024)
