"""The harness's side of a replay: what a worker answered, and which call ended one that died. The
worker is a stand-in for the workload's Python.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from profharness.errors import Unavailable
from profharness.measure.replay.process import Asked, replay
from profharness.trace.calls.plan import CallTask

WORKER = """\
#!{python}
import json, os, signal, sys
plan = json.load(open(sys.argv[-1]))
out = open(plan["results"], "a")
def write(**line):
    out.write(json.dumps(line) + "\\n")
    out.flush()
write(kind="hello", torch="9.9", device="cpu", threads=plan["threads"])
for call in plan["calls"]:
    write(kind="begin", id=call["id"])
    name = call["name"]
    if name == "aten::crash":
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "aten::forever":
        signal.setitimer(signal.ITIMER_REAL, 0.01)
        signal.pause()
    if name == "aten::exit":
        sys.exit(7)
    if name == "aten::unfit":
        write(kind="refused", id=call["id"], error="no such thing")
        continue
    write(kind="result", id=call["id"], warm={{"ns": [1.5, 2.5]}}, profiled=[3.0])
write(kind="bye")
"""
SAYS = "#!{python}\nimport sys\nprint({words!r}, file=sys.stderr)\nsys.exit(3)\n"


def python(folder: Path, text: str, **words: str) -> str:
    """A program that stands where the workload's Python stands."""
    path = folder / "python"
    path.write_text(text.format(python=sys.executable, **words))
    path.chmod(0o755)
    return str(path)


def tasks(*names: str) -> tuple[CallTask, ...]:
    return tuple(CallTask(number, f"aten::{name}", ()) for number, name in enumerate(names))


def test_each_call_is_answered_though_some_end_their_process(tmp_path):
    asked = Asked(python=python(tmp_path, WORKER), threads=3, min_seconds=0.5)
    found = replay(tasks("fine", "crash", "unfit", "forever", "exit", "fine"), asked)
    assert sorted(found.results) == [0, 5]
    assert found.results[0].warm.ns == (1.5, 2.5)
    assert (found.hello.torch, found.hello.threads) == ("9.9", 3)
    assert found.refused == {
        1: "it ended its process by SIGSEGV",
        2: "no such thing",
        3: "it was stopped after 70 s",
        4: "it ended its process with status 7",
    }


@pytest.mark.parametrize(
    ("words", "hint"),
    [
        ("--device cuda: torch 9.9 sees no GPU", "where the trace was recorded"),
        ("torch cannot be imported by python: No module named 'torch'", "--python"),
        ("something else", "by hand"),
    ],
)
def test_a_worker_that_cannot_begin_is_an_error_with_a_way_out(tmp_path, words, hint):
    with pytest.raises(Unavailable) as raised:
        replay(tasks("fine"), Asked(python=python(tmp_path, SAYS, words=words)))
    assert words in raised.value.message
    assert hint in raised.value.hint


def test_a_python_that_is_not_there(tmp_path):
    with pytest.raises(Unavailable, match="no such program"):
        replay(tasks("fine"), Asked(python=str(tmp_path / "python")))
