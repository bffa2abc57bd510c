"""Scan worker for tensorflow: a frozen graph or SavedModel, NumPy in, NumPy out, on the CPU or a
GPU.

Timed: the single call, copies to and from the device included, as the published DeepMET scans time
`session.run`. Driven by PROFHARNESS_* variables and the spec file alone (see protocol).
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import contextlib
from typing import Any, Callable, Iterator, List, Tuple

import numpy as np

from profharness_workloads.shared import (
    devices,
    flops,
    inputs,
    models,
    ranges,
    tensorflow_models,
    timing,
    worker,
)
from profharness_workloads.shared.protocol import Point, Refusal, Settings


class TensorflowWorkload(worker.Workload):
    """One model on one device; each point measures it at one batch size."""

    def __init__(self, settings: Settings, tf: Any):
        spec = settings.spec
        self._settings, self._tf = settings, tf
        self.device, fallback = devices.placed(
            spec.device,
            lambda device: tensorflow_models.chosen_device(tf, device, settings.local_rank),
            allowed=spec.allow_fallback,
        )
        self._model = tensorflow_models.load(tf, spec, self.device)
        self.versions = {
            "python": sys.version.split()[0],
            "tensorflow": tf.__version__,
            "numpy": np.__version__,
        }
        self.devices = tensorflow_models.visible_devices(tf)
        self._specs, usual = inputs.filled(self._model.inputs, spec.shapes, spec.inputs)
        inputs.checked(spec.inputs, self._specs)
        self.notes = {"fallback": fallback} if fallback else {}
        self._notes = {"form": self._model.form, **self.notes}
        if usual:
            self._notes["shapes"] = (
                "usual particle counts taken for the free dimensions of %s" % ", ".join(usual)
            )
        self.marks = ranges.open_marks(settings, "tensorflow")
        self._flops = self._counted()

    def _counted(self) -> flops.Count:
        """Once, where no tool records."""
        if self._settings.recorded or self._settings.spec.flops_per_item is not None:
            return flops.Count(self._settings.spec.flops_per_item)
        return tensorflow_models.count(self._model, self._specs)

    def measure(self, point: Point, still_wanted: Callable[[], None]) -> worker.Measurement:
        """Warm up and time calls of the model; a batch size's first call traces its function."""
        notes = dict(self._notes)
        with self.ready(point) as action:
            warm = timing.warm_up(
                action, point.warmup, self.marks.warm_up_span(point.id), compiles=True
            )
            trials = self._trials(action, point, still_wanted)
        if not warm.agreed:
            notes["warmup"] = (
                "stopped at the cap of %g s before the last trials agreed" % timing.WARM_UP_CAP_S
            )
        if self._flops.note:
            notes["flops"] = self._flops.note
        notes["input_bytes_per_item"] = "%.17g" % (
            sum(array.nbytes for array in action.prepare()) / point.batch_size
        )
        return worker.Measurement(
            trials.durations_ns,
            trials.starts_ns,
            point.batch_size,
            warm.durations_ns,
            warm.starts_ns,
            self.device,
            compile_ns=warm.compile_ns,
            flops_per_item=self._flops.flops,
            notes=notes,
        )

    @contextlib.contextmanager
    def ready(self, point: Point) -> Iterator[timing.Action]:
        yield timing.Action(inputs.in_turn(self._input_sets(point)), self._model.call, _nothing)

    def _input_sets(self, point: Point) -> List[Tuple[Any, ...]]:
        spec = self._settings.spec
        seed = spec.seed if point.seed is None else point.seed
        return [
            tuple(arrays)
            for arrays in inputs.pool(self._specs, point.batch_size, spec.inputs, seed)
        ]

    def _trials(
        self, action: timing.Action, point: Point, still_wanted: Callable[[], None]
    ) -> timing.Trials:
        if not self.marks:
            return timing.trials(action, point.trials, point.min_seconds, still_wanted)
        with self.marks.point(point.id, self._settings):
            span = self.marks.trial_span(point.id)
            return timing.marked_trials(action, point.trials, point.min_seconds, still_wanted, span)


def _nothing() -> None:
    """The call returns when its outputs are in host memory."""


def load(settings: Settings) -> TensorflowWorkload:
    """Raises Refusal: tensorflow or the device is missing, or the model is none of its own."""
    spec = settings.spec
    if models.is_built_in(spec):
        raise Refusal(
            "the built-in ParticleNet has no TensorFlow form",
            "use --backend torch or onnxruntime, or --model with a frozen graph or SavedModel",
        )
    if not os.path.isdir(spec.model):
        models.model_file(spec)  # a wrong name is refused before seconds are spent on tensorflow
    return TensorflowWorkload(settings, tensorflow_models.import_tensorflow())


if __name__ == "__main__":
    sys.exit(worker.main(load, os.environ))
