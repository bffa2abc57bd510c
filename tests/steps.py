"""How much work a function does, counted instead of timed: the same on a busy machine."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable


def calls_of(function: Callable[[], object]) -> int:
    """How many calls of Python and C functions are made while `function` runs in this thread.

    Operators of NumPy make none, so that a loop over arrays counts and the length of an array
    does not.
    """
    made = 0

    def count(_frame: object, event: str, _argument: object) -> None:
        nonlocal made
        made += event in {"call", "c_call"}

    before = sys.getprofile()
    collects = gc.isenabled()
    gc.disable()  # finalisers of other tests' objects are not this function's work
    sys.setprofile(count)
    try:
        function()
    finally:
        sys.setprofile(before)
        if collects:
            gc.enable()
    return made
