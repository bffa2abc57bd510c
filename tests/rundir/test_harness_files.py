"""The harness's own small files: trials.csv and the hooks' log of steps."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.errors import InputError
from profharness.readers.own import steps
from profharness.rundir import trials
from profharness.trace.model import ClockDomain

HEAD = "trial,kind,start_monotonic_ns,dur_ns,items\n"


def test_trials_become_marks_of_their_point(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_text(HEAD + "0,warmup,100,90,4\n0,trial,200,10,4\n1,trial,215,12,4\n")
    trace = trials.read(path, point="torch-b4")
    rows = [
        (trace.strings[k], trace.strings[n], s, d, i, trace.strings[p])
        for k, n, s, d, i, p in zip(
            trace.marks.kind,
            trace.marks.name,
            trace.marks.start_ns,
            trace.marks.dur_ns,
            trace.marks.items,
            trace.marks.point,
            strict=True,
        )
    ]
    assert rows == [
        ("warmup", "warmup 0", 100, 90, 4, "torch-b4"),
        ("trial", "trial 0", 200, 10, 4, "torch-b4"),
        ("trial", "trial 1", 215, 12, 4, "torch-b4"),
        ("point", "torch-b4", 200, 27, 8, "torch-b4"),
    ]
    assert trace.sources[0].clock is ClockDomain.MONOTONIC


def test_a_failed_point_has_no_marks_and_a_cut_row_is_counted(tmp_path: Path) -> None:
    path = tmp_path / "trials.csv"
    path.write_text(HEAD)
    assert len(trials.read(path, point="p").marks) == 0
    path.write_text(HEAD + "0,trial,200,10,4\n1,trial,2")
    trace = trials.read(path, point="p")
    assert len(trace.marks) == 2
    assert [problem.count for problem in trace.problems] == [1]


@pytest.mark.parametrize("text", ["", "a,b\n1,2\n", None])
def test_another_file_is_refused(tmp_path: Path, text: str | None) -> None:
    path = tmp_path / "trials.csv"
    if text is not None:
        path.write_text(text)
    with pytest.raises(InputError, match=r"trials\.csv"):
        trials.read(path, point="p")


def line(n: int, at: int, items: int | None, source: str) -> str:
    return (
        f'{{"n": {n}, "monotonic_ns": {at}, "items": {"null" if items is None else items}, '
        f'"source": "{source}"}}\n'
    )


def test_steps_last_from_end_to_end_and_the_scripts_own_marks_win(tmp_path: Path) -> None:
    path = tmp_path / "steps-77.jsonl"
    path.write_text(
        line(0, 100, None, "optimizer")
        + line(0, 150, 8, "mark")
        + line(1, 190, 16, "mark")
        + line(2, 260, None, "mark")
    )
    trace = steps.read(path)
    assert [trace.strings[name] for name in trace.marks.name] == ["step 1", "step 2"]
    assert list(trace.marks.start_ns) == [150, 190]
    assert list(trace.marks.dur_ns) == [40, 70]
    assert list(trace.marks.items) == [16, -1]
    assert set(trace.marks.pid) == {77}


def test_a_log_of_one_step_or_a_cut_line_is_no_error(tmp_path: Path) -> None:
    path = tmp_path / "steps-77.jsonl"
    path.write_text(line(0, 100, None, "optimizer"))
    assert len(steps.read(path).marks) == 0
    path.write_text(
        line(0, 100, None, "optimizer") + line(1, 130, None, "optimizer") + '{"n": 2, "mono'
    )
    trace = steps.read(path)
    assert list(trace.marks.dur_ns) == [30]
    assert [problem.count for problem in trace.problems] == [1]
    with pytest.raises(InputError):
        steps.read(tmp_path / "steps-78.jsonl")
