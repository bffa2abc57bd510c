from __future__ import annotations

from pathlib import Path
from random import Random

from tests.faults import sqlite_writer


def test_a_killed_writer_changes_no_figure(tmp_path: Path) -> None:
    random = Random(19)
    for number in range(4):
        folder = tmp_path / str(number)
        folder.mkdir()
        outcome = sqlite_writer.attempt(folder, random)
        assert (outcome.differing_figures, outcome.faults) == (0, ())
