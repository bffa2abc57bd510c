"""Samples of Python: which frames of a trace are of sampled stacks, of which every figure of
Python's lines is made, unlike of the functions that torch's profiler records; and what time a
sample of one thread speaks for.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.trace.model import I64, Trace

FORMAT = "py-spy"
"""The format of sources that hold such stacks."""
RATE, SAMPLES = "sampling.rate_hz", "sampling.samples"
"""Entries of `Source.details`: samples a second of each thread, and all samples, in digits."""


def is_sampled(trace: Trace) -> npt.NDArray[np.bool_]:
    """Whether each mark is a frame of a sampled stack."""
    frame = trace.strings.find("frame")
    of_source = np.array([source.format == FORMAT for source in trace.sources], np.bool_)
    if frame == -1 or not of_source.any():
        return np.zeros(len(trace.marks), np.bool_)
    sampled: npt.NDArray[np.bool_] = (trace.marks.kind == frame) & of_source[trace.marks.source]
    return sampled


_LATE = 4  # a pause of more than so many usual distances that no delay explains: nobody looked


def step_width_ns(at: I64) -> int:
    """The usual distance of at least two samples of one thread: their median."""
    return int(np.median(np.diff(at)))


def told_since(at: I64, delay: I64) -> I64:
    """From when on each sample of one thread but the first says where the thread was: since the one
    before it, but at most a few usual distances and its own delay. Native code that holds the
    interpreter makes a sampler late, and the line that it then sees called that code.
    """
    reach = _LATE * step_width_ns(at) + np.maximum(delay[1:], 0)
    return np.asarray(np.maximum(at[:-1], at[1:] - reach), np.int64)
