"""Ranges of the program as steps: which ones, which numbers, and what is said where none is
meant.
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from profharness.errors import UsageError
from profharness.trace.columns.table import NULL
from profharness.trace.model import Source, Trace
from profharness.trace.parts.step_numbers import first_digits, step_numbers
from profharness.trace.parts.step_ranges import (
    compiled,
    has_steps,
    matching,
    range_names,
    telling,
    unmatched,
)
from tests.analysis.scene import Scene


def ranges(
    *names: str,
    kind: str = "range",
    length: int = 10,
    pids: tuple[int, ...] = (),
    sources: tuple[int, ...] = (),
) -> Trace:
    """Ranges of these names one after the other, each 10 ns unless said."""
    scene = Scene(sources=(Source("a", "rocprofv3-csv"), Source("b", "rocprofv3-csv")))
    for place, name in enumerate(names):
        scene.mark(
            kind,
            10 * place,
            10 * place + length,
            name,
            pid=pids[place] if pids else 7,
            source=sources[place] if sources else 0,
        )
    return scene.build()


def steps(found) -> list[int]:
    return step_numbers(found.trace).tolist()


@pytest.mark.parametrize(
    ("pattern", "names", "numbers"),
    [
        (r"iteration \d+", ("iteration 3", "forward", "iteration 4"), [3, NULL, 4]),
        (r"epoch \d+ batch (\d+)", ("epoch 2 batch 7", "epoch 2 batch 8"), [7, 8]),
        (r"(?:it|step)_(\w+)_9", ("it_a4_9", "step_b5_9"), [4, 5]),
        (r"train_step", ("train_step", "forward", "train_step"), [0, NULL, 1]),
        (r"conv2d", ("conv2d", "conv2d", "conv2d"), [0, 1, 2]),
        (r"conv2d", ("conv2d",), [2]),
        (r"iteration.*", ("iteration 3", "iteration four"), [0, 1]),
        (r"step( \d+)?", ("step", "step 8"), [0, 1]),
        (r"batch \d+", ("batch 99999999999999999999", "batch 1"), [0, 1]),
        (r"x", ("x ", "ax", "xb", "x"), [NULL, NULL, NULL, 0]),
    ],
)
def test_numbers_are_those_of_the_name_or_counted(pattern, names, numbers):
    assert steps(matching(ranges(*names), pattern)) == numbers


def test_ranges_are_counted_in_order_of_time_in_each_process():
    scene = Scene(sources=(Source("a", "x"), Source("b", "x")))
    for start, pid, source in ((50, 7, 0), (0, 7, 0), (20, 8, 0), (30, 7, 1), (10, 8, 0)):
        scene.mark("range", start, start + 5, "train", pid=pid, source=source)
    assert steps(matching(scene.build(), "train")) == [1, 0, 1, 0, 0]


def test_an_instant_is_no_step_and_other_kinds_are_no_ranges():
    assert matching(ranges("step 1", "step 2", length=0), r"step \d") is None
    assert matching(ranges("step 1", "step 2", kind="phase"), r"step \d") is None
    assert telling(ranges("step 1", "step 2", length=0)) is None


def test_in_a_file_with_such_ranges_they_are_the_only_steps():
    scene = Scene(sources=(Source("a", "x"), Source("b", "x")))
    for source in (0, 1):
        scene.mark("step", 0, 100, "ProfilerStep#5", source=source)
        scene.mark("trial", 0, 100, "trial 5", source=source)
    scene.mark("range", 0, 50, "forward")
    trace = scene.build()
    found = matching(trace, "forward")
    assert found.words == "ranges whose name matches 'forward'"
    kinds = found.trace.strings.decode(found.trace.marks.kind)
    assert kinds == ["range", "range", "step", "trial", "step"]
    assert steps(found) == [NULL, NULL, 5, NULL, 0]
    assert trace.strings.decode(trace.marks.kind) == [
        "step",
        "trial",
        "step",
        "trial",
        "range",
    ]  # what was given is as it was


def test_steps_that_were_steps_before_may_be_named():
    assert steps(
        matching(ranges("ProfilerStep#5", "ProfilerStep#6", kind="step"), "ProfilerStep#.*")
    ) == [5, 6]


@pytest.mark.parametrize("pattern", ["iteration (", "a{2,1}", "*"])
def test_what_is_no_regular_expression_is_refused_with_the_reason(pattern):
    with pytest.raises(re.error) as reason:
        re.compile(pattern)
    with pytest.raises(UsageError) as refused:
        compiled(pattern)
    assert (
        refused.value.message
        == f"--step-range: {pattern!r} is not a regular expression ({reason.value})"
    )


def test_what_is_there_is_named_the_most_frequent_first():
    trace = ranges("a 10", "load", "a 2", "a 1", "b", "b", *"cdef")
    assert range_names(trace) == Counter(
        {"a 1": 3, "b": 2, "load": 1, "c": 1, "d": 1, "e": 1, "f": 1}
    )
    assert (
        unmatched("x+", range_names(trace)).message
        == "--step-range x+: no range of the program has a name that matches as a whole"
    )
    assert (
        unmatched("x+", range_names(trace)).hint
        == "ranges there are 'a 1', 'b', 'c', 'd', 'e' and 2 more names"
    )
    assert (
        unmatched("x", Counter({"a 7": 1, "b": 2}) + Counter({"a 12": 5})).hint
        == "ranges there are 'a 7', 'b'"
    )
    assert unmatched("x", Counter()).hint.startswith(
        "the trace holds no ranges of the program: roctx ranges are recorded by --profile rocprofv3"
    )


@pytest.mark.parametrize(
    "name",
    [
        "step {}",
        "step_{}",
        "Step {}",
        "STEP#{}",
        "iteration {}",
        "Iteration: {}",
        "iter {}",
        "iter-{}",
        "step{}",
    ],
)
def test_names_that_tell_a_step_by_themselves(name):
    found = telling(ranges(name.format(3), "forward", name.format(4), name.format(7)))
    assert steps(found) == [3, NULL, 4, 7]
    assert (
        found.words == f"ranges named like {name.format(3)!r}, since the trace marks no other steps"
    )


@pytest.mark.parametrize(
    "names",
    [
        ("step 3",),
        ("forward", "backward"),
        ("step 1 of 3", "step 2 of 3"),
        ("my step 1", "my step 2"),
        ("step", "step"),
        ("step a", "step b"),
        ("timestep 1", "timestep 2"),
        ("step 1", "step 2", "step 1", "step 2"),
        ("step 2", "step 1"),
        ("step 1", "step 1"),
        ("iteration 1", "step 2"),
        ("batch 1", "batch 2"),
    ],
)
def test_names_that_leave_a_doubt_tell_nothing(names):
    assert telling(ranges(*names)) is None


def test_ranges_that_overlap_tell_nothing():
    assert telling(ranges("step 1", "step 2", length=10)) is not None
    assert telling(ranges("step 1", "step 2", length=11)) is None


def test_each_process_and_file_is_looked_at_by_itself():
    found = telling(ranges("step 1", "step 1", "step 2", "step 2", length=20, pids=(7, 8, 7, 8)))
    assert steps(found) == [1, 1, 2, 2]
    assert (
        telling(ranges("step 1", "step 1", "step 2", "step 1", length=20, pids=(7, 8, 7, 8)))
        is None
    )
    found = telling(ranges("step 2", "step 4", "step 1", "step 5", length=20, sources=(0, 1, 0, 1)))
    assert steps(found) == [NULL, 4, NULL, 5]


def test_whether_there_are_steps():
    assert not has_steps(ranges("step 1", "step 2"))
    assert not has_steps(Scene().build())
    assert has_steps(ranges("x", kind="trial"))
    assert has_steps(ranges("x", kind="step"))


def test_own_numbers_of_marks_by_kind():
    scene = Scene()
    for kind, name in (
        ("step", "ProfilerStep#5"),
        ("step", "profharness.step:6:64"),
        ("step", "profharness.step:7"),
        ("step", "step 8"),
        ("step", "train 9"),
        ("trial", "profharness.trial:b4:1:10"),
        ("trial", "trial 11"),
        ("range", "step 12"),
    ):
        scene.mark(kind, 0, 1, name)
    trace = scene.build()
    assert step_numbers(trace).tolist() == [5, 6, 7, 8, NULL, NULL, NULL, NULL]
    assert step_numbers(trace, ("trial", "step")).tolist() == [5, 6, 7, 8, NULL, 10, 11, NULL]


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("", NULL),
        ("a", NULL),
        ("a12b34", 12),
        ("007", 7),
        ("9" * 18, 10**18 - 1),
        ("9" * 19, NULL),
        ("٣", NULL),
    ],
)
def test_the_first_digits_of_a_text(text, number):
    assert first_digits(text) == number
