from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.host.kinds import HOLDING, Kind
from profharness.analysis.host.timeline import HostRows, host_rows, thread_of, timeline
from profharness.stats import intervals
from profharness.trace.model import Trace
from tests.analysis.scene import Scene


def of_first_thread(trace: Trace) -> list[tuple[int, int, str, str, str]]:
    """Stretches as (start, end, kind, name of what holds, name of the innermost row)."""
    rows = host_rows(trace)
    line = timeline(rows, thread_of(rows, 0, 7, 1))
    names = [trace.strings[code] for code in rows.name.tolist()]
    return [
        (start, end, Kind(kind).key, names[holder], names[inner])
        for start, end, kind, holder, inner in zip(
            line.start.tolist(),
            line.end.tolist(),
            line.kind.tolist(),
            line.holder.tolist(),
            line.inner.tolist(),
            strict=True,
        )
    ]


def test_the_innermost_row_names_each_instant():
    scene = Scene()
    scene.op("aten::linear", 0, 100)
    scene.op("aten::addmm", 20, 60)
    scene.call("hipLaunchKernel", 30, 40)
    assert of_first_thread(scene.build()) == [
        (0, 20, "operator", "aten::linear", "aten::linear"),
        (20, 30, "operator", "aten::addmm", "aten::addmm"),
        (30, 40, "launch_call", "hipLaunchKernel", "hipLaunchKernel"),
        (40, 60, "operator", "aten::addmm", "aten::addmm"),
        (60, 100, "operator", "aten::linear", "aten::linear"),
    ]


def test_the_loader_holds_for_its_operators_and_a_collection_inside_stands_alone():
    scene = Scene()
    loader = "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"
    scene.mark("range", 0, 100, loader)
    scene.op("aten::stack", 10, 90)
    scene.mark("gc", 20, 30, "garbage collection, generation 2")
    found = of_first_thread(scene.build())
    assert [(kind, inner) for *_, kind, _, inner in found] == [
        ("data_loader", loader),
        ("data_loader", "aten::stack"),
        ("garbage_collection", "garbage collection, generation 2"),
        ("data_loader", "aten::stack"),
        ("data_loader", loader),
    ]
    assert {holder for *_, kind, holder, _ in found if kind == "data_loader"} == {loader}


def test_a_value_is_waited_for_only_where_there_is_a_device():
    scene = Scene()
    scene.op("aten::item", 0, 10)
    assert of_first_thread(scene.build())[0][2] == "operator"
    scene.kernel(2, 5)
    assert of_first_thread(scene.build())[0][2] == "synchronisation"


def test_steps_say_nothing_of_what_the_host_is_in():
    scene = Scene()
    scene.mark("step", 0, 100, "ProfilerStep#1")
    scene.op("aten::mm", 10, 20)
    assert [(start, end) for start, end, *_ in of_first_thread(scene.build())] == [(10, 20)]


def test_a_window_asks_only_for_what_reaches_into_it():
    scene = Scene()
    scene.op("aten::mm", 0, 10)
    scene.op("aten::add", 50, 60)
    rows = host_rows(scene.build())
    line = timeline(rows, 0, intervals.window(55, 100))
    assert (line.start.tolist(), line.end.tolist()) == ([50], [60])


@st.composite
def nested(draw: st.DrawFn) -> HostRows:
    """Rows that nest as calls do, of any kind."""
    spans: list[tuple[int, int]] = []

    def fill(low: int, high: int, depth: int) -> None:
        at = low
        while at < high and draw(st.booleans()):
            start = draw(st.integers(at, high - 1))
            end = draw(st.integers(start + 1, high))
            spans.append((start, end))
            if depth < 4:
                fill(start, end, depth + 1)
            at = end

    fill(0, 60, 0)
    count = len(spans)
    kind = draw(st.lists(st.sampled_from(list(Kind)[:-1]), min_size=count, max_size=count))
    return HostRows(
        np.array([start for start, _ in spans], np.int64),
        np.array([end for _, end in spans], np.int64),
        np.zeros(count, np.int64),
        np.zeros(count, np.int8),
        np.arange(count),
        np.zeros(count, np.int32),
        np.array(kind, np.int8),
        np.zeros((1, 3), np.int64),
        np.zeros(1, np.int64),
        *(
            np.array(draw(st.lists(st.booleans(), min_size=count, max_size=count)), np.bool_)
            for _ in ("of our hooks", "native")
        ),
    )


def expected_at(rows: HostRows, at: int) -> tuple[int, int, int] | None:
    """Kind, holder and innermost row at one instant, by looking at each row that is open."""
    open_ = [row for row in range(len(rows)) if rows.start[row] <= at < rows.end[row]]
    if not open_:
        return None
    collecting = [row for row in open_ if rows.kind[row] == Kind.GARBAGE_COLLECTION]
    holding = collecting or [row for row in open_ if rows.kind[row] in HOLDING]
    # rows were written outer first, so that the order of rows is that of nesting
    inner = open_[-1]
    holder = holding[0] if holding else writer_of(rows, open_)
    if holder == inner and rows.native[inner] and len(open_) > 1 and rows.of_hooks[open_[-2]]:
        holder = inner = open_[-2]
    return int(rows.kind[holder]), holder, inner


def writer_of(rows: HostRows, open_: list[int]) -> int:
    """The outermost row that writes, with nothing but Python inside of it; else the innermost."""
    found = open_[-1]
    for row in reversed(open_):
        if rows.kind[row] not in (Kind.WRITING, Kind.PYTHON):
            break
        if rows.kind[row] == Kind.WRITING:
            found = row
    return found


@given(nested())
def test_every_instant_is_that_of_a_look_at_all_open_rows(rows: HostRows):
    line = timeline(rows, 0)
    found: dict[int, tuple[int, int, int]] = {}
    for start, end, kind, holder, inner in zip(
        line.start.tolist(),
        line.end.tolist(),
        line.kind.tolist(),
        line.holder.tolist(),
        line.inner.tolist(),
        strict=True,
    ):
        for at in range(start, end):
            assert at not in found
            found[at] = (kind, holder, inner)
    assert found == {at: one for at in range(61) if (one := expected_at(rows, at)) is not None}
