"""The field numbers that are written, against Perfetto's own definitions."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
from google.protobuf.descriptor import Descriptor
from perfetto.protos.perfetto.trace import perfetto_trace_pb2 as pb

from profharness.writers.protobuf import schema

# where our name is shorter than Perfetto's
FULL_NAMES = {
    ("Packet", "SEQUENCE"): "trusted_packet_sequence_id",
    ("Launch", "ARG_NAME_IID"): "name_iid",
    ("Launch", "ARG_INT"): "int_value",
    ("Launch", "ARG_DOUBLE"): "double_value",
    ("Launch", "ARG_TEXT"): "string_value",
    ("Annotation", "INT"): "int_value",
    ("Annotation", "DOUBLE"): "double_value",
    ("Annotation", "TEXT"): "string_value",
    ("Annotation", "STRING_IID"): "string_value_iid",
    ("TrackEvent", "BEGIN"): "TYPE_SLICE_BEGIN",
    ("TrackEvent", "END"): "TYPE_SLICE_END",
    ("TrackEvent", "COUNTER"): "TYPE_COUNTER",
    ("Track", "UNIT_BYTES"): "UNIT_SIZE_BYTES",
}
# extensions, which the Python package of Perfetto does not define: `test_trace_processor` reads them
EXTENSIONS = {
    ("Interned", "COMPUTE_KERNELS"),
    ("Interned", "COMPUTE_ARG_NAMES"),
    ("TrackEvent", "GPU_CORRELATION"),
    ("TrackEvent", "GPU_API"),
    ("TrackEvent", "SUBMISSION_EVENT_IDS"),
}


def constants() -> list[tuple[str, str, int]]:
    return [
        (group, name, value)
        for group, members in inspect.getmembers(schema, inspect.isclass)
        for name, value in vars(members).items()
        if name.isupper() and isinstance(value, int) and (group, name) not in EXTENSIONS
    ]


def described(group: str) -> Descriptor:
    """The message that a group of numbers is of, by the first word of its docstring."""
    outer, *inner = getattr(schema, group).__doc__.split()[0].rstrip(".;,:").split(".")
    message = pb.DESCRIPTOR.message_types_by_name[outer]
    for name in inner:
        message = message.nested_types_by_name[name]
    return message


def reachable(message: Descriptor, depth: int) -> Iterator[Descriptor]:
    """A message, what it holds, and the message that it is defined in."""
    if message.containing_type is not None:
        yield message.containing_type
    yield message
    for field in message.fields if depth else ():
        if field.message_type is not None:
            yield from reachable(field.message_type, depth - 1)


def numbers_by_name(message: Descriptor) -> dict[str, set[int]]:
    """Numbers of the fields and of the enumerations' values of a message and of what it holds."""
    named: dict[str, set[int]] = {}
    for one in reachable(message, 2):
        for field in one.fields:
            named.setdefault(field.name.upper(), set()).add(field.number)
            for value in field.enum_type.values if field.enum_type is not None else ():
                named.setdefault(value.name.upper(), set()).add(value.number)
    return named


@pytest.mark.parametrize(("group", "name", "number"), constants())
def test_each_number_is_the_one_that_perfetto_gives_to_this_name(
    group: str, name: str, number: int
) -> None:
    message = described(group)
    named = numbers_by_name(message)
    full = FULL_NAMES.get((group, name), name).upper()
    endings = {key for key in named if key == full or key.endswith(f"_{full}")}
    assert endings, f"{message.name} has nothing that is called {full}"
    assert any(number in named[key] for key in endings)
