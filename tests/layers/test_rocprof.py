from __future__ import annotations

import pytest

from profharness.layers import named
from tests.layers.places import TRAIN, where


@pytest.mark.parametrize(
    ("release", "said"),
    [("5.7", False), ("6.3", False), ("6.4", True), ("7.0", True), ("7.2.4", True)],
)
def test_where_rocprof_is_deprecated_the_plan_names_what_takes_its_place(
    release: str, said: bool
) -> None:
    (layer,) = named(("rocprof",))
    notes = layer.extras(TRAIN, where(release, "rocprof")).notes
    assert [("--profile rocprofv3" in note) for note in notes] == [True] * said
