"""A built-in model of known service time, for measuring transport, queueing and load generators:
`sleep:20ms`.

An execution sleeps for that time, whatever the batch, and gives its input back. `sleep:0ms`
measures the path alone; `--shape x:16384` chooses the payload (float32 values per item, 16 by
default).
"""

from __future__ import annotations

import re
import time
from typing import Any, Optional, Sequence, Tuple

from profharness_workloads.serving.plan import Served
from profharness_workloads.serving.runner import Arrays, Call, Runner, Signature
from profharness_workloads.shared import inputs
from profharness_workloads.shared.protocol import Refusal, Settings

VALUES = 16
UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0}


class Sleep(Runner):
    """Instances sleep at the same time: the interpreter is free meanwhile."""

    backend = "sleep"
    device = "cpu"

    def __init__(self, seconds: float, dims: Sequence[int], *, free: bool = False):
        self._ns = round(seconds * 1e9)
        own: Tuple[Optional[int], ...] = (*dims[:-1], None) if free else tuple(dims)
        self.signature = Signature(
            (inputs.TensorSpec("x", "float32", own),),
            (inputs.TensorSpec("y", "float32", own),),
        )

    def instance(self, number: int) -> Call:  # noqa: ARG002  all instances do the same
        """Gives its inputs back when the model's time has passed."""

        def call(arrays: Sequence[Any]) -> Arrays:
            end = time.perf_counter_ns() + self._ns
            while True:
                left = end - time.perf_counter_ns()
                if left <= 0:
                    return tuple(arrays)
                time.sleep(left / 1e9)

        return call


def seconds(model: str) -> float:
    """The time in `sleep:20ms`. Raises Refusal for another form."""
    match = re.fullmatch(r"sleep:(\d+(?:\.\d+)?)(us|ms|s)", model)
    if match is None:
        raise Refusal(
            "%r is not of the form sleep:TIME" % model,
            "for example sleep:20ms, sleep:0.5s or sleep:0us",
        )
    return float(match.group(1)) * UNITS[match.group(2)]


def load(model: Served, settings: Settings) -> Sleep:  # noqa: ARG001  the same for all backends
    """Raises Refusal for a time or shape that it cannot have."""
    shapes = dict(model.spec.shapes)
    dims = shapes.pop("x", (VALUES,))
    if shapes:
        raise Refusal(
            "--shape names %s, which is no input of the sleep model" % ", ".join(shapes),
            "its input is x",
        )
    # requests that differ in length need an input that is free to
    return Sleep(seconds(model.spec.model), dims, free=model.ragged not in ("none", "repository"))
