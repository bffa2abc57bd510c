"""Labels cover neither each other nor any point, and lie in the plot."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.report.plots.label_places import Box, Spot, place_labels

AREA = Box(0, 0, 600, 400)
SPOTS = st.lists(
    st.builds(Spot, st.floats(0, 600), st.floats(0, 400), st.floats(2, 20)), min_size=1, max_size=12
)


def cover(a, b):
    """Whether two boxes share more than an edge."""
    return min(a.right, b.right) > max(a.left, b.left) and (
        min(a.bottom, b.bottom) > max(a.top, b.top)
    )


def inside(spot, place, box):
    """How many pixels of the line from a point to its label's middle lie inside of a box, along the
    axis on which the line is longer.
    """
    enter, leave = 0.0, 1.0
    for start, way, low, high in (
        (spot.x, place.dx, box.left, box.right),
        (spot.y, place.dy, box.top, box.bottom),
    ):
        if way:
            near, far = sorted(((low - start) / way, (high - start) / way))
            enter, leave = max(enter, near), min(leave, far)
        elif not low < start < high:
            return 0.0
    return max(leave - enter, 0.0) * max(abs(place.dx), abs(place.dy))


def boxes(spots, places, size):
    return [
        Box(
            spot.x + place.dx - size[0] / 2,
            spot.y + place.dy - size[1] / 2,
            spot.x + place.dx + size[0] / 2,
            spot.y + place.dy + size[1] / 2,
        )
        for spot, place in zip(spots, places, strict=False)
        if place is not None
    ]


@settings(max_examples=40)
@given(SPOTS, st.integers(1, 8), st.floats(20, 150))
def test_no_label_covers_anything(spots, labels, width):
    number, size = min(labels, len(spots)), (width, 14.0)
    taken = Box(0, 0, 600, 30)
    places = place_labels(spots, [size] * number, AREA, [taken])
    assert len(places) == number
    drawn = boxes(spots, places, size)
    for at, box in enumerate(drawn):
        assert 0 <= box.left < box.right <= 600
        assert 0 <= box.top < box.bottom <= 400
        assert not cover(box, taken)
        assert not any(cover(box, other) for other in drawn[:at])
        for spot in spots:
            left, right = spot.x - spot.radius, spot.x + spot.radius
            assert not cover(box, Box(left, spot.y - spot.radius, right, spot.y + spot.radius))


def test_a_lone_label_stands_beside_its_point():
    (place,) = place_labels([Spot(100, 100, 5)], [(40.0, 14.0)], AREA)
    assert place is not None
    assert (place.dx, place.dy) == (30, 0)


def test_no_line_to_a_label_passes_through_another_label():
    """Among points close together, where labels stand far from theirs; corners may be touched."""
    for seed in range(20):
        rng = random.Random(seed)
        spots = [Spot(rng.uniform(200, 330), rng.uniform(150, 220), 4) for _ in range(8)]
        places = place_labels(spots, [(80.0, 14.0)] * 8, AREA)
        assert None not in places
        drawn = boxes(spots, places, (80.0, 14.0))
        for at, (spot, place) in enumerate(zip(spots, places, strict=True)):
            others = [box for number, box in enumerate(drawn) if number != at]
            assert all(inside(spot, place, box) <= 8 for box in others)


def test_points_far_apart_have_their_labels_beside_them():
    places = place_labels([Spot(100, 100, 5), Spot(400, 300, 5)], [(40.0, 14.0)] * 2, AREA)
    assert [place and (place.dx, place.dy) for place in places] == [(30, 0), (30, 0)]


def test_a_label_without_room_is_left_out():
    assert place_labels([Spot(100, 100, 5)], [(700.0, 14.0)], AREA) == [None]
