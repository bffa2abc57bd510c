"""Parts of a trace for a viewer: what is kept, and that the rest is counted."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.trace.columns.table import NULL
from profharness.trace.merge import merge
from profharness.trace.model import Source, Trace
from profharness.trace.parts.cutting import Cut, cut, first_ns, step_numbers
from profharness.trace.parts.select import rows
from tests.analysis.scene import Scene


def stepping(rank: int = 0, late: int = 0) -> Trace:
    """Three steps of 100 ns from `late` on; the kernel of each runs 150 ns after its launch: in the
    step that follows.
    """
    scene = Scene(sources=(Source(f"{rank}.json", "kineto", rank=rank, pid=7),))
    for number in range(3):
        start = late + 1000 + 100 * number
        scene.mark("step", start, start + 100, name=f"ProfilerStep#{number + 5}")
        scene.kernel(
            start + 160, start + 170, scene.launch(start + 10, start + 12), name=f"k{number}"
        )
        scene.op("aten::mm", start + 5, start + 20)
    scene.mark("range", late + 1000, late + 1001, name="user's own 7")
    scene.kernel(late + 1120, late + 1125, name="unlinked")
    scene.sample("cpu_tree", late + 1110, late + 1111, 1.0)
    return scene.build()


def names(trace: Trace) -> list[str]:
    return sorted(trace.strings.decode(trace.kernels.name))


def test_steps_keep_what_was_launched_in_them_and_unlinked_work_by_its_time():
    part, dropped = cut(stepping(), Cut(steps=(6, 7)), 0)
    assert names(part) == ["k1", "unlinked"]
    assert (len(part.api), len(part.ops), len(part.samples)) == (1, 1, 1)
    assert dropped == Counter(kernels=2, api=2, ops=2, marks=3)
    assert part.strings[int(part.kernels.name[part.kernels.op == NULL][0])]


@pytest.mark.parametrize(
    ("steps", "kept"),
    [
        ((None, 6), ["k0"]),
        ((6, None), ["k1", "k2", "unlinked"]),
        ((0, 100), ["k0", "k1", "k2", "unlinked"]),
        ((9, None), []),
    ],
)
def test_ends_of_steps(steps, kept):
    assert names(cut(stepping(), Cut(steps=steps), 0)[0]) == kept


def test_each_process_keeps_its_own_steps():
    part, _ = cut(merge([stepping(0), stepping(1, late=5_000)]), Cut(steps=(6, 7)), 0)
    assert names(part) == ["k1", "k1", "unlinked", "unlinked"]


def test_ranks():
    part, dropped = cut(merge([stepping(0), stepping(1)]), Cut(ranks=frozenset({1, 9})), 0)
    assert [source.rank for source in part.sources] == [1]
    assert (len(part.kernels), dropped["kernels"]) == (4, 4)


def test_numbers_of_steps():
    trace = stepping()
    assert [int(number) for number in step_numbers(trace)] == [5, 6, 7, NULL]
    scene = Scene()
    scene.mark("step", 0, 1, name="profharness.step:12:64")
    assert step_numbers(scene.build()).tolist() == [12]
    assert step_numbers(Scene().build()).tolist() == []


@given(st.integers(0, 400), st.integers(0, 400))
def test_windows_that_touch_share_no_record_and_lose_none(low, length):
    trace = stepping()
    origin = first_ns(trace)
    assert origin == 1000
    parts = [
        cut(trace, Cut(window=window), origin)
        for window in ((None, low), (low, low + length), (low + length, None))
    ]
    for name, table in trace.tables():
        assert sum(len(getattr(part, name)) for part, _ in parts) == len(table)
        for part, dropped in parts:
            assert len(getattr(part, name)) + dropped[name] == len(table)


def test_words_say_what_was_asked():
    assert Cut().is_all
    assert (
        Cut(window=(1_500_000_000, None), steps=(3, 5), ranks=frozenset({2, 0})).words()
        == "the window 1.5 s to end and steps 3:5 and ranks 0, 2"
    )


def test_operators_follow_their_kernels():
    scene = Scene()
    op = scene.op("aten::mm", 0, 10)
    second = scene.op("aten::add", 20, 30)
    scene.kernel(40, 41, op=second)
    trace = scene.build()
    part = rows(trace, {"ops": trace.ops.start_ns > 5})
    assert (op, part.kernels.op.tolist(), len(part.ops)) == (0, [0], 1)
