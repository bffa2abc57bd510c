"""Scan worker for torch: eager, TorchScript or compiled; on the CPU or a GPU (`cuda` is ROCm's name
in torch too).

Timed: the copy of the inputs to the device and the forward pass, every device that the process uses
synchronised before the first and the last reading. Inputs wait in ordinary (unpinned) host memory,
as tensors. Driven by PROFHARNESS_* variables and the spec file alone (see protocol).
"""

from __future__ import annotations

import os
import sys

if __name__ == "__main__":  # siblings are found as profharness_workloads says
    _here = os.path.dirname(os.path.realpath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.realpath(entry) != _here]
    sys.path.insert(0, os.path.dirname(os.path.dirname(_here)))

import contextlib
import gc
import importlib
from typing import Any, Callable, Dict, Iterator, List, NamedTuple, Sequence, Tuple

import numpy as np

from profharness_workloads.shared import (
    caches,
    devices,
    flops,
    inputs,
    models,
    ranges,
    timing,
    torch_notes,
    worker,
)
from profharness_workloads.shared.protocol import (
    BAD_INPUT,
    MISSING,
    Point,
    Refusal,
    Settings,
    Spec,
    plain_reason,
)

NOT_COMPILED = "failed-to-compile"


class Loaded(NamedTuple):
    """A model and what it takes; `form` is eager or torchscript."""

    module: Any
    inputs: Tuple[inputs.TensorSpec, ...]
    form: str


class TorchWorkload(worker.Workload):
    """One model on one device; each point measures it at one batch size."""

    def __init__(self, settings: Settings, torch: Any):
        spec = settings.spec
        self._caches = caches.places(os.environ, spec.compile)
        self._settings, self._torch = settings, torch
        if spec.threads:
            torch.set_num_threads(spec.threads)
        name, fallback = devices.placed(
            spec.device,
            lambda device: chosen_device(torch, device, settings.local_rank),
            allowed=spec.allow_fallback,
        )
        self._place = torch.device(name)
        self.device = str(self._place)
        self.versions = versions(torch)
        self.devices = visible_devices(torch)
        self._model = load_model(torch, spec, self._place)
        if spec.compile and self._model.form == "torchscript":
            raise Refusal(
                "--compile takes an eager model, and %s is TorchScript" % spec.model,
                "leave out --compile",
            )
        self._specs, usual = inputs.filled(self._model.inputs, spec.shapes, spec.inputs)
        inputs.checked(spec.inputs, self._specs)
        self._notes = {"form": self._model.form + (", compiled" if spec.compile else "")}
        self._notes.update(torch_notes.weight_notes(self._model.module))
        self.notes = {"fallback": fallback} if fallback else {}
        self._notes.update(self.notes)
        if self._place.type == "cpu":
            # which calibration of this CPU speaks for it; left to torch, these are fewer than the
            # cores that it may use
            self._notes["threads"] = str(torch.get_num_threads())
        if usual and not models.is_built_in(spec):
            self._notes["shapes"] = (
                "usual particle counts taken for the free dimensions of %s" % ", ".join(usual)
            )
        self.marks = ranges.open_marks(settings, "torch")
        self._flops = self._counted()

    def _counted(self) -> flops.Count:
        """Once, where no tool records; on a copy of its own for TorchScript, which specialises on
        the calls it sees.
        """
        torch, spec = self._torch, self._settings.spec
        if self._settings.recorded or spec.flops_per_item is not None:
            return flops.Count(spec.flops_per_item)
        module = self._model.module
        if self._model.form == "torchscript":
            module = load_model(torch, spec, self._place).module
        arrays = inputs.pool(self._specs, 1, spec.inputs, spec.seed)[0]
        with torch.no_grad():
            return flops.torch_count(
                lambda: module(*[torch.from_numpy(a).to(self._place) for a in arrays])
            )

    def measure(self, point: Point, still_wanted: Callable[[], None]) -> worker.Measurement:
        """Warm up and time calls of the model; with --compile each point compiles it anew."""
        torch, spec = self._torch, self._settings.spec
        notes = dict(self._notes)
        cache_before = caches.snapshot(self._caches)
        module = (
            fresh_compilation(torch, self._model.module) if spec.compile else self._model.module
        )
        sets = self._input_sets(point)
        with torch.no_grad():
            action = timing.Action(
                inputs.in_turn(sets), self._runner(module), synchroniser(torch, self._place)
            )
            warm, action = self._warmed_up(action, point, notes)
            cache_after = caches.snapshot(self._caches)
            trials = self._trials(action, point, still_wanted)
        if self._flops.note:
            notes["flops"] = self._flops.note
        notes["inputs"] = "%d sets in turn" % len(sets)
        per_item = (
            sum(tensor.numel() * tensor.element_size() for tensor in sets[0]) / point.batch_size
        )
        notes["input_bytes_per_item"] = "%.17g" % per_item
        notes.update(torch_notes.peak_memory(torch, self._place))
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
        """The point's call as `measure` times it, not warmed up; gradients are off meanwhile."""
        torch, spec = self._torch, self._settings.spec
        module = (
            fresh_compilation(torch, self._model.module) if spec.compile else self._model.module
        )
        sets = self._input_sets(point)
        with torch.no_grad():
            yield timing.Action(
                inputs.in_turn(sets), self._runner(module), synchroniser(torch, self._place)
            )

    def _input_sets(self, point: Point) -> List[Tuple[Any, ...]]:
        spec = self._settings.spec
        seed = spec.seed if point.seed is None else point.seed
        sets = inputs.pool(self._specs, point.batch_size, spec.inputs, seed)
        return [tuple(self._torch.from_numpy(array) for array in arrays) for arrays in sets]

    def _runner(self, module: Any) -> Callable[[Sequence[Any]], Any]:
        place = self._place
        if place.type == "cpu":
            return lambda tensors: module(*tensors)
        return lambda tensors: module(*[tensor.to(place) for tensor in tensors])

    def _warmed_up(
        self, action: timing.Action, point: Point, notes: Dict[str, str]
    ) -> Tuple[timing.WarmUp, timing.Action]:
        """The warm-up, and the action to go on with: the eager one when compiling failed, which the
        notes say.
        """
        span = self.marks.warm_up_span(point.id)
        if self._settings.spec.compile:
            clear_counters()
        try:
            warm = timing.warm_up(action, point.warmup, span, compiles=self._settings.spec.compile)
        except Exception as error:  # compilers raise many types; others are raised again
            if not (self._settings.spec.compile and is_compiler_error(error)):
                raise
            notes[NOT_COMPILED] = "%s: %s" % (
                type(error).__name__,
                str(error).strip().split("\n")[0][:300],
            )
            action = action._replace(run=self._runner(self._model.module))
            warm = timing.warm_up(action, point.warmup, span)
        else:
            fallback = eager_fallback() if self._settings.spec.compile else ""
            if fallback:
                notes[NOT_COMPILED] = fallback
        action = action._replace(
            synchronise=synchroniser(self._torch, self._place)
        )  # by now all devices hold memory
        if not warm.agreed:
            notes["warmup"] = (
                "stopped at the cap of %g s before the last trials agreed" % timing.WARM_UP_CAP_S
            )
        return warm, action

    def _trials(
        self, action: timing.Action, point: Point, still_wanted: Callable[[], None]
    ) -> timing.Trials:
        if not self.marks:
            return timing.trials(action, point.trials, point.min_seconds, still_wanted)
        with self.marks.point(point.id, self._settings):
            span = self.marks.trial_span(point.id)
            return timing.marked_trials(action, point.trials, point.min_seconds, still_wanted, span)

    def recover(self) -> None:
        if self._place.type != "cpu":
            self._torch.cuda.empty_cache()
            self._torch.cuda.synchronize(self._place)


