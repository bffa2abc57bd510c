"""What a framework offers to the model server: a loaded model, with one callable per instance.

A backend is a module `<backend>_runner` with `load(model: Served, settings: Settings) -> Runner`;
it is imported when a model asks for it, so that a server loads only the frameworks that it needs.
"""

from __future__ import annotations

import abc
import importlib
import importlib.util
from typing import Any, Callable, Dict, Mapping, NamedTuple, Sequence, Tuple

from profharness_workloads.serving.plan import Served, is_sleep
from profharness_workloads.shared import devices, inputs
from profharness_workloads.shared.protocol import BAD_INPUT, MISSING, Refusal, Settings

Arrays = Tuple[Any, ...]
Call = Callable[[Sequence[Any]], Arrays]


class Signature(NamedTuple):
    """Inputs and outputs in the order of the model's own arguments and results; None is a free
    dimension.
    """

    inputs: Tuple[inputs.TensorSpec, ...]
    outputs: Tuple[inputs.TensorSpec, ...]


class Offered(abc.ABC):
    """A model that is served, whoever computes it. `fallback` says which wanted device was missing,
    and is "" where none was.
    """

    signature: Signature
    backend: str
    device: str
    fallback: str = ""
    versions: Mapping[str, str] = {}

    def open_window(self, key: str) -> None:  # noqa: B027  most runners have no recorder
        """Begin to record in the framework's own profiler, for the level `key`."""

    def close_window(self, key: str) -> None:  # noqa: B027  most runners have no recorder
        """End what open_window began and write it."""

    def level_notes(self) -> Dict[str, str]:
        """What the point of the level that ends is to know of the model, asked before
        close_window. `compile_ns` is the time of what compiled before it.
        """
        return {}


class Runner(Offered):
    """A model that was loaded into this process, and computes here."""

    @abc.abstractmethod
    def instance(self, number: int) -> Call:
        """How instance `number` computes: NumPy arrays [batch, ...] in and out, all work done when
        it returns.

        It is called in a thread of its own, at the same time as the other instances.
        """

    def recipe(self) -> Dict[str, str]:
        """What a model of a repository (repository_model) must be told to run as this one does, its
        file left out.
        """
        return {}


def load(model: Served, settings: Settings) -> Runner:
    """Raises Refusal: no such backend or model, a missing device, a file that is no model."""
    backend = "sleep" if is_sleep(model.spec.model) else model.spec.backend
    name = "profharness_workloads.serving.%s_runner" % backend
    if importlib.util.find_spec(name) is None:
        raise Refusal(
            "--backend %s cannot be served here" % backend, "use torch or onnxruntime", MISSING
        )
    runner: Runner = importlib.import_module(name).load(model, settings)
    return runner


def probed(
    call: Call, specs: Sequence[inputs.TensorSpec], model: Served, names: Sequence[str]
) -> Tuple[inputs.TensorSpec, ...]:
    """Names, types and dimensions of the outputs, learned from three calls with random inputs.

    A dimension that follows a free dimension of the inputs is free. Where `names` are too few,
    OUTPUT_1 and so on are given. Raises Refusal when an output does not follow the batch.
    """
    spec = model.spec
    filled = inputs.filled(specs, spec.shapes, spec.inputs)[0]
    grown = [
        full._replace(
            dims=tuple((n or 0) + 1 if d is None else n for d, n in zip(free.dims, full.dims))
        )
        for free, full in zip(specs, filled)
    ]
    kind = "normal" if inputs.is_file(spec.inputs) else spec.inputs
    two, three, other = [
        call(inputs.pool(asked, batch, kind, spec.seed)[0])
        for asked, batch in ((filled, 2), (filled, 3), (grown, 2))
    ]
    outputs = []
    for number, (a, b, c) in enumerate(zip(two, three, other)):
        name = names[number] if len(names) == len(two) else "OUTPUT_%d" % (number + 1)
        if not a.shape or a.shape[0] != 2 or b.shape[0] != 3:
            raise Refusal(
                "%s: output %s does not follow the batch (shape %s for 2 items)"
                % (spec.model, name, list(a.shape)),
                "its first dimension must be the batch",
                BAD_INPUT,
            )
        dims = tuple(n if n == m else None for n, m in zip(a.shape[1:], c.shape[1:]))
        outputs.append(inputs.TensorSpec(name, str(a.dtype), dims))
    return tuple(outputs)


def placed(model: Served, number: int, choose: Callable[[str], str]) -> Tuple[str, str]:
    """The device of instance `number`, and what to say when the wanted one is missing and the CPU
    may stand in.

    `choose(device)` raises Refusal (MISSING) for a device that is not there.
    """
    wanted = model.devices[number % len(model.devices)]
    return devices.placed(wanted, choose, allowed=model.allow_fallback, verb=devices.SERVES)
