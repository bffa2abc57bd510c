"""Configurations of a served model for Triton's own backends, which are told of the lengths of
ragged requests by `batch_input`: written beside a repository, for a Triton that has these backends.

A python backend sees each request's own tensors. onnxruntime and tensorrt get the ragged inputs of
a batch behind one another as one flat tensor, and of each what `batch_input` declares: where each
request's values end (x_ends), and each request's own shape (x_shape). A model must be exported to
take these. Source: triton-inference-server/server, docs/user_guide/ragged_batching.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from profharness.errors import InputError
from profharness.serving import repository
from profharness.serving.model_config import (
    TAKE_BATCH_INPUT,
    BatchInput,
    BatchKind,
    ModelConfig,
    config_text,
)
from profharness.serving.ready import Model, Ready, read

SUFFIX = "-for-other-backends"
_DECLARED: tuple[tuple[BatchKind, str], ...] = (
    ("BATCH_ACCUMULATED_ELEMENT_COUNT", "_ends"),
    ("BATCH_ITEM_SHAPE", "_shape"),
)


def batch_inputs(model: Model) -> tuple[BatchInput, ...]:
    """Two of each input with a free dimension: the accumulated number of values after each request,
    and the shape of each request's item.
    """
    return tuple(
        BatchInput(kind, tensor.name + suffix, tensor.name)
        for tensor in model.inputs
        if -1 in tensor.shape
        for kind, suffix in _DECLARED
    )


def config_of(model: Model, backend: str) -> str:
    """The file for one of TAKE_BATCH_INPUT; comments at its top say what the model's file must
    take. Raises UsageError for a model without a free dimension.
    """
    declared = batch_inputs(model)
    flat = ", ".join(dict.fromkeys(one.source for one in declared))
    text = config_text(
        ModelConfig(
            name=model.name,
            backend=backend,
            inputs=model.inputs,
            outputs=model.outputs,
            max_batch_size=model.max_batch_size,
            instances=model.instances or 1,
            queue_delay_us=model.queue_delay_us or 0,
            ragged=True,
            batch_input=declared,
        )
    )
    return (
        f"# For Triton's backend {backend}. The model's file must take {flat} flat, with the\n"
        f"# values of all requests of a batch behind one another, and beside them\n"
        f"# {', '.join(one.target for one in declared)}.\n{text}"
    )


def write_beside(ready: Ready) -> tuple[Path, ...]:
    """BACKEND/NAME/config.pbtxt for each model of a repository and each backend that takes
    batch_input, in a folder beside the repository, which Triton would read whole; the files.
    """
    if not ready.repository:
        return ()
    return tuple(_written(Path(ready.repository + SUFFIX), ready))


def write_for(path: Path) -> tuple[Path, ...]:
    """The same for the server of this ready file; nothing where it never was ready."""
    try:
        return write_beside(read(path))
    except InputError:
        return ()


def _written(folder: Path, ready: Ready) -> Iterator[Path]:
    for backend in TAKE_BATCH_INPUT:
        for model in ready.models:
            path = folder / backend / model.name / repository.FILE
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(config_of(model, backend), encoding="utf-8")
            yield path
