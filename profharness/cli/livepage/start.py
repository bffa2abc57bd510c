"""The run's side of its live page: start the server, say where it is, tell it how the run ended.

The run does nothing else for the page: the server reads the run's files by itself.
"""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

import msgspec

from profharness.analysis.live.records import LiveAnswer
from profharness.analysis.records import Summary
from profharness.cli.livepage.messages import Ended, Listening, line
from profharness.cli.running.answers import near
from profharness.cli.viewing.link import ADDRESS
from profharness.rundir.shown.screen import mention

READY_S = 60.0
END_S = 15.0
"""More than the server waits for the pages that are open."""


class Page(Protocol):
    """What a run tells of itself beside its files."""

    def begin(self, root: Path, title: str) -> None:
        """The run directory is made, and nothing is measured yet."""

    def answered(self, summary: Summary, root: Path) -> None:
        """The run has ended, and this is what it came to."""

    def failed(self, why: str, root: Path) -> None:
        """The run has ended, and could not be analysed."""


class NoPage:
    """For a run without a page."""

    def begin(self, root: Path, title: str) -> None:
        """Start nothing."""

    def answered(self, summary: Summary, root: Path) -> None:
        """Say nothing."""

    def failed(self, why: str, root: Path) -> None:
        """Say nothing."""


class ServedPage:
    """The server's process, from its start to its end."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._answer = LiveAnswer()

    def begin(self, root: Path, title: str) -> None:
        """Start the server and wait until it listens, so that its start takes nothing from what is
        measured. Where it cannot be started, that is said, and the run goes on without.
        """
        argv = [sys.executable, "-m", __package__, str(root), title, str(os.getpid())]
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=_environment(),
                process_group=0,
            )
        except OSError as error:
            mention(f"profharness: there is no live page ({error.strerror})")
            return
        listening = self._listening()
        if listening is None:
            mention("profharness: there is no live page: its server did not start")
            self.end()
            return
        address = f"http://{ADDRESS}:{listening.port}{listening.path}"
        mention(f"profharness: live page {address}")
        mention(
            f"profharness: from another machine, first: ssh -L {listening.port}:{ADDRESS}:"
            f"{listening.port} {socket.gethostname()}"
        )

    def answered(self, summary: Summary, root: Path) -> None:
        """As the terminal says it, with the place of the report."""
        from profharness.report.text.sentences import sentences

        words = sentences(summary)
        report = root / "report.html"
        self._answer = LiveAnswer(
            answer=words.answer,
            next=words.next,
            trust=words.trust,
            report=str(report) if report.exists() else "",
            command=f"profharness report {near(root)} --open",
        )

    def failed(self, why: str, root: Path) -> None:
        """Why there is no answer, and where the run is kept."""
        self._answer = LiveAnswer(failed=why, command=f"profharness report {near(root)}")

    def end(self) -> None:
        """Tell the server how the run ended, and wait for its end."""
        process, self._process = self._process, None
        if process is None:
            return
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(OSError):
            process.stdin.write(line(Ended(self._answer)))
        with suppress(OSError):
            process.stdin.close()
        try:
            process.wait(END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        finally:
            process.stdout.close()

    def _listening(self) -> Listening | None:
        assert self._process is not None
        assert self._process.stdout is not None
        if not select.select([self._process.stdout], [], [], READY_S)[0]:
            return None
        try:
            return msgspec.json.decode(self._process.stdout.readline(), type=Listening)
        except msgspec.DecodeError:
            return None


def _environment() -> dict[str, str]:
    """Ours, with one thread for the libraries of numbers: more would wait for work on
    cores that are measured.
    """
    threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    return {**os.environ, **threads}


@contextmanager
def live_page(*, asked: bool) -> Iterator[Page]:
    """The page of a run, whose server ends with the block; one that does nothing unless `asked`."""
    if not asked:
        yield NoPage()
        return
    page = ServedPage()
    try:
        yield page
    finally:
        page.end()
