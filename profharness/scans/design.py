"""Which points of a grid of axes are measured, and in which order. Pure: the same seed gives the
same design.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence

from profharness.options.axes import design_size
from profharness.rundir.executions.axes import Axis

Setting = tuple[str, ...]
"""One value per axis, as written, in the order of the axes."""
_SWAPS_PER_POINT = 400


def settings_of(axes: Sequence[Axis], design: str, seed: int) -> tuple[Setting, ...]:
    """The settings of the full grid, the last axis varying fastest, or those of `lhs:N`."""
    size = design_size(design)
    if size is None:
        return tuple(itertools.product(*(axis.values for axis in axes)))
    return latin_hypercube(axes, size, seed)


def latin_hypercube(axes: Sequence[Axis], size: int, seed: int) -> tuple[Setting, ...]:
    """`size` distinct settings in which each axis has each of its values as often as any other, or
    once more (McKay, Beckman and Conover 1979, on axes of listed values).

    Settings that come twice are parted by swapping values of one axis between two of them, which
    keeps the balance; what cannot be parted gives way to settings of the grid that are unused.
    `size` must not exceed the grid.
    """
    shuffled = random.Random(seed)  # noqa: S311  a design, not a secret
    columns = [_column(len(axis.values), size, shuffled) for axis in axes]
    rows = [list(row) for row in zip(*columns, strict=True)]
    _part(rows, shuffled)
    chosen = dict.fromkeys(map(tuple, rows))
    if len(chosen) < size:
        unused = [
            row
            for row in itertools.product(*(range(len(axis.values)) for axis in axes))
            if row not in chosen
        ]
        chosen |= dict.fromkeys(shuffled.sample(unused, size - len(chosen)))
    return tuple(
        tuple(axis.values[at] for axis, at in zip(axes, row, strict=True)) for row in chosen
    )


def _column(levels: int, size: int, shuffled: random.Random) -> list[int]:
    """`size` positions among `levels`, each as often as any other or once more, at random."""
    whole, rest = divmod(size, levels)
    column = list(range(levels)) * whole + shuffled.sample(range(levels), rest)
    shuffled.shuffle(column)
    return column


def _part(rows: list[list[int]], shuffled: random.Random) -> None:
    """Swap values between rows until none comes twice, or it has been tried often enough."""
    counts = Counter(map(tuple, rows))
    for _ in range(_SWAPS_PER_POINT * len(rows)):
        twice = [at for at, row in enumerate(rows) if counts[tuple(row)] > 1]
        if not twice:
            return
        first, second = shuffled.choice(twice), shuffled.randrange(len(rows))
        axis = shuffled.randrange(len(rows[0]))
        for at in (first, second):
            counts[tuple(rows[at])] -= 1
        rows[first][axis], rows[second][axis] = rows[second][axis], rows[first][axis]
        for at in (first, second):
            counts[tuple(rows[at])] += 1


def rounds(points: int, repeats: int, seed: int) -> tuple[tuple[int, int], ...]:
    """(point, repeat) in the order of execution: every point once in each round, each round in a
    random order of its own, so that a drift of the machine meets all points alike.
    """
    shuffled = random.Random(seed)  # noqa: S311  an order
    order: list[tuple[int, int]] = []
    for repeat in range(repeats):
        turn = list(range(points))
        shuffled.shuffle(turn)
        order += [(point, repeat) for point in turn]
    return tuple(order)
