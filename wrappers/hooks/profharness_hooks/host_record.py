"""What Python does on the host: artifacts/host/<host>/<rank or pid>/host-<pid>.jsonl, where the
torch layer is on: garbage collections, and samples of the lines of the thread that makes the steps.

It begins with the first step, or with the first window of the capture that is kept whatever comes.
Lines are whole when they are written, so that a killed process leaves a readable file. The format
is in docs/run-directory.md#host-records.
"""

from __future__ import annotations

import _thread
import atexit
import json
import os
import time

from profharness_hooks import step_log
from profharness_hooks.garbage import Collections
from profharness_hooks.line_sampler import LineSampler, Rates

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable

    from profharness_hooks.process import Process


DEFAULT_HZ = 50.0
WINDOW_HZ = 200.0
FLUSH_NS = 500_000_000
_BATCH = 1000  # entries of one line


def attach(process: Process, steps: step_log.Recorder) -> None:
    """Record what Python does in this process, from its steps on."""
    what = "the record of Python's work"
    try:
        host = HostRecord(process)
    except Exception:  # the workload goes on without
        process.hello.failed(what)
        return
    steps.host_step = step_log.guarded(process, host.step, what)
    steps.host_begin = step_log.guarded(process, host.begin, what)
    atexit.register(step_log.guarded(process, host.end, what))


class HostRecord:
    """The record of this process. Public methods may raise; callers guard them."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._collections = Collections()
        hz = asked_hz(process.settings.host_samples)
        self._rates = Rates(hz, max(hz, WINDOW_HZ))
        self._sampler: LineSampler | None = None
        self._thread = 0
        self._file: int | None = None
        self._begun = False
        self._unwritable = False
        self._flushed_ns = 0
        self._writing = _thread.allocate_lock()
        self._collections.begin()
        process.on_fork(self._before_fork, self._after_fork, self._in_child)

    def step(self) -> None:
        """Called in the thread that makes the steps, after each: it is the one to sample."""
        if not self._begun:
            self.begin()
        if self._sampler is None:
            now = time.monotonic_ns()
            if now - self._flushed_ns >= FLUSH_NS:
                self._flushed_ns = now
                self.flush()
        elif _thread.get_ident() != self._thread:
            self._thread = _thread.get_ident()
            self._sampler.watch_this_thread()

    def begin(self) -> None:
        """Begin to write and to sample this thread, until a step names another. A second call does
        nothing.
        """
        if self._begun:
            return
        self._begun = True
        self._collections.begin()
        if self._rates.normal_hz > 0:
            self._thread = _thread.get_ident()
            self._sampler = LineSampler(self._rates, self.flush, self._failed)
            self._sampler.watch_this_thread()
            self._sampler.start()

    def end(self) -> None:
        """Called at exit: stop, and write what is left."""
        self._collections.end()
        if self._sampler is not None:
            self._sampler.stop()
        if self._begun:
            self.flush()

    def flush(self) -> None:
        """Write what was recorded since the last call, unless another thread is at it."""
        if self._unwritable or not self._writing.acquire(False):
            return
        try:
            self._write(list(self._lines()))
        finally:
            self._writing.release()

    def _lines(self) -> Iterable[dict[str, Any]]:
        listed, short, left_out = self._collections.take()
        if self._sampler is not None:
            yield from self._sampler.take()
        for name, entries in (("gc", listed), ("gc_short", short)):
            for first in range(0, len(entries), _BATCH):
                yield {name: entries[first : first + _BATCH]}
        if left_out:
            yield {"cut": {"gc": left_out}}

    def _write(self, lines: list[dict[str, Any]]) -> None:
        if not lines:
            return
        try:
            if self._file is None:
                lines.insert(
                    0, {"v": 1, "clock": "boottime", "pass_name": self._process.settings.pass_name}
                )
                path = os.path.join(
                    self._process.settings.folder("host"), "host-%d.jsonl" % os.getpid()
                )
                self._file = os.open(
                    path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o666
                )
            text = "".join(json.dumps(line, separators=(",", ":")) + "\n" for line in lines)
            os.write(self._file, text.encode("ascii"))
            if self._sampler is not None:
                self._sampler.written(len(text))
        except OSError:
            self._unwritable = True
            self._failed()

    def _failed(self) -> None:
        self._process.hello.failed("the record of Python's work")

    def _before_fork(self) -> None:
        if self._sampler is not None:
            self._sampler.stop()
            self.flush()

    def _after_fork(self) -> None:
        if self._sampler is not None:
            self._sampler.start()

    def _in_child(self) -> None:
        """A child begins its own record with its first step, if it makes any."""
        if self._file is not None:
            os.close(self._file)
        self._collections.end()
        self._collections = Collections()
        self._sampler, self._file, self._begun, self._thread = None, None, False, 0
        self._writing = _thread.allocate_lock()


def asked_hz(text: str) -> float:
    """Samples per second by PROFHARNESS_HOST_SAMPLES: a number, `off`, or nothing for the usual."""
    if not text:
        return DEFAULT_HZ
    try:
        return min(max(float(text), 0.0), 1000.0)
    except ValueError:
        return 0.0
