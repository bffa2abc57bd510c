"""Triton templates of torch's inductor (`triton_tem_*`), whose arguments have no schema: operands
first, the result last, what an epilogue reads between them.
"""

from __future__ import annotations

from itertools import combinations
from math import isqrt, prod

from profharness.analysis.operators.calls import Call, Tensor
from profharness.analysis.operators.entries import Template
from profharness.analysis.operators.records import NO_SHAPES, Misfit, Work, total, unknown


def template(entry: Template, call: Call) -> Work:
    """The work that the shapes of a template's arguments mean. Raises Misfit."""
    tensors = call.tensors()
    if not tensors:
        return unknown(NO_SHAPES)
    if len(tensors) < 3:
        raise Misfit
    if entry.form == "product":
        flops = _product(tensors[:-1], tensors[-1])
    elif entry.form == "conv":
        flops = _conv(tensors[:-1], tensors[-1])
    else:
        flops = _attention(tensors, backward=entry.form == "attention-backward")
    kind = tensors[0].kind
    return Work(
        flops,
        total(tensor.size for tensor in tensors),
        None if kind is None else kind.peak,
        bound="most" if entry.form.startswith("attention") else "",
        matrix=True,
    )


def _product(operands: list[Tensor], result: Tensor) -> float:
    """2 m n k with k from sizes: of `[b, m, k]` and `[b, k, n]` against `[b, m, n]` the product of
    all elements is b^3 (m n k)^2, whichever operand lies transposed.
    """
    for one, other in combinations(operands, 2):
        ranks = {len(one.dims), len(other.dims)}
        if not ranks <= {2, 3} or not result.dims:
            continue
        batch = result.dims[0] if len(result.dims) == 3 and len(one.dims) == 3 else 1
        squared = one.elements * other.elements * result.elements
        mnk = isqrt(squared // batch) // batch if batch else 0
        inner = mnk * batch // result.elements if result.elements else 0
        if squared == batch * (batch * mnk) ** 2 and inner in one.dims and inner in other.dims:
            return 2.0 * batch * mnk
    raise Misfit


def _conv(operands: list[Tensor], result: Tensor) -> float:
    """2 x output elements x elements of one filter."""
    weights = [tensor for tensor in operands[1:] if len(tensor.dims) == len(operands[0].dims) > 2]
    if not weights or not weights[0].dims[0]:
        raise Misfit
    return 2.0 * result.elements * prod(weights[0].dims[1:])


def _attention(tensors: list[Tensor], *, backward: bool) -> float:
    """All pairs: which blocks a mask leaves out is not recorded, so that it is the most."""
    q, k, v = tensors[:3]
    if len(q.dims) != 4 or len(k.dims) != 4 or q.dims[-1] != k.dims[-1]:
        raise Misfit
    per_pair = 3 * q.dims[-1] + 2 * v.dims[-1] if backward else q.dims[-1] + v.dims[-1]
    return 2.0 * prod(q.dims[:-1]) * k.dims[-2] * per_pair
