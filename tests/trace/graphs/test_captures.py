"""What was launched into graphs, from generated captures."""

from __future__ import annotations

from pathlib import Path

from profharness import readers
from profharness.trace.graphs.captures import Capture, captured_calls, captured_graphs, ran_nothing
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import kernel
from tests.trace.graphs.graph_files import Recording, Run, captures_of, linear, mm


def names(capture: Capture) -> list[str]:
    return capture.recorded.trace.strings.decode(capture.kernel)


def operators(capture: Capture) -> list[str]:
    trace = capture.recorded.trace
    return [trace.strings[int(trace.ops.name[row])] if row >= 0 else "" for row in capture.op]


def test_launches_of_a_capture_in_order_with_the_operators_around_them(tmp_path: Path) -> None:
    first, second = captures_of(tmp_path, [linear(2, 3, 4, "a"), "bare"], [mm(1, 1, 1, "b")])
    assert (names(first), names(second)) == (["a", "bare"], ["b"])
    assert (operators(first), operators(second)) == (["aten::mm", ""], ["aten::mm"])
    assert first.named
    assert len(first) == 2


def test_what_runs_before_after_and_beside_a_capture_is_not_in_it(tmp_path: Path) -> None:
    recording = Recording()
    recording.run("before")
    recording.call("hipStreamBeginCapture")
    recording.run("inside")
    recording.run("at once", tid=5)
    recording.events.append(kernel("at once", 500, 3, correlation=recording.calls))
    recording.run("of the engine", tid=6)
    recording.call("hipGraphLaunch")
    recording.call("hipStreamEndCapture")
    recording.run("after")
    recording.call("hipStreamBeginCapture")
    recording.run("never ended")
    (capture,) = captured_graphs(recording.read(tmp_path / "a.json"))
    assert names(capture) == ["inside", "of the engine"]


def test_threads_that_capture_keep_their_own_launches(tmp_path: Path) -> None:
    recording = Recording()
    for tid in (1, 2):
        recording.call("hipStreamBeginCapture", tid=tid)
    for tid in (1, 2, 1):
        recording.run(f"of {tid}", tid=tid)
    for tid in (1, 2):
        recording.call("hipStreamEndCapture", tid=tid)
    first, second = captured_graphs(recording.read(tmp_path / "a.json"))
    assert (names(first), names(second)) == (["of 1", "of 1"], ["of 2"])


def test_names_of_kernels_are_read_only_where_they_are_wanted(tmp_path: Path) -> None:
    (capture,) = captures_of(tmp_path, [mm(1, 1, 1)])
    assert capture.named
    trace = readers.read(tmp_path / "capture.json")
    assert (trace.api.kernel == -1).all()
    (unnamed,) = captured_graphs(trace)
    assert not unnamed.named
    assert len(readers.read(tmp_path / "capture.json", wanted=Wanted.DEVICES).api) == 0


def test_a_trace_without_a_capture_has_no_graph(tmp_path: Path) -> None:
    recording = Recording()
    recording.run(mm(1, 1, 1))
    assert captured_graphs(recording.read(tmp_path / "a.json")) == ()
    recording.capture([])
    assert captured_graphs(recording.read(tmp_path / "a.json")) == ()


def test_operators_that_only_launched_into_a_graph_ran_nothing(tmp_path: Path) -> None:
    recording = Recording()
    recording.run(mm(9, 9, 9, "eager"))
    recording.events.append(kernel("eager", recording.now, 3, correlation=recording.calls))
    recording.capture([linear(2, 3, 4, "a"), Run("aten::empty")])
    recording.call("hipStreamBeginCapture")
    recording.run(linear(5, 5, 5, "at once"))
    recording.events.append(kernel("at once", recording.now, 3, correlation=recording.calls))
    recording.run(mm(1, 1, 1, "b"))
    recording.call("hipStreamEndCapture")
    trace = recording.read(tmp_path / "a.json")
    idle = trace.ops.take(ran_nothing(trace))
    assert sorted(trace.strings.decode(idle.name)) == [
        "aten::linear", "aten::matmul", "aten::mm", "aten::mm"
    ]  # fmt: skip
    assert not any("5" in text or "9" in text for text in trace.strings.decode(idle.shapes))
    recording = Recording()
    recording.run(mm(9, 9, 9, "eager"))
    assert not ran_nothing(recording.read(tmp_path / "b.json")).any()


def test_a_capture_inside_of_another_is_part_of_it(tmp_path: Path) -> None:
    recording = Recording()
    recording.call("hipStreamEndCapture")
    recording.run("before")
    recording.call("hipStreamBeginCapture")
    recording.run("outer")
    recording.call("hipStreamBeginCaptureToGraph")
    recording.run("inner")
    recording.call("hipStreamEndCapture")
    recording.run("outer too")
    recording.call("hipStreamEndCapture")
    recording.run("after")
    trace = recording.read(tmp_path / "a.json")
    (capture,) = captured_graphs(trace)
    assert names(capture) == ["outer", "inner", "outer too"]
    kernels = trace.api.kernel[captured_calls(trace) & (trace.api.kernel >= 0)]
    assert trace.strings.decode(kernels) == names(capture)


def test_a_capture_without_an_end_holds_the_calls_of_its_thread_only(tmp_path: Path) -> None:
    recording = Recording()
    recording.call("hipStreamBeginCapture", tid=1)
    for tid in (1, 2, 1):
        recording.run(f"of {tid}", tid=tid)
    trace = recording.read(tmp_path / "a.json")
    assert captured_graphs(trace) == ()
    assert trace.api.tid[captured_calls(trace)].tolist() == [1, 1, 1]
