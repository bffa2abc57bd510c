"""A model in a Triton repository that profharness wrote: for Triton's python backend, in its own
Python, without profharness.

With `allow_ragged_batch` in config.pbtxt Triton gives `execute` requests whose inputs differ in
their free dimensions. `join` says how they become a batch of the model: `pad` fills them with zeros
to the largest (for models whose masks say which values count), `group` runs those of one shape
together, `apart` hands them over as they are. Parameters in config.pbtxt: `runtime`, `join`, and
what the runtime below takes.

Where the variable RAGGED_EXECUTIONS names a folder, each execution is appended to a file there:
little-endian int64, those of COLUMNS and then one per request, its parameter `profharness_seq` or
-1.
"""

from __future__ import annotations

import importlib
import json
import os
import re
import time
from time import perf_counter_ns
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

import numpy as np

VARIABLE = "RAGGED_EXECUTIONS"
SEQUENCE = "profharness_seq"
COLUMNS = (
    "requests",
    "start_ns",
    "end_ns",
    "items",
    "instance",
    "shapes",  # that differ, among its requests
    "shortest",  # of the ragged inputs' last dimensions; a request's own is its longest input's
    "longest",
    "calls",  # of the model
    "given",  # values in the requests
    "run",  # values that the model got, padding and all
)

Arrays = List[Any]
Call = Callable[[Sequence[Any]], Sequence[Any]]


class Joined(NamedTuple):
    """Outputs of each request, how often the model was called, and on how many values."""

    answers: List[Arrays]
    calls: int
    values: int


def join_padded(requests: Sequence[Arrays], call: Call) -> Joined:
    """All requests as one batch, each input filled with zeros behind its own values."""
    if len({_shapes(arrays) for arrays in requests}) == 1:
        return join_grouped(requests, call)
    items = [len(arrays[0]) for arrays in requests]
    batch = []
    for parts in zip(*requests):
        dims = np.max([part.shape[1:] for part in parts], axis=0)
        whole = np.zeros((sum(items), *dims), parts[0].dtype)
        at = 0
        for part in parts:
            own = (slice(at, at + len(part)), *map(slice, part.shape[1:]))
            whole[own] = part
            at += len(part)
        batch.append(whole)
    return Joined(_split(call(batch), items), 1, _values([batch]))


def join_grouped(requests: Sequence[Arrays], call: Call) -> Joined:
    """The requests of each shape as one batch."""
    groups: Dict[Any, List[int]] = {}
    for at, arrays in enumerate(requests):
        groups.setdefault(_shapes(arrays), []).append(at)
    answers: List[Arrays] = [[] for _ in requests]
    for members in groups.values():
        parts = [requests[at] for at in members]
        batch = (
            [_writable(array) for array in parts[0]]
            if len(parts) == 1
            else [np.concatenate(arrays) for arrays in zip(*parts)]
        )
        outputs = _split(call(batch), [len(arrays[0]) for arrays in parts])
        for at, answer in zip(members, outputs):
            answers[at] = answer
    return Joined(answers, len(groups), _values(requests))


def join_apart(requests: Sequence[Arrays], call: Call) -> Joined:
    """The runtime gets the requests themselves, in one call."""
    return Joined([list(answer) for answer in call(requests)], 1, _values(requests))


JOINS: Mapping[str, Callable[[Sequence[Arrays], Call], Joined]] = {
    "pad": join_padded,
    "group": join_grouped,
    "apart": join_apart,
}


def _shapes(arrays: Sequence[Any]) -> Tuple[Tuple[int, ...], ...]:
    """Without the batch."""
    return tuple(array.shape[1:] for array in arrays)


def _values(requests: Sequence[Arrays]) -> int:
    return sum(int(array.size) for arrays in requests for array in arrays)


def _split(outputs: Sequence[Any], items: Sequence[int]) -> List[Arrays]:
    cuts = np.cumsum(items)[:-1]
    return [list(parts) for parts in zip(*[np.split(output, cuts) for output in outputs])]


def _writable(array: Any) -> Any:
    """The array, or a copy of one in read-only memory, about which frameworks complain."""
    return array if array.flags.writeable else array.copy()


def torch_model(folder: str, told: Mapping[str, str], instance: int) -> Call:
    """`file`, a TorchScript file beside this one, or `built_in`, a module beside it that builds the
    model from `seed`; on one of `devices`, with `threads`.
    """
    import torch

    if told.get("threads"):
        torch.set_num_threads(int(told["threads"]))
    place = torch.device(_own(told, instance))
    if told.get("built_in"):
        # the backend puts this folder on the path
        from profharness_workloads.shared import particlenet

        module = particlenet.build(int(told["seed"])).to(place)
    else:
        module = torch.jit.load(os.path.join(folder, told["file"]), map_location=place).eval()

    def call(arrays: Sequence[Any]) -> Sequence[Any]:
        with torch.no_grad():
            result = module(*[torch.from_numpy(array).to(place) for array in arrays])
        listed = list(result.values()) if isinstance(result, dict) else result
        listed = listed if isinstance(listed, (tuple, list)) else [listed]
        return [output.detach().cpu().numpy() for output in listed]

    return call


