"""Where the labels of a plot's points go, so that none covers another label or point."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

_GAP = 5.0
_STEPS = range(10)
_ACROSS = (1.6, 1.0, 0.5, 0.0, -0.5, -1.0, -1.6)
_DIRECTIONS = (
    (1.0, 0.0),
    (-1.0, 0.0),
    *((across, down) for down in (-1.0, 1.0) for across in sorted(_ACROSS, key=abs)),
)


@dataclass(frozen=True)
class Spot:
    """A point in the plot's area, in pixels from its left and top, with the radius of its mark."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels, y downwards."""

    left: float
    top: float
    right: float
    bottom: float

    def overlaps(self, other: Box) -> bool:
        return (
            self.left < other.right
            and other.left < self.right
            and self.top < other.bottom
            and other.top < self.bottom
        )

    def holds(self, other: Box) -> bool:
        return (
            self.left <= other.left
            and self.top <= other.top
            and self.right >= other.right
            and self.bottom >= other.bottom
        )


@dataclass(frozen=True)
class Place:
    """The middle of a label, in pixels right of and below its point."""

    dx: float
    dy: float


def place_labels(
    spots: Sequence[Spot],
    sizes: Sequence[tuple[float, float]],
    area: Box,
    taken: Sequence[Box] = (),
) -> list[Place | None]:
    """The places of labels of these (width, height); None for one that has no room. There is a spot
    for each label, and further ones whose marks must stay free; `taken` is what else must.

    The labels are placed one after the other in several orders, and the order counts that leaves
    the fewest out (of equally good ones that with the nearest labels).
    """
    marks = [_around(spot) for spot in spots]
    best: list[Place | None] = []
    for order in _orders(spots[: len(sizes)]):
        places = _placed(spots, sizes, order, area, (*taken, *marks))
        if not best or _cost(places) < _cost(best):
            best = places
        if None not in best:
            break
    return best


def _cost(places: Sequence[Place | None]) -> tuple[int, float]:
    return places.count(None), sum(abs(place.dx) + abs(place.dy) for place in places if place)


def _orders(spots: Sequence[Spot]) -> Iterator[list[int]]:
    """The order given, then from each side, then the given one begun elsewhere."""
    given = list(range(len(spots)))
    yield given
    for sign in (1, -1):
        yield sorted(given, key=lambda at: sign * spots[at].x)
        yield sorted(given, key=lambda at: sign * spots[at].y)
    for first in given[1:]:
        yield [*given[first:], *given[:first]]


def _placed(
    spots: Sequence[Spot],
    sizes: Sequence[tuple[float, float]],
    order: Sequence[int],
    area: Box,
    taken: Sequence[Box],
) -> list[Place | None]:
    """The first free place of each label, in this order."""
    places: list[Place | None] = [None] * len(sizes)
    boxes, leaders = list[Box](), list[_Leader]()
    for at in order:
        for place in _candidates(spots[at], sizes[at]):
            box, leader = _box(spots[at], place, sizes[at]), _Leader(spots[at], place)
            if (
                area.holds(box)
                and not any(box.overlaps(other) for other in (*boxes, *taken))
                and not any(other.crosses(box) for other in leaders)
                and not any(leader.crosses(other) for other in boxes)
            ):
                places[at] = place
                boxes.append(box)
                leaders.append(leader)
                break
    return places


@dataclass(frozen=True)
class _Leader:
    """The line from a point to the middle of its label."""

    spot: Spot
    place: Place

    def crosses(self, box: Box) -> bool:
        """Whether it passes through a box; looked at in steps that are smaller than any label."""
        steps = max(int(max(abs(self.place.dx), abs(self.place.dy)) / 4), 1)
        return any(
            box.left < self.spot.x + self.place.dx * step / steps < box.right
            and box.top < self.spot.y + self.place.dy * step / steps < box.bottom
            for step in range(steps + 1)
        )


def _candidates(spot: Spot, size: tuple[float, float]) -> Iterator[Place]:
    """Beside, above and below the mark, then further up and down."""
    width, height = size
    for step in _STEPS:
        away = spot.radius + _GAP + step * 1.2 * height
        for right, down in _DIRECTIONS:
            yield Place(right * (spot.radius + _GAP + width / 2), down * (away + height / 2))


def _box(spot: Spot, place: Place, size: tuple[float, float]) -> Box:
    x, y, (width, height) = spot.x + place.dx, spot.y + place.dy, size
    return Box(x - width / 2, y - height / 2, x + width / 2, y + height / 2)


def _around(spot: Spot) -> Box:
    return Box(
        spot.x - spot.radius, spot.y - spot.radius, spot.x + spot.radius, spot.y + spot.radius
    )
