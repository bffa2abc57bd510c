"""Long kernel names made short: template arguments and parameter lists folded, the rest kept readable."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

_OPEN = {"<": ">", "(": ")"}
_PREFIXES = ("void ", "__global__ ", "static ")


def fold_kernel_name(name: str, width: int = 72) -> str:
    """`name` without template and parameter lists, cut in its middle when still longer than `width`.

    `void at::native::vectorized_elementwise_kernel<4, ...>(int, ...)` becomes
    `at::native::vectorized_elementwise_kernel<…>`.
    """
    short = _fold(name)
    for prefix in _PREFIXES:
        short = short.removeprefix(prefix)
    return cut_middle(_without_outer_scopes(short.strip(), width) or name, width)


def _without_outer_scopes(name: str, width: int) -> str:
    """Drop leading `scope::` parts, outermost first, while the name is longer than `width`."""
    while len(name) > width and "::" in name and not name.startswith("("):
        name = name.partition("::")[2]
    return name


def distinct_names(names: Sequence[str], width: int = 72) -> list[str]:
    """Each name folded; those that would then look alike keep their template arguments, without scopes, as far as they fit."""
    folded = [fold_kernel_name(name, width) for name in names]
    counts = Counter(folded)
    return [_with_arguments(name, width) if counts[short] > 1 and name != short else short
            for name, short in zip(names, folded, strict=True)]


def _with_arguments(name: str, width: int) -> str:
    short = _fold(name, kept="<")
    for prefix in _PREFIXES:
        short = short.removeprefix(prefix)
    short = re.sub(r"\(anonymous namespace\)::|\b\w+::", "", short).strip() or name
    return short if len(short) <= width else f"{short[: width - 1]}…"


def cut_middle(text: str, width: int) -> str:
    """`text` itself, or its beginning and end around one `…` so that it has `width` characters (3 at least)."""
    if len(text) <= width:
        return text
    keep = max(width - 1, 2)
    tail = max(keep // 3, 1)
    return f"{text[:keep - tail]}…{text[-tail:]}"


def _fold(name: str, kept: str = "") -> str:
    """Replace outermost `<...>` by `<…>` and drop outermost `(...)`; unbalanced names are left alone.

    Groups that open with `kept` stay as they are. A name such as `(anonymous namespace)::copy` keeps its first group: only a group that follows a word is a list.
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
