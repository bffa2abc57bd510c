"""One recorded operator call: the JSON texts of a `cpu_op` row as typed inputs.

A row holds one item per argument of the operator's schema, in its order, with keyword arguments and
defaults: extents (`Input Dims`), types (`Input type`), and in newer files what numbers and lists
hold (`Concrete Inputs`) and strides (`Input Strides`). What is not recorded is None, never a guess.
Writer: torch/csrc/profiler/util.cpp and collection.cpp.
"""

from __future__ import annotations

from math import prod

import msgspec

from profharness.analysis.operators.element_types import (
    BY_WORD,
    NOT_TENSORS,
    TENSOR_LISTS,
    ElementType,
)

Number = bool | int | float
_LONGEST = 1 << 40  # elements along one axis
_TRUTH = {"True": True, "False": False, "true": True, "false": False}


class Tensor(msgspec.Struct, frozen=True, gc=False):
    """One tensor: its extents, its element type (None: a word that is not known), and its strides
    in elements where they are recorded.
    """

    dims: tuple[int, ...]
    kind: ElementType | None
    strides: tuple[int, ...] | None = None

    @property
    def elements(self) -> int:
        return prod(self.dims)

    @property
    def distinct(self) -> int:
        """Elements that exist: an expanded extent has stride 0."""
        if self.strides is None or 0 not in self.strides:
            return prod(self.dims)
        return prod(
            extent
            for extent, stride in zip(self.dims, self.strides, strict=True)
            if stride or not extent
        )

    @property
    def size(self) -> int | None:
        """Bytes that it takes to read it once; None where the type is not known."""
        return None if self.kind is None else self.distinct * self.kind.item_bytes


class TensorList(msgspec.Struct, frozen=True, gc=False):
    """A list of tensors: extents alone. Empty where more than 30 were passed."""

    members: tuple[tuple[int, ...], ...]


class Plain(msgspec.Struct, frozen=True, gc=False):
    """An argument that is no tensor: what a number or a list of numbers holds; None where that is
    not recorded.
    """

    value: Number | tuple[Number, ...] | None = None


Input = Tensor | TensorList | Plain
NOT_RECORDED = Plain()


class Call(msgspec.Struct, frozen=True, gc=False):
    """One operator call with its inputs, in the order of the operator's schema."""

    name: str
    inputs: tuple[Input, ...]

    def tensor(self, position: int | None) -> Tensor | None:
        """The tensor at a position; None where there is none."""
        found = self.at(position)
        return found if isinstance(found, Tensor) else None

    def at(self, position: int | None) -> Input | None:
        """The input at a position, None beyond the last one."""
        if position is None or not 0 <= position < len(self.inputs):
            return None
        return self.inputs[position]

    def number(self, position: int | None) -> Number | None:
        """The number or truth value at a position; None where it is not recorded."""
        found = self.at(position)
        value = found.value if isinstance(found, Plain) else None
        return None if isinstance(value, tuple) else value

    def integer(self, position: int | None) -> int | None:
        """The whole number (or truth value, as 0 or 1) at a position."""
        value = self.number(position)
        return int(value) if isinstance(value, int) else None

    def flag(self, position: int | None) -> bool | None:
        """The truth value at a position."""
        value = self.number(position)
        return None if value is None else bool(value)

    def numbers(self, position: int | None) -> tuple[Number, ...] | None:
        """The list of numbers at a position; a single number is a list of one."""
        found = self.at(position)
        value = found.value if isinstance(found, Plain) else None
        return value if value is None or isinstance(value, tuple) else (value,)

    def tensors(self) -> list[Tensor]:
        """All inputs that are single tensors."""
        return [given for given in self.inputs if isinstance(given, Tensor)]


def read_call(
    name: str, shapes: str, types: str, concrete: str = "", strides: str = ""
) -> Call | None:
    """The call of these recorded JSON texts, each of which may be empty; None where shapes or types
    are not recorded or are no lists. An input of an unknown type costs only its type.
    """
    extents, words = _list(shapes), _list(types)
    if extents is None or words is None:
        return None
    texts = _list(concrete) or ()
    steps = _list(strides) or ()
    inputs = []
    for position, (dims, word) in enumerate(zip(extents, words, strict=False)):
        step = steps[position] if position < len(steps) else None
        text = texts[position] if position < len(texts) else ""
        inputs.append(_input(dims, word, text, step))
    return Call(name, tuple(inputs))


def _list(text: str) -> list[object] | None:
    if not text:
        return None
    try:
        found = msgspec.json.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return None
    return found if isinstance(found, list) else None


def _input(dims: object, word: object, text: object, steps: object) -> Input:
    word = word if isinstance(word, str) else "?"  # no word of torch
    kind = BY_WORD.get(word)
    if kind is None and (word in NOT_TENSORS or not dims):
        listed = word in TENSOR_LISTS and not text
        return TensorList(()) if listed else Plain(_concrete(text))
    extents = _whole(dims)
    if extents is None:
        return TensorList(_members(dims))
    recorded = _whole(steps)
    return Tensor(
        extents, kind, recorded if recorded is not None and len(recorded) == len(extents) else None
    )


def _whole(values: object) -> tuple[int, ...] | None:
    """A list of whole numbers from 0 on; None where it is anything else: no tensor has fewer
    elements than none, and work of such a one would be taken from that of the others. Nor is one
    longer than any memory.
    """
    if not isinstance(values, list) or not all(
        type(value) is int and 0 <= value <= _LONGEST for value in values
    ):
        return None
    return tuple(values)


def _members(dims: object) -> tuple[tuple[int, ...], ...]:
    listed = dims if isinstance(dims, list) else []
    members = [_whole(member) for member in listed]
    return tuple(member for member in members if member is not None)


def _concrete(text: object) -> Number | tuple[Number, ...] | None:
    """What a recorded text holds: `True`, `1`, `0.125`, `[1, 1]`; None for anything else."""
    if not isinstance(text, str) or not text:
        return None
    if not text.startswith("["):
        return _number(text)
    words = text.strip("[]").split(",")
    values = [_number(word.strip()) for word in words if word.strip()]
    return tuple(value for value in values if value is not None) if None not in values else None


def _number(text: str) -> Number | None:
    if text in _TRUTH:
        return _TRUTH[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return None
