"""The log of steps: artifacts/steps/<host>/<rank or pid>/steps-<pid>.jsonl, written in every pass,
the bare one too.

One line per completed step: {"n": 0, "monotonic_ns": 123, "items": null, "source": "optimizer",
"tid": 4, "cpu_ns": 56}. n counts from 0 for each source; the stamp is CLOCK_MONOTONIC at the step's
end; items is what the script said it processed, or null; tid is the thread that made the step, and
cpu_ns the processor time that this thread has taken since it began. A step is a step() of the first
optimizer that made one (accumulated gradients count once, a second optimizer not at all). In a
script that changes its parameters by hand, without an optimizer of torch, it is a backward pass,
from the 31st on: before that many, gradients may be accumulated for the first step of an optimizer.
Once the script marks steps itself (profharness_mark.step), only its marks are logged, and lines of
the source "mark" stand for the whole run, as those of the source "optimizer" do before lines of the
source "backward": readers drop the others. Figures that the script gives by name
(profharness_mark.value) stand beside it, in values-<pid>.jsonl.
"""

from __future__ import annotations

import _thread
import json
import os
import threading
import time
import weakref

from profharness_hooks import marks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from profharness_hooks.process import Process
    from profharness_hooks.regions import Region


# What is buffered is never older than this when the next step comes, so a kill loses the steps of
# 0.1 s at most.
FLUSH_NS = 100_000_000
# Backward passes without a step of an optimizer after which each of them is taken for a step.
PATIENCE = 30
_LINE = '{"n": %d, "monotonic_ns": %d, "items": %s, "source": "%s", "tid": %d, "cpu_ns": %d}\n'


class Recorder:
    """Counts and logs the steps of this process, and tells `listener(done, items)` of each."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._file: int | None = None
        self._lines: list[str] = []
        self._written_ns = 0
        self._optimizer: weakref.ref[Any] | None = None
        self._marks = False
        self._backwards = 0
        self._asleep = False
        self._unwritable = False
        self._lock = threading.Lock()
        self._range: marks.Tokens = ()
        self.done = 0
        self.listener: Callable[[int], None] | None = None
        self.region: Region | None = None
        # what records Python's work: told of each step in its thread, and when to begin without
        self.host_step: Callable[[], None] | None = None
        self.host_begin: Callable[[], None] | None = None
        process.on_fork(self.flush, None, self._in_child)

    def optimizer(self, optimizer: Any) -> None:
        """Called when an optimizer has finished a step; only those of the first optimizer are
        logged.
        """
        if self._asleep:
            self._note_use()
            return
        if self._marks:
            return
        first = self._optimizer() if self._optimizer is not None else None
        if first is None:
            if self._optimizer is None and self._backwards > PATIENCE:
                self.done = 0  # backward passes were taken for steps until now
            self._optimizer = weakref.ref(optimizer)
        elif first is not optimizer:
            return
        self._record(None, "optimizer")

    @property
    def steps_are_unknown(self) -> bool:
        """Whether neither the script nor an optimizer has told of a step yet."""
        return not self._marks and self._optimizer is None

    def backward(self) -> None:
        """Called when a backward pass has ended: it is a step where no optimizer made one for many
        of them.
        """
        if not self.steps_are_unknown or self._asleep:
            return
        self._backwards += 1
        if self._backwards > PATIENCE:
            self._record(None, "backward")

    def mark(self, items: int | None) -> None:
        """Log a step that the script marks, with its number of items or None."""
        if not self._marks:
            self._marks, self.done = True, 0
        self._record(items, "mark")

    def _record(self, items: int | None, source: str) -> None:
        now = time.monotonic_ns()
        with self._lock:
            line = _LINE % (
                self.done,
                now,
                "null" if items is None else int(items),
                source,
                _thread.get_native_id(),
                time.thread_time_ns(),
            )
            if not self._unwritable:
                self._lines.append(line)
            self.done += 1
            if now - self._written_ns >= FLUSH_NS:
                self._write(now)
            marks.stop(self._range)
            if self.region is not None:
                self.region.step(self.done)
            self._range = marks.start("profharness.step:%d" % self.done)
        if self.host_step is not None:
            self.host_step()
        if self.listener is not None:
            self.listener(self.done)

    def flush(self) -> None:
        """Write the buffered lines to the log."""
        with self._lock:
            self._write(time.monotonic_ns())

    def _write(self, now: int) -> None:
        """Write the buffered lines. If the folder cannot be written, the log ends but counting
        continues, since windows follow the steps.
        """
        if not self._lines or self._unwritable:
            return
        data, self._lines = "".join(self._lines).encode("ascii"), []
        self._written_ns = now
        try:
            if self._file is None:
                path = os.path.join(
                    self._process.settings.folder("steps"), "steps-%d.jsonl" % os.getpid()
                )
                self._file = os.open(
                    path, os.O_CREAT | os.O_APPEND | os.O_WRONLY | os.O_CLOEXEC, 0o666
                )
            os.write(self._file, data)
        except OSError:
            self._unwritable = True
            self._process.hello.failed("the record of steps")

    def _in_child(self) -> None:
        if self._file is not None:
            os.close(self._file)
        self._file, self._lines, self._range, self._lock = None, [], (), threading.Lock()
        self._asleep, self.listener, self.region, self.done = True, None, None, 0

    def _note_use(self) -> None:
        if self.host_step is not None:
            self.host_step()
        if "torch" not in self._process.hello.facts["used"]:
            self._process.hello.add("used", "torch")


_recorder: Recorder | None = None


def recorder(process: Process) -> Recorder:
    """The one recorder of this process, made at the first call."""
    global _recorder
    if _recorder is None:
        import atexit

        _recorder = Recorder(process)
        if process.settings.regions:
            from profharness_hooks import regions

            _recorder.region = regions.region(process)
            if _recorder.region is not None:
                _recorder.region.step(0)
        atexit.register(guarded(process, _recorder.flush))
    return _recorder


_mark: Callable[..., None] | None = None


def mark(process: Process, items: int | None) -> None:
    """What profharness_mark.step() calls."""
    global _mark
    if _mark is None:
        _mark = guarded(process, recorder(process).mark)
    _mark(items)


def value(process: Process, name: object, number: object) -> None:
    """What profharness_mark.value() calls: one line of values-<pid>.jsonl beside the log of steps,
    written at once, since a script says few of them.
    """

    def write(name: object, number: Any) -> None:
        line = json.dumps({"name": str(name), "value": float(number)}) + "\n"
        path = os.path.join(process.settings.folder("steps"), "values-%d.jsonl" % os.getpid())
        with open(path, "a", encoding="ascii") as file:
            file.write(line)

    guarded(process, write, "the figures of the script")(name, number)


def guarded(
    process: Process, function: Callable[..., object], what: str = "the record of steps"
) -> Callable[..., None]:
    """`function` with every failure recorded instead of raised, and not called again after one."""
    broken: list[bool] = []

    def call(*arguments: Any) -> None:
        if broken:
            return
        try:
            function(*arguments)
        except Exception:  # nothing of ours may end the user's step
            broken.append(True)
            process.hello.failed(what)

    # torch.compile must not trace into it
    call._torchdynamo_disable = True  # type: ignore[attr-defined]  # torch reads it
    return call
