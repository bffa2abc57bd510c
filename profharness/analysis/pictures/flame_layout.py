"""A tree of time laid out for a picture: what is too short to be seen stands together, and every
sum stays.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

from profharness.analysis.pictures.flame import ROOT, FrameKind, Tree, TreeKind
from profharness.analysis.pictures.records import Flame

TREES: tuple[TreeKind, ...] = ("module", "op", "stack")
"""The kinds of trees that a page draws."""
SAMPLED = "samples"
"""What a picture is by that draws sampled stacks of Python."""
LEAST_SHARE = 0.001
"""Of all time: a frame of less is narrower than a pixel."""
MOST_FRAMES = 1_500
"""Drawn at once: more of them take a browser longer than a look is worth."""
MOST_LEVELS = 60
OTHERS: FrameKind = "others"


@dataclass(frozen=True)
class _Placed:
    name: str
    kind: str
    depth: int
    at: int
    length: int


def flame_of(tree: Tree, by: str, most: int = MOST_FRAMES) -> Flame | None:
    """The picture of a tree, of at most `most` frames; None where it holds no time."""
    total = tree.total_ns
    if not total:
        return None
    inclusive = tree.with_inner()
    inside = _inside(tree, inclusive)
    least = max(int(total * LEAST_SHARE), 1)
    placed = list(_laid_out(tree, inclusive, inside, least))
    while len(placed) > most:
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


def joined(flames: Sequence[Flame]) -> Flame | None:
    """One picture of several of a kind, with the times of each path summed; None without any.
    Where some are of device time, those of the host's time are left out.
    """
    of_device = any(flame.of_device for flame in flames)
    tree = Tree(of_device)
    for flame in flames:
        if flame.of_device == of_device:
            _grow(tree, flame)
    return flame_of(tree, flames[0].by) if flames else None


def _grow(tree: Tree, flame: Flame) -> None:
    """Take up the frames of a picture: what holds a frame is the one above it that spans it."""
    above: list[tuple[int, int]] = []  # where a frame of the level above begins, and its number
    level: list[tuple[int, int]] = []
    columns = zip(flame.depth, flame.at, flame.length, flame.name, flame.kind, strict=True)
    depth = 0
    for deep, at, length, name, kind in sorted(columns):
        if deep > depth:
            above, level, depth = level, [], deep
        holder = above[bisect_right(above, at, key=lambda frame: frame[0]) - 1][1] if deep else ROOT
        number = tree.frame(holder, flame.names[name], cast("FrameKind", flame.kinds[kind]))
        level.append((at, number))
        tree.own_ns[number] += length
        if deep:
            tree.own_ns[holder] -= length


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
            if length < least or depth >= MOST_LEVELS - 1 or tree.kinds[number] == OTHERS:
                left += length
                continue
            yield _Placed(tree.names[number], tree.kinds[number], depth, at, length)
            waiting.append((number, depth + 1, at))
            at += length
        if left:
            yield _Placed(OTHERS, OTHERS, depth, at, left)
