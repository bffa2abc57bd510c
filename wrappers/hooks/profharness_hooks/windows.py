"""One recording of torch.profiler: start, self-check markers, stop, export, and the sidecar that
describes it.

Used by the torch hook in commands and by the workers of scans. It imports torch when a window
starts, and raises what torch raises: a caller that must not fail catches it. The profiler records
the operators of the thread that starts it (and of threads that autograd starts for it), so a window
is stopped in the thread that started it.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import time

from profharness_hooks import own_frames, process_groups
from profharness_hooks.sidecars import count_events, sidecar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, ContextManager, Mapping


MARKERS = 50
OWN = "profharness."
_open: Window | None = None
_inherited = False
_fork_ready = False
_of_program: list[ProgramRange] = []
_nothing = contextlib.nullcontext()


def also_recorded(environ: Mapping[str, str]) -> dict[str, bool]:
    """What was asked of torch's profiler beyond operators and device work, as its own arguments.

    `with_modules` speaks of TorchScript modules; those of eager code come with the stacks.
    """
    stacks = environ.get("PROFHARNESS_STACKS", "") == "1"
    memory = environ.get("PROFHARNESS_PROFILE_MEMORY", "") == "1"
    asked = {"with_stack": stacks, "with_modules": stacks, "profile_memory": memory}
    return {argument: True for argument, wanted in asked.items() if wanted}


class _Range:
    """`torch.profiler.record_function` for torch before 2.2, which lacks the fast one."""

    def __init__(self, name: str) -> None:
        from torch.profiler import record_function

        self._inner: Any = record_function(name)

    def __enter__(self) -> _Range:  # noqa: PYI034 - Self came with 3.11
        self._inner.__enter__()
        return self

    def __exit__(self, *error: object) -> Any:
        return self._inner.__exit__(*error)


def _range_type() -> Any:
    try:
        from torch._C._profiler import _RecordFunctionFast
    except ImportError:
        return _Range
    return _RecordFunctionFast


def recording() -> bool:
    """Whether a window of this process is open."""
    return _open is not None


def span(name: str) -> ContextManager[Any]:
    """A context manager that writes a range of this name into the open window; does nothing where
    none is open.

    Costs well under a microsecond when closed and about one when open.
    """
    if _open is None:
        return _nothing
    opened: ContextManager[Any] = _open.range(name)
    return opened


class ProgramRange:
    """A range that the program marks through profharness_mark. It may last as long as the program
    likes, and ends with the recording at the latest.
    """

    def __init__(self, name: str) -> None:
        self._inner: Any = span(name)

    def __enter__(self) -> ProgramRange:  # noqa: PYI034 - Self came with 3.11
        self._inner.__enter__()
        _of_program.append(self)
        return self

    def __exit__(self, *error: object) -> None:
        if self in _of_program:
            _of_program.remove(self)
            self._inner.__exit__(*error)


def before_other_profilers(give_way: Callable[[], None]) -> None:
    """Call `give_way` whenever torch is about to prepare or start a profiler, ours included."""
    from torch.autograd import profiler as module

    def calling(original: Any) -> Any:
        def start(*args: Any, **kwargs: Any) -> Any:
            give_way()
            return original(*args, **kwargs)

        return start

    for name in ("_prepare_profiler", "_enable_profiler"):
        original = getattr(module, name, None)
        if original is not None:
            setattr(module, name, calling(original))


def has_device(torch: Any) -> bool:
    """Whether device activity can be recorded: a CUDA or ROCm build, and a device that it sees."""
    build = torch.version.cuda or getattr(torch.version, "hip", None)
    return bool(build) and bool(torch.cuda.is_available())


class Window:
    """Records from start() to stop(), which exports to `path` with its sidecar beside it.

    `point` names the scan's point; `extra` holds further fields of the sidecar, such as its window.
    `device` says whether to record device activity (by default, where torch sees a device).
    `all_threads`: operators of every thread, not only of the one that starts the window, where this
    torch can (device activity always is of the whole process). Ranges should be closed by stop():
    see `open_ranges`.
    """

    def __init__(
        self,
        path: str,
        *,
        point: str = "",
        record_shapes: bool = True,
        extra: Mapping[str, Any] | None = None,
        device: bool | None = None,
        all_threads: bool = False,
    ) -> None:
        self.path = os.fspath(path)
        self.extra = dict(extra or {})
        self._point = point
        self._shapes = record_shapes
        self._device = device
        self._all_threads = all_threads
        self._profiler: Any = None
        self._brackets: list[tuple[int, int]] = []
        self._end_ns = 0
        self.range: Any = None
        self.own_events = 0
        self.unfinished_step: int | None = None
        self.referred_to = False  # by a range of the program that may still be open

    def __enter__(self) -> Window:  # noqa: PYI034 - Self came with 3.11
        self.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin to record. Raises RuntimeError while any profiler of torch is on: a second one
        crashes the process.
        """
        global _open
        import torch
        from torch.profiler import ProfilerActivity, profile

        if (
            _open is not None or torch.autograd._profiler_enabled()
        ):  # torch has no public name for it
            raise RuntimeError("torch's profiler is already recording in this process")
        device = has_device(torch) if self._device is None else self._device
        activities = [ProfilerActivity.CPU] + ([ProfilerActivity.CUDA] if device else [])
        if device:
            torch.cuda.synchronize()  # what was launched before the window does not belong to it
        process_groups.watch()
        self._profiler = profile(
            activities=activities,
            record_shapes=self._shapes,
            **also_recorded(os.environ),
            **self._threads(),
        )
        with own_frames.quiet_start():
            self._profiler.start()
        self.range, _open = _range_type(), self
        _prepare_for_fork()
        self._mark()

    def _threads(self) -> dict[str, Any]:
        if not self._all_threads:
            return {}
        try:
            from torch._C._profiler import _ExperimentalConfig  # torch has no public name for it

            return {"experimental_config": _ExperimentalConfig(profile_all_threads=True)}
        except (ImportError, TypeError):
            return {}  # an older torch: operators of other threads are not recorded

    def stop(self) -> int:
        """End the recording, export it with its sidecar, and return the number of events in the
        file.
        """
        self.end()
        return self.export()

    def end(self) -> None:
        """End the recording in the thread that started it; export() or nothing may follow. Raises
        RuntimeError when this window is not the open one.
        """
        global _open
        if _open is not self:
            raise RuntimeError("the window is not open")
        self._mark()
        _open = None
        self._end_ns = time.time_ns()
        self._profiler.stop()
        while _of_program:
            _of_program[-1].__exit__(None, None, None)

    def export(self) -> int:
        """Write the trace and its sidecar, and forget the recording; returns how many events the
        file holds, markers and step ranges left out, but with the few hundred functions of Python
        that ran for the recording itself, where stacks are recorded; 0 where it holds nothing but
        such functions. Raises OSError.
        """
        os.makedirs(os.path.dirname(self.path) or ".", exist_ok=True)
        self._profiler.export_chrome_trace(self.path + ".part")
        os.replace(self.path + ".part", self.path)
        sidecar(
            self.path,
            "torch",
            **dict(
                {"point": self._point, "markers": self._brackets, "groups": process_groups.known()},
                **self.extra,
            ),
        )
        events = count_events(self.path) - self.own_events - 1  # Kineto writes one span of its own
        frames = (
            count_events(self.path, "cat", "python_function")
            if "with_stack" in also_recorded(os.environ)
            else 0
        )
        self.forget()
        return events if events > frames else 0

    def count(self) -> int:
        """How many events the ended recording holds; markers, step ranges and, where this torch
        tells them, the functions of Python that ran for the recording itself are left out. About 4
        us each.
        """
        events = self._results().events()
        frames = 0
        if "with_stack" in also_recorded(os.environ):
            frames = own_frames.count(
                events,
                Window._mark.__code__,
                Window.end.__code__,
                own_frames.of_threads(),
            )
        return max(0, len(events) - self.own_events - frames)

    def open_ranges(self) -> list[str] | None:
        """Names of the ranges that were still open when the recording ended, by their begin; None
        for a torch that does not tell.

        Such a range keeps a pointer into the ended recording and writes its end there; torch
        follows it only while a recording is on, so starting the next one before the range has ended
        corrupts memory (seen in torch 2.13: a few bytes of freed memory, and a crash much later).
        The profiler ends an open range at the time of its own end, together with the range around
        it, to the nanosecond, or, where nothing tells, at or before its begin. Ours are left by
        ourselves, before the next recording.
        """
        try:
            events = [(event, self._end_ns) for event in self._results().experimental_event_tree()]
            still_open: list[tuple[int, str]] = []
            while events:
                event, limit = events.pop()
                end = event.end_time_ns
                if (
                    (end >= self._end_ns or end == limit or end <= event.start_time_ns)
                    and event.tag.name == "TorchOp"
                    and not event.name.startswith(OWN)
                ):
                    still_open.append((event.start_time_ns, event.name))
                events.extend((child, end) for child in event.children)
            return [name for _, name in sorted(still_open)]
        except AttributeError:
            return None

    def forget(self) -> None:
        """Free the ended recording now, unless a range may still write its end there.

        torch's profiler object refers to itself, so that its C++ records would live until a garbage
        collection, which may be that of the interpreter's end, when the runtime that they came from
        is gone.
        """
        if not self.referred_to:
            self._profiler.profiler = None
            self._profiler = None

    def _results(self) -> Any:
        return self._profiler.profiler.kineto_results

    def _mark(self) -> None:
        """Empty ranges between two readings of the clock: they bound how far the trace's clock is
        from ours.
        """
        kind, clock, first = self.range, time.perf_counter_ns, len(self._brackets)
        for index in range(first, first + MARKERS):
            region = kind("profharness.marker:%d" % index)
            before = clock()
            region.__enter__()
            region.__exit__(None, None, None)
            self._brackets.append((before, clock()))
        self.own_events += MARKERS


