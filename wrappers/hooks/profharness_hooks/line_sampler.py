"""Looks from a thread of its own at the lines of Python that another thread stands at.

The thread is none of `threading`'s, so that a program which counts or joins threads sees what it
saw before. It needs the interpreter for some 50 us per sample; how often it looks follows from what
it took, by its own processor time.
"""

from __future__ import annotations

import _thread
import os
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, FrameType
    from typing import Any, Callable, Iterator


DEPTH = 60
MOST_STACKS, MOST_FRAMES = 50_000, 50_000
FLUSH_NS = 500_000_000
DUTY = 0.003  # of a core; while a window is open, DUTY_IN_WINDOW
DUTY_IN_WINDOW = 0.01
SLOWEST_NS = 2_000_000_000
HALVED_EVERY = 8 << 20  # bytes of the file, each time twice as many
STOP_S = 1.0
_GOLDEN = 0.6180339887498949  # spreads what it is added to evenly, and never repeats
_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
_WRAPPERS = os.path.dirname(os.path.dirname(os.path.dirname(_HERE))) + os.sep
_OF_PROFILERS = tuple(
    os.path.join("torch", place, name)
    for place, name in (
        ("profiler", "profiler.py"),
        ("autograd", "profiler.py"),
        ("profiler", "_utils.py"),
    )
)
_NO_STACK = -1


class Rates:
    """Samples per second: usually, and while a window of the capture is open."""

    def __init__(self, normal_hz: float, window_hz: float) -> None:
        self.normal_hz, self.window_hz = normal_hz, window_hz


class LineSampler:
    """Samples one thread between start() and stop(). `flush` is called from its thread some times a
    second, `failed` where something raised; the sampling then ends.
    """

    def __init__(self, rates: Rates, flush: Callable[[], None], failed: Callable[[], None]) -> None:
        self._rates, self._flush, self._failed = rates, flush, failed
        self._names = Names()
        self._target: tuple[int, int, int | None] = (0, 0, None)
        self._samples: list[tuple[int, int, int | None, int, int]] = []
        self._stop = _thread.allocate_lock()
        self._done = _thread.allocate_lock()
        self._native = 0
        self._slower = 1.0
        self._halved = 1
        self._bytes, self._limit = 0, HALVED_EVERY
        self._spread = 0.0
        self.running = False

    def watch_this_thread(self) -> None:
        """Sample the calling thread from now on."""
        clock: int | None = None
        try:
            clock = time.pthread_getcpuclockid(_thread.get_ident())
        except (AttributeError, OSError):
            pass
        self._target = (_thread.get_ident(), _thread.get_native_id(), clock)

    def start(self) -> None:
        """Begin to sample, unless it does already."""
        if self.running:
            return
        self._stop, self._done = _thread.allocate_lock(), _thread.allocate_lock()
        self._stop.acquire()
        self._done.acquire()
        self.running = True
        _thread.start_new_thread(self._run, (self._stop, self._done))

    def stop(self) -> None:
        """End the thread, and wait until it is gone."""
        if not self.running:
            return
        self.running = False
        self._stop.release()
        if self._done.acquire(True, STOP_S):
            for _ in range(100):  # it has only to leave: a fork would count it else
                if not os.path.exists("/proc/self/task/%d" % self._native):
                    break
                time.sleep(0.00005)

    def written(self, count: int) -> None:
        """Told how many bytes went into the file: a long run is sampled more and more rarely."""
        self._bytes += count
        if self._bytes > self._limit:
            self._limit *= 2
            self._halved *= 2

    def take(self) -> Iterator[dict[str, Any]]:
        """The lines for what was sampled since the last call."""
        count = len(self._samples)
        samples = self._samples[:count]
        del self._samples[:count]
        yield from self._names.take()
        first = 0
        for at in range(1, count + 1):
            if at == count or at - first == 1000 or samples[at][:1] != samples[first][:1]:
                yield {"samples": _batch(samples[first:at])}
                first = at

    def _run(self, stop: Any, done: Any) -> None:
        self._native = _thread.get_native_id()
        try:
            self._follow(stop)
        except Exception:  # the program goes on without it
            self._failed()
        finally:
            done.release()

    def _follow(self, stop: Any) -> None:
        clock, boottime = time.clock_gettime_ns, time.CLOCK_BOOTTIME
        flushed = counted = clock(boottime)
        spent = time.thread_time_ns()
        taken = 0
        while True:
            waited = self._period_ns()
            wanted = clock(boottime) + waited
            if stop.acquire(True, waited / 1e9):
                return
            self._sample(clock(boottime), wanted)
            taken += 1
            now = clock(boottime)
            if now - flushed >= FLUSH_NS:
                flushed = now
                self._flush()
            if taken >= 20:
                own = time.thread_time_ns()
                self._keep_cheap((own - spent) / max(now - counted, 1))
                spent, counted, taken = own, now, 0

    def _period_ns(self) -> int:
        """Until the next look: by the rate, spread between half and one and a half times, so that
        it keeps no step with the program.
        """
        hz = self._rates.window_hz if _in_window() else self._rates.normal_hz
        self._spread = (self._spread + _GOLDEN) % 1.0
        period = 1e9 / hz * self._slower * self._halved * (0.5 + self._spread)
        return int(min(period, SLOWEST_NS))

    def _keep_cheap(self, duty: float) -> None:
        most = DUTY_IN_WINDOW if _in_window() else DUTY
        if duty > most:
            self._slower = min(self._slower * max(duty / most, 1.2), 1000.0)
        elif self._slower > 1.0 and duty < 0.7 * most:
            self._slower = max(self._slower * 0.8, 1.0)

    def _sample(self, at: int, wanted: int) -> None:
        ident, native, cpu = self._target
        frame = sys._current_frames().get(ident)
        if frame is None:
            return
        spent: int | None = None
        if cpu is not None:
            try:
                spent = time.clock_gettime_ns(cpu)
            except OSError:  # the thread has just ended
                return
        stack = self._names.stack(frame)
        if stack != _NO_STACK:
            self._samples.append((native, at, spent, stack, max(at - wanted, 0)))


