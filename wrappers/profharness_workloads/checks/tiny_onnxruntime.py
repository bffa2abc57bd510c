"""A moment of onnxruntime with the providers at hand: what `doctor --try` runs under the
onnxruntime layer.
"""

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import importlib

import numpy as np
import onnxruntime

from profharness_workloads.shared import ranges

onnxruntime_hook = importlib.import_module(ranges.hook("onnxruntime_hook"))

WANTED = (
    "MIGraphXExecutionProvider",
    "ROCMExecutionProvider",
    "CUDAExecutionProvider",
    "CPUExecutionProvider",
)
there = onnxruntime.get_available_providers()
session = onnxruntime.InferenceSession(
    onnxruntime_hook.identity_model(), providers=[name for name in WANTED if name in there]
)
for _ in range(5):
    session.run(["y"], {"x": np.zeros(1, np.float32)})
