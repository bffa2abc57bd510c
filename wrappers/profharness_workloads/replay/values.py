"""What stands in the tensors of a replay: no trace holds it, so it is chosen, and named.

Numbers are such that repeated calls neither overflow soon nor end in denormal numbers, on which
processors are slow; indices are such that they exist.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, NamedTuple, Optional

Sizes = Dict[str, Any]
LOW, HIGH = 0.5, 1.0  # of floating-point numbers
MOST_WHOLE = 100


class Filling(NamedTuple):
    """What a tensor holds: whole numbers from `low` to `high`, the end left out, where `whole`;
    `sorted` ones rise. `says` names the choice.
    """

    low: float = LOW
    high: float = HIGH
    rising: bool = False
    says: str = ""


def _rows_of(other: str, axis: int = 0) -> Callable[[Sizes], int]:
    """The extent of another argument along an axis."""

    def limit(sizes: Sizes) -> int:
        dims = sizes[other]
        return int(dims[axis]) if dims else 1

    return limit


def _along(other: str) -> Callable[[Sizes], int]:
    """The extent of another argument along the axis that `dim` names."""

    def limit(sizes: Sizes) -> int:
        dims = sizes[other]
        return int(dims[int(sizes["dim"])]) if dims else 1

    return limit


def _classes(sizes: Sizes) -> int:
    dims = sizes["self"]
    return int(dims[1] if len(dims) > 1 else dims[0])


def _plane(sizes: Sizes) -> int:
    """Places of the input of a pooling in two dimensions."""
    dims = sizes["self"]
    return int(dims[-1]) * int(dims[-2])


def _number(name: str) -> Callable[[Sizes], int]:
    return lambda sizes: int(sizes[name])


def _elements(sizes: Sizes) -> int:
    count = 1
    for extent in sizes["self"]:
        count *= int(extent)
    return count


_LIMITS: Dict[str, Dict[str, Callable[[Sizes], int]]] = {
    "embedding": {"indices": _rows_of("weight")},
    "embedding_dense_backward": {"indices": _number("num_weights")},
    "embedding_backward": {"indices": _number("num_weights")},
    "_embedding_bag": {"indices": _rows_of("weight")},
    "_embedding_bag_forward_only": {"indices": _rows_of("weight")},
    "embedding_bag": {"indices": _rows_of("weight")},
    "index_select": {"index": _along("self")},
    "index_add": {"index": _along("self")},
    "index_copy": {"index": _along("self")},
    "index_fill": {"index": _along("self")},
    "index_reduce": {"index": _along("self")},
    "gather": {"index": _along("self")},
    "scatter": {"index": _along("self")},
    "scatter_add": {"index": _along("self")},
    "scatter_reduce": {"index": _along("self")},
    "nll_loss": {"target": _classes},
    "nll_loss_forward": {"target": _classes},
    "nll_loss_backward": {"target": _classes},
    "nll_loss2d": {"target": _classes},
    "nll_loss2d_forward": {"target": _classes},
    "nll_loss2d_backward": {"target": _classes},
    "nll_loss_nd": {"target": _classes},
    "cross_entropy_loss": {"target": _classes},
    "one_hot": {"self": _number("num_classes")},
    "take": {"index": _elements},
    "max_pool2d_with_indices_backward": {"indices": _plane},
}
"""Which whole numbers exist for an argument, by operator."""

_LIKE_INDICES = ("index", "indices", "idx", "target", "offset")


def filling(operator: str, argument: str, dtype: str, sizes: Sizes) -> Filling:
    """What the tensor `argument` of `aten::operator` holds; `sizes` are extents of the tensors and
    values of the numbers, by argument.
    """
    if dtype == "bool":
        return Filling(0, 2, says="%s: half of it true" % argument)
    if not _is_whole(dtype):
        return Filling()
    rule = _LIMITS.get(operator.rstrip("_"), {}).get(argument)
    if rule is not None:
        try:
            most = max(1, rule(sizes))
        except (KeyError, IndexError, TypeError, ValueError):
            most = 1
        return Filling(0, most, says="%s: evenly spread from 0 to %d" % (argument, most - 1))
    if argument == "offsets" and "indices" in sizes:
        count = max(1, int((sizes["indices"] or [1])[0]))
        return Filling(0, count, rising=True, says="offsets: rising from 0 to %d" % (count - 1))
    if any(word in argument for word in _LIKE_INDICES):
        return Filling(0, 1, says="%s: all 0, since what exists is not known" % argument)
    return Filling(
        1, MOST_WHOLE, says="%s: whole numbers from 1 to %d" % (argument, MOST_WHOLE - 1)
    )


def _is_whole(dtype: str) -> bool:
    return dtype.startswith(("int", "uint")) or dtype in ("qint8", "quint8", "qint32")


def fill(torch: Any, flat: Any, what: Filling) -> None:
    """Fill a tensor of one dimension, in place."""
    if not flat.numel():
        return
    if flat.dtype == torch.bool:
        flat.copy_(torch.rand(flat.numel(), device=flat.device) < 0.5)
    elif flat.dtype.is_floating_point or flat.dtype.is_complex:
        _fill_real(torch, flat)
    else:
        high = int(min(what.high, torch.iinfo(flat.dtype).max))
        flat.copy_(torch.randint(int(what.low), max(high, int(what.low) + 1), (flat.numel(),)))
        if what.rising:
            flat.copy_(flat.sort().values)
            flat[0] = int(what.low)


def _fill_real(torch: Any, flat: Any) -> None:
    """Piece by piece, so that no second tensor of this size is needed for types without a
    generator of their own.
    """
    piece = 1 << 22
    for start in range(0, flat.numel(), piece):
        part = flat[start : start + piece]
        values = torch.rand(part.numel(), device=flat.device) * (HIGH - LOW) + LOW
        part.copy_(values.to(part.dtype))


def sizes_of(slots: Any) -> Sizes:
    """Extents of tensors and values of numbers by argument, for the rules above."""
    sizes: Sizes = {}
    for slot in slots:
        given: Optional[Dict[str, Any]] = slot.given
        if given is None:
            sizes[slot.name] = slot.value
        elif given["kind"] == "tensor":
            sizes[slot.name] = given["dims"]
        else:
            members: List[Any] = given["members"]
            sizes[slot.name] = members
    return sizes
