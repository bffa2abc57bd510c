"""Least bytes of operators that multiply no matrices: each tensor is read or written once."""

from __future__ import annotations

from math import prod

from profharness.analysis.operators.calls import Call, Plain, Tensor
from profharness.analysis.operators.element_types import (
    ElementType,
    by_number,
    named,
    result_type,
)
from profharness.analysis.operators.entries import Traffic
from profharness.analysis.operators.records import NOTHING, Work

_NUMBERS = {bool: named("bool"), int: named("int64"), float: named("float64")}
_WRAPPED = frozenset(("int64", "float64", "complex128", "bool"))


def moved(entry: Traffic, call: Call) -> Work:
    """The least bytes of a call; nothing where its tensors or their types are not recorded."""
    tensors = call.tensors()
    if not tensors:
        return NOTHING
    sizes = [tensor.size for tensor in tensors]
    known = [size for size in sizes if size is not None]
    if not known:  # of types that are not known: 0 bytes would be a figure
        return NOTHING
    first = sizes[0]
    if entry.rule == "stream":
        amount = _streamed(entry, call)
    elif entry.rule in ("fill", "read"):
        amount = first
    elif entry.rule == "copy":
        amount = sum(known[:2]) if len(known) == len(sizes) else None
    elif entry.rule == "norm":
        amount = None if first is None else sum(known) + first
    else:
        amount = sum(known)
    return NOTHING if amount is None else Work(low_bytes=float(amount))


def _streamed(entry: Traffic, call: Call) -> int | None:
    """Inputs read, and the broadcast result written in its type; in-place operators write the
    first.
    """
    tensors, result = _operands(entry, call)
    if not tensors:
        return None
    wide = [tensor for tensor in tensors if tensor.dims]
    read = sum(tensor.size or 0 for tensor in wide or tensors)
    in_place = call.name.endswith("_") and not call.name.endswith("__")
    target = tensors[0] if in_place else result
    if target is not None:
        return read + (target.elements * target.kind.item_bytes if target.kind else 0)
    kind = _kind(entry, call, tensors)
    return read + (0 if kind is None else _broadcast(tensors) * kind.item_bytes)


def _operands(entry: Traffic, call: Call) -> tuple[list[Tensor], Tensor | None]:
    """The tensors that are read, and the `out` of the call if it has one."""
    if entry.inputs is None:
        return call.tensors(), None
    read = [tensor for place in entry.inputs if (tensor := call.tensor(place)) is not None]
    last = call.inputs[-1]
    beyond = len(call.inputs) - 1 > max(entry.inputs, default=-1)
    return read, last if beyond and isinstance(last, Tensor) else None


def _broadcast(tensors: list[Tensor]) -> int:
    rank = max(len(tensor.dims) for tensor in tensors)
    rows = [(1,) * (rank - len(tensor.dims)) + tensor.dims for tensor in tensors]
    return prod(0 if 0 in extents else max(extents) for extents in zip(*rows, strict=True))


def _kind(entry: Traffic, call: Call, tensors: list[Tensor]) -> ElementType | None:
    """The type of a result that is not recorded."""
    kinds = [tensor.kind for tensor in tensors]
    if entry.result in ("bool", "first"):
        return named("bool") if entry.result == "bool" else kinds[0]
    if None in kinds:
        return None
    if isinstance(entry.result, int):
        held = call.at(entry.result)
        value = held.value if isinstance(held, Plain) else None
        return by_number(value) if type(value) is int else kinds[0]
    kind = _promoted(entry, call, tensors)
    if kind is None or kind.family not in ("bool", "integer") or entry.result == "promoted":
        return kind
    return named("float32" if entry.result == "float" else "int64")


def _promoted(entry: Traffic, call: Call, tensors: list[Tensor]) -> ElementType | None:
    """As torch promotes. A Python number reaches an operator as a tensor of torch's widest type
    without extents, which no trace tells from a true one: it counts as a number, the smaller of
    both.
    """
    wide = [tensor.kind for tensor in tensors if tensor.dims and tensor.kind is not None]
    small = [tensor.kind for tensor in tensors if not tensor.dims and tensor.kind is not None]
    numbers = [kind for kind in small if wide and kind.name in _WRAPPED]
    zero_dim = [kind for kind in small if not wide or kind.name not in _WRAPPED]
    numbers += [
        _NUMBERS[type(value)]
        for place in entry.inputs or ()
        if (value := call.number(place)) is not None
    ]
    return result_type(wide, zero_dim, numbers)
