"""ONNX files without a runtime: what a model takes in, and copies that an engine may rewrite."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from typing import Any, Iterator, List, Tuple

from profharness_workloads.shared import inputs
from profharness_workloads.shared.protocol import BAD_INPUT, MISSING, Refusal, plain_reason

# TensorProto.DataType of onnx.proto
TYPES = {
    1: "float32",
    2: "uint8",
    3: "int8",
    5: "int16",
    6: "int32",
    7: "int64",
    9: "bool",
    10: "float16",
    11: "float64",
}


def signature(path: str) -> Tuple[inputs.TensorSpec, ...]:
    """The inputs, with the first axis taken as the batch. Raises Refusal for a file that is no
    model, and for a type or rank that cannot be fed.
    """
    graph = _graph(path)
    stored = {tensor.name for tensor in graph.initializer}
    return tuple(_spec(entry, path) for entry in graph.input if entry.name not in stored)


def _spec(entry: Any, path: str) -> inputs.TensorSpec:
    kind = entry.type.tensor_type
    if kind.elem_type not in TYPES:
        raise Refusal(
            "%s: input %s has type %d of ONNX, which cannot be generated"
            % (path, entry.name, kind.elem_type)
        )
    dims = tuple(dim.dim_value if dim.dim_value > 0 else None for dim in kind.shape.dim)
    if not dims:
        raise Refusal("%s: input %s has no batch axis" % (path, entry.name))
    return inputs.TensorSpec(entry.name, TYPES[kind.elem_type], dims[1:])


def _graph(path: str) -> Any:
    try:
        import onnx
    except Exception as error:  # a broken installation raises OSError or worse
        raise Refusal(
            "onnx cannot be imported: %s" % plain_reason(error), "install onnx there", MISSING
        ) from error
    try:
        return onnx.load(path, load_external_data=False).graph
    except Exception as error:  # protobuf's DecodeError has no public base
        raise Refusal(
            "%s: not a readable ONNX file: %s" % (path, plain_reason(error)),
            "check that the file is whole",
            BAD_INPUT,
        ) from error


@contextlib.contextmanager
def copied(path: str, folder: str) -> Iterator[str]:
    """A copy of the model with the files of its weights, in a new folder below `folder` that is
    removed at the end.
    """
    scratch = tempfile.mkdtemp(prefix=".model-", dir=folder)
    try:
        copy = os.path.join(scratch, os.path.basename(path))
        shutil.copyfile(path, copy)
        for name in _weights(path):
            target = os.path.join(scratch, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(os.path.join(os.path.dirname(os.path.abspath(path)), name), target)
        yield copy
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def _weights(path: str) -> List[str]:
    """Files beside the model that hold its weights, as names relative to it; those that lead out of
    its folder are left to the runtime to refuse.
    """
    names = {
        entry.value
        for tensor in _graph(path).initializer
        for entry in tensor.external_data
        if entry.key == "location"
    }
    inside = (os.path.normpath(name) for name in names)
    return sorted(
        name for name in inside if not os.path.isabs(name) and not name.startswith(os.pardir)
    )
