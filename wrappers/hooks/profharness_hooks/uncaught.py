"""What an exception says that ended the program: its kind, where it was raised, and its text only
where that names code, not data.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType


# Texts of others may hold any value of the program, a password for instance.
_OF_CODE = (ImportError, NameError, AttributeError, SyntaxError)
_LONGEST = 200


def sentence() -> str:
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
