"""py-spy's Chrome trace: a real one with a forked child, generated ones with their truth, and
damaged ones.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.errors import InputError
from profharness.readers.py_spy import reader
from profharness.trace import nesting
from profharness.trace.clocks import align
from profharness.trace.model import ClockDomain, Trace
from profharness.trace.wanted import Wanted
from tests.readers.py_spy.written import Sample, Stack, write

RECORDED = Path(__file__).parent / "recorded" / "forked.json"
MAIN = ("/home/user/train.py", 31, "<module>")
LOAD = ("/home/user/load.py", 7, "load")
READ = ("/venv/lib/python3.11/site-packages/PIL/Image.py", 2, "Image.read")
WAIT = ("/usr/lib/python3.11/threading.py", 9, "wait")


def times(trace: Trace) -> Counter[tuple[int, int, str]]:
    """ns by process, thread and name."""
    marks = trace.marks
    names = trace.strings.decode(marks.name)
    found: Counter[tuple[int, int, str]] = Counter()
    for pid, tid, name, ns in zip(
        marks.pid.tolist(), marks.tid.tolist(), names, marks.dur_ns.tolist(), strict=True
    ):
        found[pid, tid, name] += ns
    return found


def ms(at: int, stack: Stack, pid: int = 5, tid: int = 5, pthread: int = 1) -> Sample:
    return Sample(1000 * at, pid, tid, stack, pthread)


def test_a_recorded_file_with_a_forked_child_and_a_thread() -> None:
    trace = readers.read(RECORDED)
    (source,) = trace.sources
    assert (source.format, source.clock) == ("py-spy", ClockDomain.MONOTONIC)
    assert not [one for one in trace.problems if one.severity != "info"]
    pids = dict.fromkeys(trace.marks.pid.tolist())
    assert len(pids) == 2
    parent, child = pids
    found = times(trace)
    assert (
        0.7e9 < sum(ns for key, ns in found.items() if key[0] == parent and "hot" in key[2]) < 1e9
    )
    assert 0.2e9 < sum(ns for key, ns in found.items() if key[0] == child and "hot" in key[2]) < 5e8
    assert any(key[:2] == (parent, parent) and key[2].startswith("small.py(") for key in found)
    names = {(one.pid, one.tid): one.name for one in source.names}
    assert names[parent, -1] == "python small.py"
    assert names[parent, parent] == "MainThread"
    assert "waiter" in names.values()
    assert source.bound_ns is not None
    assert source.bound_ns < 50_000_000


def test_names_say_the_line_that_ran_and_files_by_their_package(tmp_path: Path) -> None:
    samples = [ms(10, (MAIN, LOAD)), ms(20, (MAIN, LOAD, READ)), ms(30, (MAIN, WAIT))]
    trace = readers.read(write(tmp_path / "a.json", samples, 40_000))
    assert times(trace) == {
        (5, 5, "train.py(31): <module>"): 30_000_000,
        (5, 5, "load.py(7): load"): 20_000_000,
        (5, 5, "PIL/Image.py(2): Image.read"): 10_000_000,
        (5, 5, "threading.py(9): wait"): 10_000_000,
    }
    assert trace.sources[0].pid == 5
    assert len(reader.read(tmp_path / "a.json", wanted=Wanted.TIMES).marks) == 0


def test_a_forked_child_shares_the_pthread_number_of_its_parent(tmp_path: Path) -> None:
    pairs = [
        (ms(at, (MAIN, WAIT)), Sample(1000 * at + 100, 6, 6, (MAIN, LOAD)))
        for at in range(10, 60, 10)
    ]
    samples = [one for pair in pairs for one in pair]
    trace = readers.read(write(tmp_path / "a.json", samples, 60_000))
    found = times(trace)
    assert found[5, 5, "threading.py(9): wait"] == 50_000_000
    assert found[6, 6, "load.py(7): load"] == 49_900_000


def test_a_thread_that_ended_does_not_last_to_the_end_of_the_file(tmp_path: Path) -> None:
    samples = [ms(10, (MAIN,)), ms(11, (LOAD,), tid=6, pthread=2), ms(900, (MAIN, WAIT))]
    ended = [[6, 1_200_000_000, 1_300_000_000]]
    facts = {"before_ns": 999_000_000, "after_ns": 1_001_000_000, "ended": ended}
    trace = readers.read(write(tmp_path / "a.json", samples, 1_000_000, **facts))
    assert times(trace)[5, 6, "load.py(7): load"] == 239_000_000  # until the middle of both looks
    assert times(trace)[5, 5, "train.py(31): <module>"] == 990_000_000
    alone = readers.read(write(tmp_path / "b.json", samples, 1_000_000))
    assert times(alone)[5, 6, "load.py(7): load"] == 989_000_000
    assert alone.sources[0].clock is ClockDomain.UNKNOWN


@pytest.mark.parametrize(
    ("facts", "expected"),
    [
        ({"before_ns": 1_000, "after_ns": 2_001}, (1_500, 501)),
        ({"before_ns": 1_000, "after_ns": 9_000, "wrote_ns": 100_000_000 + 3_000}, (2_000, 1_000)),
        ({"before_ns": 1_000, "wrote_ns": 100_000_000 + 3_000}, (2_000, 1_000)),
        ({"before_ns": 9_000, "after_ns": 1_000}, None),
        ({"after_ns": 1_000}, None),
    ],
)
def test_time_zero_lies_between_what_was_noted(
    tmp_path: Path, facts: dict[str, int], expected: tuple[int, int] | None
) -> None:
    path = write(tmp_path / "a.json", [ms(10, (MAIN,))], 100_000, **facts)
    trace = readers.read(path)
    if expected is None:
        assert trace.sources[0].clock is ClockDomain.UNKNOWN
        assert bool(facts.get("before_ns")) == any(
            "contradicts" in p.message for p in trace.problems
        )
        return
    assert (int(trace.marks.start_ns[0]) - 10_000_000, trace.sources[0].bound_ns) == expected


def test_the_alignment_says_how_the_start_is_known(tmp_path: Path) -> None:
    path = write(tmp_path / "a.json", [ms(10, (MAIN,))], 20_000, before_ns=1_000, after_ns=3_000)
    trace = readers.read(path)
    shot = align.Snapshot("n", "before", 5_000, 1_000, 1_000, 7_000, 10)
    (source,) = trace.sources
    on_host = Trace((align.replace(source, host="n"),), trace.strings, marks=trace.marks)
    aligned = align.align(on_host, {"n": [shot]}, "n").sources[0]
    assert aligned.alignment.startswith("py-spy's own start, known within 1.000 µs")
    assert "monotonic by one offset" in aligned.alignment


def test_a_cut_file_gives_what_is_in_it(tmp_path: Path) -> None:
    samples = [ms(10 * at, (MAIN, LOAD) if at % 2 else (MAIN, WAIT)) for at in range(1, 50)]
    whole = write(tmp_path / "a.json", samples, 500_000).read_text()
    path = tmp_path / "cut.json"
    path.write_text(whole[: len(whole) // 2])
    trace = readers.read(path)
    assert any("cut or damaged" in problem.message for problem in trace.problems)
    assert times(trace)[5, 5, "train.py(31): <module>"] > 100_000_000


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "empty"),
        ("[]\n", "of no known trace format"),
        ('[{"cat":"py-spy","ph":"M","name":"thread_name","pid":1,"tid":1,"ts":0}]', "no sample"),
        ('[{"cat":"py-spy","ph":"B"', "no readable trace event"),
    ],
)
def test_a_file_without_samples_is_refused(tmp_path: Path, text: str, says: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(InputError, match=says):
        reader.read(path) if text.startswith('[{"cat') else readers.read(path)


def test_hostile_events_are_counted_and_lose_nothing_else(tmp_path: Path) -> None:
    good = json.loads(write(tmp_path / "a.json", [ms(10, (MAIN, LOAD))], 20_000).read_text())
    frame = {"cat": "py-spy", "name": "f", "args": {"filename": "f.py", "line": 1}}
    odd = [
        {**frame, "ph": "E", "pid": 9, "tid": 9, "ts": 15_000},
        {**frame, "ph": "B", "pid": 9, "tid": 9, "ts": "x"},
        {**frame, "ph": "B", "pid": 9, "tid": 9, "ts": -4},
        {**frame, "ph": "B", "pid": "no", "tid": None, "ts": 15_000},
        {**frame, "ph": "B", "pid": 8, "tid": 8, "ts": 16_000, "args": None},
        {**frame, "ph": "E", "pid": 8, "tid": 8, "ts": 12_000},
        {"ph": "B", "ts": 1, "pid": 2**70, "tid": 3, "name": None},
    ]
    path = tmp_path / "odd.json"
    path.write_text(json.dumps([*good[:-4], *odd, *good[-4:]]))
    trace = readers.read(path)
    told = {problem.message: problem.count for problem in trace.problems}
    assert told["events have no readable time or thread and were left out"] == 3
    assert told["frames end that never began: left out"] == 1
    assert told["events are earlier than one before them on their thread: moved there"] == 1
    assert times(trace)[5, 5, "load.py(7): load"] == 10_000_000
    assert (trace.marks.dur_ns > 0).all()


def test_a_deep_stack_is_bounded(tmp_path: Path) -> None:
    deep = tuple(("deep.py", 1, f"f{at % 7}") for at in range(10_050))
    trace = readers.read(write(tmp_path / "a.json", [ms(1, deep), ms(2, (MAIN,))], 3_000))
    assert {problem.count for problem in trace.problems} == {52}
    assert len(trace.marks) == 9_999


FRAMES = st.sampled_from([MAIN, LOAD, READ, WAIT, ("<string>", 3, "<module>")])
STACKS = st.lists(FRAMES, min_size=1, max_size=5).map(tuple)
OWNERS = st.sampled_from([(5, 5, 1), (6, 6, 1), (5, 7, 2)])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(1, 40), OWNERS, STACKS), min_size=1, max_size=40))
def test_every_sample_counts_until_the_next_of_its_thread(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, tuple[int, int, int], Stack]]
) -> None:
    at, samples = 0, []
    for step, (pid, tid, pthread), stack in drawn:
        at += step
        samples.append(Sample(at, pid, tid, stack, pthread))
    end = at + 1
    path = write(tmp_path_factory.mktemp("spy") / "a.json", samples, end)
    trace = readers.read(path)
    truth: Counter[tuple[int, int, str]] = Counter()
    for sample in samples:
        later = (
            one.at_us for one in samples if one.at_us > sample.at_us and one[1:3] == sample[1:3]
        )
        until = next(later, end)
        for _, line, function in sample.stack:
            truth[sample.pid, sample.tid, f"({line}): {function}"] += 1000 * (until - sample.at_us)
    found: Counter[tuple[int, int, str]] = Counter()
    for (pid, tid, name), ns in times(trace).items():
        found[pid, tid, name[name.index("(") :]] += ns
    assert found == truth
    marks = trace.marks
    thread = marks.pid * 100 + marks.tid
    depth = nesting.nest(marks.start_ns, marks.dur_ns, thread).depth
    assert int(depth.max()) < 5
    assert np.all(np.diff(marks.start_ns) >= 0)
