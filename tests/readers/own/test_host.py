"""The hooks' record of Python's work, read: whole, cut, damaged and hostile."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profharness.errors import InputError
from profharness.readers.own.host import SHORT_COUNT, SHORT_NS, read
from profharness.trace.columns.stacks import Frame, frames_of, text_of
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain
from tests.readers.own.host_files import HEAD, STACKS, write

FEW = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_collections_are_spans_and_samples_are_stacks(tmp_path: Path) -> None:
    path = write(
        tmp_path / "host-12.jsonl",
        HEAD,
        *STACKS,
        {"samples": {"tid": 13, "at_ns": 1000, "cpu_ns": 50, "rows": [0, 1, 0, 5, 20, 0, 7, 0]}},
        {"gc": [[2000, 300, 2, 9, 13], [1500, 200, 0, 0, 13]]},
        {"gc_short": [[0, 10**9, 4, 100, 13], [10**9, 2 * 10**9, 1, 11, 13]]},
    )
    trace = read(path)
    (source,) = trace.sources
    assert (source.format, source.clock, source.pid) == ("host", ClockDomain.BOOTTIME, 12)
    assert source.pass_name == "torch"
    assert dict(source.details) == {SHORT_COUNT: "5", SHORT_NS: "111"}
    marks = trace.marks
    assert marks.start_ns.tolist() == [1500, 2000]
    assert marks.dur_ns.tolist() == [200, 300]
    assert trace.strings.decode(marks.kind) == ["gc", "gc"]
    assert trace.strings.decode(marks.name) == [
        "garbage collection, generation 0",
        "garbage collection, generation 2",
    ]
    assert (marks.pid.tolist(), marks.tid.tolist()) == ([12, 12], [13, 13])
    samples = trace.host_samples
    assert samples.at_ns.tolist() == [1000, 1020]
    assert samples.cpu_ns.tolist() == [50, 57]
    assert samples.delay_ns.tolist() == [5, 0]
    assert samples.tid.tolist() == [13, 13]
    inner, outer = (frames_of(text) for text in trace.strings.decode(samples.stack))
    assert outer == (Frame("/home/me/train.py", 40, "<module>"),)
    assert inner == (Frame("/home/me/train.py", 7, "step"), *outer)
    assert not trace.problems


def test_a_thread_without_a_clock_has_no_processor_time(tmp_path: Path) -> None:
    path = write(
        tmp_path / "host-1.jsonl",
        HEAD,
        *STACKS,
        {"samples": {"tid": 1, "at_ns": 5, "cpu_ns": None, "rows": [0, 0, 0, 0]}},
    )
    assert read(path).host_samples.cpu_ns.tolist() == [NULL]


def test_what_the_bounds_left_out_is_told(tmp_path: Path) -> None:
    trace = read(write(tmp_path / "host-1.jsonl", HEAD, {"cut": {"gc": 7, "samples": 3}}))
    assert [(one.severity, one.count) for one in trace.problems] == [("info", 7), ("info", 3)]


def test_a_cut_line_is_left_out_and_the_others_count(tmp_path: Path) -> None:
    path = write(tmp_path / "host-1.jsonl", HEAD, {"gc": [[5, 2, 2, 0, 1]]}, '{"gc": [[6, 2')
    trace = read(path)
    assert len(trace.marks) == 1
    assert [problem.count for problem in trace.problems] == [1]


@pytest.mark.parametrize(
    "line",
    [
        '{"samples": {"tid": 1, "at_ns": 0, "rows": [1, 0, 0]}}',
        '{"samples": {"tid": 1, "at_ns": 0, "rows": [4611686018427387903, 0, 0, 0, 9, 0, 0, 0]}}',
        '{"samples": {"tid": 1, "at_ns": 0, "rows": [-1, 0, 0, 0]}}',
        '{"stack": [5, 5, 0]}',
        '{"stack": [5, 9, 0]}',
        '{"stack": [1, -1, 0]}',
        '{"stack": [5, -1, 9]}',
        '{"frame": [5, 9, 1, "f"]}',
        '{"gc": [[1, -2, 0, 0, 0]]}',
        '{"gc": [[1e99, 2, 0, 0, 0]]}',
        '{"v": 2}',
        "[" * 100_000,
        json.dumps({"file": [1, "x" * 5000]}),
        '{"samples": {"tid": 1, "at_ns": 0, "rows": [' + "0," * 600_000 + "0]}}",
    ],
    ids=range(14),
)
def test_what_no_hook_writes_is_damage(tmp_path: Path, line: str) -> None:
    trace = read(write(tmp_path / "host-1.jsonl", HEAD, *STACKS, line))
    assert [problem.count for problem in trace.problems] == [1]
    assert not len(trace.marks)
    assert not len(trace.host_samples)


def test_a_stack_is_no_deeper_than_the_hook_goes(tmp_path: Path) -> None:
    deep = [{"stack": [at, at - 1, 0]} for at in range(2, 200)]
    rows = [0, 199, 0, 0, 1, 30, 0, 0]
    line = {"samples": {"tid": 1, "at_ns": 0, "rows": rows}}
    trace = read(write(tmp_path / "host-1.jsonl", HEAD, *STACKS, *deep, line))
    assert sum(problem.count for problem in trace.problems) > 100
    unknown, known = trace.host_samples.stack.tolist()
    assert unknown == NULL
    assert len(frames_of(trace.strings[known])) == 31


def test_texts_of_stacks_are_bounded(tmp_path: Path) -> None:
    """Each of the stacks is a chain of 60 long names: one by one they would take gigabytes."""
    long = {"file": [1, "x" * 4000]}
    chain = [{"stack": [at, at - 1, 2]} for at in range(2, 60)]
    leaves = [{"stack": [at, 59, 2]} for at in range(60, 400)]
    rows = [value for at in range(60, 400) for value in (1, at, 0, 0)]
    frame = {"frame": [2, 1, 1, "f"]}
    trace = read(
        write(
            tmp_path / "host-1.jsonl",
            HEAD,
            *STACKS,
            long,
            frame,
            *chain,
            *leaves,
            {"samples": {"tid": 1, "at_ns": 0, "rows": rows}},
        )
    )
    assert len(trace.host_samples) == 340
    assert sum(map(len, trace.strings.texts)) < 40 << 20
    assert trace.problems


def test_a_file_that_is_gone_is_told(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read(tmp_path / "host-1.jsonl")


@FEW
@given(st.lists(st.tuples(st.text(max_size=20), st.integers(0, 10**6), st.text(max_size=9))))
def test_a_stack_comes_back_from_its_text(frames: list[tuple[str, int, str]]) -> None:
    made = frames_of(text_of(Frame(*frame) for frame in frames))
    assert [one.line for one in made] == [line for _, line, _ in frames]
    for one, (file, _, function) in zip(made, frames, strict=True):
        assert one.file == file.replace("\n", " ")
        assert one.function == ("_".join(function.split()) or "?")


values = st.recursive(
    st.none() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=8,
)
keys = st.sampled_from(
    ["v", "file", "frame", "stack", "samples", "gc", "gc_short", "cut", "tid", "rows", "at_ns"]
)


@FEW
@given(st.lists(st.dictionaries(keys, values, max_size=3) | values, max_size=8))
def test_nothing_that_a_file_may_say_ends_the_reading(tmp_path: Path, lines: list[object]) -> None:
    trace = read(write(tmp_path / "host-1.jsonl", HEAD, *STACKS, *lines))
    assert (
        len(trace.marks)
        + len(trace.host_samples)
        + sum(problem.count for problem in trace.problems)
        >= 0
    )
    assert len(trace.sources) == 1
