"""Operators of graph replays from generated captures."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.kernels.facts import KernelFacts
from profharness.analysis.kernels.hotspots import own_ns
from profharness.analysis.operators.coverage import known_work
from profharness.analysis.operators.device_time import device_time
from profharness.analysis.operators.gradients import forward_of
from profharness.analysis.operators.nests import nests
from profharness.analysis.operators.rows import row_work
from profharness.analysis.time.linking import link_kernels
from profharness.trace.columns.table import NULL
from profharness.trace.graphs.captures import captured_graphs
from profharness.trace.graphs.replays import Recovery, recovered
from profharness.trace.model import Trace
from tests.readers.kineto.kineto_files import kernel
from tests.trace.graphs.graph_files import (
    Recording,
    Run,
    captures_of,
    linear,
    mm,
    replays_of,
)

TWO = [linear(2, 3, 4, "a"), Run("aten::relu", ["b"], [[2, 3]])]


def innermost_operators(trace: Trace) -> list[int]:
    """Of each kernel in the order of their starts, the row of its operator."""
    rows: list[int] = trace.kernels.op[np.argsort(trace.kernels.start_ns)].tolist()
    return rows


def operators(trace: Trace) -> list[str]:
    """Of each kernel, its operators from the innermost one out."""
    tree, found = nests(trace.ops), []
    for innermost in innermost_operators(trace):
        chain, row = [], innermost
        while row != NULL:
            chain.append(trace.strings[int(trace.ops.name[row])].removeprefix("aten::"))
            row = int(tree.parent[row])
        found.append(" < ".join(chain))
    return found


def shapes(trace: Trace) -> list[str]:
    """The recorded extents of each kernel's operator."""
    return [
        trace.strings[int(trace.ops.shapes[row])] if row != NULL else ""
        for row in innermost_operators(trace)
    ]


def test_each_replay_runs_the_captured_operators_without_time_on_the_host(tmp_path: Path) -> None:
    trace, found = recovered(
        replays_of(tmp_path, ["a", "b"], ["a", "b"]), captures_of(tmp_path, TWO)
    )
    assert found == Recovery(
        captures=1, replays=2, exact=2, kernels=4, matched=4, kernel_ns=28_000, matched_ns=28_000
    )
    assert operators(trace) == ["mm < matmul < linear", "relu"] * 2
    assert len(trace.ops) == 8
    assert trace.ops.replay.tolist() == [0] * 4 + [1] * 4
    assert not own_ns(trace.ops).any()
    assert np.nansum(row_work(trace).flops) == 2 * (2 * 2 * 3 * 4)
    times = device_time(trace)
    assert times is not None
    assert (times.own_ns.sum(), times.outside_ns) == (28_000, 0)
    calls = trace.api.start_ns.tolist()
    assert all(
        calls[replay] < start < calls[replay] + 2000
        for replay, start in zip(trace.ops.replay, trace.ops.start_ns, strict=True)
    )


def test_operators_stand_inside_of_what_launched_the_graph(tmp_path: Path) -> None:
    recording = Recording()
    recording.run(Run("before", ["x"]))
    start = recording.now
    recording.replay(["a", "b"])
    recording.events.append(
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "around",
            "pid": 100,
            "tid": 100,
            "ts": start,
            "dur": 90,
        }
    )
    plain = recording.read(tmp_path / "a.json")
    assert operators(plain) == ["around"] * 2
    trace, _ = recovered(plain, captures_of(tmp_path, TWO))
    assert operators(trace) == ["mm < matmul < linear < around", "relu < around"]
    assert own_ns(trace.ops)[:2].tolist() == own_ns(plain.ops).tolist()
    times = device_time(trace)
    assert times is not None
    around = trace.ops.name.tolist().index(trace.strings.find("around"))
    assert (times.own_ns[around], times.inclusive_ns[around]) == (0, 14_000)


