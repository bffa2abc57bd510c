"""Frames of profharness's own hooks in sampled stacks: no line of the program, nor time of it."""

from __future__ import annotations

import re

import numpy as np
import numpy.typing as npt

from profharness.trace.columns.table import NULL
from profharness.trace.model import I64
from profharness.trace.nesting import innermost, nest

Mask = npt.NDArray[np.bool_]
_OWN = re.compile(
    r"(?:.*/)?(?:profharness_hooks/\w+|_?wrappers/hooks/\w+|profharness_mark)\.py\(\d+\): .*",
    re.DOTALL,
)


def is_own(name: str) -> bool:
    """Whether a frame, as `.../profharness_hooks/step_log.py(113): Recorder._record`, is of our
    hooks.
    """
    return _OWN.fullmatch(name) is not None


HOOKS = "profharness's own hooks"
"""What their frames are called, all together, where the host's time is told."""


def cut_out(start: I64, end: I64, own: Mask) -> tuple[I64, I64, int]:
    """The frames of one thread on an axis without the time in which one of ours was innermost, and
    how long that was, in ns. What ours called, the program asked for: it stays. The rows of ours
    have no time of their own then, and are to be left out.
    """
    if not own.any():
        return start, end, 0
    thread = np.zeros(len(start), np.int64)
    borders = np.unique(np.concatenate((start, end)))
    at = (borders[:-1], np.zeros(len(borders) - 1, np.int64))
    inner = innermost(
        start, end - start, thread, nest(start, end - start, thread), at, with_end=False
    )
    ours = own[inner] & (inner != NULL)
    gone = np.concatenate(([0], np.cumsum(np.diff(borders) * ours)))
    moved = borders - gone
    return (
        moved[np.searchsorted(borders, start)],
        moved[np.searchsorted(borders, end)],
        int(gone[-1]),
    )
