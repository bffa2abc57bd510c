"""A model's configuration in a Triton repository: `config.pbtxt`, protobuf's text format.

Source: triton-inference-server/common, protobuf/model_config.proto (message ModelConfig). Only the
fields named below are taken; the rest of a file is parsed and passed over, so that a file of any
newer version reads. The text format itself is Google's own reader's, not ours.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Any

import msgspec

from profharness.errors import InputError
from profharness.serving.ready import Model, Tensor
from profharness.units import format_bytes

FILE = "config.pbtxt"
BYTES = 256 << 10
"""Bytes of a configuration: real ones have some kilobytes, an ensemble of many models some tens."""
LINE = 16 << 10
"""Characters of one of its lines: Google's reader copies the line for each value of a field that it
passes over. A configuration that is printed in one line has some kilobytes."""
_SAID = 300  # characters of what that reader says: its message holds the line
_MADE_SO = "look at the file: no tool writes one like it"
_INT, _TEXT, _MESSAGE = 3, 9, 11  # FieldDescriptorProto.Type: int64, string, message
_ONE, _MANY = 1, 3  # FieldDescriptorProto.Label: optional, repeated

# message: (field, type, label, message type); data types stay words, since text format writes an
# enum's name bare
_FIELDS: dict[str, tuple[tuple[str, int, int, str], ...]] = {
    "Config": (
        ("name", _TEXT, _ONE, ""),
        ("platform", _TEXT, _ONE, ""),
        ("backend", _TEXT, _ONE, ""),
        ("max_batch_size", _INT, _ONE, ""),
        ("input", _MESSAGE, _MANY, "Tensor"),
        ("output", _MESSAGE, _MANY, "Tensor"),
        ("instance_group", _MESSAGE, _MANY, "Group"),
        ("dynamic_batching", _MESSAGE, _ONE, "Batching"),
        ("default_model_filename", _TEXT, _ONE, ""),
    ),
    "Tensor": (
        ("name", _TEXT, _ONE, ""),
        ("data_type", 14, _ONE, "Type"),
        ("dims", _INT, _MANY, ""),
        ("optional", 8, _ONE, ""),
    ),
    "Group": (
        ("name", _TEXT, _ONE, ""),
        ("kind", 14, _ONE, "Kind"),
        ("count", _INT, _ONE, ""),
        ("gpus", _INT, _MANY, ""),
    ),
    "Batching": (
        ("preferred_batch_size", _INT, _MANY, ""),
        ("max_queue_delay_microseconds", _INT, _ONE, ""),
    ),
}
_ENUMS = {
    "Type": (
        "TYPE_INVALID",
        "TYPE_BOOL",
        "TYPE_UINT8",
        "TYPE_UINT16",
        "TYPE_UINT32",
        "TYPE_UINT64",
        "TYPE_INT8",
        "TYPE_INT16",
        "TYPE_INT32",
        "TYPE_INT64",
        "TYPE_FP16",
        "TYPE_FP32",
        "TYPE_FP64",
        "TYPE_STRING",
        "TYPE_BF16",
    ),
    "Kind": ("KIND_AUTO", "KIND_GPU", "KIND_CPU", "KIND_MODEL"),
}
# Google's reader passes over an unknown field whose list of messages stands without a colon only
# where we add it. Comments, strings and values are matched first, so that nothing inside or after
# them is taken for a field's name. No text is looked through twice: a string without an end is
# taken up to the line's, and a word only from its begin.
_COLONLESS = re.compile(
    r"""\#[^\n]*|"(?:\\.|[^"\\\n])*+"?|'(?:\\.|[^'\\\n])*+'?|:\s*+[\w.+-]++|\b(\w++)(\s*+)\["""
)


class Configuration(msgspec.Struct, frozen=True):
    """What a configuration says of serving. `gpus` are those of all instance groups, `file` is ""
    where it names none.
    """

    model: Model
    platform: str
    preferred: tuple[int, ...] = ()
    gpus: tuple[int, ...] = ()
    file: str = ""