def close_forgotten() -> None:
    """Called at exit: exports a window that was left open, which would crash the interpreter's
    shutdown.
    """
    if _open is not None:
        _open.stop()


def _prepare_for_fork() -> None:
    global _fork_ready
    if not _fork_ready:
        _fork_ready = True
        os.register_at_fork(after_in_child=leave_in_child)


def leave_in_child() -> None:
    """Called in a forked child, whose copy of the recording would grow without a reader and crash
    its exit: stop recording ranges now, and end the copy later.

    Ending is slow, so it waits for the child's exit; children that leave through os._exit do not
    need it.
    """
    global _open, _inherited
    was_open, _open = _open, None
    try:
        _skip_kineto_at_exit()
        if was_open is None:
            return
        import torch

        if torch.autograd._profiler_enabled():  # torch has no public name for it
            _inherited = True
            _record_ranges(torch, on=False)
            atexit.register(end_in_child)
    except Exception:  # a C library or a torch that we do not know
        pass  # the child is as it would be after the user's own profiling


def _skip_kineto_at_exit() -> None:
    """Kineto waits for its thread when the process's C++ objects are destroyed, and fork does not
    copy threads.

    A child that ends normally would hang (torch 2.13), so the C library is told to end it before
    that, after Python's own end and with C's streams flushed. on_exit passes the status on, which
    is just what _exit takes.
    """
    import ctypes

    libc = ctypes.CDLL(None)
    libc.on_exit(libc._exit, None)
    libc.on_exit(libc.fcloseall, None)  # the last one registered runs first


def end_in_child() -> None:
    """End a recording that fork copied, so that the child may start one itself. Does nothing where
    fork copied none.
    """
    global _inherited
    if not _inherited:
        return
    _inherited = False
    import torch

    atexit.unregister(end_in_child)
    torch.autograd._disable_profiler()  # torch has no public name for it
    _record_ranges(torch, on=True)


def _record_ranges(torch: Any, *, on: bool) -> None:
    torch._C._autograd._enable_record_function(on)  # torch has no public name for it


atexit.register(close_forgotten)
