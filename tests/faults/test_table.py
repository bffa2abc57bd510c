"""The table of faults on a few tries of its cheap rows; `make faults TRIES=200` has the rest."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from tests.faults.outcome import Outcome
from tests.faults.table import ROWS, Counted, Row, rows_named, struck, text_of


def hit_every_third(folder: Path, random: Random) -> Outcome:
    """A stand-in for a fault, too late for two victims of three."""
    assert list(folder.iterdir()) == []
    if int(folder.name) % 3 < 2:
        return Outcome(hit=False, lost_points=5)
    return Outcome(True, 1, 2, ("it began", f"at {random.random():.3f}"))


class Known(Row):
    def attempt(self):  # type: ignore[no-untyped-def]  the test's own fault
        return hit_every_third


def test_a_row_counts_live_victims_only_and_repeats_itself(tmp_path: Path) -> None:
    said: list[list[str]] = []
    for seed in (1, 1, 2):
        said.append([])
        place = tmp_path / str(len(said))
        place.mkdir()
        counted = struck(Known("known", "x:y"), 2, seed, place, said[-1].append)
        assert counted == Counted("known", 6, 2, 2, 4, 4)
        assert list(place.iterdir()) == []
    assert said[0] == said[1] != said[2]
    assert text_of([counted]).splitlines()[1].split() == ["known", "6", "2", "2", "4", "4"]


def test_rows_are_chosen_by_a_part_of_their_name() -> None:
    assert {row.name for row in rows_named(["SIGTERM", "quota"])} == {"SIGTERM", "quota"}
    assert rows_named([]) == ROWS
    with pytest.raises(SystemExit, match="no row"):
        rows_named(["nothing"])


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "kill -9 of the harness",
        *(
            pytest.param(row.name, marks=pytest.mark.thorough)
            for row in ROWS
            if row.where.partition(":")[0] in ("kills", "disks", "signals")
            and row.name != "kill -9 of the harness"
        ),
    ],
)
def test_a_fault_costs_nothing_that_was_finished(tmp_path: Path, name: str) -> None:
    said: list[str] = []
    (row,) = rows_named([name])
    counted = struck(row, 1, 7, tmp_path, said.append)
    assert counted.hits == 1
    assert (counted.lost, counted.differing, said) == (0, 0, [])
