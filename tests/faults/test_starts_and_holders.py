"""One try of each of these faults; `make faults` makes many."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.faults import holders, scrub_writer, starts


def test_of_many_starts_each_has_a_directory_of_its_own(tmp_path: Path) -> None:
    outcome = starts.attempt(tmp_path, Random(1))
    assert outcome.faults == ()


@pytest.mark.parametrize("seed", range(3))
def test_a_killed_holder_is_succeeded_by_one(tmp_path: Path, seed: int) -> None:
    outcome = holders.attempt(tmp_path, Random(seed))
    assert outcome.faults == ()


def test_a_killed_scrub_leaves_the_old_or_the_new(tmp_path: Path) -> None:
    outcome = scrub_writer.attempt(tmp_path, Random(1))
    assert outcome.faults == ()
