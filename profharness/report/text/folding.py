"""Long kernel names made short: template arguments and parameter lists folded, the rest kept
readable.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import takewhile

_OPEN = {"<": ">", "(": ")"}
_PREFIXES = ("void ", "__global__ ", "static ")
_SCOPE = re.compile(r"\(anonymous namespace\)::|\b\w+::")


def fold_kernel_name(name: str, width: int = 72) -> str:
    """`name` without template and parameter lists, cut in its middle when still longer than
    `width`.

    `void at::native::vectorized_elementwise_kernel<4, ...>(int, ...)` becomes
    `at::native::vectorized_elementwise_kernel<…>`.
    """
    return cut_middle(_without_outer_scopes(_bare(_fold(name)), width) or name, width)


def _without_outer_scopes(name: str, width: int) -> str:
    """Drop leading `scope::` parts, outermost first, while the name is longer than `width`."""
    while len(name) > width and "::" in name and not name.startswith("("):
        name = name.partition("::")[2]
    return name


def distinct_names(names: Sequence[str], width: int = 72) -> list[str]:
    """Each name folded; those that would then look alike are told apart.

    They keep their template arguments, without scopes, and if that does not fit either, they show
    the part from which they differ.
    """
    short = [fold_kernel_name(name, width) for name in names]
    for tell_apart in (_with_arguments, _from_difference):
        alike: dict[str, list[int]] = {}
        for index, shown in enumerate(short):
            alike.setdefault(shown, []).append(index)
        for places in alike.values():
            group = [names[index] for index in places]
            if len(set(group)) > 1:
                for index, shown in zip(places, tell_apart(group, width), strict=True):
                    short[index] = shown
    return short


def _with_arguments(group: Sequence[str], width: int) -> list[str]:
    """The names with template arguments and without scopes, cut at the end; one without a template
    as it folds.
    """
    return [
        _cut_end(_SCOPE.sub("", _bare(_fold(name, kept="<"))), width)
        if "<" in name
        else fold_kernel_name(name, width)
        for name in group
    ]


def _from_difference(group: Sequence[str], width: int) -> list[str]:
    """The beginning, then what follows the part that all names of the group share."""
    plain = [_SCOPE.sub("", _bare(_fold(name, kept="<"))) for name in group]
    shared, head = (
        sum(1 for _ in takewhile(lambda chars: len(set(chars)) == 1, zip(*plain, strict=False))),
        width // 3,
    )
    if shared <= head:
        return [_cut_end(name, width) for name in plain]
    return [
        _cut_end(f"{name[: head - 1]}…{name[max(shared - 3, head) :]}", width) for name in plain
    ]


def _bare(name: str) -> str:
    for prefix in _PREFIXES:
        name = name.removeprefix(prefix)
    return name.strip()


def _cut_end(text: str, width: int) -> str:
    return text if len(text) <= width else f"{text[: width - 1]}…"


def cut_middle(text: str, width: int) -> str:
    """`text` itself, or its beginning and end around one `…` so that it has `width` characters (3
    at least).
    """
    if len(text) <= width:
        return text
    keep = max(width - 1, 2)
    tail = max(keep // 3, 1)
    return f"{text[: keep - tail]}…{text[-tail:]}"


def _fold(name: str, kept: str = "") -> str:
    """Replace outermost `<...>` by `<…>` and drop outermost `(...)`; unbalanced names are left
    alone.

    Groups that open with `kept` stay as they are. A name such as `(anonymous namespace)::copy`
    keeps its first group: only a group that follows a word is a list.
    """
    out: list[str] = []
    stack: list[str] = []
    for index, char in enumerate(name):
        if stack:
            if char in _OPEN:
                stack.append(_OPEN[char])
            elif char == stack[-1]:
                stack.pop()
                if not stack and char == ">":
                    out.append("<…>")
            continue
        before = name[index - 1] if index else " "
        if char in _OPEN and char != kept and (before.isalnum() or before in "_>"):
            stack.append(_OPEN[char])
        else:
            out.append(char)
    return name if stack else "".join(out)
