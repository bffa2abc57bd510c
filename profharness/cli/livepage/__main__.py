"""The server's process: `python -m profharness.cli.livepage RUN`, started by the run.

It has the lowest priority, wakes only when somebody asks, and ends when the run says how it ended
or is gone, however it went.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import threading
from pathlib import Path
from types import FrameType

import msgspec

from profharness.analysis.live.records import LiveAnswer
from profharness.cli.livepage.messages import Ended, Listening, line
from profharness.cli.livepage.reading import RunReader
from profharness.cli.livepage.sampled import TelemetryReader
from profharness.cli.livepage.server import LiveServer
from profharness.cli.livepage.state import LiveState
from profharness.report.live.page import Moment, page_text, parts

GRACE_S = 5.0
"""The longest that an open page is waited for at the end, which asks once a second."""
_PR_SET_PDEATHSIG = 1
_LOWEST = 19
_OUT = 1  # a pipe to the run, not a screen
_AT_ONCE_S = 3600.0  # between two looks whether it shall stop serving: the end of its process does


class _Gone(Exception):  # noqa: N818  it is no error
    """The process that started this one has ended."""


def main(root: Path, title: str, parent: int) -> None:
    """Serve the page of the run at `root` until it has ended."""
    _live_with(parent)
    run, telemetry = RunReader(root, title), TelemetryReader(root)

    def look() -> Moment:
        return Moment(run.look(), telemetry.look())

    state = LiveState(look)
    page_text()
    parts(look())  # what is loaded on use is loaded before anything is measured
    server = LiveServer(state)
    threading.Thread(target=server.serve_forever, args=(_AT_ONCE_S,), daemon=True).start()
    try:
        os.write(_OUT, line(Listening(server.port, server.folder)))
        answer = _end()
    except (_Gone, OSError):
        answer = LiveAnswer()
    for number in (signal.SIGUSR1, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    state.end(answer)
    state.wait_told(GRACE_S)
    server.server_close()


def _live_with(parent: int) -> None:
    """No longer than the run; Ctrl-C is the run's business. Raises _Gone from now on where the
    kernel says that the run has ended.
    """

    def gone(_number: int, _frame: FrameType | None) -> None:
        raise _Gone

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGUSR1, gone)
    signal.signal(signal.SIGTERM, gone)
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGUSR1), 0, 0, 0)
    os.nice(_LOWEST)
    if os.getppid() != parent:
        raise SystemExit


def _end() -> LiveAnswer:
    """Wait for the run's only word; empty where its end of the pipe is closed without one."""
    said = sys.stdin.buffer.readline()
    try:
        return msgspec.json.decode(said, type=Ended).answer
    except msgspec.DecodeError:
        return LiveAnswer()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
