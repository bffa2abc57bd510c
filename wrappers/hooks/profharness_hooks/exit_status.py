"""The exit status of this process, written down before a profiler's finalisation inside it can
change it, crash or hang.

Python does not tell its exit functions the status, and has ended when C's are called. glibc's
on_exit gives it to a C function together with a pointer, and putw(status, stream) writes it to a
file. The last function that is registered is called first: before those of every library that was
loaded until now.
"""

from __future__ import annotations

import ctypes

_UNBUFFERED = 2  # _IONBF


def note(path: str) -> None:
    """Have the C library write the status to `path` at the very end, as a native int. Raises
    OSError or AttributeError where it cannot.
    """
    libc = ctypes.CDLL(None, use_errno=True)
    libc.fopen.restype, libc.fopen.argtypes = ctypes.c_void_p, [ctypes.c_char_p, ctypes.c_char_p]
    libc.setvbuf.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_size_t]
    libc.on_exit.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
    write = ctypes.cast(libc.putw, ctypes.c_void_p)
    stream = libc.fopen(path.encode("utf-8", "surrogateescape"), b"wbe")
    if not stream:
        raise OSError(ctypes.get_errno(), path)
    libc.setvbuf(stream, None, _UNBUFFERED, 0)
    if libc.on_exit(write, stream) != 0:
        raise OSError(0, "on_exit")
