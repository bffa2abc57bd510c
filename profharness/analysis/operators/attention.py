"""Scaled dot-product attention: pairs of query and key, operations and least bytes.

With P pairs per head, forward multiplies 2 B H P (depth of q and k + depth of v); backward forms
the scores again: 2 B H P (3 x depth of q and k + 2 x depth of v), the count of FlashAttention
(Dao et al., 2022). H are the query heads: keys and values that several of them share save bytes,
not work.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from profharness.analysis.operators.calls import Call, Tensor
from profharness.analysis.operators.entries import Attention, AttentionBackward
from profharness.analysis.operators.records import (
    NO_LENGTHS,
    NO_SHAPES,
    Given,
    Lengths,
    Misfit,
    Work,
    total,
    unknown,
)

_LSE_BYTES = 4
_TOP_LEFT, _BOTTOM_RIGHT = 1, 2


@dataclass(frozen=True)
class Pairs:
    """(query, key) pairs per head, summed over the sequences of a batch: those under the mask and
    all. `most` is the largest number that the shapes allow where `useful` is the least one.
    """

    useful: float
    full: float
    most: float | None = None


@dataclass(frozen=True)
class _Shape:
    """Extents by meaning; `rows` and `columns` are the query and key extents per sequence, or of
    all sequences where `tokens`.
    """

    batch: int
    heads: int
    rows: int
    columns: int
    depth_k: int
    depth_v: int
    tokens: bool


@dataclass(frozen=True)
class _Mask:
    """Which keys a query sees: `back` and `ahead` of its own place, None for no limit; its place
    is counted from the last key where `at_end`.
    """

    back: int | None = None
    ahead: int | None = None
    at_end: bool = False

    @property
    def limits(self) -> bool:
        return self.back is not None or self.ahead is not None


def work(entry: Attention | AttentionBackward, call: Call, given: Given) -> Work:
    """The work of attention, forward or (by one fused operator) backward. Raises Misfit."""
    shape = _shape(entry, call)
    if shape is None:
        return unknown(NO_SHAPES)
    pairs = _pairs(entry, call, shape, given)
    if pairs is None:
        return unknown(NO_LENGTHS)
    if isinstance(entry, Attention):
        return _forward(entry, call, shape, pairs, given)
    return _backward(entry, call, shape, pairs)


def _forward(entry: Attention, call: Call, shape: _Shape, pairs: Pairs, given: Given) -> Work:
    per_pair = 2.0 * shape.batch * shape.heads * (shape.depth_k + shape.depth_v)
    return _work(entry, call, pairs, per_pair, _moved(entry, call, shape, given))


def _backward(entry: AttentionBackward, call: Call, shape: _Shape, pairs: Pairs) -> Work:
    per_pair = 2.0 * shape.batch * shape.heads * (3 * shape.depth_k + 2 * shape.depth_v)
    places = (entry.grad, entry.q, entry.k, entry.v, entry.out, entry.lse, entry.bias)
    read = [call.tensor(place) for place in places]
    written = [call.tensor(place) for place in (entry.q, entry.k, entry.v)]
    moved = total(
        [
            *(tensor.size for tensor in read if tensor is not None),
            *(_whole_size(tensor) for tensor in written),
        ]
    )
    return _work(entry, call, pairs, per_pair, moved)


def _work(
    entry: Attention | AttentionBackward,
    call: Call,
    pairs: Pairs,
    per_pair: float,
    moved: float | None,
) -> Work:
    q = call.tensor(entry.q)
    return Work(
        per_pair * pairs.useful,
        moved,
        None if q is None or q.kind is None else q.kind.peak,
        flops_full=per_pair * pairs.full if pairs.full != pairs.useful else None,
        bound="" if pairs.most is None else "least",
        flops_most=None if pairs.most is None else per_pair * pairs.most,
        matrix=True,
    )


def _shape(entry: Attention | AttentionBackward, call: Call) -> _Shape | None:
    """None where the tensors are not recorded. Raises Misfit where their ranks are not those of the
    layout.
    """
    q, k, v = (call.tensor(place) for place in (entry.q, entry.k, entry.v))
    if q is None or k is None or v is None:
        if max(entry.q, entry.k, entry.v) >= len(call.inputs):
            raise Misfit
        return None
    if entry.layout == "bhsd":
        return _heads_first(q, k, v)
    if entry.paged:
        return _paged(q, k, v)
    tokens = entry.layout == "thd" or len(q.dims) == 3 or call.tensor(entry.cu_q) is not None
    if len(q.dims) == 4 and entry.layout == "bshd":
        batch, rows, heads, depth = q.dims
    elif len(q.dims) == 3 and tokens:
        (rows, heads, depth), batch = q.dims, 1
    else:
        raise Misfit
    if len(k.dims) != len(q.dims):  # a paged cache holds more keys than the batch has
        return _Shape(batch, heads, rows, -1, depth, v.dims[-1], tokens=True)
    if depth != k.dims[-1] or k.dims[-3] != v.dims[-3]:
        raise Misfit
    return _Shape(batch, heads, rows, k.dims[-3], depth, v.dims[-1], tokens)


def _heads_first(q: Tensor, k: Tensor, v: Tensor) -> _Shape:
    if min(len(q.dims), len(k.dims), len(v.dims)) < 2:
        raise Misfit
    if q.dims[-1] != k.dims[-1] or k.dims[-2] != v.dims[-2]:
        raise Misfit
    heads = prod(q.dims[1:-2])
    batch = q.dims[0] if len(q.dims) > 2 else 1
    return _Shape(batch, heads, q.dims[-2], k.dims[-2], q.dims[-1], v.dims[-1], tokens=False)


def _paged(q: Tensor, k: Tensor, v: Tensor) -> _Shape:
    """Queries as tokens, keys in the pages of a cache: heads and depths are all that they say."""
    if len(q.dims) != 3 or not k.dims or not v.dims:
        raise Misfit
    return _Shape(1, q.dims[1], q.dims[0], -1, k.dims[-1], v.dims[-1], tokens=True)


def _pairs(
    entry: Attention | AttentionBackward, call: Call, shape: _Shape, given: Given
) -> Pairs | None:
    """None where only lengths that are not recorded would tell."""
    causal, at_end = _causal(entry, call)
    if entry.paged or shape.columns < 0:
        lengths = _of_step(shape, given)
        if lengths is None or causal is None:
            return None
        return _of_sums(lengths, _limits(entry, call, causal=causal, at_end=at_end))
    if causal is None:
        return _of_unknown_mask(entry, call, shape, at_end=at_end)
    return _masked(entry, call, shape, _limits(entry, call, causal=causal, at_end=at_end))


def _of_step(shape: _Shape, given: Given) -> Lengths | None:
    """The lengths in the annotation of a server's step, which keep one sequence apart from another
    and the mask aligned at the last key.
    """
    return None if given.step is None else given.step.of_rows(shape.batch * shape.rows)


def _of_sums(lengths: Lengths, mask: _Mask) -> Pairs | None:
    """None where the mask has a sliding window: the sums of a step do not say how many keys of each
    sequence it holds.
    """
    if mask.back is not None or mask.ahead not in (None, 0):
        return None
    return Pairs(lengths.causal if mask.ahead == 0 else lengths.products, lengths.products)


def _of_unknown_mask(
    entry: Attention | AttentionBackward, call: Call, shape: _Shape, *, at_end: bool
) -> Pairs | None:
    """Whether a causal mask was asked for is not recorded: between the pairs with and without."""
    least, every = (
        _masked(entry, call, shape, _limits(entry, call, causal=causal, at_end=at_end))
        for causal in (True, False)
    )
    if least is None or every is None:
        return None
    return Pairs(least.useful, every.full, every.useful if every.most is None else every.most)


def _masked(
    entry: Attention | AttentionBackward, call: Call, shape: _Shape, mask: _Mask
) -> Pairs | None:
    if not shape.tokens:
        every = float(shape.rows * shape.columns)
        return Pairs(_counted(shape.rows, shape.columns, mask), every)
    lengths = call.tensor(entry.cu_q)
    if lengths is None or not lengths.dims:
        return None
    rows, columns = shape.rows * shape.batch, shape.columns * shape.batch
    longest = (call.integer(entry.max_q), call.integer(entry.max_k))
    return _of_tokens(rows, columns, max(lengths.elements - 1, 1), longest, mask)


def _causal(entry: Attention | AttentionBackward, call: Call) -> tuple[bool | None, bool]:
    """Whether the mask is causal (None: not recorded), and whether it is aligned at the end."""
    if entry.mask_type is not None:
        form = call.integer(entry.mask_type)
        causal = None if form is None else form in (_TOP_LEFT, _BOTTOM_RIGHT)
        return causal, form == _BOTTOM_RIGHT
    causal = entry.causal if isinstance(entry.causal, bool) else call.flag(entry.causal)
    return causal, entry.align == "bottom-right"


def _limits(
    entry: Attention | AttentionBackward, call: Call, *, causal: bool, at_end: bool
) -> _Mask:
    back, ahead = (
        (call.integer(entry.window[0]), call.integer(entry.window[1]))
        if entry.window is not None
        else (None, None)
    )
    back = None if back is None or back < 0 else back
    ahead = None if ahead is None or ahead < 0 else ahead
    return _Mask(back, 0 if causal else ahead, at_end)


def _counted(rows: int, columns: int, mask: _Mask) -> float:
    """Pairs under a mask: of row i, keys from i + shift - back to i + shift + ahead."""
    if not mask.limits:
        return float(rows * columns)
    shift = columns - rows if mask.at_end else 0
    below = 0 if mask.back is None else _clipped(rows, shift - mask.back, columns)
    above = (
        rows * columns if mask.ahead is None else _clipped(rows, shift + mask.ahead + 1, columns)
    )
    return float(max(above - below, 0))


def _clipped(rows: int, first: int, top: int) -> int:
    """The sum of min(max(i + first, 0), top) over the rows i."""
    start = min(max(-first, 0), rows)
    end = min(max(top - first, start), rows)
    between = (end - start) * first + (end * (end - 1) - start * (start - 1)) // 2
    return between + (rows - end) * top


def _of_tokens(
    rows: int, columns: int, sequences: int, longest: tuple[int | None, int | None], mask: _Mask
) -> Pairs:
    """Sequences of unknown lengths, whose sums are the numbers of query and key tokens.

    One sequence is known, and so are sequences of one query each, which meets all of its keys.
    Where queries and keys are as many, each sequence is taken to have as many of both: pairs are
    fewest where all are equally long, and most where as many as possible are the longest.
    Otherwise a causal query meets those before it, and every token is met at least once.
    """
    causal, every = mask.ahead == 0, float(rows * columns)
    if sequences == 1:
        return Pairs(_counted(rows, columns, mask), every)
    if rows == sequences and mask.back is None:
        return Pairs(float(columns if mask.at_end or not causal else rows), float(columns))
    longest_q, longest_k = longest[0] or rows, longest[1] or columns
    most = float(min(rows * longest_k, columns * longest_q))
    same = rows == columns and longest_q == longest_k
    equal = rows * rows / sequences
    full = equal if same else float(max(rows, columns))
    if mask.back is not None or (causal and not mask.at_end and not same):
        return Pairs(float(rows), full, most)
    if not causal:
        return Pairs(full, full, most)
    return Pairs((equal + rows) / 2, max(full, equal), (most + rows) / 2 if same else most)


def _moved(entry: Attention, call: Call, shape: _Shape, given: Given) -> float | None:
    """q, k and v are read (of a paged cache the keys that the lengths say), the result is written,
    with a bias read and the log-sum-exp written where the call says so.
    """
    q, k, v, bias = (call.tensor(place) for place in (entry.q, entry.k, entry.v, entry.bias))
    if q is None or k is None or v is None or q.kind is None:
        return None
    queries = shape.batch * shape.heads * shape.rows
    kept = (
        _cache_bytes(k, v, _of_step(shape, given)) if shape.columns < 0 else total((k.size, v.size))
    )
    written = queries * shape.depth_v * q.kind.item_bytes
    statistics = _LSE_BYTES * queries if entry.lse is not None and call.flag(entry.lse) else 0
    return total((q.size, kept, 0 if bias is None else bias.size, written, statistics))


def _cache_bytes(k: Tensor, v: Tensor, lengths: Lengths | None) -> float | None:
    """Keys and values of a cache, laid out as [.., heads, depth]."""
    if lengths is None or k.kind is None or v.kind is None or len(k.dims) < 2:
        return None
    return lengths.keys * (
        prod(k.dims[-2:]) * k.kind.item_bytes + prod(v.dims[-2:]) * v.kind.item_bytes
    )


def _whole_size(tensor: Tensor | None) -> float | None:
    if tensor is None or tensor.kind is None:
        return None
    return tensor.elements * tensor.kind.item_bytes
