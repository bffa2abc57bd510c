"""Which frames of a trace are of sampled stacks: every figure of Python's lines is made of them,
unlike of the functions that torch's profiler records.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from profharness.trace.model import Trace

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
