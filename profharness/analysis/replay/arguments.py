"""Recorded inputs of a call as a task for a replay. Only literals are parsed."""

from __future__ import annotations

import msgspec

from profharness.analysis.operators.calls import Number, Plain, Tensor, TensorList, read_call
from profharness.trace.calls.plan import Given, TensorGiven, TensorsGiven, ValueGiven

_WITH_VALUE = frozenset(("Scalar", "ScalarList", "Int", "Double", "Bool", "IntList", "BoolList"))
"""Words of inputs that have a value, whether or not it is recorded."""

NO_SHAPES = "its shapes are not recorded"


def arguments_of(texts: tuple[str, str, str, str, str]) -> tuple[Given, ...] | None:
    """The inputs of a call by its recorded name, shapes, types, values and strides; None where its
    shapes are not recorded.
    """
    name, shapes, types, concrete, strides = texts
    call = read_call(name, shapes, types, concrete, strides)
    if call is None:
        return None
    words, steps = _texts(types), _texts(strides)
    return tuple(
        _given(
            argument,
            words[place] if place < len(words) else "",
            steps[place] if place < len(steps) else None,
        )
        for place, argument in enumerate(call.inputs)
    )


def _texts(text: str) -> list[object]:
    try:
        found = msgspec.json.decode(text) if text else []
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return []
    return found if isinstance(found, list) else []


def _given(argument: Tensor | TensorList | Plain, word: object, steps: object) -> Given:
    if isinstance(argument, Tensor):
        kind = "" if argument.kind is None else argument.kind.name
        return TensorGiven(argument.dims, kind, argument.strides)
    if isinstance(argument, TensorList):
        return TensorsGiven(argument.members, _strides_of(argument.members, steps))
    value = argument.value
    if value is None:
        return ValueGiven(lost=isinstance(word, str) and word in _WITH_VALUE)
    if isinstance(value, tuple):
        return ValueGiven(tuple(map(_literal, value)), listed=True)
    return ValueGiven((_literal(value),))


def _literal(value: Number) -> str:
    return repr(value)


def _strides_of(
    members: tuple[tuple[int, ...], ...], steps: object
) -> tuple[tuple[int, ...], ...] | None:
    """The strides of the members of a list; None where they are not recorded for all of them."""
    if not isinstance(steps, list) or len(steps) != len(members):
        return None
    found = []
    for dims, step in zip(members, steps, strict=True):
        if not isinstance(step, list) or len(step) != len(dims):
            return None
        if not all(type(one) is int and 0 <= one < 1 << 40 for one in step):
            return None
        found.append(tuple(step))
    return tuple(found)
