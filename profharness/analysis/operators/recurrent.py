"""Fused recurrent operators: every step multiplies the input and the state by all weights once."""

from __future__ import annotations

from math import prod

from profharness.analysis.operators.calls import Call, Tensor, TensorList
from profharness.analysis.operators.entries import Rnn
from profharness.analysis.operators.records import NO_EXTENTS, NO_SHAPES, Misfit, Work, unknown
from profharness.node.devices import Dtype

_GATES = {0: 1, 1: 1, 2: 4, 3: 3}
"""Gates by cuDNN's and MIOpen's number of the mode: two plain cells, LSTM, GRU."""


def rnn(entry: Rnn, call: Call) -> Work:
    """2 x tokens x elements of all weight matrices, twice that backward. Raises Misfit.

    A backward operator that forms no gradient of the first input, or none of the weights, leaves
    that part out.
    """
    x = call.tensor(entry.x)
    if x is None:
        if call.at(entry.x) is None:
            raise Misfit
        return unknown(NO_SHAPES)
    if len(x.dims) not in (2, 3):
        raise Misfit
    tokens, width = prod(x.dims[:-1]), x.dims[-1]
    weights = _listed(entry, call)
    if weights is None:
        weights = _by_numbers(entry, call, width)
    if weights is None:
        return unknown(NO_EXTENTS)
    elements = sum(prod(dims) for dims in weights)
    parts = float(elements)
    if entry.backward:
        first = _of_first_layer(entry, call, weights)
        mask = call.numbers(entry.mask)
        to_weights = mask is None or bool(mask[-1])
        to_input = mask is None or bool(mask[0])
        parts = elements * (1 + to_weights) - (0 if to_input else first)
    return Work(2.0 * tokens * parts, _moved(x, elements), _peak(x), matrix=True)


def _peak(x: Tensor) -> Dtype | None:
    return None if x.kind is None else x.kind.peak


def _moved(x: Tensor, elements: int) -> float | None:
    """The input and each weight are read at least once."""
    if x.kind is None:
        return None
    return float((x.distinct + elements) * x.kind.item_bytes)


def _listed(entry: Rnn, call: Call) -> list[tuple[int, ...]] | None:
    """The matrices among the weights; None where their extents are not recorded."""
    if isinstance(entry.weights, tuple):
        tensors = [call.tensor(place) for place in entry.weights]
        dims = [tensor.dims for tensor in tensors if tensor is not None]
        return list(dims) if len(dims) == len(tensors) else None
    held = call.at(entry.weights)
    matrices: list[tuple[int, ...]] = (
        [m for m in held.members if len(m) == 2] if isinstance(held, TensorList) else []
    )
    return matrices or None


def _by_numbers(entry: Rnn, call: Call, width: int) -> list[tuple[int, ...]] | None:
    """The matrices by the numbers of the form: lists of over 30 tensors are not recorded."""
    mode, hidden, layers = (
        call.integer(place) for place in (entry.mode, entry.hidden, entry.layers)
    )
    both = call.flag(entry.bidirectional)
    if mode not in _GATES or not hidden or not layers or both is None:
        return None
    gates, directions = _GATES[mode] * hidden, 1 + both
    state = call.integer(entry.proj) or hidden
    matrices: list[tuple[int, ...]] = []
    for layer in range(layers):
        wide = width if layer == 0 else state * directions
        for _ in range(directions):
            matrices += [(gates, wide), (gates, state)]
            if state != hidden:
                matrices.append((state, hidden))
    return matrices


def _of_first_layer(entry: Rnn, call: Call, weights: list[tuple[int, ...]]) -> int:
    """Elements of the matrices that the input itself meets."""
    directions = 1 + bool(call.flag(entry.bidirectional))
    if isinstance(entry.weights, tuple):
        return prod(weights[0])
    per_direction = len(weights) // ((call.integer(entry.layers) or 1) * directions)
    return sum(prod(weights[place * per_direction]) for place in range(directions))
