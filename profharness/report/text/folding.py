"""Long kernel names made short: template arguments and parameter lists folded, the rest kept
readable, and what tells two kernels apart kept always.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import accumulate

from profharness.analysis.kernels.mangled import readable

_OPEN = {"<": ">", "(": ")"}
_PREFIXES = ("void ", "__global__ ", "static ")
_SCOPE = re.compile(r"\(anonymous namespace\)::|\b\w+::")
_TOKEN = re.compile(r"[^A-Za-z0-9]*[A-Za-z0-9]+|[^A-Za-z0-9]+$")
_LONGEST_PIECE = 20
"""Characters of a difference between two names, where another follows."""

_TILE = re.compile(r"(?<=[A-Za-z0-9])_(?:MT|bt|tilesize)\d+x\d+x\d+")
"""How Tensile (`MT`), MIOpen's implicit products (`bt`) and cuDNN (`tilesize`) name a tile."""
_CK_TILE_BEGIN = re.compile(r"\bkentry<[\d, ]*")
_CK_TILE_ENTRY = re.compile(r"\bck_tile::kentry<[^<>]*?(?:ck_tile::)?([A-Za-z]\w+)(?=[<,>])")
_CK_TILE_SHAPE = re.compile(r"\bTileGemmShape<(?:ck_tile::)?sequence<(\d+), (\d+), (\d+)>")
_CK_SHAPE = re.compile(
    r"\bGridwiseGemm\w*_xdl_cshuffle.*?(?:PassThrough|(?:Enum|Specialization)\)? ?\d*), (?:1, )?"
    r"(?:64|128|256|512), (\d+), (\d+), (\d+), \d+, "
)
_CK_LAYOUT = re.compile(r"\b(Row|Column)Major\b")


def fold_kernel_name(name: str, width: int = 72) -> str:
    """`name` without template and parameter lists, cut in its middle when still longer than
    `width`. The tile of a product stays, of composable_kernel's with the layout of A, B and C where
    the name has it (R for rows, C for columns).

    `void at::native::vectorized_elementwise_kernel<4, ...>(int, ...)` becomes
    `at::native::vectorized_elementwise_kernel<…>`.
    """
    text = _bare(readable(name))
    folded = _with_tile(text, width) or _of_composable_kernel(text) or _fold(text)
    return cut_middle(_without_outer_scopes(folded, width) or name, width)


def _with_tile(text: str, width: int) -> str:
    """A name that ends with its tile; empty for a name without one, or one that fits."""
    tile = _TILE.search(text)
    if tile is None or len(text) <= width:
        return ""
    if tile.end() < width:
        return _cut_end(text, width)
    room = width - len(tile[0]) - 2
    return f"{text[:room]}…{tile[0]}…" if room > 0 else ""


def _of_composable_kernel(text: str) -> str:
    """A kernel of composable_kernel with the tile of its product; of one behind ck_tile's entry the
    kernel itself. Empty for another name.
    """
    entry = _CK_TILE_ENTRY.search(text)
    tile = _CK_TILE_SHAPE.search(text) if entry is not None else _CK_SHAPE.search(text)
    if entry is None and tile is None:
        return ""
    own = f"ck_tile::{entry[1]}<…>" if entry is not None else _fold(text)
    if tile is None:
        return own
    layout = [kind[0] for kind in _CK_LAYOUT.findall(text)[:3]]
    words = ("x".join(tile.groups()), "".join(layout) if len(layout) == 3 else "")
    return own.replace("<…>", f"<{' '.join(filter(None, words))} …>", 1)


def _without_outer_scopes(name: str, width: int) -> str:
    """Drop leading `scope::` parts, outermost first, while the name is longer than `width`."""
    while len(name) > width and "::" in name and not name.startswith("("):
        name = name.partition("::")[2]
    return name


def distinct_names(names: Sequence[str], width: int = 72) -> list[str]:
    """Each name folded to at most `width` characters; no two different names look alike.

    Those that would keep their template arguments, without scopes; if that does not tell them
    apart, they show where they differ, at last in their parameters; and where even that does not
    fit, they are numbered.
    """
    short = [fold_kernel_name(name, width) for name in names]
    for tell_apart in (_with_arguments, _differences_of(_plain), _differences_of(str)):
        for places in _alike(names, short):
            shown = tell_apart([names[index] for index in places], width)
            for index, text in zip(places, shown, strict=True):
                short[index] = text
    return numbered(names, short, width)


