"""Each bomb in a folder of its own, each of its commands as a fresh process, and what that took."""

from __future__ import annotations

import os
import resource
import select
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.hostile import children, judging
from tests.hostile.bombs.bomb import HERE, Bomb
from tests.hostile.children import Ended

_ROOT = Path(__file__).resolve().parents[3]
IDLE = 120 << 20
"""What a process holds that has imported what the commands need, and has read nothing."""
_ADDRESSES = 16 << 30
_WRITTEN = 2 << 30
Run = Callable[[Sequence[str], Path], Ended]
"""Runs a command line in a folder; the memory is what it held beyond an idle process."""


@dataclass(frozen=True)
class Bounds:
    """What an answer may take: seconds of processor, bytes beyond an idle process."""

    seconds: float
    memory: int


@dataclass(frozen=True)
class Answer:
    """One command of one bomb: how it ended, and what is wrong with that."""

    bomb: str
    size: int
    line: tuple[str, ...]
    status: int
    seconds: float
    memory: int
    faults: tuple[str, ...]


class Fresh:
    """Runs each command line as a process of its own, which nothing else has warmed up."""

    def __init__(self, patience: float) -> None:
        self.patience = patience
        """Seconds of processor, or four times as many of waiting, after which it is ended."""

    def __call__(self, line: Sequence[str], folder: Path) -> Ended:
        out, err = folder / ".out", folder / ".err"
        pid = os.fork()
        if pid == 0:
            self._child(line, folder, (out, err))
        waited = self._waits(pid)
        if waited:
            os.kill(pid, signal.SIGKILL)
        _, status, used = os.wait4(pid, 0)
        return Ended(
            os.waitstatus_to_exitcode(status),
            _last(out),
            _last(err),
            used.ru_utime + used.ru_stime,
            waited,
            max(0, used.ru_maxrss * 1024 - IDLE),
        )

    def _child(self, line: Sequence[str], folder: Path, files: tuple[Path, Path]) -> None:
        try:
            for number, path in enumerate(files, 1):
                os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), number)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.chdir(folder)  # what `merge` writes belongs to no checkout
            for what, most in (
                (resource.RLIMIT_CORE, 0),
                (resource.RLIMIT_CPU, int(self.patience) + 1),
                (resource.RLIMIT_FSIZE, _WRITTEN),
                (resource.RLIMIT_AS, _ADDRESSES),
            ):
                resource.setrlimit(what, (most, most))
            path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
            own = {"PYTHONPATH": path, "PROFHARNESS_CACHE": str(folder / ".cache")}
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # else each compiles all modules anew
            words = [sys.executable, "-m", "profharness", *line]
            os.execve(sys.executable, words, {**os.environ, **own})
        finally:
            os._exit(70)

    def _waits(self, pid: int) -> bool:
        descriptor = os.pidfd_open(pid)
        try:
            return not select.select([descriptor], [], [], 4 * self.patience)[0]
        finally:
            os.close(descriptor)


def forked(bombs: Sequence[Bomb], folder: Path) -> Run:
    """Runs each command line in a fork of this process, which costs little; for small bombs. What
    they need is imported before, as the first answers to tiny ones of `bombs` find out.
    """
    os.environ["PROFHARNESS_CACHE"] = str(folder / "cache")
    words = []
    for bomb in bombs:
        place = folder / "warm" / bomb.name.replace(" ", "-")
        place.mkdir(parents=True)
        path = str(written(bomb, place, 1e-5))
        words += [tuple(path if word == HERE else word for word in line) for line in bomb.lines]
    children.import_all(words, folder)
    return children.run


def _last(path: Path, most: int = 1 << 16) -> bytes:
    """The end of what was written, and its first line before it where that is further up."""
    if not path.exists():
        return b""
    with path.open("rb") as file:
        first = file.readline(most)
        file.seek(max(0, path.stat().st_size - most))
        rest = file.read()
    return rest if rest.startswith(first) else first + rest


def answers(
    bombs: Sequence[Bomb], place: Path, scale: float, bounds: Bounds, run: Run
) -> Iterator[Answer]:
    """The answers to all commands, bomb by bomb, each written into a folder of `place`."""
    for bomb in bombs:
        folder = place / bomb.name.replace(" ", "-")
        folder.mkdir(parents=True)
        path = written(bomb, folder, scale)
        size = size_of(path)
        for line in bomb.lines:
            words = tuple(str(path) if word == HERE else word for word in line)
            ended = run(words, folder)
            yield Answer(
                bomb.name, size, line, ended.status, ended.seconds, ended.memory,
                tuple(why_not(words, ended, bounds)),
            )  # fmt: skip


def written(bomb: Bomb, folder: Path, scale: float) -> Path:
    """The bomb, made by a process of its own: what this one holds at most, its children seem to
    hold as well.
    """
    told = folder / ".path"
    pid = os.fork()
    if pid == 0:
        try:
            told.write_text(str(bomb.write(folder, scale)))
            os._exit(0)
        except BaseException:  # noqa: BLE001  told before the process ends without cleaning up
            import traceback

            traceback.print_exc()
        finally:
            os._exit(1)
    if os.waitpid(pid, 0)[1]:
        raise RuntimeError(f"{bomb.name} could not be written: see above")
    path = Path(told.read_text())
    told.unlink()
    return path


def size_of(path: Path) -> int:
    """Bytes of a file, or of all files below a folder."""
    if path.is_file():
        return path.stat().st_size
    return sum(one.stat().st_size for one in path.rglob("*") if one.is_file())


def why_not(line: Sequence[str], ended: Ended, bounds: Bounds) -> Iterator[str]:
    """What is wrong with an answer, a sentence each."""
    if ended.waited:
        yield "waited for ever"
    if ended.seconds > bounds.seconds:
        yield f"more than {bounds.seconds:g} s"
    if ended.memory > bounds.memory:
        yield f"more than {bounds.memory >> 20} MB"
    said = (ended.err + b"\n" + ended.out[-4000:]).decode(errors="replace")
    if "Traceback" in said or "itself failed" in said:
        yield f"said {judging.last_line(ended.err)}"
    # validate: it found faults; run: what was asked cannot be done
    allowed = {"validate": (0, 1, 4), "run": (0, 2, 4)}.get(line[0], (0, 4))
    if ended.status not in allowed:
        yield f"ended with {ended.status}: {judging.first_line(ended.err)}"


HEAD = f"{'bomb':34}{'stored MB':>10}  {'command':34}{'exit':>5}{'seconds':>9}{'MB':>7}  judged"


def row(one: Answer) -> str:
    """A line of the table."""
    words = " ".join(word for word in one.line if word != HERE)
    judged = "; ".join(one.faults) or "ok"
    return (
        f"{one.bomb:34}{one.size / 1e6:10.2f}  {words:34}{one.status:5}{one.seconds:9.2f}"
        f"{one.memory / 1e6:7.0f}  {judged}"
    )
