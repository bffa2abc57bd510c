"""Scan worker for onnxruntime: one session, numpy in, numpy out, on the best execution provider that is there.

Timed: the single `session.run`, copies to and from the device included. Under the onnxruntime layer each point gets a
session of its own, since the profile belongs to the session; otherwise one session serves all points.
Driven by PROFHARNESS_* variables and the spec file alone (see protocol).
"""

from __future__ import annotations

import os
import sys
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple

import caches
import flops
import inputs
import models
import ranges
import timing
import worker
from protocol import BAD_INPUT, MISSING, Point, Refusal, Settings, Spec

LAYER = "onnxruntime"
CPU = "CPUExecutionProvider"
GPUS = ("MIGraphXExecutionProvider", "ROCMExecutionProvider", "CUDAExecutionProvider")  # in order of preference
COMPILING = ("MIGraphXExecutionProvider", "TensorrtExecutionProvider")  # the first call of a shape compiles
TYPES = {
    "tensor(float)": "float32",
    "tensor(float16)": "float16",
    "tensor(double)": "float64",
    "tensor(int64)": "int64",
    "tensor(int32)": "int32",
    "tensor(int16)": "int16",
    "tensor(int8)": "int8",
    "tensor(uint8)": "uint8",
    "tensor(bool)": "bool",
}


class OnnxWorkload(worker.Workload):
    """One model under one list of providers; each point measures it at one batch size."""

    def __init__(self, settings: Settings, runtime: Any):
        spec = settings.spec
        self._settings, self._runtime = settings, runtime
        self._path = models.built_in_file(spec, "onnx") if models.is_built_in(spec) else models.model_file(spec)
        self._providers, self._index = chosen_providers(runtime.get_available_providers(), spec, settings.local_rank)
        self.versions = {
            "python": sys.version.split()[0],
            "onnxruntime": runtime.__version__,
            "numpy": inputs.np.__version__,
            "providers": ",".join(runtime.get_available_providers()),
        }
        self.devices = visible_devices(runtime.get_available_providers(), self._index)
        self._session: Optional[Any] = self._opened(self._options())
        first = self._session.get_providers()[0]
        self.device = "cpu" if first == CPU else "cuda:%d" % self._index
        self._compiles = first in COMPILING
        self._notes = {"providers": ",".join(self._session.get_providers())}
        self._prepare_inputs()
        self._marks = ranges.open_marks(settings.layers, LAYER)
        self._profiled = LAYER in settings.layers
        self._flops = flops.Count(None) if settings.layers else self._counted()
        if self._profiled:
            self._session = None
            self._leave_markers()

    def _prepare_inputs(self) -> None:
        spec, session = self._settings.spec, self._session
        assert session is not None
        self._specs, usual = inputs.filled(signature(session, self._path), spec.shapes, spec.inputs)
        inputs.checked(spec.inputs, self._specs)
        self._outputs = [output.name for output in session.get_outputs()]
        if usual:
            self._notes["shapes"] = "free dimensions of %s filled with the usual numbers" % ", ".join(usual)

    def _options(self) -> Any:
        options = self._runtime.SessionOptions()
        options.log_severity_level = 3
        if self._settings.spec.threads:
            options.intra_op_num_threads = self._settings.spec.threads
        return options

    def _opened(self, options: Any) -> Any:
        """A session. Raises Refusal when the file is no model, or the asked device was left out without an error."""
        given = [
            (name, {"device_id": str(self._index)}) if name in GPUS else name for name in self._providers
        ]
        try:
            session = self._runtime.InferenceSession(self._path, options, providers=given)
        except Exception as error:  # noqa: BLE001 - its exception classes have no common base
            raise Refusal("%s: onnxruntime cannot load it: %s" % (self._path, first_line(error)), code=BAD_INPUT) from error
        asked, got = self._providers[0], session.get_providers()
        if asked not in got and self._settings.spec.device != "auto":
            raise Refusal(
                "onnxruntime left out %s and would run on %s" % (asked, got[0]),
                "its libraries for this GPU are missing or do not fit; see the messages above",
                MISSING,
            )
        return session

    def _counted(self) -> flops.Count:
        """Kept in the cache beside the model, by content, since the observing run needs another session."""
        feeds = self._feeds(inputs.pool(self._specs, 1, self._settings.spec.inputs, self._settings.spec.seed)[0])
        return flops.onnx_count(self._path, feeds)

    def _feeds(self, arrays: Sequence[Any]) -> Dict[str, Any]:
        return {spec.name: array for spec, array in zip(self._specs, arrays)}

    def _leave_markers(self) -> None:
        """Once per worker: a small session whose runs are bracketed by clock readings, to check the alignment."""
        from onnxruntime_hook import marker_session

        marker_session(self._settings.artifact(LAYER, "marker.json"), ranges.MARKERS)

    def measure(self, point: Point, still_wanted: Callable[[], None]) -> worker.Measurement:
        spec = self._settings.spec
        notes = dict(self._notes)
        cache_before = caches.snapshot(os.environ)
        seed = spec.seed if point.seed is None else point.seed
        sets = [self._feeds(one) for one in inputs.pool(self._specs, point.batch_size, spec.inputs, seed)]
        with self._session_for(point) as session:
            run, outputs = session.run, self._outputs
            action = timing.Action(inputs.in_turn(sets), lambda feeds: run(outputs, feeds), _nothing)
            warm = timing.warm_up(action, point.warmup, self._marks.warm_up_span(point.id), compiles=self._compiles)
            cache_after = caches.snapshot(os.environ)
            trials = self._trials(action, point, still_wanted)
        if not warm.agreed:
            notes["warmup"] = "stopped at the cap of %g s before the last trials agreed" % timing.WARM_UP_CAP_S
        if self._flops.note:
            notes["flops"] = self._flops.note
        notes["inputs"] = "%d sets in turn" % len(sets)
        return worker.Measurement(
            trials.durations_ns,
            trials.starts_ns,
            point.batch_size,
            warm.durations_ns,
            self.device,
            compile_ns=warm.compile_ns,
            cold_cache=caches.was_cold(cache_before, cache_after),
            flops_per_item=self._flops.flops,
            notes=notes,
        )