def _in_window() -> bool:
    windows = sys.modules.get("profharness_hooks.windows")
    return windows is not None and windows.recording()


class Names:
    """Numbers for files, frames and stacks. What is new since the last `take` is told by lines."""

    def __init__(self) -> None:
        self._files: dict[str, int] = {}
        # the code objects are kept, so that no other one gets their identity
        self._frames: dict[tuple[int, int], tuple[int, CodeType]] = {}
        self._stacks: dict[tuple[int, int], int] = {}
        self._new: list[dict[str, Any]] = []
        self._skipped = 0

    def take(self) -> list[dict[str, Any]]:
        """The lines, each name before what refers to it."""
        new, self._new = self._new, []
        return new

    def stack(self, frame: FrameType | None) -> int:
        """The number of the stack whose innermost frame this is, or -1 for one of ours alone."""
        numbers: list[int] = []
        known = self._frames
        depth = 0
        while frame is not None and depth < 4 * DEPTH and len(numbers) < DEPTH:
            code, line = frame.f_code, frame.f_lineno or 0
            found = known.get((id(code), line))
            number = found[0] if found is not None else self._frame(code, line)
            if number >= 0:
                numbers.append(number)
            frame = frame.f_back
            depth += 1
        stack = _NO_STACK
        while numbers:
            key = (stack, numbers.pop())
            at = self._stacks.get(key)
            if at is None:
                if len(self._stacks) >= MOST_STACKS:
                    break  # the callers are known: the rest is not told
                at = self._stacks[key] = len(self._stacks)
                self._new.append({"stack": (at, *key)})
            stack = at
        return stack

    def _frame(self, code: CodeType, line: int) -> int:
        """A new number; -1 for a frame that is ours or a profiler's, and beyond the bound."""
        name = code.co_filename
        if len(self._frames) >= MOST_FRAMES:
            return -1
        key = (id(code), line)
        if _is_own(name):
            self._frames[key] = (-1, code)
            return -1
        file = self._files.get(name)
        if file is None:
            file = self._files[name] = len(self._files)
            self._new.append({"file": (file, _plain(name, 4000))})
        number = len(self._frames)
        self._frames[key] = (number, code)
        self._new.append({"frame": (number, file, line, _plain(code.co_name, 1000))})
        return number


def _is_own(name: str) -> bool:
    return name.startswith((_HERE, _WRAPPERS)) or name.endswith(_OF_PROFILERS)


def _plain(text: str, most: int) -> str:
    return str(text)[:most]


def _batch(samples: list[tuple[int, int, int | None, int, int]]) -> dict[str, Any]:
    """Samples of one thread, by differences."""
    tid, at, cpu = samples[0][:3]
    line: dict[str, Any] = {"tid": tid, "at_ns": at, "cpu_ns": cpu}
    rows: list[int] = []
    for _, when, spent, stack, delay in samples:
        used = 0 if spent is None or cpu is None else max(spent - cpu, 0)
        rows += (when - at, stack, used, delay)
        at, cpu = when, spent
    line["rows"] = rows
    return line