def synchroniser(torch: Any, place: Any) -> Callable[[], None]:
    """Waits for the chosen device and every other one on which this process holds memory; on the
    CPU for nothing.
    """
    if place.type == "cpu":
        return _nothing
    used = [
        i
        for i in range(torch.cuda.device_count())
        if i == place.index or torch.cuda.memory_reserved(i)
    ]
    synchronize = torch.cuda.synchronize
    if len(used) == 1:
        return lambda: synchronize(used[0])

    def all_of_them() -> None:
        for index in used:
            synchronize(index)

    return all_of_them


def _nothing() -> None:
    """The CPU has nothing to wait for."""


def versions(torch: Any) -> Dict[str, str]:
    """Python, torch and NumPy, and CUDA or HIP where torch was built for it."""
    by_name = {
        "python": sys.version.split()[0],
        "torch": torch.__version__,
        "numpy": np.__version__,
    }
    for name in ("cuda", "hip"):
        if getattr(torch.version, name, None):
            by_name[name] = str(getattr(torch.version, name))
    return by_name


def visible_devices(torch: Any) -> List[Dict[str, Any]]:
    """The CPU and every GPU that torch sees, by torch's index; `kind` is cpu, cuda or rocm."""
    devices: List[Dict[str, Any]] = [{"index": 0, "kind": "cpu", "name": "cpu"}]
    kind = "rocm" if getattr(torch.version, "hip", None) else "cuda"
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    devices += [
        {"index": i, "kind": kind, "name": torch.cuda.get_device_name(i)} for i in range(count)
    ]
    return devices


