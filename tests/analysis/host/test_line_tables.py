"""Lines and functions of Python by samples: sums, recursion, the window of steps, and which thread
speaks.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.host.line_records import LineTable
from profharness.analysis.host.line_tables import line_table, sampled_stacks, without_samples
from profharness.analysis.pictures.flame import tree_of
from profharness.report.text.measured.python_lines import answer_of, answering, host_text
from profharness.trace.model import Marks, Trace
from tests.readers.py_spy.written import Sample, Stack, write

MAIN, LOAD, HOT = ("train.py", 31, "main"), ("train.py", 7, "load"), ("train.py", 9, "load")
WAIT = ("threading.py", 331, "wait")
RATE = {"before_ns": 1_000, "after_ns": 2_000, "rate": 100}


def trace_of(
    folder: Path, stacks: list[Stack], *others: Sample, rate: dict[str, int] | None = None
) -> Trace:
    """One sample each 10 ms of the main thread 5 of process 5."""
    folder.mkdir(exist_ok=True)
    samples = [Sample(10_000 * at, 5, 5, stack) for at, stack in enumerate(stacks, 1)]
    every = sorted((*samples, *others))
    return readers.read(
        write(
            folder / "a.json", every, 10_000 * (len(stacks) + 1), **(RATE if rate is None else rate)
        )
    )


def table_of(trace: Trace, by: str = "line") -> LineTable:
    table = line_table(trace, "function" if by == "function" else "line")
    assert table is not None
    return table


def test_self_and_inclusive_time_with_recursion(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [(MAIN, LOAD)] * 6 + [(MAIN, LOAD, HOT, LOAD)] * 3 + [(MAIN,)])
    table = table_of(trace)
    rows = {(row.line, row.function): row for row in table.rows}
    assert rows[7, "load"].self_ns == 90_000_000
    assert rows[7, "load"].inclusive_ns == 90_000_000
    assert (rows[9, "load"].self_ns, rows[9, "load"].inclusive_ns) == (0, 30_000_000)
    assert rows[31, "main"].inclusive_share == 1.0
    assert (table.rate_hz, table.threads[0].samples, rows[7, "load"].samples) == (100, 10, 9)
    low, high = rows[7, "load"].share_low, rows[7, "load"].share_high
    assert low is not None
    assert high is not None
    assert 0.5 < low < 0.9 < high < 1
    functions = {row.function: row for row in table_of(trace, "function").rows}
    assert functions["load"].self_ns == functions["load"].inclusive_ns == 90_000_000
    assert functions["load"].line is None


def test_without_a_rate_there_is_no_count(tmp_path: Path) -> None:
    table = table_of(trace_of(tmp_path, [(MAIN,)] * 3, rate={}))
    assert (table.rate_hz, table.rows[0].samples, table.rows[0].share_low) == (None, None, None)
    assert "does not say how often" in host_text(table, 5, None)


def with_steps(trace: Trace, low_ns: int, high_ns: int) -> Trace:
    """The trace with one step of process 5."""
    zero = int(trace.marks.start_ns[0]) - 10_000_000
    step = Marks.build(
        1,
        start_ns=zero + low_ns,
        dur_ns=high_ns - low_ns,
        name=trace.strings.code("step 1"),
        kind=trace.strings.code("step"),
        pid=5,
        tid=5,
        source=0,
    )
    from profharness.trace.columns.table import concat

    return replace(trace, marks=concat([trace.marks, step]))


def test_only_the_steps_count_where_there_are_any(tmp_path: Path) -> None:
    trace = with_steps(
        trace_of(tmp_path, [(MAIN, LOAD)] * 50 + [(MAIN, HOT)] * 10), 460_000_000, 600_000_000
    )
    table = table_of(trace)
    assert table.threads[0].from_steps
    assert table.threads[0].ns == 140_000_000
    assert table.rows[0].line == 9
    assert table.rows[0].share == pytest.approx(90 / 140)
    assert answer_of(table) == (
        "64 % of the samples of the main thread in the steps are in train.py:9 load."
    )
    drawn = sampled_stacks(trace, table)
    assert int(drawn.marks.dur_ns.max()) == 140_000_000
    assert len(without_samples(trace).marks) == 1


def test_threads_that_wait_do_not_speak_and_are_left_out(tmp_path: Path) -> None:
    waiting = [Sample(10_000 * at + 5, 5, 6, (WAIT,), 2) for at in range(1, 30)]
    agent = [Sample(10_000 * at + 7, 4, 4, (MAIN, WAIT), 3) for at in range(1, 30)]
    busy = [Sample(10_000 * at + 9, 5, 8, (HOT,), 4) for at in range(1, 5)]
    trace = trace_of(tmp_path, [(MAIN, LOAD)] * 20, *waiting, *agent, *busy)
    table = table_of(trace)
    assert [(one.pid, one.tid, one.waits) for one in table.threads] == [
        (5, 5, False),
        (5, 8, False),
        (4, 4, True),
        (5, 6, True),
    ]
    assert {(row.pid, row.tid) for row in table.shown} == {(5, 5), (5, 8), (4, 4)}
    text = host_text(table, 20, None)
    assert "1 thread that mostly wait" in text
    assert answering(table) is table
    alone = table_of(trace_of(tmp_path, [(MAIN, WAIT)] * 5))
    assert answering(alone) is None


def test_no_samples_no_table(tmp_path: Path) -> None:
    trace = trace_of(tmp_path, [(MAIN,)])
    assert line_table(without_samples(trace)) is None
    assert line_table(trace, "line", "another pass") is None


FRAMES = st.sampled_from([MAIN, LOAD, HOT, WAIT])
STACKS = st.lists(FRAMES, min_size=1, max_size=4).map(tuple)


@settings(max_examples=50, deadline=None)
@given(st.lists(STACKS, min_size=1, max_size=30))
def test_rows_sum_to_the_samples(
    tmp_path_factory: pytest.TempPathFactory, stacks: list[Stack]
) -> None:
    table = table_of(trace_of(tmp_path_factory.mktemp("lines"), stacks))
    own: Counter[tuple[int, str]] = Counter(stack[-1][1:] for stack in stacks)
    whole: Counter[tuple[int, str]] = Counter(
        place for stack in stacks for place in {frame[1:] for frame in stack}
    )
    for row in table.rows:
        place = row.line or 0, row.function
        assert row.self_ns == 10_000_000 * own[place]
        assert row.inclusive_ns == 10_000_000 * whole[place]
        assert row.samples == own[place]
    assert sum(row.share for row in table.rows) == pytest.approx(1)


HOOKS = "/opt/wrappers/hooks/profharness_hooks"
STEP_OF_HOOK = (f"{HOOKS}/optimizers.py", 61, "reporting_step")
RECORD = (f"{HOOKS}/step_log.py", 113, "Recorder._record")
SGD = ("/usr/lib/python3/dist-packages/torch/optim/sgd.py", 379, "step")


def test_our_own_hooks_are_no_rows_and_take_no_time(tmp_path: Path) -> None:
    """What the program called through them stays; what they did themselves is told by itself."""
    plain = [(MAIN, LOAD)] * 6 + [(MAIN, SGD)] * 3 + [(MAIN,)]
    hooked = (
        [(MAIN, LOAD)] * 6
        + [(MAIN, STEP_OF_HOOK, SGD)] * 3
        + [(MAIN, STEP_OF_HOOK, RECORD)] * 4
        + [(MAIN, STEP_OF_HOOK)]
        + [(MAIN,)]
    )
    without = table_of(trace_of(tmp_path / "a", plain))
    trace = trace_of(tmp_path / "b", hooked)
    table = table_of(trace)
    assert table.rows == without.rows
    (thread,) = table.threads
    assert (thread.hooks_ns, thread.ns, thread.samples) == (50_000_000, 100_000_000, 10)
    tree = tree_of(sampled_stacks(trace, table), "stack")
    assert not any("profharness" in name for name in tree.names)
    assert sum(tree.own_ns) == 100_000_000
