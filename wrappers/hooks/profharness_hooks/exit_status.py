"""How this process ends: the exception that ended the program, and the exit status, written before
a profiler's finalisation inside it can change it, crash or hang.

Python does not tell its exit functions the status, and has ended when C's are called. glibc's
on_exit gives it to a C function together with a pointer, and putw(status, stream) writes it to a
file. The last function that is registered is called first: before those of every library that was
loaded until now.
"""

from __future__ import annotations

import ctypes
import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


_UNBUFFERED = 2  # _IONBF
# Texts of others may hold any value of the program, a password for instance.
_OF_CODE = (ImportError, NameError, AttributeError, SyntaxError)
_LONGEST = 200


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


def ended_by() -> str:
    """`the program ended by ModuleNotFoundError: No module named 'x' (train.py:3)`; empty where no
    exception ended it, or Ctrl-C did.
    """
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    if not isinstance(error, Exception):
        return ""
    text = str(error).partition("\n")[0][:_LONGEST] if isinstance(error, _OF_CODE) else ""
    place = _place(getattr(sys, "last_traceback", None) or error.__traceback__)
    return "the program ended by %s%s%s" % (
        type(error).__name__,
        ": %s" % text if text else "",
        " (%s)" % place if place else "",
    )


def _place(traceback: TracebackType | None) -> str:
    """The innermost line of the program's own: not of Python's or an installed package."""
    place = ""
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        if not file.startswith("<") and "-packages" not in file and "/lib/python3" not in file:
            place = "%s:%d" % (os.path.basename(file), traceback.tb_lineno)
        traceback = traceback.tb_next
    return place
