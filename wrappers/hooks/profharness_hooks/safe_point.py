"""Run a function in the main thread, between two bytecodes of whatever the user's program is doing
there.

torch's profiler belongs to the thread that started it, so a window that ends by the clock has to be
ended in the main thread; the interpreter's pending calls are the only way in that needs no signal.
While the main thread is inside a long call of C code, the function waits.
"""

from __future__ import annotations

import ctypes
import os
import sys
import threading
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


# Own prototypes, since setting argtypes on ctypes.pythonapi's functions would change them for the
# user too.
_is_true = ctypes.cast(ctypes.pythonapi.PyObject_IsTrue, ctypes.c_void_p)
_add_pending_call = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.py_object)(
    ("Py_AddPendingCall", ctypes.pythonapi)
)


class SafePoint:
    """`request()` may be called from any thread; `function` runs once per accepted request, never
    inside itself.

    The pending call is PyObject_IsTrue on an object whose `__bool__` does the work. Unlike a ctypes
    callback it lets exceptions through, so that Ctrl-C, or sys.exit from a signal handler, reaches
    the user's code although it came while ours ran.
    """

    def __init__(self, function: Callable[[], None], failed: Callable[[], None]) -> None:
        self._function, self._failed = function, failed
        self._pid = os.getpid()
        self._requested = False
        self._plain = _callable_as_truth(self._run)
        self._outside_dynamo: object = None

    def request(self) -> bool:
        """Ask for a run; True when the interpreter took the request (its queue holds 32)."""
        if self._requested:
            return True
        self._requested = True  # beforehand: the call may have run when the next line returns
        taken: bool = _add_pending_call(_is_true, self._target()) == 0
        if not taken:
            self._requested = False
        return taken

    def _target(self) -> object:
        """Inside a torch.compile'd region every new Python frame is traced: step out of that
        first.
        """
        dynamo = sys.modules.get("torch._dynamo")
        if dynamo is None or not hasattr(dynamo, "disable"):
            return self._plain
        if self._outside_dynamo is None:
            self._outside_dynamo = _callable_as_truth(dynamo.disable(self._run))
        return self._outside_dynamo

    def _run(self, *_itself: object) -> bool:
        self._requested = False
        if os.getpid() == self._pid:
            try:
                self._function()
            except Exception:  # the frame that we interrupted is the user's
                self._failed()
        return False  # the pending call has succeeded


def _callable_as_truth(function: Callable[..., bool]) -> object:
    return type("_PendingCall", (), {"__bool__": function})()


class Watch:
    """A daemon thread that calls `look()` about every `period_s` seconds until it returns False.
    The controller pauses it around fork.
    """

    def __init__(self, look: Callable[[], bool], period_s: float) -> None:
        self._look, self._period_s = look, period_s
        self._thread: threading.Thread | None = None
        self._stop = threading.Event()

    @property
    def running(self) -> bool:
        """Whether the thread is there and has not ended."""
        return self._thread is not None and self._thread.is_alive()

    def start(self) -> None:
        """Start the thread, unless it runs already."""
        if not self.running:
            self._stop.clear()
            self._thread = threading.Thread(target=self._follow, name="profharness", daemon=True)
            self._thread.start()

    def pause(self) -> bool:
        """End the thread (it is asleep nearly always). Returns whether it ran."""
        thread, was_running = self._thread, self.running
        if thread is not None and was_running and thread is not threading.current_thread():
            self._stop.set()
            thread.join(1.0)
        self._thread = None
        return was_running

    def _follow(self) -> None:
        stop = self._stop
        while not stop.wait(self._period_s):
            try:
                if not self._look():
                    return
            except Exception:  # nobody could do anything about it
                return  # the window then ends at the next step or at exit


def importing(package: str) -> bool:
    """Whether a module of this package is being imported, in whichever thread: code that imports
    now may find half of it.

    torch's profiler imports when it starts, and a program's first optimizer step imports
    torch._dynamo for seconds.
    """
    within = package + "."
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(within):
            spec = getattr(module, "__dict__", {}).get("__spec__")
            if getattr(spec, "_initializing", False):
                return True
    return False


def resident_bytes() -> int:
    """Memory of this process that is in RAM and belongs to no file: not the libraries of the
    device, which grow by gigabytes while the first operators run.
    """
    with open("/proc/self/statm", "rb") as file:
        _size, resident, shared = file.read().split()[:3]
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


def monotonic_age_ns(start_ns: int) -> int:
    """Nanoseconds since a reading of CLOCK_MONOTONIC."""
    return time.monotonic_ns() - start_ns


def in_main_thread() -> bool:
    """Whether the caller runs in the main thread."""
    return threading.current_thread() is threading.main_thread()
