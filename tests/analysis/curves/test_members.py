"""Which points belong to which series, against looking at every pair."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.curves.members import members
from profharness.analysis.curves.records import Series
from profharness.analysis.records import PointSummary

BACKENDS = st.sampled_from(["", "torch", "onnx"])
POINTS = st.lists(
    st.builds(
        PointSummary,
        point=st.just("p"),
        backend=BACKENDS,
        batch_size=st.sampled_from([None, 1, 2]),
        rate=st.sampled_from([None, None, None, 10.0]),
        metrics=st.just({}),
    ),
    max_size=12,
)
KEYS = st.fixed_dictionaries(
    {"backend": BACKENDS},
    optional={"batch_size": st.sampled_from(["", "None", "1", "2"]), "device": st.just("MI300X")},
)


@given(POINTS, st.lists(KEYS, max_size=6), st.booleans())
def test_members_are_the_points_that_have_the_values_of_the_key(
    points: list[PointSummary], keys: list[dict[str, str]], blank_is_any: bool
) -> None:
    """A name of a key that no point has (a column of a CSV of results) asks for nothing."""
    curves = [Series(key=key) for key in keys]
    expected = [
        [
            point
            for point in points
            if point.rate is None
            and all(
                str(getattr(point, name, value)) == value
                for name, value in key.items()
                if value or not blank_is_any
            )
        ]
        for key in keys
    ]
    found = members(points, curves, blank_is_any=blank_is_any)
    assert [[id(one) for one in of] for of in found] == [[id(one) for one in of] for of in expected]