def chosen_device(torch: Any, asked: str, local_rank: int) -> str:
    """`auto` is the GPU when there is one; without an index, ranks of a node take the GPUs in turn.

    Raises Refusal (MISSING) when torch does not see the device.
    """
    kind, _, index = asked.partition(":")
    if asked == "cpu":
        return "cpu"
    if kind not in ("auto", "cuda") or (index and not index.isdigit()):
        raise Refusal(
            "no device %r" % asked,
            "use auto, cpu, cuda or cuda:INDEX (cuda is also ROCm's name in torch)",
        )
    count = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if kind == "auto" and not count:
        return "cpu"
    if not count:
        raise Refusal(
            "--device %s: torch %s sees no GPU" % (asked, torch.__version__),
            "install a CUDA or ROCm build of torch, look at CUDA_VISIBLE_DEVICES and "
            "HIP_VISIBLE_DEVICES, or use --device cpu",
            MISSING,
        )
    if index and int(index) >= count:
        raise Refusal(
            "--device %s: torch sees %d GPU(s), counted from 0" % (asked, count), code=MISSING
        )
    return "cuda:%d" % (int(index) if index else local_rank % count)


def load_model(torch: Any, spec: Spec, place: Any) -> Loaded:
    """The model on its device, in evaluation mode and under the autocast that was asked for. Raises
    Refusal for what is not a model.
    """
    loaded = _loaded(torch, spec, place)
    if spec.autocast == "off":
        return loaded
    autocast = importlib.import_module("profharness_workloads.shared.autocast")
    module = autocast.under_autocast(loaded.module, spec.autocast, place.type)
    return loaded._replace(module=module)


def _loaded(torch: Any, spec: Spec, place: Any) -> Loaded:
    if models.is_built_in(spec):
        from profharness_workloads.shared import particlenet

        if not spec.torchscript:
            return Loaded(particlenet.build(spec.seed).to(place), particlenet.INPUTS, "eager")
        path = models.built_in_file(
            spec,
            "torchscript",
            lambda p: particlenet.export_torchscript(particlenet.build(spec.seed), p),
        )
        return Loaded(_script(torch, path, place), particlenet.INPUTS, "torchscript")
    path = models.model_file(spec)
    module = _script(torch, path, place)
    declared = models.triton_inputs(path)
    if declared is None:
        arguments = [argument.name for argument in module.forward.schema.arguments[1:]]
        declared = models.named_shapes(arguments, spec.shapes, path)
    return Loaded(module, declared, "torchscript")


def _script(torch: Any, path: str, place: Any) -> Any:
    """Files saved with tensors of another device are brought to this one (map_location)."""
    try:
        return torch.jit.load(path, map_location=place).eval()
    except RuntimeError as error:
        raise Refusal(
            "%s is not a readable TorchScript file: %s" % (path, plain_reason(error)),
            "save the model with torch.jit.script(model).save(path) or torch.jit.trace",
            BAD_INPUT,
        ) from error


def fresh_compilation(torch: Any, module: Any) -> Any:
    """Compiled anew for this point's shape, so that no earlier point's graph is reused or made
    dynamic.
    """
    importlib.import_module("torch._dynamo").reset()
    return torch.compile(module, dynamic=False)


def clear_counters() -> None:
    importlib.import_module("torch._dynamo.utils").counters.clear()


def eager_fallback() -> str:
    """Why the compiled module ran eagerly, or "": dynamo counts the graphs that it made."""
    if importlib.import_module("torch._dynamo.utils").counters["stats"].get("unique_graphs"):
        return ""
    return "torch.compile made no graph of this model: it ran as without --compile"


def is_compiler_error(error: BaseException) -> bool:
    """Raised by dynamo or a compiler back end, not by the model itself (out of memory, a wrong
    shape).
    """
    return any(
        kind.__module__.startswith(("torch._dynamo", "torch._inductor"))
        for kind in type(error).__mro__
    )


def load(settings: Settings) -> TorchWorkload:
    """Raises Refusal (MISSING) when torch cannot be imported in this Python."""
    if not models.is_built_in(settings.spec):
        models.model_file(settings.spec)  # refuses a wrong name before seconds are spent on torch
    try:
        import torch
    except Exception as error:  # a broken installation raises OSError or worse
        raise Refusal(
            "torch cannot be imported by %s: %s" % (sys.executable, error),
            "install torch there",
            MISSING,
        ) from error
    gc.freeze()  # torch's modules stay: else each collection before trials looks through them all
    return TorchWorkload(settings, torch)


if __name__ == "__main__":
    sys.exit(worker.main(load, os.environ))
