"""The hooks' log of steps, read: the times of steps, and what their thread took of the processor."""

from __future__ import annotations

from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from profharness.readers.own.steps import read
from profharness.trace.columns.table import NULL
from tests.readers.own.host_files import write

FEW = settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])


def test_a_step_has_the_processor_time_of_its_thread(tmp_path: Path) -> None:
    times = [(4, 10), (4, 17), (5, 3), (5, 3), (4, 30)]
    lines = [
        {"n": at, "monotonic_ns": 100 * at, "items": None, "tid": tid, "cpu_ns": cpu}
        for at, (tid, cpu) in enumerate(times)
    ]
    marks = read(write(tmp_path / "steps-9.jsonl", *lines)).marks
    assert marks.dur_ns.tolist() == [100] * 4
    assert marks.tid.tolist() == [4, 5, 5, 4]
    assert marks.cpu_ns.tolist() == [7, NULL, 0, NULL]


def test_a_log_of_an_earlier_version_has_none(tmp_path: Path) -> None:
    lines = [{"n": at, "monotonic_ns": 100 * at, "items": 3, "source": "mark"} for at in range(3)]
    marks = read(write(tmp_path / "steps-9.jsonl", *lines)).marks
    assert marks.items.tolist() == [3, 3]
    assert marks.cpu_ns.tolist() == [NULL, NULL]
    assert marks.tid.tolist() == [NULL, NULL]


@FEW
@given(st.lists(st.tuples(st.integers(-(2**63), 2**63 - 1), st.integers(-(2**63), 2**63 - 1))))
def test_no_number_makes_a_time_below_zero(tmp_path: Path, values: list[tuple[int, int]]) -> None:
    lines = [
        {"n": at, "monotonic_ns": at, "tid": tid, "cpu_ns": cpu}
        for at, (tid, cpu) in enumerate(values)
    ]
    marks = read(write(tmp_path / "steps-9.jsonl", *lines)).marks
    assert len(marks) == max(len(values) - 1, 0)
    assert all(cpu >= NULL for cpu in marks.cpu_ns.tolist())


def test_backward_passes_count_only_where_nothing_better_told_of_steps(tmp_path: Path) -> None:
    def line(n: int, at: int, source: str) -> dict[str, object]:
        return {"n": n, "monotonic_ns": at, "source": source}

    by_hand = [line(n, 10 * n, "backward") for n in range(3)]
    optimized = [line(n, 100 + 7 * n, "optimizer") for n in range(4)]
    path = tmp_path / "steps-9.jsonl"
    assert read(write(path, *by_hand)).marks.dur_ns.tolist() == [10, 10]
    assert read(write(path, *by_hand, *optimized)).marks.dur_ns.tolist() == [7, 7, 7]
    marked = [line(n, 200 + n, "mark") for n in range(2)]
    assert read(write(path, *by_hand, *optimized, *marked)).marks.dur_ns.tolist() == [1]
