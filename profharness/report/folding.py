"""Long kernel names made short: template arguments and parameter lists folded, the rest kept readable."""

from __future__ import annotations

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
    return cut_middle(short.strip() or name, width)


def cut_middle(text: str, width: int) -> str:
    """`text` itself, or its beginning and end around one `…` so that it has `width` characters."""
    if len(text) <= width:
        return text
    keep = max(width - 1, 2)
    return f"{text[:keep - keep // 3]}…{text[-(keep // 3):]}"


def _fold(name: str) -> str:
    """Replace outermost `<...>` by `<…>` and drop outermost `(...)`; unbalanced names are left alone.

    A name such as `(anonymous namespace)::copy` keeps its first group: only a group that follows a word is a list.
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
        if char in _OPEN and (before.isalnum() or before in "_>"):
            stack.append(_OPEN[char])
        else:
            out.append(char)
    return name if stack else "".join(out)