def test_the_graph_with_the_same_kernels_is_taken(tmp_path: Path) -> None:
    captures = captures_of(
        tmp_path, [mm(1, 1, 1, "a")], [mm(2, 2, 2, "a"), mm(2, 2, 2, "b")], [mm(3, 3, 3, "b")]
    )
    trace, found = recovered(replays_of(tmp_path, ["a", "b"], ["b"], ["a"]), captures)
    assert found.exact == 3
    assert [text[:6] for text in shapes(trace)] == ["[[2, 2", "[[2, 2", "[[3, 3", "[[1, 1"]


def test_otherwise_the_longest_match_in_order(tmp_path: Path) -> None:
    captures = captures_of(
        tmp_path,
        [mm(1, 1, 1, "a"), mm(2, 2, 2, "b"), mm(3, 3, 3, "a"), mm(4, 4, 4, "c")],
        [mm(9, 9, 9, "c")],
    )
    trace, found = recovered(replays_of(tmp_path, ["a", "new", "a", "c"]), captures)
    assert (found.exact, found.in_order, found.matched, found.kernels) == (0, 1, 3, 4)
    assert [text[:6] for text in shapes(trace)] == ["[[1, 1", "", "[[3, 3", "[[4, 4"]
    assert len(trace.ops) == 3  # what did not run is not in the trace


def test_with_less_than_half_it_is_another_graph(tmp_path: Path) -> None:
    captures = captures_of(tmp_path, [mm(1, 1, 1, "a"), mm(2, 2, 2, "b")])
    plain = replays_of(tmp_path, ["a", "b", "x", "y", "z"])
    trace, found = recovered(plain, captures)
    assert trace is plain
    assert found == Recovery(captures=1, replays=1, kernels=5, kernel_ns=35_000)
    _, found = recovered(replays_of(tmp_path, ["a", "b", "x", "y"]), captures)
    assert (found.in_order, found.matched) == (1, 2)


def test_of_graphs_that_match_equally_well_that_with_the_fewest_launches_is_taken(
    tmp_path: Path,
) -> None:
    captures = captures_of(
        tmp_path, [mm(1, 1, 1, "a"), "b", "c", "d"], [mm(2, 2, 2, "a"), "b", "c"]
    )
    trace, found = recovered(replays_of(tmp_path, ["a", "b"]), captures)
    assert (found.in_order, found.ambiguous) == (1, 0)
    assert [text[:4] for text in shapes(trace)] == ["[[2,", ""]


@pytest.mark.parametrize(("other", "exact", "ambiguous"), [(2, 0, 1), (1, 1, 0)])
def test_graphs_that_match_equally_well_are_told_apart_by_nothing(
    tmp_path: Path, other: int, exact: int, ambiguous: int
) -> None:
    captures = captures_of(tmp_path, [mm(1, 1, 1, "a")], [mm(other, 1, 1, "a")])
    trace, found = recovered(replays_of(tmp_path, ["a"]), captures)
    assert (found.exact, found.ambiguous) == (exact, ambiguous)
    assert operators(trace) == (["mm"] if exact else [""])


def test_streams_that_run_beside_each_other_match_one_by_one(tmp_path: Path) -> None:
    captures = captures_of(tmp_path, [mm(size, 1, 1, name) for size, name in enumerate("abcd", 1)])
    replay = [("c", 8), ("a", 7), ("d", 8), ("b", 7)]
    trace, found = recovered(replays_of(tmp_path, replay), captures)
    assert (found.in_order, found.matched) == (1, 4)
    assert [text[:4] for text in shapes(trace)] == ["[[3,", "[[1,", "[[4,", "[[2,"]


def test_backward_operators_find_the_forward_ones_of_their_own_replay(tmp_path: Path) -> None:
    recording = Recording()
    recording.call("hipStreamBeginCapture")
    recording.run(mm(2, 3, 4, "a", Sequence_number=3))
    back = {"Sequence_number": 3, "Fwd_thread_id": 1}
    recording.run(Run("MmBackward0", [mm(4, 3, 2, "b")], (), back), tid=50)
    recording.call("hipStreamEndCapture")
    captures = captured_graphs(recording.read(tmp_path / "capture.json"))
    trace, found = recovered(replays_of(tmp_path, ["a", "b"], ["a", "b"]), captures)
    assert found.exact == 2
    assert operators(trace) == ["mm", "mm < MmBackward0"] * 2
    first, first_back, second, second_back = innermost_operators(trace)
    assert forward_of(trace.ops)[[first, first_back, second, second_back]].tolist() == [
        NULL, first, NULL, second,
    ]  # fmt: skip


