"""ONNX models for the model server: one session per instance, on the execution providers that are
asked for, else on the best one that is there.

Under the onnxruntime layer each level has sessions of its own, since a profile belongs to its
session; they are warmed up on the last requests' inputs and take over between two executions.
Where the provider compiles, the first execution of each shape is timed apart.
"""

from __future__ import annotations

import importlib
import json
import sys
import threading
from time import perf_counter_ns
from typing import Any, Dict, List, Mapping, Optional, Sequence, Set, Tuple

from profharness_workloads.batch import onnxruntime_worker as direct
from profharness_workloads.serving.plan import Served
from profharness_workloads.serving.runner import Arrays, Call, Runner, Signature, placed, probed
from profharness_workloads.shared import inputs, models, onnx_sessions, providers, ranges
from profharness_workloads.shared.protocol import (
    BAD_INPUT,
    MISSING,
    Refusal,
    Settings,
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
        self.notes = onnx_sessions.notes_of(self._instances[0].opened, spec)
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

    def _opened(self, number: int, profile: Any = None) -> Tuple[onnx_sessions.Opened, str]:
        """A session for one instance, and what to say when its device is not the wanted one."""
        model = self._model
        sessions: List[onnx_sessions.Opened] = []

        def choose(device: str) -> str:
            one = onnx_sessions.opened(
                self._runtime,
                self._path,
                model.spec._replace(device=device, allow_fallback=model.allow_fallback),
                self._settings.local_rank,
                (lambda _: None) if profile is None else profile.configure,
            )
            sessions.append(one)
            return one.device

        _, fallback = placed(model, number, choose)
        return sessions[-1], fallback or sessions[-1].fallback

    def recipe(self) -> Dict[str, str]:
        """The providers that each instance's session got, with the options that were asked, and how
        far the graph is optimised.
        """
        spec = self._model.spec
        asked = {one.name: dict(one.options) for one in spec.providers or ()}
        listed = []
        for instance in self._instances:
            gpu = {"device_id": str(instance.opened.gpu)}
            listed.append(
                [
                    [name, {**(gpu if name in providers.GPUS else {}), **asked.get(name, {})}]
                    for name in instance.opened.session.get_providers()
                ]
            )
        return {
            "providers": json.dumps(listed),
            "optimization": onnx_sessions.LEVELS[spec.optimization],
        }

    def instance(self, number: int) -> Call:
        """One session, behind a lock: open_window() replaces it between two executions."""
        own_instance, outputs, names = self._instances[number], self._outputs, self._names
        keep = self._profiled

        def call(arrays: Sequence[Any]) -> Arrays:
            feeds = dict(zip(names, arrays))
            with own_instance.lock:
                results = own_instance.run(outputs, feeds)
                if keep:
                    own_instance.last = {name: array.copy() for name, array in feeds.items()}
            return results

        return call

    def open_window(self, key: str) -> None:
        """Replace each instance's session by a profiled one, warmed up on the last inputs."""
        for instance in self._instances:
            with instance.lock:
                instance.opens()
        if not self._profiled:
            return
        hook = importlib.import_module(ranges.hook("onnxruntime_hook"))
        for number, instance in enumerate(self._instances):
            name = "%s-%s-%d.json" % (key, self._model.name, number)
            profile = hook.SessionProfile(self._settings.artifact(direct.LAYER, name), point=key)
            session = self._opened(number, profile)[0].session
            last = instance.last
            for _ in range(WARM_UP_RUNS if last is not None else 0):
                session.run(self._outputs, last)
            with instance.lock:
                instance.plain, instance.session, instance.profile = (
                    instance.session,
                    session,
                    profile,
                )
                instance.known = set() if last is None else {_shapes(last)}

    # the files were named when it was opened
    def close_window(self, key: str) -> None:  # noqa: ARG002  named before
        for instance in self._instances:
            if instance.profile is None:
                continue
            with instance.lock:
                profile, session = instance.profile, instance.session
                instance.session, instance.profile = instance.plain, None
                instance.known = instance.plain_shapes
            profile.finish(session)

    def level_notes(self) -> Dict[str, str]:
        """The notes of the sessions, the time of what compiled before the level, and what compiled
        inside of it.
        """
        notes, before = dict(self.notes), 0
        inside: List[int] = []
        for instance in self._instances:
            with instance.lock:
                before += sum(instance.before_ns)
                inside += instance.inside_ns
                instance.closes()
        if before:
            notes["compile_ns"] = str(before)
        if inside:
            notes["recompiled"] = (
                "executions of shapes that were new to their session: %d, of up to %.3g s"
                % (len(inside), max(inside) / 1e9)
            )
        return notes


class _Instance:
    """A session in use. `plain` is the one outside of windows; `last` holds the inputs of the last
    execution. Where its first run of each shape compiles, the times of these are kept: those since
    the last window, and those inside of it.
    """

    def __init__(self, opened: onnx_sessions.Opened, fallback: str):
        self.opened, self.fallback = opened, fallback
        self.session, self.device = opened.session, opened.device
        self.plain = self.session
        self.profile: Optional[Any] = None
        self.last: Optional[Any] = None
        self.lock = threading.Lock()
        self.known: Set[Shapes] = set()
        self.plain_shapes = self.known
        self.before_ns: List[int] = []
        self.inside_ns: List[int] = []
        self._open = False

    def run(self, outputs: Sequence[str], feeds: Mapping[str, Any]) -> Arrays:
        """One execution, with the lock held."""
        if not self.opened.compiles or _shapes(feeds) in self.known:
            return tuple(self.session.run(outputs, feeds))
        start = perf_counter_ns()
        results = tuple(self.session.run(outputs, feeds))
        (self.inside_ns if self._open else self.before_ns).append(perf_counter_ns() - start)
        self.known.add(_shapes(feeds))
        return results

    def opens(self) -> None:
        """A level begins."""
        self._open, self.inside_ns = True, []

    def closes(self) -> None:
        """Its notes were taken."""
        self._open, self.before_ns, self.inside_ns = False, [], []


Shapes = Tuple[Tuple[int, ...], ...]


def _shapes(feeds: Mapping[str, Any]) -> Shapes:
    return tuple(array.shape for array in feeds.values())


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
