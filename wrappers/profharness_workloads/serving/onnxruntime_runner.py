"""ONNX models for the model server: one session per instance, on the best execution provider that
is there.

Under the onnxruntime layer each level has sessions of its own, since a profile belongs to its
session; they are warmed up on the last requests' inputs and take over between two executions.
"""

from __future__ import annotations

import importlib
import sys
import threading
from typing import Any, List, Optional, Sequence, Tuple

from profharness_workloads.batch import onnxruntime_worker as direct
from profharness_workloads.serving.plan import Served
from profharness_workloads.serving.runner import Arrays, Call, Runner, Signature, placed, probed
from profharness_workloads.shared import inputs, models, ranges
from profharness_workloads.shared.protocol import (
    BAD_INPUT,
    MISSING,
    Refusal,
    Settings,
    plain_reason,
)

WARM_UP_RUNS = 2


class OnnxRunner(Runner):
    """One file, with a session for each instance."""

    backend = "onnxruntime"

    def __init__(self, model: Served, settings: Settings, runtime: Any):
        self._model, self._settings, self._runtime = model, settings, runtime
        spec = model.spec
        self._path = (
            models.built_in_file(spec, "onnx")
            if models.is_built_in(spec)
            else models.model_file(spec)
        )
        self._profiled = direct.LAYER in settings.layers
        self._instances = [_Instance(*self._opened(number)) for number in range(model.instances)]
        self.device = ",".join(sorted({instance.device for instance in self._instances}))
        self.fallback = next(
            (instance.fallback for instance in self._instances if instance.fallback), ""
        )
        self.versions = {
            "onnxruntime": runtime.__version__,
            "providers": ",".join(self._instances[0].session.get_providers()),
        }
        first = self._instances[0]
        self._names = [entry.name for entry in first.session.get_inputs()]
        self._outputs = [output.name for output in first.session.get_outputs()]
        specs = self._inputs(first.session)
        self.signature = Signature(specs, probed(self.instance(0), specs, model, self._outputs))
        if self._profiled:
            hook = importlib.import_module(ranges.hook("onnxruntime_hook"))
            hook.marker_session(settings.artifact(direct.LAYER, "marker-%s.json" % model.name))

    def _inputs(self, session: Any) -> Tuple[inputs.TensorSpec, ...]:
        for entry in session.get_inputs():
            if entry.shape and isinstance(entry.shape[0], int):
                raise Refusal(
                    "%s: the batch axis of input %s is fixed at %d"
                    % (self._path, entry.name, entry.shape[0]),
                    "export the model with a dynamic batch axis",
                    BAD_INPUT,
                )
        return direct.signature(session, self._path)

    def _opened(self, number: int, profile: Any = None) -> Tuple[Any, str, str]:
        """A session for one instance, its device, and what to say when that is not the wanted
        one.
        """
        model, runtime = self._model, self._runtime
        available = runtime.get_available_providers()
        sessions: List[Any] = []

        def choose(device: str) -> str:
            """The device that a session on `device` really runs on: onnxruntime leaves out a
            provider without an error.
            """
            asked = model.spec._replace(device=device)
            providers, index = direct.chosen_providers(available, asked, self._settings.local_rank)
            session = self._session(providers, index, profile)
            got = session.get_providers()[0]
            if providers[0] not in session.get_providers() and (
                device != "auto" or model.spec.providers
            ):
                raise Refusal(
                    "onnxruntime left out %s and would run on %s" % (providers[0], got),
                    code=MISSING,
                )
            sessions.append(session)
            self._left_out = "" if got == providers[0] else "onnxruntime left out %s" % providers[0]
            return "cpu" if got == direct.CPU else "cuda:%d" % index

        device, fallback = placed(model, number, choose)
        return sessions[-1], device, fallback or self._left_out

    def _session(self, providers: Sequence[str], index: int, profile: Any) -> Any:
        options = self._runtime.SessionOptions()
        options.log_severity_level = 3
        if self._model.spec.threads:
            options.intra_op_num_threads = self._model.spec.threads
        if profile is not None:
            profile.configure(options)
        given = [
            (name, {"device_id": str(index)}) if name in direct.GPUS else name for name in providers
        ]
        try:
            return self._runtime.InferenceSession(self._path, options, providers=given)
        except Exception as error:  # its exception classes have no common base
            raise Refusal(
                "%s: onnxruntime cannot load it: %s" % (self._path, plain_reason(error)),
                "check that the file is whole, and that this onnxruntime knows its opset",
                BAD_INPUT,
            ) from error

    def instance(self, number: int) -> Call:
        """One session, behind a lock: open_window() replaces it between two executions."""
        own_instance, outputs, names = self._instances[number], self._outputs, self._names
        keep = self._profiled

        def call(arrays: Sequence[Any]) -> Arrays:
            feeds = dict(zip(names, arrays))
            with own_instance.lock:
                results = tuple(own_instance.session.run(outputs, feeds))
                if keep:
                    own_instance.last = {name: array.copy() for name, array in feeds.items()}
            return results

        return call

    def open_window(self, key: str) -> None:
        """Replace each instance's session by a profiled one, warmed up on the last inputs."""
        if not self._profiled:
            return
        hook = importlib.import_module(ranges.hook("onnxruntime_hook"))
        for number, instance in enumerate(self._instances):
            name = "%s-%s-%d.json" % (key, self._model.name, number)
            profile = hook.SessionProfile(self._settings.artifact(direct.LAYER, name), point=key)
            session = self._opened(number, profile)[0]
            last = instance.last
            for _ in range(WARM_UP_RUNS if last is not None else 0):
                session.run(self._outputs, last)
            with instance.lock:
                instance.plain, instance.session, instance.profile = (
                    instance.session,
                    session,
                    profile,
                )

    # the files were named when it was opened
    def close_window(self, key: str) -> None:  # noqa: ARG002  named before
        for instance in self._instances:
            if instance.profile is None:
                continue
            with instance.lock:
                profile, session = instance.profile, instance.session
                instance.session, instance.profile = instance.plain, None
            profile.finish(session)


class _Instance:
    """A session in use. `plain` is the one outside of windows; `last` holds the inputs of the last
    execution.
    """

    def __init__(self, session: Any, device: str, fallback: str):
        self.session, self.device, self.fallback = session, device, fallback
        self.plain = session
        self.profile: Optional[Any] = None
        self.last: Optional[Any] = None
        self.lock = threading.Lock()


def load(model: Served, settings: Settings) -> OnnxRunner:
    """Raises Refusal: onnxruntime or the device is missing, or the file is no model."""
    try:
        import onnxruntime
    except Exception as error:  # a broken installation raises OSError or worse
        raise Refusal(
            "onnxruntime cannot be imported by %s: %s" % (sys.executable, error),
            "install onnxruntime there",
            MISSING,
        ) from error
    return OnnxRunner(model, settings, onnxruntime)
