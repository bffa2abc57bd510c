"""How the tests themselves are spread over processes."""

from __future__ import annotations

import pytest


@pytest.mark.xdist_group("kept-together")
def test_groups_are_heeded(request: pytest.FixtureRequest) -> None:
    """pytest-xdist writes a test's group into its name and spreads tests by that; where it does
    not, each process starts servers and makes long runs that one was to make for all
    (constraints.txt says with which versions).
    """
    if not getattr(request.config.option, "loadgroup", False):
        pytest.skip("one process runs all tests")
    assert request.node.nodeid.endswith("@kept-together")
