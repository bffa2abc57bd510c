"""A moment of onnxruntime with the providers at hand: what `doctor --try` runs under the onnxruntime layer."""

import os
import sys

import numpy as np
import onnxruntime

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "hooks"))
import onnxruntime_hook

WANTED = ("MIGraphXExecutionProvider", "ROCMExecutionProvider", "CUDAExecutionProvider", "CPUExecutionProvider")
there = onnxruntime.get_available_providers()
session = onnxruntime.InferenceSession(onnxruntime_hook.identity_model(), providers=[name for name in WANTED if name in there])
for _ in range(5):
    session.run(["y"], {"x": np.zeros(1, np.float32)})
