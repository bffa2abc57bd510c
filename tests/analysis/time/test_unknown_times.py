"""Kernels whose lengths cannot be true, and where they and records without times may have run."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.compare.operators.window import windowed
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time.believed import SMALL_OVERLAP_NS, believed, overlong
from profharness.analysis.time.device_work import work_of
from profharness.analysis.time.linking import link_kernels
from profharness.analysis.time.steps import measured
from profharness.analysis.time.unknown_times import of_unknown_length, of_unknown_place
from profharness.analysis.verdict import integrity
from profharness.stats.intervals import merge
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Trace
from tests.analysis.scene import Scene

US = 1_000


def stream_of(count: int, wrong: dict[int, int], **where: int) -> Scene:
    """Kernels of 40 µs, 45 µs apart and launched 5 µs before; `wrong` are other lengths, in µs."""
    scene = Scene()
    for number in range(count):
        at = (100 + 45 * number) * US
        launch = scene.launch(at - 5 * US, at - 4 * US)
        scene.kernel(at, at + wrong.get(number, 40) * US, launch, **where)
    return scene


def rows(trace: Trace) -> list[int]:
    found = overlong(trace)
    return [] if found is None else np.flatnonzero(found).tolist()


def test_a_length_that_runs_over_whole_successors_is_not_believed() -> None:
    trace = stream_of(200, {60: 1_600_000}).build()
    assert rows(trace) == [60]
    seen = believed(trace)
    assert seen.kernels.start_ns.tolist() == trace.kernels.start_ns.tolist()
    assert int(seen.kernels.dur_ns[60]) == 0
    assert rows(seen) == [60]
    assert believed(trace).kernels is seen.kernels
    assert believed(seen) is seen


def test_shares_and_idle_of_such_a_trace_are_ranges_and_sums_are_the_files() -> None:
    summary = summarise_trace(stream_of(200, {60: 1_600_000}).build(), "a.json")
    split = summary.partition
    assert split is not None
    assert split.window_ns == (199 * 45 + 40) * US
    assert split.compute_ns == 199 * 40 * US
    assert split.idle_or_not_recorded_ns == 45 * US
    assert split.idle_ns == 198 * 5 * US
    whole = summary.trace
    assert (whole.kernels, whole.sum_kernel_ns) == (200, (199 * 40 + 1_600_000) * US)
    assert whole.span_ns == (60 * 45 + 1_600_000) * US
    (row,) = summary.hotspots[0].rows
    assert (row.calls, row.total_ns) == (200, whole.sum_kernel_ns)
    assert [(one.id, one.figures) for one in summary.findings if one.id == "overlong-kernels"] == [
        ("overlong-kernels", {"kernels": 1})
    ]


def test_whoever_asks_for_the_window_of_such_a_trace_gets_the_believed_one() -> None:
    """The recorded length of the last kernel would end it later."""
    trace = stream_of(20, {18: 5_000}).build()
    for seen in (trace, believed(trace)):
        assert measured(seen).on(0).total == (19 * 45 + 40) * US
    assert measured(trace) is measured(believed(trace))


def test_comparisons_measure_the_believed_window() -> None:
    scene = stream_of(200, {60: 1_600_000})
    scene.op("aten::mm", 0, 10_000 * US)
    window = windowed(scene.build())
    assert window is not None
    assert (window.whole_ns, int(window.kernels.sum())) == ((199 * 45 + 40) * US, 199 * 40 * US)


def test_the_last_kernel_that_it_holds_need_not_be_its_neighbour() -> None:
    """The neighbour is itself too long, or of the same launch."""
    trace = stream_of(20, {5: 300, 6: 700}).build()
    assert rows(trace) == [5, 6]
    scene = Scene()
    graph, later = scene.call("hipGraphLaunch", 0, 5), scene.launch(10, 12)
    scene.kernel(100 * US, 900 * US, graph)
    scene.kernel(110 * US, 120 * US, graph)
    scene.kernel(200 * US, 220 * US, later)
    assert rows(scene.build()) == [0]


def test_the_one_that_it_holds_need_not_be_the_first_to_end() -> None:
    """Kernels of its own launch, and those that begin near its end, may end before."""
    scene = Scene()
    graph, other = scene.call("hipGraphLaunch", 0, 5), scene.launch(10, 12)
    scene.kernel(100 * US, 200 * US, graph)
    scene.kernel(110 * US, 160 * US, other)
    scene.kernel(120 * US, 130 * US, graph)
    late, later = scene.launch(20, 22), scene.launch(30, 32)
    scene.kernel(300 * US, 400 * US, scene.launch(14, 16))
    scene.kernel(350 * US, 399 * US + 500, late)
    scene.kernel(399 * US, 399 * US + 100, later)
    assert rows(scene.build()) == [0, 1, 3]


def test_branches_of_a_graph_and_small_overlaps_are_believed() -> None:
    scene = Scene()
    graph = scene.call("hipGraphLaunch", 0, 5)
    scene.kernel(100 * US, 900 * US, graph)
    scene.kernel(110 * US, 120 * US, graph)
    scene.kernel(1000 * US, 1100 * US, scene.launch(20, 21))
    scene.kernel(1100 * US - SMALL_OVERLAP_NS, 1100 * US, scene.launch(30, 31))
    scene.kernel(1200 * US, 1300 * US, scene.launch(40, 41))
    scene.kernel(1250 * US, 1400 * US, scene.launch(50, 51))
    assert rows(scene.build()) == []
    assert "overlong-kernels" not in {one.id for one in integrity.findings(scene.build())}
    trace = scene.build()
    assert believed(trace) is trace


def test_kernels_of_other_streams_and_of_unknown_launches_are_not_compared() -> None:
    scene = stream_of(3, {0: 5_000})
    apart = Scene()
    for number in range(3):
        at = (100 + 45 * number) * US
        apart.kernel(
            at, at + (5_000 if number == 0 else 40) * US, apart.launch(0, 1), stream=number
        )
    unlinked = Scene()
    unlinked.kernel(100 * US, 900 * US)
    unlinked.kernel(110 * US, 120 * US)
    assert [rows(one.build()) for one in (scene, apart, unlinked)] == [[0], [], []]


def test_processes_that_a_csv_joins_have_streams_of_their_own() -> None:
    scene = Scene()
    for number in range(3):
        at = (100 + 45 * number) * US
        own = number + 1 if number else (1 << 40) + 1
        scene.kernel(at, at + (5_000 if number == 0 else 40) * US, own)
    assert rows(scene.build()) == []


@given(
    st.lists(
        st.tuples(
            st.integers(0, 1), st.integers(0, 60_000), st.integers(0, 30_000), st.integers(0, 4)
        ),
        max_size=12,
    ),
    st.sampled_from((0, 10_000, 100_000)),
)
def test_each_pair_of_kernels_says_the_same(
    drawn: list[tuple[int, int, int, int]], apart: int
) -> None:
    """Against every pair of kernels of five graphs, which begin so far apart: one when the one
    before has ended, or among one another.
    """
    scene = Scene()
    calls = [scene.call("hipGraphLaunch", number, number + 1) for number in range(5)]
    ordered = sorted(drawn, key=lambda one: (one[3], one[1]))
    for stream, start, length, by in ordered:
        scene.kernel(start + apart * by, start + apart * by + length, calls[by], stream=stream)
    trace = scene.build()
    kernels, call = trace.kernels, link_kernels(trace).api
    end = kernels.start_ns + kernels.dur_ns
    expected = [
        row
        for row in range(len(kernels))
        if any(
            kernels.stream[row] == kernels.stream[other]
            and call[row] != call[other]
            and (kernels.start_ns[other], other) > (kernels.start_ns[row], row)
            and end[other] <= end[row]
            and end[row] - kernels.start_ns[other] > SMALL_OVERLAP_NS
            for other in range(len(kernels))
            if other != row
        )
    ]
    assert rows(trace) == expected


def test_a_kernel_of_unknown_length_has_ended_when_the_next_begins() -> None:
    trace = believed(stream_of(8, {3: 200}).build())
    found = of_unknown_length(trace, work_of(trace), 0)
    begin = (100 + 45 * 3) * US
    assert (found.start.tolist(), found.end.tolist()) == ([begin], [begin + 45 * US])


def lost(scene: Scene, *numbers: int) -> Trace:
    trace = scene.build()
    gone = np.isin(np.arange(len(trace.kernels)), numbers)
    kernels = trace.kernels
    return replace(
        trace,
        kernels=kernels.with_columns(
            start_ns=np.where(gone, NULL, kernels.start_ns),
            dur_ns=np.where(gone, 0, kernels.dur_ns),
        ),
    )


def test_records_without_times_lie_between_their_neighbours() -> None:
    trace = lost(stream_of(8, {}), 3, 7)
    found = of_unknown_place(trace, work_of(trace), 0)
    at = [(100 + 45 * number) * US for number in range(9)]
    # launched 5 µs before it would begin, when the kernel before it has just ended
    assert found.start.tolist() == [at[3] - 5 * US, at[7] - 5 * US]
    assert found.end.tolist() == [at[4], max(at[6] + 40 * US, at[7] - 5 * US)]


@pytest.mark.parametrize("column", ["dispatch", "correlation"])
def test_without_host_calls_numbers_tell_the_order(column: str) -> None:
    scene = Scene()
    for number in range(6):
        scene.kernel(100 * number, 100 * number + 60)
    trace = lost(scene, 2)
    numbered = replace(
        trace, kernels=trace.kernels.with_columns(**{column: np.arange(1, 7, dtype=np.int64)})
    )
    found = of_unknown_place(numbered, work_of(numbered), 0)
    assert (found.start.tolist(), found.end.tolist()) == ([160], [300])
    anywhere = of_unknown_place(trace, work_of(trace), 0)
    assert (anywhere.start.tolist(), anywhere.end.tolist()) == ([0], [560])


def test_copies_and_other_devices() -> None:
    scene = stream_of(4, {}, device=0)
    scene.devices = (*scene.devices, Device("1"))
    scene.copy(NULL, NULL, scene.call("hipMemcpyAsync", 141 * US, 142 * US))
    trace = scene.build()
    found = merge(of_unknown_place(trace, work_of(trace), 0))
    assert (found.start.tolist(), found.end.tolist()) == ([185 * US], [190 * US])
    scene.kernel(100 * US, 200 * US, scene.launch(95 * US, 96 * US), device=1, stream=1)
    two = scene.build()
    assert len(of_unknown_place(two, work_of(two), 0)) == 1
    assert not len(of_unknown_place(two, work_of(two), 1))
