"""A tree of time laid out for a picture: what is too short to be seen stands together, and every
sum stays.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from profharness.analysis.pictures.flame import ROOT, Tree, TreeKind
from profharness.analysis.pictures.records import Flame

TREES: tuple[TreeKind, ...] = ("module", "op", "stack")
"""The kinds of trees that a page draws."""
LEAST_SHARE = 0.001
"""Of all time: a frame of less is narrower than a pixel."""
MOST_FRAMES = 1_500
"""Drawn at once: more of them take a browser longer than a look is worth."""
MOST_LEVELS = 60
OTHERS = "others"


@dataclass(frozen=True)
class _Placed:
    name: str
    kind: str
    depth: int
    at: int
    length: int


def flame_of(tree: Tree, by: str) -> Flame | None:
    """The picture of a tree; None where it holds no time."""
    total = tree.total_ns
    if not total:
        return None
    inclusive = tree.with_inner()
    inside = _inside(tree, inclusive)
    least = max(int(total * LEAST_SHARE), 1)
    placed = list(_laid_out(tree, inclusive, inside, least))
    while len(placed) > MOST_FRAMES:
        least = least * 3 // 2 + 1
        placed = list(_laid_out(tree, inclusive, inside, least))
    names = tuple(dict.fromkeys(frame.name for frame in placed))
    kinds = tuple(dict.fromkeys(frame.kind for frame in placed))
    of_name = {name: place for place, name in enumerate(names)}
    return Flame(
        by=by,
        of_device=tree.of_device,
        total_ns=total,
        least_ns=least,
        names=names,
        kinds=kinds,
        name=tuple(of_name[frame.name] for frame in placed),
        kind=tuple(kinds.index(frame.kind) for frame in placed),
        depth=tuple(frame.depth for frame in placed),
        at=tuple(frame.at for frame in placed),
        length=tuple(frame.length for frame in placed),
    )


def _inside(tree: Tree, inclusive: list[int]) -> dict[int, list[int]]:
    """The frames in each frame, the longest first."""
    inside: dict[int, list[int]] = {}
    for number, holder in enumerate(tree.holders):
        inside.setdefault(holder, []).append(number)
    for held in inside.values():
        held.sort(key=lambda number: (-inclusive[number], tree.names[number]))
    return inside


def _laid_out(
    tree: Tree, inclusive: list[int], inside: dict[int, list[int]], least: int
) -> Iterator[_Placed]:
    waiting = [(ROOT, 0, 0)]
    while waiting:
        holder, depth, at = waiting.pop()
        left = 0
        for number in inside.get(holder, ()):
            length = inclusive[number]
            if length < least or depth >= MOST_LEVELS - 1:
                left += length
                continue
            yield _Placed(tree.names[number], tree.kinds[number], depth, at, length)
            waiting.append((number, depth + 1, at))
            at += length
        if left:
            yield _Placed(OTHERS, "others", depth, at, left)