def test_operators_that_began_before_the_capture_did_not_run_again(tmp_path: Path) -> None:
    recording = Recording()
    start = recording.now
    recording.capture([mm(1, 1, 1, "a")])
    recording.events.append(
        {
            "ph": "X",
            "cat": "cpu_op",
            "name": "outer",
            "pid": 100,
            "tid": 100,
            "ts": start,
            "dur": 900,
        }
    )
    captures = captured_graphs(recording.read(tmp_path / "capture.json"))
    trace, _ = recovered(replays_of(tmp_path, ["a"]), captures)
    assert operators(trace) == ["mm"]


def test_kernels_of_ordinary_launches_stay_as_they_were(tmp_path: Path) -> None:
    recording = Recording()
    recording.run(mm(5, 5, 5, "a"))
    recording.events.append(kernel("a", recording.now, 3, correlation=recording.calls))
    recording.replay(["a"])
    plain = recording.read(tmp_path / "a.json")
    trace, found = recovered(plain, captures_of(tmp_path, [mm(1, 1, 1, "a")]))
    assert (found.kernels, found.matched) == (1, 1)
    assert sorted(text[:4] for text in shapes(trace)) == ["[[1,", "[[5,"]
    assert recovered(trace, ())[0] is trace


def test_a_trace_that_holds_its_own_capture_counts_its_work_once(tmp_path: Path) -> None:
    recording = Recording()
    recording.capture(TWO)
    plain = recording.read(tmp_path / "capture.json")
    assert not np.isfinite(row_work(plain).flops).any()
    recording.replay(["a", "b"])
    plain = recording.read(tmp_path / "a.json")
    trace, found = recovered(plain, captured_graphs(plain))
    assert (found.exact, found.matched) == (1, 2)
    once, work = row_work(replays_with(tmp_path)), row_work(trace)
    for name in ("flops", "flops_full", "flops_most", "low_bytes"):
        assert np.nansum(getattr(work, name)) == np.nansum(getattr(once, name)) > 0
    assert (work.reason == NULL).all()


def replays_with(folder: Path) -> Trace:
    """One replay of `TWO`, with the operators of a capture in another file."""
    return recovered(replays_of(folder, ["a", "b"]), captures_of(folder, TWO))[0]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_kernels_that_were_left_out_of_a_replay_cost_no_other_one(
    tmp_path_factory: pytest.TempPathFactory, sizes: list[int], data: st.DataObject
) -> None:
    folder = tmp_path_factory.mktemp("graphs")
    kept = data.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    names = [f"k{size}" for size, keep in zip(sizes, kept, strict=True) if keep]
    captures = captures_of(folder, [mm(size + 1, 1, 1, f"k{size}") for size in sizes])
    trace, found = recovered(replays_of(folder, names), captures)
    assert (found.kernels, found.matched) == (len(names), len(names))
    assert [text[:4] for text in shapes(trace)] == [f"[[{int(name[1:]) + 1}," for name in names]
    assert np.nansum(row_work(trace).flops) == sum(2 * (int(name[1:]) + 1) for name in names)


def test_what_hides_the_work_of_a_captured_operator_is_said_of_it(tmp_path: Path) -> None:
    captures = captures_of(
        tmp_path, [mm(2, 3, 4, "gemm_1"), Run("mine::fused", ["gemm_2"], [[2, 3]])]
    )
    replays = replays_of(tmp_path, ["gemm_1", "gemm_2", "gemm_3"])
    for trace, known_ns, reasons in (
        (replays, 0, {"graph replay": 21_000}),
        (recovered(replays, captures)[0], 7_000, {"graph replay": 7_000, "no formula": 7_000}),
    ):
        known = known_work(KernelFacts(trace), link_kernels(trace))
        assert known is not None
        assert (known.matrix_kernel_ns, known.known_ns) == (21_000, known_ns)
        assert known.reasons == reasons
