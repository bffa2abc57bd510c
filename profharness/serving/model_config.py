"""`config.pbtxt` of a Triton model repository, written: the counterpart of `repository`, which
reads it. Pure.

Source: triton-inference-server/common, protobuf/model_config.proto (message ModelConfig);
server/docs/user_guide/ragged_batching.md for `allow_ragged_batch` and `batch_input`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Literal, get_args

import msgspec

from profharness.errors import UsageError
from profharness.serving.ready import Tensor

Kind = Literal["auto", "cpu", "gpu", "model"]
"""Where instances run; `auto` is Triton's choice, which takes every GPU that it sees."""

BatchKind = Literal[
    "BATCH_ELEMENT_COUNT",
    "BATCH_ACCUMULATED_ELEMENT_COUNT",
    "BATCH_ACCUMULATED_ELEMENT_COUNT_WITH_ZERO",
    "BATCH_MAX_ELEMENT_COUNT_AS_SHAPE",
    "BATCH_ITEM_SHAPE",
    "BATCH_ITEM_SHAPE_FLATTEN",
]
TAKE_BATCH_INPUT = ("onnxruntime", "tensorrt")
"""Backends that are given what `batch_input` declares; a python backend never is, it sees each
request's own tensors.
"""
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_WHOLE = tuple(f"{sign}INT{bits}" for sign in ("", "U") for bits in (8, 16, 32, 64))
_TYPES = frozenset(("BOOL", "BYTES", "FP16", "FP32", "FP64", "BF16", *_WHOLE))


class BatchInput(msgspec.Struct, frozen=True):
    """A tensor that Triton makes for each batch from the shapes of `source` in its requests, and
    gives to the model as `target`. `dtype` as KServe names it.
    """

    kind: BatchKind
    target: str
    source: str
    dtype: str = "INT32"


class ModelConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What a configuration sets. Shapes of `inputs` and `outputs` are without the batch where
    `max_batch_size` is not 0; free dimensions are -1.

    `queue_delay_us` None leaves dynamic batching out. `ragged` lets requests that differ in the
    free dimensions of an input meet in one batch. `instances` counts for each of `gpus`, which only
    `kind` gpu has; without them Triton takes all. `parameters` are the backend's own; `file` is the
    model's file in its version's folder, "" for the backend's usual one.
    """

    name: str
    backend: str
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()
    max_batch_size: int = 0
    instances: int = 1
    kind: Kind = "auto"
    gpus: tuple[int, ...] = ()
    queue_delay_us: int | None = 0
    preferred: tuple[int, ...] = ()
    ragged: bool = False
    batch_input: tuple[BatchInput, ...] = ()
    parameters: Mapping[str, str] = {}
    file: str = ""

    @property
    def ragged_inputs(self) -> tuple[str, ...]:
        """The inputs whose shapes may differ between the requests of a batch."""
        free = (tensor.name for tensor in self.inputs if -1 in tensor.shape)
        return tuple(free) if self.ragged else ()


def config_text(config: ModelConfig) -> str:
    """The file's content, in protobuf's text format. Raises UsageError for a configuration that
    Triton would refuse, or would pass over in silence.
    """
    _check(config)
    return "".join(f"{line}\n" for line in _lines(config))


def _lines(config: ModelConfig) -> Iterator[str]:
    yield f"name: {_quoted(config.name)}"
    yield f"backend: {_quoted(config.backend)}"
    yield f"max_batch_size: {config.max_batch_size}"
    if config.file:
        yield f"default_model_filename: {_quoted(config.file)}"
    for tensor in config.inputs:
        yield from _tensor("input", tensor, ragged=tensor.name in config.ragged_inputs)
    for tensor in config.outputs:
        yield from _tensor("output", tensor, ragged=False)
    for one in config.batch_input:
        yield from _block(
            "batch_input",
            f"kind: {one.kind}",
            f"target_name: {_quoted(one.target)}",
            f"data_type: {_type(one.dtype)}",
            f"source_input: {_quoted(one.source)}",
        )
    gpus = [f"gpus: [{_listed(config.gpus)}]"] if config.gpus else []
    yield from _block(
        "instance_group", f"count: {config.instances}", f"kind: KIND_{config.kind.upper()}", *gpus
    )
    if config.max_batch_size and config.queue_delay_us is not None:
        preferred = (
            [f"preferred_batch_size: [{_listed(config.preferred)}]"] if config.preferred else []
        )
        delay = f"max_queue_delay_microseconds: {config.queue_delay_us}"
        yield from _block("dynamic_batching", *preferred, delay)
    for key, value in config.parameters.items():
        yield from _block(
            "parameters", f"key: {_quoted(key)}", f"value: {{ string_value: {_quoted(value)} }}"
        )


def _tensor(field: str, tensor: Tensor, *, ragged: bool) -> Iterator[str]:
    """One value per item is written `dims: [1]`: Triton takes no empty list."""
    yield from _block(
        field,
        f"name: {_quoted(tensor.name)}",
        f"data_type: {_type(tensor.dtype)}",
        f"dims: [{_listed(tensor.shape or (1,))}]",
        *(["allow_ragged_batch: true"] if ragged else []),
    )


def _block(field: str, *lines: str) -> Iterator[str]:
    yield f"{field} {{"
    for line in lines:
        yield f"  {line}"
    yield "}"


def _listed(numbers: tuple[int, ...]) -> str:
    return ", ".join(map(str, numbers))


def _quoted(text: str) -> str:
    """A string of text format: JSON's quoting, with other characters as they are (UTF-8)."""
    return json.dumps(text, ensure_ascii=False)


