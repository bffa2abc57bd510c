"""The arguments of a replayed call: tensors with the recorded extents, strides and types.

Before anything is made, it is counted how much memory it takes; results are counted by a call on
torch's device `meta`, which computes extents alone.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Sequence, Tuple

from profharness_workloads.replay.overloads import Choice, Slot, Unfit
from profharness_workloads.replay.values import Sizes, fill, filling, sizes_of

MOST_ELEMENTS = 1 << 46  # beyond any memory, and far from where 64 bits end


class Laid(NamedTuple):
    """One tensor as it will lie in memory: `stored` elements, of which the view with these strides
    shows the recorded extents.
    """

    dims: Tuple[int, ...]
    strides: Tuple[int, ...]
    dtype: str
    stored: int


class Call(NamedTuple):
    """A call that is ready to be made. `written` pairs each tensor that the call writes with what
    it held at first.
    """

    positional: Tuple[Any, ...]
    keywords: Dict[str, Any]
    written: Tuple[Tuple[Any, Any], ...]
    chosen: Tuple[str, ...]


def laid(dims: Sequence[int], dtype: str, strides: Optional[Sequence[int]]) -> Laid:
    """Where the elements of a tensor lie: contiguous, where no strides are recorded. Raises Unfit
    for more than any memory holds.
    """
    if strides is None:
        steps: List[int] = []
        step = 1
        for extent in reversed(dims):
            steps.insert(0, step)
            step *= max(1, extent)
        strides = steps
    stored = 0
    if all(dims):
        stored = 1 + sum((extent - 1) * step for extent, step in zip(dims, strides))
    if stored > MOST_ELEMENTS:
        raise Unfit("a tensor of it has more elements than any memory holds")
    return Laid(tuple(dims), tuple(strides), dtype, stored)


def dtype_of(torch: Any, name: str) -> Any:
    """The type of that name. Raises Unfit where this torch has none."""
    found = getattr(torch, name, None)
    if not isinstance(found, torch.dtype):
        raise Unfit("this torch has no element type %s" % (name or "of that name")[:40])
    return found


def tensors_of(slot: Slot, list_type: str) -> List[Laid]:
    """The tensors of one argument; of a list with the type chosen for it. Raises Unfit."""
    given = slot.given
    if given is None:
        return []
    if given["kind"] == "tensor":
        if not given["dtype"]:
            raise Unfit("the element type of `%s` is not known" % slot.name)
        return [laid(given["dims"], given["dtype"], given["strides"])]
    steps = given.get("strides") or [None] * len(given["members"])
    return [laid(dims, list_type, one) for dims, one in zip(given["members"], steps)]


def bytes_of(torch: Any, choice: Choice, list_type: str) -> int:
    """Bytes of all arguments; those that are written are kept twice."""
    total = 0
    for slot in choice.slots:
        for one in tensors_of(slot, list_type):
            size = one.stored * torch.empty((), dtype=dtype_of(torch, one.dtype)).element_size()
            total += 2 * size if slot.written else size
    return total


def build(torch: Any, operator: str, choice: Choice, list_type: str, place: Any) -> Call:
    """Make and fill the arguments on a device. Raises Unfit."""
    sizes = sizes_of(choice.slots)
    positional: List[Any] = []
    keywords: Dict[str, Any] = {}
    written: List[Tuple[Any, Any]] = []
    chosen = list(choice.chosen)
    for slot in choice.slots:
        value = slot.value
        if slot.given is not None:
            made = [
                _made(torch, one, place, (operator, slot.name, sizes), chosen)
                for one in tensors_of(slot, list_type)
            ]
            if slot.written:
                written += [(one, one.detach().clone()) for one in made]
            value = made if slot.given["kind"] == "tensors" else made[0]
            if slot.given["kind"] == "tensors":
                chosen.append("%s: element type %s" % (slot.name, list_type))
        if slot.keyword:
            keywords[slot.name] = value
        else:
            positional.append(value)
    return Call(tuple(positional), keywords, tuple(written), tuple(dict.fromkeys(chosen)))


def _made(
    torch: Any, one: Laid, place: Any, about: Tuple[str, str, Sizes], chosen: List[str]
) -> Any:
    dtype = dtype_of(torch, one.dtype)
    flat = torch.empty(one.stored, dtype=dtype, device=place)
    if place.type != "meta":
        operator, name, sizes = about
        what = filling(operator, name, one.dtype, sizes)
        fill(torch, flat, what)
        if what.says:
            chosen.append(what.says)
    return torch.as_strided(flat, one.dims, one.strides)


def result_bytes(torch: Any, run: Any, operator: str, choice: Choice, list_type: str) -> int:
    """Bytes that the call's results take, by a call that computes nothing; 0 where torch cannot
    tell beforehand (a result whose extent depends on values, an operator that cannot do it).
    """
    try:
        call = build(torch, operator, choice, list_type, torch.device("meta"))
        result = run(*call.positional, **_on_meta(torch, call.keywords))
    except Unfit:
        raise
    except Exception:  # what torch cannot tell is bounded by the limit on the process instead
        return 0
    found = result if isinstance(result, (tuple, list)) else [result]
    return sum(one.numel() * one.element_size() for one in found if isinstance(one, torch.Tensor))


def _on_meta(torch: Any, keywords: Dict[str, Any]) -> Dict[str, Any]:
    """The same arguments for a factory: what it makes has no elements either."""
    if "device" not in keywords:
        return keywords
    return dict(keywords, device=torch.device("meta"))
