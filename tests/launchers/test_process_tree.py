"""The tree of processes, with real processes in it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from profharness.launchers.process_tree import kill, leaves, tree

NOBODY = 2**22 + 1  # above the largest number that a process can have

# a child of a thread, which has a child itself, and one that ended and was not waited for
FAMILY = """
import subprocess, sys, threading, time
sleep = [sys.executable, "-S", "-E", "-c", "import time; time.sleep(60)"]
nested = f"import subprocess; subprocess.Popen({sleep!r}).wait()"
def start():
    subprocess.Popen([sys.executable, "-S", "-E", "-c", nested])
    time.sleep(60)
threading.Thread(target=start, daemon=True).start()
subprocess.Popen([sys.executable, "-S", "-E", "-c", ""])
time.sleep(60)
"""


@contextmanager
def family() -> Iterator[int]:
    root = subprocess.Popen([sys.executable, "-S", "-E", "-c", FAMILY], process_group=0)
    try:
        yield root.pid
    finally:
        os.killpg(root.pid, signal.SIGKILL)
        root.wait()


def complete(pid: int) -> list[psutil.Process]:
    end = time.monotonic() + 30
    while time.monotonic() < end:
        found = tree(pid)
        if len(found) == 4 and psutil.STATUS_ZOMBIE in {process.status() for process in found}:
            return found
        time.sleep(0.01)
    raise AssertionError(f"the tree stayed {found}")


def test_parents_stand_before_their_children_and_the_dead_are_counted() -> None:
    with family() as root:
        found = complete(root)
        place = {process.pid: at for at, process in enumerate(found)}
        assert found[0].pid == root
        assert all(place[one.ppid()] < place[one.pid] for one in found[1:])
        ends = leaves(root)
        assert len(ends) == 2  # the grandchild and the dead one
        assert not {one.pid for one in ends} & {one.ppid() for one in found}


def test_a_process_that_is_not_there_has_no_tree() -> None:
    assert tree(NOBODY) == []
    assert leaves(NOBODY) == []
    with family() as root:
        complete(root)
    assert tree(root) == []


def test_a_node_that_hides_foreign_processes_has_the_same_tree(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with family() as root:
        shown = complete(root)

        def hidden(*_: object, **__: object) -> list[psutil.Process]:
            raise psutil.AccessDenied(1)

        monkeypatch.setattr(psutil.Process, "children", hidden)
        found = tree(root)
        place = {process.pid: at for at, process in enumerate(found)}
        assert set(found) == set(shown)
        assert all(place[one.ppid()] < place[one.pid] for one in found[1:])


def test_what_is_killed_is_the_process_that_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeper = subprocess.Popen(["sleep", "60"])
    (seen,) = tree(sleeper.pid)
    older = psutil.Process(sleeper.pid)
    # as if the number were another process's by now
    monkeypatch.setattr(older, "_ident", (sleeper.pid, 0.0))
    kill(older)
    with pytest.raises(subprocess.TimeoutExpired):
        sleeper.wait(0.2)
    kill(seen)
    assert sleeper.wait(30) == -signal.SIGKILL
    kill(seen)  # it has ended: nothing happens
