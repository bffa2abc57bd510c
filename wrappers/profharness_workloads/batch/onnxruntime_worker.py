"""Scan worker for onnxruntime: one session, numpy in, numpy out, on the best execution provider
that is there.

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

from profharness_workloads.shared import caches, flops, inputs, models, ranges, timing, worker
from profharness_workloads.shared.protocol import (
    BAD_INPUT,
    MISSING,
    Point,
    Refusal,
    Settings,
    Spec,
    plain_reason,
)

LAYER = "onnxruntime"
CPU = "CPUExecutionProvider"
GPUS = (
    "MIGraphXExecutionProvider",
    "ROCMExecutionProvider",
    "CUDAExecutionProvider",
)  # in order of preference
COMPILING = (
    "MIGraphXExecutionProvider",
    "TensorrtExecutionProvider",
)  # the first call of a shape compiles
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
        self._caches = caches.places(os.environ)
        self._settings, self._runtime = settings, runtime
        self._path = (
            models.built_in_file(spec, "onnx")
            if models.is_built_in(spec)
            else models.model_file(spec)
        )
        self._providers, self._index = chosen_providers(
            runtime.get_available_providers(), spec, settings.local_rank
        )
        self.versions = {
            "python": sys.version.split()[0],
            "onnxruntime": runtime.__version__,
            "numpy": np.__version__,
            "providers": ",".join(runtime.get_available_providers()),
        }
        self.devices = visible_devices(runtime.get_available_providers(), self._index)
        self._session: Optional[Any] = self._opened(self._options())
        first = self._session.get_providers()[0]
        self.device = "cpu" if first == CPU else "cuda:%d" % self._index
        self._compiles = first in COMPILING
        self._notes = {"providers": ",".join(self._session.get_providers())}
        if self._providers[0] not in self._session.get_providers():
            self._notes["device"] = "onnxruntime left out %s" % self._providers[0]
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
            self._notes["shapes"] = (
                "usual particle counts taken for the free dimensions of %s" % ", ".join(usual)
            )

    def _options(self) -> Any:
        options = self._runtime.SessionOptions()
        options.log_severity_level = 3
        if self._settings.spec.threads:
            options.intra_op_num_threads = self._settings.spec.threads
        return options

    def _opened(self, options: Any) -> Any:
        """A session. Raises Refusal when the file is no model, or the asked device was left out
        without an error.
        """
        given = [
            (name, {"device_id": str(self._index)}) if name in GPUS else name
            for name in self._providers
        ]
        try:
            session = self._runtime.InferenceSession(self._path, options, providers=given)
        except Exception as error:  # its exception classes have no common base
            raise Refusal(
                "%s: onnxruntime cannot load it: %s"
                % (self._path, _without(self._path, plain_reason(error))),
                "check that the file is whole, and that this onnxruntime knows its opset",
                BAD_INPUT,
            ) from error
        asked, got = self._providers[0], session.get_providers()
        if asked not in got and (
            self._settings.spec.device != "auto" or self._settings.spec.providers
        ):
            raise Refusal(
                "onnxruntime left out %s and would run on %s" % (asked, got[0]),
                "its libraries for this GPU are missing or do not fit; see the messages above",
                MISSING,
            )
        return session

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
        notes = dict(self._notes)
        cache_before = caches.snapshot(self._caches)
        sets = self._input_sets(point)
        with self._session_for(point) as session:
            action = self._action(session, sets)
            warm = timing.warm_up(
                action, point.warmup, self.marks.warm_up_span(point.id), compiles=self._compiles
            )
            cache_after = caches.snapshot(self._caches)
            trials = self._trials(action, point, still_wanted)
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
                self._session = self._opened(self._options())
            yield self._session
            return
        hook = importlib.import_module(ranges.hook("onnxruntime_hook"))
        options = self._options()
        profile = hook.SessionProfile(
            self._settings.artifact(LAYER, "%s.json" % point.id), point=point.id
        )
        profile.configure(options)
        session = self._opened(options)
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


def chosen_providers(
    available: Sequence[str], spec: Spec, local_rank: int
) -> Tuple[List[str], int]:
    """The execution providers to ask for, best first, and the GPU's index.

    Order: MIGraphX, ROCm, CUDA, CPU; the CPU stays last for operators that the others lack. Raises
    Refusal (MISSING) for a device or provider that this onnxruntime does not have.
    """
    kind, _, index = spec.device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (index and not index.isdigit()):
        raise Refusal("no device %r" % spec.device, "use auto, cpu, cuda or cuda:INDEX")
    where = int(index) if index else _turn(local_rank, os.environ)
    if spec.providers:
        absent = [name for name in spec.providers if name not in available]
        if absent:
            raise Refusal(
                "this onnxruntime has no %s" % ", ".join(absent),
                "it has: %s" % ", ".join(available),
                MISSING,
            )
        return list(spec.providers), where
    gpus = [name for name in GPUS if name in available]
    if kind == "cpu" or (kind == "auto" and not gpus):
        return [CPU], 0
    if not gpus:
        raise Refusal(
            "--device %s: this onnxruntime has no GPU provider (it has %s)"
            % (spec.device, ", ".join(available)),
            "install onnxruntime-migraphx, onnxruntime-rocm or onnxruntime-gpu, "
            "or use --device cpu",
            MISSING,
        )
    return [gpus[0], CPU], where


def _turn(local_rank: int, environ: Mapping[str, str]) -> int:
    """Ranks of a node take its GPUs in turn, among those that the environment leaves visible."""
    for name in ("HIP_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"):
        if environ.get(name):
            return local_rank % len(environ[name].split(","))
    return local_rank


def visible_devices(available: Sequence[str], index: int) -> List[Dict[str, Any]]:
    """The CPU, and one GPU per provider: onnxruntime itself cannot list or name them."""
    devices: List[Dict[str, Any]] = [{"index": 0, "kind": "cpu", "name": "cpu"}]
    devices += [
        {"index": index, "kind": "cuda" if name.startswith("CUDA") else "rocm", "name": name}
        for name in GPUS
        if name in available
    ]
    return devices


def _without(path: str, reason: str) -> str:
    """The reason, without naming the file once more."""
    return reason.replace("Load model from %s failed:" % path, "").strip()


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