def onnx_model(folder: str, told: Mapping[str, str], instance: int) -> Call:
    """`file` beside this one, on `providers` (JSON: per instance, names with their options, best
    first), with `threads` and the level `optimization`.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if told.get("threads"):
        options.intra_op_num_threads = int(told["threads"])
    level = getattr(onnxruntime.GraphOptimizationLevel, told.get("optimization", "ORT_ENABLE_ALL"))
    options.graph_optimization_level = level
    listed = json.loads(told.get("providers", "[]")) or [[["CPUExecutionProvider", {}]]]
    own = [(name, of_it) for name, of_it in listed[instance % len(listed)]]
    session = onnxruntime.InferenceSession(
        os.path.join(folder, told["file"]), options, providers=own, enable_fallback=0
    )
    names = [entry.name for entry in session.get_inputs()]
    return lambda arrays: session.run(None, dict(zip(names, arrays)))


def sleep_model(
    folder: str,  # noqa: ARG001  every runtime is called alike
    told: Mapping[str, str],
    instance: int,  # noqa: ARG001  every runtime is called alike
) -> Call:
    """Gives its inputs back after `sleep_ns`, however many requests there are."""
    length = int(told["sleep_ns"])

    def call(requests: Sequence[Any]) -> Sequence[Any]:
        end = perf_counter_ns() + length
        while perf_counter_ns() < end:
            time.sleep(max(0, end - perf_counter_ns()) / 1e9)
        return requests

    return call


RUNTIMES: Mapping[str, Callable[[str, Mapping[str, str], int], Call]] = {
    "torch": torch_model,
    "onnxruntime": onnx_model,
    "sleep": sleep_model,
}


def _own(told: Mapping[str, str], instance: int) -> str:
    """The device of an instance; they take the devices in turn."""
    devices = told.get("devices", "cpu").split(",")
    return devices[instance % len(devices)]


class Executions:
    """Appends each execution to a file; without a folder it does nothing."""

    def __init__(self, folder: str, model: str, instance: int):
        self._file: Optional[int] = None
        if folder:
            path = os.path.join(folder, "%s-%d-%d.i64" % (model, instance, os.getpid()))
            self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def write(self, row: Sequence[int], sequences: Sequence[int]) -> None:
        """One system call, so that a reader sees whole executions."""
        if self._file is not None:
            os.write(self._file, np.array([*row, *sequences], "<i8").tobytes())


class TritonPythonModel:
    """What Triton's python backend makes of this file, once per instance."""

    def initialize(self, args: Mapping[str, str]) -> None:
        """Load the model; whatever it raises, Triton reports as the reason."""
        # it exists inside of the backend only
        self._triton = importlib.import_module("triton_python_backend_utils")
        config = json.loads(args["model_config"])
        told = {
            key: str(value["string_value"]) for key, value in config.get("parameters", {}).items()
        }
        self._inputs = [tensor["name"] for tensor in config["input"]]
        self._outputs = [tensor["name"] for tensor in config["output"]]
        self._ragged = [
            at for at, tensor in enumerate(config["input"]) if tensor.get("allow_ragged_batch")
        ]
        found = re.search(r"_(\d+)$", args["model_instance_name"])
        self._instance = int(found.group(1)) if found else 0
        folder = os.path.join(args["model_repository"], args["model_version"])
        self._join = JOINS[told.get("join", "group")]
        self._call = RUNTIMES[told["runtime"]](folder, told, self._instance)
        self._executions = Executions(
            os.environ.get(VARIABLE, ""), args["model_name"], self._instance
        )

    def execute(self, requests: Sequence[Any]) -> List[Any]:
        """One batch: answers in the order of the requests. It is recorded before it is answered, so
        that who has all answers finds all executions.
        """
        triton = self._triton
        given = [
            [triton.get_input_tensor_by_name(request, name).as_numpy() for name in self._inputs]
            for request in requests
        ]
        start = perf_counter_ns()
        try:
            joined = self._join(given, self._call)
        except Exception as error:  # whatever the model raises, the batch's requests are told
            said = triton.TritonError("%s: %s" % (type(error).__name__, error))
            return [triton.InferenceResponse(output_tensors=[], error=said) for _ in requests]
        self._executions.write(
            self._row(given, joined, start, perf_counter_ns()),
            [_sequence(request.parameters()) for request in requests],
        )
        return [
            triton.InferenceResponse(
                output_tensors=[
                    triton.Tensor(name, np.ascontiguousarray(array))
                    for name, array in zip(self._outputs, answer)
                ]
            )
            for answer in joined.answers
        ]

    def _row(self, given: Sequence[Arrays], joined: Joined, start: int, end: int) -> List[int]:
        lengths = [
            max((arrays[at].shape[-1] for at in self._ragged), default=0) for arrays in given
        ]
        return [
            len(given),
            start,
            end,
            sum(len(arrays[0]) for arrays in given),
            self._instance,
            len({_shapes(arrays) for arrays in given}),
            min(lengths),
            max(lengths),
            joined.calls,
            _values(given),
            joined.values,
        ]


def _sequence(parameters: Any) -> int:
    """The number that the client gave to its request; the backend tells parameters as JSON."""
    try:
        value = json.loads(parameters or "{}").get(SEQUENCE, -1)
    except (ValueError, AttributeError):
        return -1
    return value if isinstance(value, int) else -1