def _type(dtype: str) -> str:
    """The configuration's word for one of KServe's types (TYPE_FP32), text being its own."""
    return "TYPE_STRING" if dtype == "BYTES" else f"TYPE_{dtype}"


def _check(config: ModelConfig) -> None:
    for wrong, message, hint in (*_wrong_numbers(config), *_wrong_ragged(config)):
        if wrong:
            raise UsageError(f"config.pbtxt of {config.name}: {message}", hint)


def _wrong_numbers(config: ModelConfig) -> list[tuple[bool, str, str]]:
    known = [*config.inputs, *config.outputs]
    types = [*(one.dtype for one in known), *(one.dtype for one in config.batch_input)]
    names = [one.name for one in known]
    return [
        (
            not _NAME.fullmatch(config.name),
            f"a model cannot be named {config.name!r}",
            "use letters, digits, dots, dashes and underscores",
        ),
        (
            bool(set(types) - _TYPES),
            f"there is no type {', '.join(sorted(set(types) - _TYPES))}",
            f"types are {', '.join(sorted(_TYPES))}",
        ),
        (len(set(names)) < len(names), "two tensors have one name", "name each its own"),
        (config.max_batch_size < 0, "max_batch_size is negative", "use 0 for no batch axis"),
        (config.instances < 1, "it has no instance", "ask for at least 1"),
        ((config.queue_delay_us or 0) < 0, "the queue delay is negative", "use 0 for none"),
        (bool(config.gpus) and config.kind != "gpu", "gpus are for kind gpu", "set kind to gpu"),
        (
            any(not 1 <= size <= config.max_batch_size for size in config.preferred),
            f"a preferred batch is not between 1 and {config.max_batch_size}",
            "raise max_batch_size, or leave the batch out",
        ),
    ]


def _wrong_ragged(config: ModelConfig) -> list[tuple[bool, str, str]]:
    inputs = {tensor.name for tensor in config.inputs}
    sources = {one.source for one in config.batch_input}
    kinds = {one.kind for one in config.batch_input}
    return [
        (
            config.ragged and (not config.max_batch_size or config.queue_delay_us is None),
            "ragged batches need a batch axis and dynamic batching",
            "set max_batch_size and a queue delay",
        ),
        (
            config.ragged and not config.ragged_inputs,
            "no input has a free dimension in which requests could differ",
            "leave ragged out, or free a dimension (-1)",
        ),
        (
            bool(config.batch_input) and config.backend not in TAKE_BATCH_INPUT,
            f"backend {config.backend} is never given what batch_input declares",
            f"leave it out, or use {' or '.join(TAKE_BATCH_INPUT)}",
        ),
        (
            bool(config.batch_input) and not sources <= set(config.ragged_inputs),
            f"batch_input's {', '.join(sorted(sources - set(config.ragged_inputs)))} is not ragged",
            f"its ragged inputs: {', '.join(config.ragged_inputs) or 'none'}",
        ),
        (
            not kinds <= set(get_args(BatchKind)),
            f"there is no kind of batch_input {', '.join(sorted(kinds))}",
            f"kinds are {', '.join(get_args(BatchKind))}",
        ),
        (
            any(one.target in inputs for one in config.batch_input),
            "a batch_input has the name of an input",
            "name it as the model's own further input",
        ),
    ]
