"""What the recorded files hold by our own account, worked out once in a process.

Tests that ask for many of them belong to the group `TOGETHER`, so that one process does it for all.
"""

from __future__ import annotations

from functools import cache

import pytest

from profharness.analysis.records import Summary
from profharness.understand import report_run as understand
from tests.conftest import shared_path

TOGETHER = pytest.mark.xdist_group("recorded")


@cache
def summary_of(name: str) -> Summary:
    """The summary of one file of `fixtures/`. Raises ProfharnessError where it is no trace."""
    return understand.summarise(understand.load([shared_path(f"fixtures/{name}")]))
