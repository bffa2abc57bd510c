"""Scan worker for onnxruntime: one session, numpy in, numpy out, on the execution providers that
are asked for, else on the best one that is there.

Timed: the single `session.run`, copies to and from the device included. Under the onnxruntime layer
each point gets a session of its own, since the profile belongs to the session; otherwise one
session serves all points. Driven by PROFHARNESS_* variables and the spec file alone (see protocol).
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import contextlib
import importlib
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from profharness_workloads.shared import (
    caches,
    devices,
    flops,
    inputs,
    models,
    onnx_sessions,
    providers,
    ranges,
    timing,
    worker,
)
from profharness_workloads.shared.protocol import MISSING, Point, Refusal, Settings

LAYER = "onnxruntime"
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
        self._caches = (
            *caches.places(os.environ),
            *providers.cache_places(spec.providers or ()),
        )
        self._settings, self._runtime = settings, runtime
        self._path = (
            models.built_in_file(spec, "onnx")
            if models.is_built_in(spec)
            else models.model_file(spec)
        )
        first = self._opened()
        self._session: Optional[Any] = first.session
        available = runtime.get_available_providers()
        self.versions = {
            "python": sys.version.split()[0],
            "onnxruntime": runtime.__version__,
            "numpy": np.__version__,
            "providers": ",".join(available),
        }
        self.devices = providers.visible_devices(available, first.gpu)
        self.device, self.compiles = first.device, first.compiles
        self.notes: Dict[str, str] = onnx_sessions.notes_of(first, spec)
        self._prepare_inputs()
        self.marks = ranges.open_marks(settings, LAYER)
        self._profiled = LAYER in settings.layers
        self._flops = self._counted()
        if self._profiled:
            self._session = None
            self._leave_markers()

    def _prepare_inputs(self) -> None:
        spec, session = self._settings.spec, self._session
        assert session is not None
        self._specs, usual = inputs.filled(signature(session, self._path), spec.shapes, spec.inputs)
        inputs.checked(spec.inputs, self._specs)
        self._outputs = [output.name for output in session.get_outputs()]
        if usual and not models.is_built_in(spec):
            self.notes["shapes"] = (
                "usual particle counts taken for the free dimensions of %s" % ", ".join(usual)
            )

    def _opened(self, configure: Callable[[Any], None] = lambda _: None) -> onnx_sessions.Opened:
        """A session. Raises Refusal when the file is no model, or the asked device or provider is
        not to be had.
        """
        try:
            return onnx_sessions.opened(
                self._runtime,
                self._path,
                self._settings.spec,
                self._settings.local_rank,
                configure,
            )
        except Refusal as refusal:
            if refusal.code != MISSING:
                raise
            way_out = "--allow-fallback goes on with what is there"
            raise devices.offering(refusal, way_out) from refusal

    def _counted(self) -> flops.Count:
        """Once, where no tool records; by a run of its own on the CPU."""
        if self._settings.recorded or self._settings.spec.flops_per_item is not None:
            return flops.Count(self._settings.spec.flops_per_item)
        feeds = self._feeds(
            inputs.pool(self._specs, 1, self._settings.spec.inputs, self._settings.spec.seed)[0]
        )
        return flops.onnx_count(self._path, feeds)

    def _feeds(self, arrays: Sequence[Any]) -> Dict[str, Any]:
        return {spec.name: array for spec, array in zip(self._specs, arrays)}

    def _leave_markers(self) -> None:
        """Once per worker: a small session whose runs are bracketed by clock readings, to check the
        alignment.
        """
        hook = importlib.import_module(ranges.hook("onnxruntime_hook"))
        hook.marker_session(self._settings.artifact(LAYER, "marker-%d.json" % os.getpid()))

    def measure(self, point: Point, still_wanted: Callable[[], None]) -> worker.Measurement:
        """Warm up and time runs of one session; under the onnxruntime layer the point has a session
        of its own, since a profile belongs to its session.
        """
        notes = dict(self.notes)
        cache_before = caches.snapshot(self._caches)
        sets = self._input_sets(point)
        with self._session_for(point) as session:
            action = self._action(session, sets)
            warm = timing.warm_up(
                action, point.warmup, self.marks.warm_up_span(point.id), compiles=self.compiles
            )
            cache_after = caches.snapshot(self._caches)
            trials = self._trials(action, point, still_wanted)
        if self.compiles:
            grown = caches.was_cold(cache_after, caches.snapshot(self._caches))
            notes.update(timing.recompiled(trials, warm, grew=bool(grown)))
        if not warm.agreed:
            notes["warmup"] = (
                "stopped at the cap of %g s before the last trials agreed" % timing.WARM_UP_CAP_S
            )
        if self._flops.note:
            notes["flops"] = self._flops.note
        notes["inputs"] = "%d sets in turn" % len(sets)
        notes["input_bytes_per_item"] = "%.17g" % (
            sum(array.nbytes for array in sets[0].values()) / point.batch_size
        )
        return worker.Measurement(
            trials.durations_ns,
            trials.starts_ns,
            point.batch_size,
            warm.durations_ns,
            warm.starts_ns,
            self.device,
            compile_ns=warm.compile_ns,
            cold_cache=caches.was_cold(cache_before, cache_after),
            flops_per_item=self._flops.flops,
            notes=notes,
        )

    @contextlib.contextmanager
    def ready(self, point: Point) -> Iterator[timing.Action]:
        with self._session_for(point) as session:
            yield self._action(session, self._input_sets(point))

    def _action(self, session: Any, sets: Sequence[Mapping[str, Any]]) -> timing.Action:
        run, outputs = session.run, self._outputs
        return timing.Action(inputs.in_turn(sets), lambda feeds: run(outputs, feeds), _nothing)

    def _input_sets(self, point: Point) -> List[Dict[str, Any]]:
        spec = self._settings.spec
        seed = spec.seed if point.seed is None else point.seed
        return [
            self._feeds(arrays)
            for arrays in inputs.pool(self._specs, point.batch_size, spec.inputs, seed)
        ]

    @contextlib.contextmanager
    def _session_for(self, point: Point) -> Iterator[Any]:
        if not self._profiled:
            if self._session is None:
                self._session = self._opened().session
            yield self._session
            return
        hook = importlib.import_module(ranges.hook("onnxruntime_hook"))
        profile = hook.SessionProfile(
            self._settings.artifact(LAYER, "%s.json" % point.id), point=point.id
        )
        session = self._opened(profile.configure).session
        try:
            yield session
        finally:
            profile.finish(session)

    def _trials(
        self, action: timing.Action, point: Point, still_wanted: Callable[[], None]
    ) -> timing.Trials:
        if not self.marks:
            return timing.trials(action, point.trials, point.min_seconds, still_wanted)
        with self.marks.point(point.id, self._settings):
            span = self.marks.trial_span(point.id)
            return timing.marked_trials(action, point.trials, point.min_seconds, still_wanted, span)

    def recover(self) -> None:
        """A session whose allocator failed keeps what it had reserved: the next point opens
        another.
        """
        self._session = None


def _nothing() -> None:
    """`session.run` returns when its outputs are in host memory."""


def signature(session: Any, path: str) -> Tuple[inputs.TensorSpec, ...]:
    """The inputs, with the first axis taken as the batch. Raises Refusal for a type or rank that
    cannot be fed.
    """
    specs = []
    for entry in session.get_inputs():
        if entry.type not in TYPES:
            raise Refusal(
                "%s: input %s has type %s, which cannot be generated"
                % (path, entry.name, entry.type)
            )
        if not entry.shape:
            raise Refusal("%s: input %s has no batch axis" % (path, entry.name))
        dims = tuple(d if isinstance(d, int) and d > 0 else None for d in entry.shape[1:])
        specs.append(inputs.TensorSpec(entry.name, TYPES[entry.type], dims))
    return tuple(specs)


def load(settings: Settings) -> OnnxWorkload:
    """Raises Refusal (MISSING) when onnxruntime cannot be imported in this Python."""
    try:
        import onnxruntime
    except Exception as error:  # a broken installation raises OSError or worse
        raise Refusal(
            "onnxruntime cannot be imported by %s: %s" % (sys.executable, error),
            "install onnxruntime there",
            MISSING,
        ) from error
    return OnnxWorkload(settings, onnxruntime)


if __name__ == "__main__":
    sys.exit(worker.main(load, os.environ))
