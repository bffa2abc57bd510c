"""Counter passes that the tool refused: halves, their names and order, and what is said."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.layers import named
from profharness.layers.contract import COMMAND
from profharness.measure.counter_split import PassQueue, halved, refusal_finding
from profharness.supervise.pass_plan import PassPlan

PLAN = PassPlan("rocprofv3-pmc1", named(("rocprofv3",)), (COMMAND,), ("A", "B", "C"))


def test_halves_keep_the_order_and_are_named_after_the_whole() -> None:
    assert [
        (part.name, part.counters, part.layers == PLAN.layers, part.perturbing)
        for part in halved(PLAN)
    ] == [("rocprofv3-pmc1a", ("A", "B"), True, True), ("rocprofv3-pmc1b", ("C",), True, True)]
    assert halved(replace(PLAN, counters=("A",))) == ()


@given(st.integers(1, 40), st.integers(1, 10))
def test_every_counter_is_counted_once_whatever_the_device_takes(count: int, most: int) -> None:
    counters = tuple(f"C{number}" for number in range(count))
    left = PassQueue(
        [
            replace(PLAN, counters=counters),
            replace(PLAN, name="rocprofv3-pmc2", counters=("LAST",)),
        ],
        None,
    )
    accepted: list[PassPlan] = []
    while (plan := left.take()) is not None:
        if len(plan.counters) > most:
            assert len(left.split(plan)) == 2
        else:
            accepted.append(plan)
    assert tuple(name for plan in accepted for name in plan.counters) == (*counters, "LAST")
    assert len({plan.name for plan in accepted}) == len(accepted)
    assert accepted[-1].name == "rocprofv3-pmc2"


@pytest.mark.parametrize(("spare", "splits"), [(None, [2, 2]), (1, [2, 0]), (0, [0])])
def test_no_more_executions_than_were_allowed(spare: int | None, splits: list[int]) -> None:
    left = PassQueue([PLAN], spare)
    found = []
    while (plan := left.take()) is not None:
        if len(plan.counters) > 1:
            found.append(len(left.split(plan)))
    assert found == splits


def test_what_is_said_of_a_refusal() -> None:
    split = refusal_finding(PLAN, halved(PLAN), "error code 38")
    assert (split.id, split.severity) == ("counters-split", "info")
    assert split.message == (
        "rocprofv3 refused A B C in one pass (error code 38): "
        "they are counted in 2 passes instead, "
        "rocprofv3-pmc1a and rocprofv3-pmc1b"
    )
    alone = refusal_finding(replace(PLAN, counters=("A",)), (), "")
    assert (alone.id, alone.message) == (
        "counters-refused",
        "rocprofv3: this device cannot count A, not even alone",
    )
    assert "--passes" in refusal_finding(PLAN, (), "").message


@given(st.integers(2, 24), st.integers(1, 6), st.integers(1, 6))
def test_groups_of_one_execution_are_halved_in_one_execution(
    count: int, size: int, most: int
) -> None:
    counters = tuple(f"C{number}" for number in range(count))
    groups = tuple(counters[at : at + size] for at in range(0, count, size))
    left = PassQueue([replace(PLAN, counters=counters, groups=groups)], None)
    accepted: list[PassPlan] = []
    while (plan := left.take()) is not None:
        if max(len(group) for group in plan.groups or (plan.counters,)) > most:
            (again,) = left.split(plan)
            assert again.counters == counters
            assert refusal_finding(plan, (again,), "").id == "counters-split"
        else:
            accepted.append(plan)
    (last,) = accepted
    assert [name for group in last.groups or (last.counters,) for name in group] == list(counters)


def test_one_counter_that_no_device_has_is_found_among_groups_of_one() -> None:
    """Each execution that holds it is refused; all others are counted."""
    counters = tuple("ABCDE")
    plan = replace(PLAN, counters=counters, groups=tuple((name,) for name in counters))
    left = PassQueue([plan], None)
    counted: list[str] = []
    refused: list[str] = []
    while (next_plan := left.take()) is not None:
        assert next_plan.groups in ((), tuple((name,) for name in next_plan.counters))
        if "D" not in next_plan.counters:
            counted += next_plan.counters
        elif not (halves := left.split(next_plan)):
            refused.append(refusal_finding(next_plan, halves, "").message)
    assert (sorted(counted), len(refused)) == (["A", "B", "C", "E"], 1)
    assert "cannot count D, not even alone" in refused[0]
