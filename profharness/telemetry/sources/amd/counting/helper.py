"""The sampler's side of the counting process (`child`): start it in a clean environment, take its
records without ever waiting for them, notice its end.
"""

from __future__ import annotations

import json
import os
import re
import select
import signal
import struct
import subprocess
import sys
import time
from typing import Any, NamedTuple

from profharness.telemetry.sources.amd.counting.child import HEAD, SAMPLE, Task

SILENT_NS = 5_000_000_000  # beyond a period, until a process that sends nothing counts as hung
START_NS = 30_000_000_000
END_S = 2.5
_FROM_OUTSIDE = (signal.SIGKILL, signal.SIGTERM, signal.SIGHUP)  # a library sends itself others
_CHILD = (
    "import sys; sys.path.insert(0, {!r}); from "
    "profharness.telemetry.sources.amd.counting.child import main; sys.exit(main())"
)
_NOT_INHERITED = (
    "ROCP_TOOL_LIBRARIES",
    "HSA_TOOLS_LIB",
    "HSA_TOOLS_ROCPROFILER_V1_TOOLS",
    "LD_PRELOAD",
    "ROCPROFILER_REGISTER_ENABLED",
    "ROCPROFILER_REGISTER_FORCE_LOAD",
)
"""Variables by which another profiler would be loaded into the process, or this one kept out."""
HELD = "another profiler holds the device"
_WARNINGS = (
    (
        re.compile(r"has a profiler attached", re.IGNORECASE),
        HELD,
    ),
    (
        re.compile(r"could not be locked.*permission", re.IGNORECASE),
        "the kernel refused the profiler's lock: CAP_PERFMON is missing",
    ),
    (
        re.compile(r"(driver|kernel) version does not support", re.IGNORECASE),
        "this amdgpu driver has no profiler interface",
    ),
)


class HelperEndedError(Exception):
    """The counting process is gone, or does not answer."""


class Sampled(NamedTuple):
    """One record: the device's place in the task, CLOCK_MONOTONIC ns, totals of the columns."""

    place: int
    before_ns: int
    after_ns: int
    totals: tuple[int, ...]


class Helper:
    """One counting process. `why` is why it gives nothing any more; empty while it may."""

    def __init__(self, task: Task) -> None:
        self.why = ""
        self.hello: dict[str, Any] | None = None
        self.trouble = ""
        self.troubles = 0
        self._task = task
        self._limit_ns = SILENT_NS + round(1e9 / task.hz)
        self._record_bytes = HEAD.size + task.body_bytes
        self._waiting = b""
        self._heard_ns = time.monotonic_ns()
        # a file without a name, so that what it said is still there after its end
        self._words = os.memfd_create("profharness-counting")
        kept = {name: text for name, text in os.environ.items() if name not in _NOT_INHERITED}
        self._process = subprocess.Popen(
            [sys.executable, "-c", _CHILD.format(_root())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._words,
            bufsize=0,
            env={**kept, "ROCPROFILER_REGISTER_LIBRARY": task.sdk},
        )
        os.set_blocking(self._out, False)
        assert self._process.stdin is not None
        try:
            os.write(self._process.stdin.fileno(), task.line())
        except OSError:
            self._over("")

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def _out(self) -> int:
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def wait_hello(self, seconds: float) -> None:
        """Wait for its first line, so that what it says stands in the sampler's first words too."""
        end = time.monotonic() + seconds
        while self.hello is None and not self.why and time.monotonic() < end:
            select.select([self._out], [], [], max(min(end - time.monotonic(), 0.1), 0))
            try:
                self.take()
            except HelperEndedError:
                return

    def take(self) -> list[Sampled]:
        """The records that have come; raises HelperEndedError once it has ended or hangs."""
        if self.why:
            return []
        while True:
            try:
                data = os.read(self._out, 1 << 18)
            except BlockingIOError:
                break
            if not data:
                raise self._over("")
            self._waiting += data
            self._heard_ns = time.monotonic_ns()
        if self.hello is None and not self._read_hello():
            if time.monotonic_ns() - self._heard_ns > START_NS:
                raise self._over(f"did not start within {START_NS / 1e9:g} s")
            return []
        if time.monotonic_ns() - self._heard_ns > self._limit_ns:
            raise self._over(f"did not answer for {self._limit_ns / 1e9:.3g} s")
        return self._records()

    def _read_hello(self) -> bool:
        line, newline, rest = self._waiting.partition(b"\n")
        if not newline:
            return False
        hello: dict[str, Any] = json.loads(line)
        if "why" in hello:
            self.why = str(hello["why"])
            self._end(END_S)  # libraries may hang as they are unloaded
            raise HelperEndedError(self.why)
        self.hello, self._waiting = hello, rest
        return True

    def _records(self) -> list[Sampled]:
        found = []
        whole = len(self._waiting) // self._record_bytes * self._record_bytes
        for at in range(0, whole, self._record_bytes):
            kind, place, before_ns, after_ns = HEAD.unpack_from(self._waiting, at)
            body = self._waiting[at + HEAD.size : at + self._record_bytes]
            if kind == SAMPLE:
                columns = len(self._task.devices[place].columns)
                totals = struct.unpack_from(f"<{columns}q", body)
                found.append(Sampled(place, before_ns, after_ns, totals))
            else:
                self.troubles += 1
                self.trouble = body.rstrip(b"\0").decode(errors="replace")
        self._waiting = self._waiting[whole:]
        return found

    def warnings(self) -> tuple[str, ...]:
        """What the library complained of on stderr, in our words."""
        said = self._said()
        return tuple(words for pattern, words in _WARNINGS if pattern.search(said))

    def _said(self) -> str:
        return os.pread(self._words, 1 << 20, 0).decode(errors="replace")

    def close(self) -> None:
        """Let it stop counting and end, or end it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._end(END_S)
        self.why = self.why or "it was closed"

    def _end(self, seconds: float) -> int | None:
        """Its exit status, or None where it had to be killed since it did not end by itself."""
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            return None

    def _over(self, why: str) -> HelperEndedError:
        self.why = self._ending(why)
        return HelperEndedError(self.why)

    def _ending(self, why: str) -> str:
        if why:
            self._end(0)
            return f"the counting process {why} and was ended"
        status = self._end(1.0)
        if status is None:
            return "the counting process closed its output and was ended"
        lines = self._said().strip().splitlines()
        last = f": {lines[-1]}" if lines else ""
        if -status in _FROM_OUTSIDE:
            return f"the counting process was ended from outside ({signal.Signals(-status).name})"
        if status < 0:
            return (
                f"AMD's library ended the counting process ({signal.Signals(-status).name}){last}"
            )
        return f"the counting process ended with status {status}{last}"


def _root() -> str:
    """The folder above the package `profharness`."""
    root = os.path.abspath(__file__)  # noqa: PTH100 - no pathlib in the sampler
    for _ in range(6):  # profharness/telemetry/sources/amd/counting/helper.py
        root = os.path.dirname(root)  # noqa: PTH120 - no pathlib in the sampler
    return root
