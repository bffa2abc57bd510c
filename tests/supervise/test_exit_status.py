from __future__ import annotations

import json
import os
import struct
import time
from dataclasses import replace
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest

from profharness.launchers import Outcome
from profharness.launchers.wrappers import wrappers_dir
from profharness.layers.contract import Where
from profharness.supervise.exit_status import Ending, _cpu_ms, _without_value

# of a package that is on the path of hooked processes alone
_SPEC = spec_from_file_location(
    "hooks_command_line", wrappers_dir() / "hooks" / "profharness_hooks" / "command_line.py"
)
assert _SPEC is not None
assert _SPEC.loader is not None
command_line: Any = module_from_spec(_SPEC)
_SPEC.loader.exec_module(command_line)


def place(tmp_path: Path) -> Where:
    where = Where(run_root=tmp_path, pass_name="rocprof", wrappers=tmp_path, host="node1")
    where.statuses.mkdir(parents=True, exist_ok=True)
    where.hooks.mkdir(parents=True, exist_ok=True)
    return where


def note(where: Where, pid: int, **facts: Any) -> None:
    (where.statuses / f"status-{pid}.json").write_text(
        json.dumps({"v": 1, "pid": pid + 1, **facts})
    )


def bye(where: Where, pid: int, *argv: str, uncaught: bool = False) -> None:
    (where.hooks / f"bye-{pid}.json").write_text(
        json.dumps({"v": 1, "pid": pid, "argv": command_line.shown(argv), "uncaught": uncaught})
    )


def outcome(status: int, *, by_signal: bool = False, overdue: bool = False) -> Outcome:
    return Outcome(status, 50, 0, 1, overdue=overdue, by_signal=by_signal)


def test_the_recorders_word_is_the_workloads_status(tmp_path: Path) -> None:
    where = place(tmp_path)
    note(where, 9, status=77)  # of an earlier pass
    ending = Ending(where, [], 10)
    assert ending.own_status(outcome(1)) is None
    note(where, 10)
    assert not ending.own_ends().over
    note(where, 10, status=0)
    note(where, 20, status=5)
    assert ending.own_ends().over
    assert ending.own_status(outcome(0)) == 5


def test_python_says_bye_before_a_profiler_inside_it_dies_or_hangs(tmp_path: Path) -> None:
    where = place(tmp_path)
    ending = Ending(where, [], 10)
    ending.follow(50)
    bye(where, 50, "python", "train.py")
    assert ending.own_status(outcome(134, by_signal=True)) == 0
    assert ending.own_status(outcome(137, overdue=True)) == 0
    # a bye knows no sys.exit(5), and a status of 134 without a signal is the program's own
    assert ending.own_status(outcome(5)) is None
    assert ending.own_status(outcome(134)) is None
    bye(where, 50, "python", "train.py", uncaught=True)
    assert ending.own_status(outcome(134, by_signal=True)) == 1


def test_the_status_that_python_passed_to_exit_is_exact(tmp_path: Path) -> None:
    where = place(tmp_path)
    ending = Ending(where, [], 10)
    ending.follow(50)
    bye(where, 50, "python", "train.py")
    (where.hooks / "bye-50.status").write_bytes(b"")
    assert not ending.own_ends().exact  # it is made before it is written
    (where.hooks / "bye-50.status").write_bytes(struct.pack("i", 3 + 256))
    assert ending.own_ends().exact
    for seen in (outcome(0), outcome(7), outcome(134, by_signal=True), outcome(137, overdue=True)):
        assert ending.own_status(seen) == 3
    note(where, 49, status=9)  # of the recorder that started process 50: the tool inside changed it
    assert ending.own_status(outcome(9)) == 3


def test_a_handler_that_hangs_is_overdue_once_nothing_works_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, ticks, said = [0.0], [5], [""]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr("profharness.supervise.exit_status._cpu_ms", lambda _: ticks[0])
    ending = Ending(place(tmp_path), [], 60, lambda: said[0])
    ending.follow(50)

    def overdue_at(seconds: float) -> bool:
        now[0] = seconds
        return ending.overdue()

    assert not overdue_at(100)
    said[0] = "E20260102 09:53:32.744880 1 tool.cpp:9] rocprofv3 caught signal 15..."
    assert not overdue_at(200)
    ticks[0] += 1  # a process that was not hit goes on
    assert not overdue_at(300)
    assert not overdue_at(355)
    assert overdue_at(361)


