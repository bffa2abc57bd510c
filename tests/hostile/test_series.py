"""The whole: a short series over every reader, as the command runs it."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.hostile.series import Answer, causes, place_of, table

TRIES = 40


@pytest.mark.slow
def test_a_short_series_is_answered_and_counted(tmp_path: Path) -> None:
    """`make damaged` runs a longer one, which no answer may fail."""
    words = ["--tries", str(TRIES), "--seed", "19", "--jobs", "2", "--keep", str(tmp_path / "kept")]
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile", *words],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    last = re.search(r"^all +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) ", done.stdout, re.MULTILINE)
    assert last is not None, done.stdout + done.stderr
    tries, answers, figures, errors, wrong = map(int, last.groups())
    assert (tries, answers) == (TRIES, figures + errors + wrong)
    assert figures > 5
    assert errors > 5
    assert done.returncode == int(wrong > 0), done.stderr
    assert len({path.name for path in tmp_path.glob("kept/*")}) == wrong


def answer(**given: object) -> Answer:
    whole = {"number": 1, "format": "kineto", "seed": "s", "changes": ("raw.drop",), "line": ("metrics",),
             "status": 0, "seconds": 0.1, "memory": 3 << 20, "faults": ()}  # fmt: skip
    return Answer(**{**whole, **given})  # type: ignore[arg-type]  # a test's shorthand


def test_the_table_counts_answers_by_format_and_ending() -> None:
    wrong = answer(number=2, status=1, faults=("took 7 s",))
    found = [answer(), answer(status=4), wrong, answer(number=3, format="rocpd", seconds=1.25)]
    rows = [line.split() for line in table(found).splitlines()]
    assert rows[1] == ["kineto", "2", "3", "1", "1", "1", "0.1", "3"]
    assert rows[2] == ["rocpd", "1", "1", "1", "0", "0", "1.2", "3"]
    assert rows[3][:6] == ["all", "3", "4", "2", "1", "1"]


def test_causes_are_told_once_with_an_example() -> None:
    ones = [answer(number=n, faults=(f"took {n} s",)) for n in (4, 5)]
    text = causes(
        [answer(), *ones, answer(number=9, faults=("x",), place="profharness/a.py:1 b: E")]
    )
    assert text.splitlines()[0].split() == ["2", "took", "#", "s"]
    assert "try 4 (kineto" in text
    assert "profharness/a.py:1 b: E" in text


def test_the_place_of_a_fault_is_our_innermost_line() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/x/profharness/cli/a.py", line 3, in one\n'
        '  File "/x/profharness/readers/b.py", line 7, in two\n    f()\n'
        '  File "/usr/lib/json.py", line 9, in three\nValueError: no\n'
    )
    assert place_of(text) == "profharness/readers/b.py:7 two: ValueError: no"
