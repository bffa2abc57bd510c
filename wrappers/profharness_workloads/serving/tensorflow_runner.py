"""TensorFlow models for the model server: one loaded model per device; its calls may run at the
same time.
"""

from __future__ import annotations

import os
from typing import Any, Dict, List

from profharness_workloads.serving.plan import Served
from profharness_workloads.serving.runner import Call, Runner, Signature, placed, probed
from profharness_workloads.shared import models, tensorflow_models
from profharness_workloads.shared.protocol import Refusal, Settings


class TensorflowRunner(Runner):
    """A frozen graph or SavedModel; sessions and concrete functions are safe to call from several
    threads.
    """

    backend = "tensorflow"

    def __init__(self, model: Served, settings: Settings, tf: Any):
        self._loaded: Dict[str, tensorflow_models.Loaded] = {}
        self._places: List[str] = []

        def choose(device: str) -> str:
            return tensorflow_models.chosen_device(tf, device, settings.local_rank)

        for number in range(model.instances):
            device, fallback = placed(model, number, choose)
            self.fallback = self.fallback or fallback
            if device not in self._loaded:
                self._loaded[device] = tensorflow_models.load(tf, model.spec, device)
            self._places.append(device)
        self.device = ",".join(sorted(self._loaded))
        self.versions = {"tensorflow": tf.__version__}
        first = self._loaded[self._places[0]]
        self.signature = Signature(
            first.inputs, probed(self.instance(0), first.inputs, model, first.outputs)
        )

    def instance(self, number: int) -> Call:
        return self._loaded[self._places[number]].call


def load(model: Served, settings: Settings) -> TensorflowRunner:
    """Raises Refusal: tensorflow or the device is missing, or the model is none of its own."""
    if models.is_built_in(model.spec):
        raise Refusal(
            "the built-in ParticleNet has no TensorFlow form",
            "serve it with --backend torch or onnxruntime",
        )
    if not os.path.isdir(model.spec.model):
        models.model_file(model.spec)
    return TensorflowRunner(model, settings, tensorflow_models.import_tensorflow())
