"""Ranges for the vendors' tracers: roctx (rocprofv3, rocprof, rocprof-sys) and NVTX (Nsight),
through ctypes.

Each library that can be loaded gets every range; where there is none, nothing happens. Ranges are
started and stopped by id, so they need not nest and cannot end a range that the user pushed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Tuple

    Tokens = Tuple[
        Tuple["_Library", int], ...
    ]  # what start() returns: (library, its id of the range)


# (names of the library, start, stop): rocprofiler-sdk's roctx serves rocprofv3 (1: ROCm 7, 0:
# before), the older one rocprof and roctracer; names without a number come with development
# packages only
LIBRARIES = (
    (
        (
            "librocprofiler-sdk-roctx.so.1",
            "librocprofiler-sdk-roctx.so.0",
            "librocprofiler-sdk-roctx.so",
        ),
        "roctxRangeStartA",
        "roctxRangeStop",
    ),
    (("libroctx64.so.4", "libroctx64.so"), "roctxRangeStartA", "roctxRangeStop"),
    (("libnvToolsExt.so.1",), "nvtxRangeStartA", "nvtxRangeEnd"),
)
_libraries: list[_Library] | None = None


class _Library:
    def __init__(self, path: str, start: str, stop: str) -> None:
        handle = ctypes.CDLL(path)
        self._start, self._stop = getattr(handle, start), getattr(handle, stop)
        self._start.argtypes, self._start.restype = [ctypes.c_char_p], ctypes.c_uint64
        self._stop.argtypes, self._stop.restype = [ctypes.c_uint64], None
        self.handle = handle

    def start(self, name: bytes) -> int:
        token: int = self._start(name)
        return token

    def stop(self, token: int) -> None:
        self._stop(token)


def libraries() -> list[_Library]:
    """The tracers' libraries that this process can load, looked up once."""
    global _libraries
    if _libraries is None:
        _libraries = []
        folder = os.path.join(os.environ.get("ROCM_PATH", "/opt/rocm"), "lib")
        for names, start, stop in LIBRARIES:
            for path in (*names, *(os.path.join(folder, name) for name in names)):
                try:
                    _libraries.append(_Library(path, start, stop))
                    break
                except (OSError, AttributeError):
                    continue
    return _libraries


def start(name: str) -> Tokens:
    """Begin a range in every tracer; returns what stop() needs."""
    present = libraries()
    if not present:
        return ()
    encoded = name.encode("utf-8", "replace")
    return tuple((library, library.start(encoded)) for library in present)


def stop(tokens: Tokens) -> None:
    """End a range begun by start()."""
    for library, token in tokens:
        library.stop(token)


def pause_recording() -> bool:
    """Ask AMD's tracer to stop recording, which works if it was started with its selected-regions
    option. Returns whether a library was there to pass it on.
    """
    return _control("roctxProfilerPause")


def resume_recording() -> bool:
    """Ask AMD's tracer to record (again). Returns whether a library was there to pass it on."""
    return _control("roctxProfilerResume")


def _control(name: str) -> bool:
    heard = False
    for library in libraries():
        function = getattr(library.handle, name, None)
        if function is not None:
            function.argtypes, function.restype = [ctypes.c_uint64], ctypes.c_int
            function(0)  # 0: all threads
            heard = True
    return heard


@contextlib.contextmanager
def everywhere(name: str) -> Iterator[None]:
    """A range in every tracer, and in the open window of torch's profiler if there is one; a
    context manager.
    """
    window = sys.modules.get("profharness_hooks.windows")
    tokens = start(name)
    try:
        if window is None:
            yield
        else:
            with window.ProgramRange(name):
                yield
    finally:
        stop(tokens)