def test_a_tool_that_refused_its_counters_gets_no_more_than_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    refused = (
        "failed with error code 38: Request exceeds the capabilities of the hardware to collect"
    )
    counting = Ending(replace(place(tmp_path), counters=("SQ_WAVES",)), [], 60, lambda: refused)
    tracing = Ending(
        place(tmp_path / "tracing"), [], 60, lambda: refused
    )  # where only the workload can have said so
    for seconds, expected in ((10, False), (65, False), (75, True)):
        now[0] = seconds
        assert (counting.overdue(), tracing.overdue()) == (expected, False)


def test_cpu_time_of_a_tree_is_that_of_all_its_processes() -> None:
    before = _cpu_ms([os.getpid()])
    end = time.process_time() + 0.05
    while time.process_time() < end:
        pass
    assert _cpu_ms([os.getpid()]) >= before + 30
    assert _cpu_ms([2**22 + 1]) == 0


def test_a_recorded_python_that_died_after_its_bye_ended_by_itself(tmp_path: Path) -> None:
    where = place(tmp_path)
    ending = Ending(where, [], 10)
    note(where, 10, status=139, by_signal=True)
    assert ending.own_status(outcome(139)) == 139
    bye(where, 11, "python", "train.py")
    assert ending.own_status(outcome(139)) == 0


def test_the_tools_own_python_is_not_the_workload(tmp_path: Path) -> None:
    where = place(tmp_path)
    ending = Ending(where, [], 10)
    ending.around(("/opt/rocm/bin/rocprofv3", "--kernel-trace", "--", "python", "train.py"))
    ending.follow(50)
    bye(
        where,
        50,
        "python3",
        "/opt/rocm/bin/rocprofv3",
        "--kernel-trace",
        "--",
        "python",
        "train.py",
    )
    assert not ending.own_ends().over
    bye(where, 50, "python", "train.py")
    assert ending.own_ends().over


@pytest.mark.parametrize(
    "words", ["./train.py a b c d e f", "python -X dev train.py", "python train.py --kernel-trace"]
)
def test_a_workload_in_the_tools_process_is_not_the_tool(tmp_path: Path, words: str) -> None:
    where = place(tmp_path)
    ending = Ending(where, [], 10)
    ending.around(("/opt/rocm/bin/rocprofv3", "-d", "out", "--", "./train.py", "a", "b"))
    ending.follow(50)
    bye(where, 50, *words.split())
    assert ending.own_ends().over


def test_both_sides_write_a_word_alike() -> None:
    for word in ("", "-", "--", "-5", "-p", "-pX", "--a", "--a=", "--a=b", "--a.b", "--a b=c", "x"):
        assert _without_value(word) == command_line.without_value(word)


def test_overdue_counts_from_the_last_byte_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    where = place(tmp_path)
    folder = tmp_path / "artifacts"
    folder.mkdir()
    ending = Ending(where, [folder], 60)
    ending.follow(os.getpid())

    def overdue_at(seconds: float) -> bool:
        now[0] = 100 + seconds
        return ending.overdue()

    assert not overdue_at(500)  # the workload is still running
    bye(where, os.getpid(), "python")
    assert not overdue_at(510)
    assert not overdue_at(565)
    (folder / "trace.db").write_bytes(b"x" * 100)
    assert not overdue_at(575)
    assert not overdue_at(630)
    assert overdue_at(640)


def test_half_written_notes_count_as_none(tmp_path: Path) -> None:
    where = place(tmp_path)
    ending = Ending(where, [], 10)
    (where.statuses / "status-5.json").write_text('{"v": 1, "pi')
    assert ending.own_ends().statuses == ()


def test_a_scans_worker_says_itself_that_it_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    where = place(tmp_path)
    ending = Ending(where, [], 0.0)
    ending.follow(50)
    assert not ending.own_ends().over
    assert not ending.overdue()
    ending.ended(50)
    assert ending.own_ends().over
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 5)
    assert not ending.overdue()  # from here on it counts
    monkeypatch.setattr(time, "monotonic", lambda: now + 10)
    assert ending.overdue()
    assert ending.own_status(outcome(137, overdue=True)) == 0
    # where it then exits by itself with another status, that one counts
    assert ending.own_status(outcome(3)) is None
