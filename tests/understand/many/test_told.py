"""How far the reading of many files is: what hears it, and what is shown."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from profharness.cli.sharing.many import EVERY_S, FilesRead
from profharness.errors import InputError
from profharness.understand.many.jobs import FileGroup, Workers, read_each

GROUPS = [FileGroup((Path(f"{number}.json"),)) for number in range(3)]


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def name_of(group: FileGroup) -> str:
    if group.path == "1.json":
        raise InputError("1.json holds nothing", "")
    return group.path


def broken(group: FileGroup) -> str:
    raise ValueError(group.path)


def test_who_is_told_hears_of_each_file_that_cannot_be_read_too() -> None:
    heard: list[tuple[int, int]] = []
    with Workers(told=lambda *counts: heard.append(counts)).open([]) as processes:
        assert processes.width == 1
        read = read_each(processes, name_of, GROUPS)
    assert read.results == ["0.json", "2.json"]
    assert heard == [(0, 3), (1, 3), (2, 3), (3, 3), (3, 3)]


def test_the_end_is_told_whatever_ends_the_work() -> None:
    heard: list[tuple[int, int]] = []
    workers = Workers(told=lambda *counts: heard.append(counts))
    with workers.open([]) as processes, pytest.raises(ValueError, match=r"0\.json"):
        read_each(processes, broken, GROUPS)
    assert heard == [(0, 3), (3, 3)]


def test_a_terminal_shows_one_line_that_is_gone_at_the_end() -> None:
    terminal, clock = Terminal(), Clock()
    files = FilesRead(terminal, clock)
    files(0, 64)
    files(1, 64)  # in the same instant: not written again
    clock.now = 1
    files(2, 64)
    files(64, 64)
    files(64, 64)
    line = "\r\x1b[K{} of 64 files are read"
    assert terminal.getvalue() == line.format(0) + line.format(2) + "\r\x1b[K"


def test_a_log_gets_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    clock = Clock()
    files = FilesRead(io.StringIO(), clock)
    for clock.now, done in ((0, 0), (EVERY_S - 1, 3), (EVERY_S, 4), (EVERY_S + 1, 5), (90, 64)):
        files(done, 64)
    assert capsys.readouterr().err == "4 of 64 files are read\n"


def test_nothing_is_said_of_one_file() -> None:
    terminal = Terminal()
    files = FilesRead(terminal, Clock())
    files(0, 1)
    files(1, 1)
    assert terminal.getvalue() == ""
