"""Convolutions: multiplications of the direct method, and least bytes.

Every output meets every element of its filter, zeros of the padding included, as in torch's own
count: forward 2 N prod(output extents) prod(weight), with `[Cin, Cout / groups, k..]` and the input
extents where it is transposed. Groups need no factor, since the weight holds one group's inputs.
Each of the two gradients takes as many.
"""

from __future__ import annotations

from collections.abc import Iterable
from math import prod

from profharness.analysis.operators.calls import Call, Number, Tensor
from profharness.analysis.operators.entries import Conv, ConvBackward, Position
from profharness.analysis.operators.records import (
    NO_EXTENTS,
    NO_SHAPES,
    Given,
    Misfit,
    Work,
    total,
    unknown,
)

Extents = tuple[int, ...]


def work(entry: Conv | ConvBackward, call: Call, given: Given) -> Work:
    """The work of a convolution, or of those of its gradients that are wanted. Raises Misfit."""
    if isinstance(entry, Conv):
        return _forward(entry, call, given)
    return _backward(entry, call, given)


def _forward(entry: Conv, call: Call, given: Given) -> Work:
    x, w = call.tensor(entry.x), call.tensor(entry.w)
    if x is None or w is None:
        if call.at(entry.x) is None or call.at(entry.w) is None:
            raise Misfit
        return unknown(NO_SHAPES)
    spatial = len(w.dims) - 2
    if spatial < 1 or len(x.dims) not in (spatial + 1, spatial + 2):
        raise Misfit
    transposed = _truth(entry.transposed, call)
    batch = x.dims[0] if len(x.dims) == spatial + 2 else 1
    image = x.dims[-spatial:]
    out = _output(entry, call, image, w.dims[2:], transposed=transposed)
    if out is None and given.output is not None and len(given.output) > spatial:
        out = given.output[-spatial:]
    if out is None and not transposed:
        return unknown(NO_EXTENTS)
    multiplied = 2.0 * batch * prod(image if transposed else out or ()) * prod(w.dims)
    moved = None if out is None else _moved(entry, call, batch, out, transposed=transposed)
    allowed = call.flag(entry.tf32)
    return Work(
        multiplied,
        moved,
        None if x.kind is None else x.kind.peak,
        matrix=True,
        reduced_allowed=allowed,
    )


def _moved(entry: Conv, call: Call, batch: int, out: Extents, *, transposed: bool) -> float | None:
    x, w, bias = (call.tensor(place) for place in (entry.x, entry.w, entry.bias))
    assert x is not None
    assert w is not None
    channels = w.dims[1] * (call.integer(entry.groups) or 1) if transposed else w.dims[0]
    written = batch * channels * prod(out)
    read = x.elements if transposed else _touched(x, w.dims[2:], out)
    return total(
        (
            _bytes(read, x),
            w.size,
            0 if bias is None else bias.size,
            _bytes(written, x),
        )
    )


def _touched(x: Tensor, kernel: Extents, out: Extents) -> int:
    """Input elements that some filter meets: where strides jump over the kernel, less than all."""
    spatial = len(kernel)
    met = (
        min(extent, steps * width)
        for extent, steps, width in zip(x.dims[-spatial:], out, kernel, strict=True)
    )
    return prod(x.dims[:-spatial]) * prod(met)


def _bytes(elements: int, like: Tensor) -> int | None:
    return None if like.kind is None else elements * like.kind.item_bytes


def _output(
    entry: Conv, call: Call, image: Extents, kernel: Extents, *, transposed: bool
) -> Extents | None:
    """Output extents; None where strides, padding or dilation are not recorded.

    floor((n + 2 p - d (k - 1) - 1) / s) + 1; transposed (n - 1) s - 2 p + d (k - 1) + o + 1.
    """
    rank = len(image)
    stride = _spread(call.numbers(entry.stride), rank)
    padding = _spread(call.numbers(entry.padding), rank)
    dilation = _spread((1,) if entry.dilation is None else call.numbers(entry.dilation), rank)
    added = _spread(
        (0,) if entry.output_padding is None else call.numbers(entry.output_padding), rank
    )
    if stride is None or padding is None or dilation is None or added is None:
        return None
    if min(stride, default=1) < 1:
        raise Misfit
    rows = zip(image, kernel, stride, padding, dilation, added, strict=True)
    if transposed:
        out = tuple((n - 1) * s - 2 * p + d * (k - 1) + o + 1 for n, k, s, p, d, o in rows)
    else:
        out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, p, d, _ in rows)
    if min(out, default=0) < 0:
        raise Misfit
    return out


def _spread(values: tuple[Number, ...] | None, rank: int) -> Extents | None:
    """One whole number per spatial extent; a single one is that of all."""
    if not values:
        return None
    whole = tuple(int(value) for value in values)
    if len(whole) == 1:
        return whole * rank
    if len(whole) != rank:
        raise Misfit
    return whole


def _truth(value: Position | bool, call: Call) -> bool:
    """A fact of the entry, or the truth value at a position (not transposed where not recorded)."""
    return value if isinstance(value, bool) else bool(call.flag(value))


def _backward(entry: ConvBackward, call: Call, given: Given) -> Work:
    grad, x, w = (call.tensor(place) for place in (entry.grad, entry.x, entry.w))
    if grad is None or (entry.x is not None and x is None):
        if call.at(entry.grad) is None or (entry.x is not None and call.at(entry.x) is None):
            raise Misfit
        return unknown(NO_SHAPES)
    weight = w.dims if w is not None else given.weight
    if weight is None:
        return unknown(NO_SHAPES if entry.w is not None else NO_EXTENTS)
    transposed = _truth(entry.transposed, call)
    small = x if transposed else grad
    spatial = len(weight) - 2
    if spatial < 1 or (small is not None and len(small.dims) not in (spatial + 1, spatial + 2)):
        raise Misfit
    mask = _mask(entry, call)
    if mask is None or small is None:
        return unknown(NO_EXTENTS)
    batch = small.dims[0] if len(small.dims) == spatial + 2 else 1
    one = 2.0 * batch * prod(small.dims[-spatial:]) * prod(weight)
    return Work(
        one * (mask[0] + mask[1]),
        _moved_back(grad, x, weight, mask, transposed=transposed),
        None if grad.kind is None else grad.kind.peak,
        matrix=True,
    )


def _mask(entry: ConvBackward, call: Call) -> tuple[bool, bool, bool] | None:
    """Which of input, weight and bias gradients are formed; None where that is not recorded."""
    held = entry.mask if isinstance(entry.mask, tuple) else call.numbers(entry.mask)
    if held is None:
        return None
    wanted = [*(bool(value) for value in held), False, False, False][:3]
    return (wanted[0], wanted[1], wanted[2])


def _moved_back(
    grad: Tensor,
    x: Tensor | None,
    weight: Extents,
    mask: Iterable[bool],
    *,
    transposed: bool,
) -> float | None:
    """The output's gradient is read once; the input's one reads the weight, the weight's one the
    input, and each is written. What is not recorded counts as nothing.
    """
    to_input, to_weight, to_bias = mask
    filters, image = prod(weight), 0 if x is None else x.elements
    touched = image
    if x is not None and not transposed:
        touched = _touched(x, weight[2:], grad.dims[-(len(weight) - 2) :])
    channels = grad.dims[-(len(weight) - 1)]
    elements = (
        grad.distinct
        + to_input * (filters + image)
        + to_weight * (touched + filters)
        + to_bias * channels
    )
    return _bytes(elements, grad)
