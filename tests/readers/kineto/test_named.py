"""What Kineto's metadata call processes and threads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from profharness.readers import read
from profharness.secrets.discretion import without_secrets
from profharness.trace.columns.table import NULL
from profharness.trace.model import Named
from profharness.trace.places import MOST_NAMES, command_name, named
from profharness.trace.wanted import Wanted

SPAN = {"ph": "X", "cat": "cpu_op", "name": "a", "ts": 1, "dur": 1, "pid": 7, "tid": 8}


def meta(what: str, name: object, pid: object = 7, tid: object = 0) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def names(tmp_path: Path, *events: dict[str, Any], wanted: Wanted = Wanted.ALL) -> set[Named]:
    path = tmp_path / "t.json"
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": [SPAN, *events]}))
    return set(read(path, wanted=wanted).sources[0].names)


def test_the_last_name_counts_and_numbers_are_not_repeated(tmp_path: Path) -> None:
    assert names(
        tmp_path,
        meta("process_name", "python3"),
        meta("thread_name", "thread 8 (python3)", tid=8),
        meta("thread_name", "thread 8 (pt_autograd_0)", tid=8),
        meta("thread_name", "worker (1)", tid=9),
        meta("process_labels", "CPU"),
    ) == {Named(7, NULL, "python3"), Named(7, 8, "pt_autograd_0"), Named(7, 9, "worker (1)")}


@pytest.mark.parametrize(
    "event",
    [
        meta("process_name", 5),
        meta("process_name", "  "),
        meta("thread_name", "x", tid=None),
        {"ph": "M", "name": "process_name", "pid": 7, "args": []},
        {"ph": "X", "name": "process_name", "pid": 7, "ts": 1, "args": {"name": "x"}},
    ],
    ids=["a-number", "blank", "no-thread", "no-arguments", "no-metadata"],
)
def test_what_names_nothing_is_left_out(tmp_path: Path, event: dict[str, Any]) -> None:
    assert not names(tmp_path, event)


def test_more_names_than_a_process_has_threads_are_not_kept() -> None:
    many = named((1, tid, f"t{tid}") for tid in range(MOST_NAMES + 10))
    assert len(many) == MOST_NAMES
    assert len(named([(1, 1, "x" * 10_000)])[0].name) < 200


def test_a_secret_in_a_name_is_hidden(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    secret = "API_TOKEN=hf_aBcD1234567890eFgHiJkLmNoPqRsTuV"
    events = [SPAN, meta("process_name", f"python3 {secret}")]
    path.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    shown = without_secrets(read(path)).sources[0].names[0].name
    assert shown.startswith("python3")
    assert "hf_aBcD" not in shown


@pytest.mark.parametrize(
    ("words", "name"),
    [
        ([], ""),
        (["/usr/bin/bench", "-m=128", "--token", "s3cret"], "bench"),
        (["/opt/python3.10", "-u", "/home/user/train.py", "--config", "x"], "python3.10 train.py"),
        (["python", "-c", "import x"], "python"),
        (["julia", "./traces/jacc_1.jl"], "julia jacc_1.jl"),
    ],
)
def test_a_command_is_called_by_its_program_and_script(words: list[str], name: str) -> None:
    assert command_name(words) == name