def whole_names(names: Sequence[str]) -> list[str]:
    """Each name whole, mangled ones readable: those that would then look alike stay as recorded."""
    shown = [readable(name) for name in names]
    for places in _alike(names, shown):
        for index in places:
            shown[index] = names[index]
    return shown


def _alike(names: Sequence[str], short: Sequence[str]) -> list[list[int]]:
    """The positions of different names that are shown alike, group by group."""
    return [
        places
        for places in _grouped(range(len(names)), short)
        if len({names[index] for index in places}) > 1
    ]


def _grouped(items: Sequence[int], keys: Sequence[Sequence[str]]) -> list[list[int]]:
    """The items of equal keys together, in order."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for item, key in zip(items, keys, strict=True):
        groups.setdefault(tuple(key), []).append(item)
    return list(groups.values())


def _with_arguments(group: Sequence[str], width: int) -> list[str]:
    """The names with template arguments and without scopes, cut at the end; one without a template
    as it folds.
    """
    return [
        _cut_end(_plain(name), width) if "<" in readable(name) else fold_kernel_name(name, width)
        for name in group
    ]


def _plain(name: str) -> str:
    """The name with template arguments, without scopes and parameters."""
    text = _SCOPE.sub("", _bare(_fold(readable(name), kept="<")))
    return _CK_TILE_BEGIN.sub("", text)


def _differences_of(spelled: Callable[[str], str]) -> Callable[[Sequence[str], int], list[str]]:
    """A function of names and width that shows each name's beginning, then the words in which it
    differs from those that begin as it does.
    """

    def shown(group: Sequence[str], width: int) -> list[str]:
        texts = [spelled(name) for name in group]
        words = [_TOKEN.findall(text) for text in texts]
        marks = [
            sorted(
                {*places, *(at for at, word in enumerate(own) if _TILE.fullmatch(f"x{word}", 1))}
            )
            for own, places in zip(words, _branchings(words), strict=True)
        ]
        return [_around(text, places, width) for text, places in zip(texts, marks, strict=True)]

    return shown


def _branchings(words: Sequence[Sequence[str]]) -> list[list[int]]:
    """For each text its words' positions at which another text that was equal so far goes on
    otherwise.
    """
    marks: list[list[int]] = [[] for _ in words]
    waiting = [(list(range(len(words))), 0)]
    while waiting:
        group, place = waiting.pop()
        parts = _grouped(group, [words[text][place : place + 1] for text in group])
        if len(parts) > 1:
            for text in group:
                marks[text].append(place)
        waiting += [
            (part, place + 1) for part in parts if len(part) > 1 and place < len(words[part[0]])
        ]
    return marks


def _around(text: str, marks: Sequence[int], width: int) -> str:
    """The beginning of a text, the words at `marks`, and what follows the last one."""
    words = _TOKEN.findall(text)
    starts = [0, *accumulate(len(word) for word in words)]
    shown = [mark for mark in marks if mark < len(words)]
    if not shown:
        return _cut_end(text, width)
    pieces = [words[mark][:_LONGEST_PIECE] for mark in shown[:-1]]
    tail = "…".join([*pieces, text[starts[shown[-1]] :]])
    room = max(width // 3, width - len(tail)) - 1
    first = starts[shown[0]]
    head = text[:first] if first <= room else f"{text[:room]}…"
    return _cut_end(head + tail, width)


def numbered(names: Sequence[str], short: list[str], width: int) -> list[str]:
    """The texts with a number behind those of different names that are still alike."""
    for places in _alike(names, short):
        number = 1
        for same in _grouped(places, [names[index] for index in places])[1:]:
            text = short[same[0]]
            while text in short:
                number += 1
                text = f"{short[same[0]][: width - len(str(number)) - 1]}~{number}"
            for index in same:
                short[index] = text
    return short


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
