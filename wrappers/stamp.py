"""Run a command and stamp MIOpen's log lines as they arrive: `python stamp.py FOLDER -- COMMAND
...`.

MIOpen writes on stderr and gives no times. Every line of the command's stderr is passed on;
MIOpen's lines are also written to FOLDER/miopen-<pid of the command>.log, each after
`@<CLOCK_MONOTONIC ns> `. Exit status and signals are the command's own.
"""

from __future__ import annotations

import os
import re
import select
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))  # not there under python -I
import child

TYPE_CHECKING = False
if TYPE_CHECKING:
    from io import FileIO
    from typing import List, NoReturn


# a thread id may stand first, and other output may have been cut in before the line's start
LINE = re.compile(rb"(?:\d+ )?MIOpen\((?:HIP|OpenCL)\)")
LINGER_S = 2.0
LONGEST = 1 << 20


class Log:
    """The stamped file, made at the first line."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._file: FileIO | None = None
        self._full = False

    def add(self, line: bytes, now_ns: int) -> None:
        """Write MIOpen's part of the line after `@<now_ns> `; lines of others are left out."""
        match = LINE.search(line)
        if match is None:
            return
        if self._full:
            return
        try:
            if self._file is None:
                self._file = open(self._path, "ab", buffering=0)
            self._file.write(b"@%d %s\n" % (now_ns, line[match.start() :].rstrip(b"\r\n")))
        except OSError as error:  # the workload must not hear of it: its stderr is still read
            self._full = True
            passed_on(_lost(self._path, error))


class Lines:
    """Cuts chunks into lines, each with the time at which its first part arrived."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._rest = b""
        self._since = 0

    def feed(self, chunk: bytes, now_ns: int) -> None:
        """Take what arrived at `now_ns` (CLOCK_MONOTONIC) and pass on the lines that it completes;
        an unfinished line above 1 MiB is dropped.
        """
        if not self._rest:
            self._since = now_ns
        *whole, rest = (self._rest + chunk).split(b"\n")
        for number, line in enumerate(whole):
            self._log.add(line, self._since if number == 0 else now_ns)
        if whole:
            self._since = now_ns
        self._rest = rest if len(rest) <= LONGEST else b""

    def end(self) -> None:
        """Pass on the last line, which has no newline."""
        if self._rest:
            self._log.add(self._rest, self._since)


def _lost(path: str, error: OSError) -> bytes:
    words = "profharness: cannot write %s: %s\n" % (path, error.strerror)
    return words.encode("utf-8", "replace")


def passed_on(chunk: bytes) -> None:
    """Write all of it to our own stderr; where nobody reads that any more, the workload still
    runs.
    """
    try:
        while chunk:
            chunk = chunk[os.write(2, chunk) :]
    except OSError:
        pass


def copy(process: subprocess.Popen[bytes], lines: Lines) -> None:
    """Copy the command's stderr until the pipe ends, or until two quiet seconds have passed since
    the command itself ended (a daemon that it started may keep the pipe open).
    """
    assert process.stderr is not None
    source = process.stderr.fileno()
    quiet_since: int | None = None
    while True:
        ready, _, _ = select.select([source], [], [], 0.2)
        now = time.monotonic_ns()
        if ready:
            chunk = os.read(source, 65536)
            if not chunk:
                return
            passed_on(chunk)
            lines.feed(chunk, now)
            quiet_since = None
        elif process.poll() is not None:
            quiet_since = quiet_since or now
            if now - quiet_since > LINGER_S * 1e9:
                return


def main(arguments: List[str]) -> NoReturn:
    """Run the command after FOLDER and `--`, stamp its lines, and end as it did."""
    if len(arguments) < 3 or arguments[1] != "--":
        sys.exit("usage: stamp.py FOLDER -- COMMAND [ARGUMENTS ...]")
    folder, argv = arguments[0], arguments[2:]
    try:
        os.makedirs(folder, exist_ok=True)
    except OSError:
        pass  # the log says so at its first line
    process = child.start(argv, stderr=subprocess.PIPE)
    lines = Lines(Log(os.path.join(folder, "miopen-%d.log" % process.pid)))
    copy(process, lines)
    lines.end()
    child.end_as(process.wait())


if __name__ == "__main__":
    main(sys.argv[1:])
