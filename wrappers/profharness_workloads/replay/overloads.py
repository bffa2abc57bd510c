"""Which overload of an operator a recorded call was, by the schemas of the torch at hand, and what
each of its arguments gets. Nothing is evaluated: numbers are parsed, types come from a table.

A recorded argument is a dict: `{"kind": "tensor", "dims", "dtype", "strides"}`, `{"kind":
"tensors", "members"}`, or `{"kind": "value", "texts", "listed", "lost"}`, where `lost` says that
there was a number whose value is not recorded.
"""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional, Tuple

_TRUTH = {"True": True, "False": False}


class Unfit(Exception):  # noqa: N818  named by what happened
    """A recorded call that cannot be made; the text says why, in words for the user."""


class Slot(NamedTuple):
    """One argument of the call that will be made: its place in the schema, and either what was
    recorded (`given`) or the value that it gets.
    """

    name: str
    keyword: bool
    written: bool
    given: Optional[Dict[str, Any]] = None
    value: Any = None


class Choice(NamedTuple):
    """The overload, its arguments, and what was chosen because it is not recorded."""

    overload: str
    slots: Tuple[Slot, ...]
    chosen: Tuple[str, ...]


def number(text: str) -> Any:
    """`True`, `1`, `0.5`, `-inf` as a value. Raises Unfit for anything else."""
    if text in _TRUTH:
        return _TRUTH[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    raise Unfit("the value %r is no number" % text[:40])


def choose(overloads: Dict[str, Any], inputs: List[Dict[str, Any]], device: str) -> Choice:
    """The overload that fits the recorded arguments best. `overloads` are schemas by the names of
    overloads. Raises Unfit with the reason of the one that came closest.
    """
    fits: List[Tuple[int, Choice]] = []
    reasons: List[Tuple[int, str]] = []
    for name, schema in overloads.items():
        slots: List[Slot] = []
        chosen: List[str] = []
        try:
            cost = _fit(schema, inputs, device, slots, chosen)
        except Unfit as reason:
            reasons.append((len(slots), str(reason)))
            continue
        fits.append((cost, Choice(name, tuple(slots), tuple(chosen))))
    if not fits:
        raise Unfit(max(reasons, key=lambda reason: reason[0])[1] if reasons else "no overload")
    least = min(cost for cost, _ in fits)
    best = [choice for cost, choice in fits if cost == least]
    first = best[0]
    if len(best) > 1:
        others = ", ".join(choice.overload for choice in best[1:])
        return first._replace(
            chosen=(*first.chosen, "overload %s (%s would fit, too)" % (first.overload, others))
        )
    return first


def _fit(
    schema: Any, inputs: List[Dict[str, Any]], device: str, slots: List[Slot], chosen: List[str]
) -> int:
    """Fill `slots` and `chosen`; how far the call is from the schema. Raises Unfit."""
    arguments = schema.arguments
    if len(inputs) > len(arguments):
        raise Unfit("it has more arguments than this torch knows of")
    cost = 10 * (len(arguments) - len(inputs))
    for place, argument in enumerate(arguments):
        info = getattr(argument, "alias_info", None)
        slot = Slot(argument.name, bool(argument.kwarg_only), bool(info and info.is_write))
        given = inputs[place] if place < len(inputs) else None
        slot, extra, note = _filled(argument, given, slot, device)
        cost += extra
        slots.append(slot)
        if note:
            chosen.append(note)
    return cost


def _filled(
    argument: Any, given: Optional[Dict[str, Any]], slot: Slot, device: str
) -> Tuple[Slot, int, str]:
    """The slot with what it gets, a cost, and what was chosen."""
    kind = str(getattr(argument, "real_type", argument.type))
    optional = kind.startswith("Optional[")
    inner = kind[len("Optional[") : -1] if optional else kind
    if given is None or _is_nothing(given):
        lost = bool(given and given.get("lost"))
        return _without(argument, slot, inner, optional=optional, lost=lost, device=device)
    if given["kind"] == "tensor":
        if inner != "Tensor":
            raise Unfit("`%s` is no tensor in this torch" % argument.name)
        return slot._replace(given=given), 0, ""
    if given["kind"] == "tensors":
        if inner not in ("List[Tensor]", "List[Optional[Tensor]]"):
            raise Unfit("`%s` is no list of tensors in this torch" % argument.name)
        if not given["members"]:
            raise Unfit("the list `%s` is not recorded" % argument.name)
        return slot._replace(given=given), 0, ""
    value, cost = _value(given, inner, argument.name)
    return slot._replace(value=value), cost, ""


def _is_nothing(given: Dict[str, Any]) -> bool:
    return given["kind"] == "value" and not given["texts"] and not given["listed"]


def _without(
    argument: Any, slot: Slot, inner: str, *, optional: bool, lost: bool, device: str
) -> Tuple[Slot, int, str]:
    """What an argument gets of which nothing is recorded: its default, None, or this device."""
    name = argument.name
    if inner == "Device":
        return slot._replace(value=device), 0, "" if optional else "%s: %s" % (name, device)
    has_default = argument.has_default_value()
    if optional and not lost:
        value = argument.default_value if has_default and inner == "str" else None
        return slot._replace(value=value), 0, ""
    if has_default:
        value = argument.default_value
        return slot._replace(value=value), 1, "%s: %s (not recorded)" % (name, _shown(value))
    if optional:
        return slot._replace(value=None), 2, "%s: None (not recorded)" % name
    what = {"str": "text", "List[Tensor]": "list", "List[Optional[Tensor]]": "list"}.get(inner, "")
    if inner in ("Storage", "Stream", "Generator") or "__torch__" in inner:
        raise Unfit(
            "`%s` is of the type %s, which no trace holds" % (name, inner.rpartition(".")[2])
        )
    if inner == "Tensor":
        raise Unfit("the tensor `%s` is not recorded" % name)
    raise Unfit("the %s `%s` is not recorded" % (what or "value", name))


def _shown(value: Any) -> str:
    return "none" if value is None else str(value)


def _value(given: Dict[str, Any], inner: str, name: str) -> Tuple[Any, int]:
    """The value for an argument of the type `inner`, and how far it is from it. Raises Unfit."""
    values = [number(text) for text in given["texts"]]
    if inner.startswith("List["):
        element = inner[len("List[") : -1]
        if element in ("Tensor", "Optional[Tensor]"):
            raise Unfit("the list `%s` is not recorded" % name)
        cost = 0 if given["listed"] else 1
        costs = [_cost(value, element, name) for value in values]
        return [_as(value, element) for value in values], cost + max(costs or [0])
    if given["listed"] or len(values) != 1:
        raise Unfit("`%s` is no list in this torch" % name)
    cost = _cost(values[0], inner, name)
    return _as(values[0], inner), cost


_WHOLE = ("int", "ScalarType", "Layout", "MemoryFormat", "SymInt")


def _cost(value: Any, kind: str, name: str) -> int:
    """0 for a value of just this type, more for one that torch takes as well. Raises Unfit."""
    if kind in ("number", "Scalar"):
        return 0
    if kind == "bool" and isinstance(value, bool):
        return 0
    if kind in _WHOLE and isinstance(value, int):
        return 1 if isinstance(value, bool) else 0
    if kind in ("float", "SymFloat") and not isinstance(value, bool):
        return 0 if isinstance(value, float) else 1
    raise Unfit("`%s` is of the type %s in this torch" % (name, kind))


def _as(value: Any, kind: str) -> Any:
    return float(value) if kind in ("float", "SymFloat") else value
