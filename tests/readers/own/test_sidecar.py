from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from profharness.errors import InputError
from profharness.readers.own import sidecar
from tests.readers.kineto.kineto_files import write

FULL = {
    "v": 1,
    "file": "t.json",
    "tool": "torch",
    "host": "node3",
    "pid": 12,
    "rank": 0,
    "point": "torch-b4",
    "clock": "realtime",
    "start_ns": None,
    "role": "trace",
    "window": {"kind": "steps", "first_step": 10, "steps": 20, "truncated": False, "reason": ""},
    "markers": [[5, 9], [15, 19]],
    "added_later": True,
}


def beside(tmp_path: Path, content: Any) -> Path:
    write(tmp_path / "t.json.profharness.json", content)
    return tmp_path / "t.json"


def test_all_fields(tmp_path: Path) -> None:
    found = sidecar.load(beside(tmp_path, FULL))
    assert found is not None
    assert (found.host, found.pid, found.rank, found.point, found.start_ns, found.role) == (
        "node3",
        12,
        0,
        "torch-b4",
        None,
        "trace",
    )
    assert found.window == sidecar.Window(kind="steps", first_step=10, steps=20)
    assert found.markers == ((5, 9), (15, 19))


def test_none(tmp_path: Path) -> None:
    assert sidecar.load(tmp_path / "t.json") is None
    assert sidecar.load_or_report(tmp_path / "t.json") == (sidecar.Sidecar(1), [])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "cannot be read"),
        ({"host": "x"}, "cannot be read"),
        ({"v": 1, "rank": "first"}, "cannot be read"),
        ({"v": 2}, "newer than 1"),
        (b"\xff", "cannot be read"),
    ],
)
def test_damaged_or_newer(tmp_path: Path, content: Any, message: str) -> None:
    path = beside(tmp_path, content)
    with pytest.raises(InputError, match=message) as caught:
        sidecar.load(path)
    assert caught.value.hint
    empty, problems = sidecar.load_or_report(path)
    assert empty == sidecar.Sidecar(1)
    assert [(p.severity, p.source) for p in problems] == [("warning", str(path))]


def test_a_program_that_was_over_before_its_window_lost_nothing(tmp_path: Path) -> None:
    _, problems = sidecar.load_or_report(
        beside(tmp_path, FULL | {"window": {"truncated": True, "reason": "the process ended"}})
    )
    assert [(p.severity, p.message) for p in problems] == [
        ("info", "the capture window ended early: the process ended")
    ]


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        ("", "the capture window ended early"),
        ("cap of events", "the capture window ended early: cap of events"),
    ],
)
def test_a_window_that_was_cut_is_a_problem(tmp_path: Path, reason: str, message: str) -> None:
    _, problems = sidecar.load_or_report(
        beside(tmp_path, FULL | {"window": {"truncated": True, "reason": reason}})
    )
    assert [p.message for p in problems] == [message]


def test_a_window_of_steps_is_a_fact_of_the_source(tmp_path: Path) -> None:
    found = sidecar.load(beside(tmp_path, FULL))
    assert found is not None
    assert found.captured == (("capture.first_step", "10"), ("capture.steps", "20"))
    for window in (
        sidecar.Window(),
        sidecar.Window("time"),
        sidecar.Window("steps", 10, 0),
        sidecar.Window("steps", None, 3),
    ):
        assert sidecar.Sidecar(1, window=window).captured == ()