def read(path: Path) -> Configuration:
    """Raises InputError where the file cannot be read, is larger than a configuration is, is no
    text-format message, or has a value of a wrong type.
    """
    try:
        size = path.stat().st_size
        text = path.read_text(encoding="utf-8") if size <= BYTES else ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(
            f"{path}: not readable ({error})",
            "name the repository's folder, with one folder per model",
        ) from error
    if size > BYTES:
        raise InputError(
            f"{path} has {size:,} bytes, more than the {format_bytes(BYTES)} that a Triton "
            "configuration may have",
            _MADE_SO,
        )
    return parse(text, str(path))


def parse(text: str, named: str = FILE) -> Configuration:
    """The configuration in `text`; `named` stands in messages."""
    from google.protobuf import text_format

    longest = max(map(len, text.split("\n")))
    if longest > LINE:
        raise InputError(
            f"{named} has a line of {longest:,} characters, more than the {LINE:,} that one of a "
            "Triton configuration may have",
            _MADE_SO,
        )
    message = _message_type()()
    try:
        text_format.Parse(
            with_colons(text),
            message,
            allow_unknown_field=True,
        )
    except text_format.ParseError as error:
        raise InputError(
            f"{named}: not a Triton configuration ({_shortened(str(error))})",
            "Triton itself would refuse it; see its message at start-up",
        ) from error
    except RecursionError as error:
        raise InputError(
            f"{named}: not a Triton configuration (its messages are nested too deeply)",
            _MADE_SO,
        ) from error
    groups = list(message.instance_group)
    return Configuration(
        Model(
            name=message.name,
            max_batch_size=message.max_batch_size,
            # without a group, or a count in it, the server makes one instance; a group's count is
            # for each of its GPUs
            instances=sum((group.count or 1) * max(1, len(group.gpus)) for group in groups) or 1,
            inputs=tuple(_tensor(one) for one in message.input),
            outputs=tuple(_tensor(one) for one in message.output),
            backend=message.backend,
            queue_delay_us=message.dynamic_batching.max_queue_delay_microseconds
            if message.HasField("dynamic_batching")
            else None,
        ),
        platform=message.platform,
        preferred=tuple(message.dynamic_batching.preferred_batch_size),
        gpus=tuple(sorted({gpu for group in groups for gpu in group.gpus})),
        file=message.default_model_filename,
    )


def with_colons(text: str) -> str:
    """The text with a colon before each list of messages, as Google's reader needs it to pass over
    the list of an unknown field.
    """
    return _COLONLESS.sub(lambda found: f"{found[1]}:{found[2]}[" if found[1] else found[0], text)


def _shortened(said: str) -> str:
    """What stands first and last in a message: the place and the reason."""
    return said if len(said) <= _SAID else f"{said[: _SAID // 2]} … {said[-_SAID // 2 :]}"


def find(repository: Path, model: str) -> Configuration | None:
    """The configuration of one model in a repository, or None where it has none (the server then
    writes its own).
    """
    path = repository / model / FILE
    if not path.is_file():
        return None
    found = read(path)
    return msgspec.structs.replace(
        found, model=msgspec.structs.replace(found.model, name=found.model.name or model)
    )


def _tensor(entry: Any) -> Tensor:
    """KServe's words for types are the configuration's without their prefix, but for text."""
    word = _ENUMS["Type"][entry.data_type].removeprefix("TYPE_")
    return Tensor(entry.name, "BYTES" if word == "STRING" else word, tuple(entry.dims))


@cache
def _message_type() -> Any:
    """The message class, made from the table above."""
    from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

    file = descriptor_pb2.FileDescriptorProto(
        name="profharness/model_config.proto", package="profharness", syntax="proto3"
    )
    for name, values in _ENUMS.items():
        kind = file.enum_type.add(name=name)
        for number, value in enumerate(values):
            kind.value.add(name=value, number=number)
    for name, fields in _FIELDS.items():
        message = file.message_type.add(name=name)
        for number, (field, type_, label, of) in enumerate(fields, start=1):
            entry = message.field.add(name=field, number=number, label=label, type=type_)
            if of:
                entry.type_name = f".profharness.{of}"
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("profharness.Config"))
