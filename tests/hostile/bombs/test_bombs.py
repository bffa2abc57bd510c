"""Every bomb can be written, small ones are answered, and what breaks the bounds is told."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.hostile.bombs import catalogue, running
from tests.hostile.bombs.bomb import Bomb, lines, pack, plain, scaled
from tests.hostile.children import Ended
from tests.variants import thorough

BOUNDS = running.Bounds(5.0, 500 << 20)


NAMES = catalogue.names()
ONE_OF_EACH_KIND = tuple({name.split()[0]: name for name in reversed(NAMES)}.values())


@pytest.mark.slow
@pytest.mark.parametrize("names", [ONE_OF_EACH_KIND, *thorough((NAMES,))], ids=["kinds", "all"])
def test_bombs_of_a_small_size_are_answered(names: tuple[str, ...]) -> None:
    only = [word for name in names for word in ("--only", name)]
    small = ("--scale", "5e-5", "--forked", "--first")
    done = subprocess.run(
        [sys.executable, "-m", "tests.hostile.bombs", *small, *only],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    told = done.stdout.splitlines()
    assert told[-1] == "all within the bounds"
    chosen = [bomb.name for bomb in catalogue.chosen(names)]
    assert len(told) == 2 + len(chosen)
    assert set(names) <= set(chosen)
    assert all(any(line.startswith(name) for line in told) for name in chosen)


def test_names_are_told_apart_and_chosen_by_their_begin() -> None:
    assert len(set(catalogue.names())) == len(catalogue.BOMBS)
    assert [bomb.name for bomb in catalogue.chosen(["rocpd 20"], "merge")] == [
        name for name in catalogue.names() if name.startswith("rocpd 20")
    ]
    (one,) = catalogue.chosen(["ls 1,000"])
    assert one.lines == (("ls", "{}"),)
    assert catalogue.chosen(["nothing"]) == ()


def test_a_bomb_is_the_same_each_time(tmp_path: Path) -> None:
    first, again = (pack(tmp_path / name, ["a", b"b"]) for name in ("x.gz", "y.gz"))
    assert first.read_bytes() == again.read_bytes()
    assert plain(tmp_path / "z", ["a", b"b"]).read_bytes() == b"ab"
    assert (scaled(1000, 0.0001), scaled(1000, 0.5)) == (1, 500)
    assert lines("metrics", "compare {} {} --json") == (
        ("metrics", "{}"),
        ("compare", "{}", "{}", "--json"),
    )


def test_each_bound_is_told_where_it_is_broken(tmp_path: Path) -> None:
    def run(line: object, folder: Path) -> Ended:
        assert (tmp_path / "bombs" / "a-b" / "x").read_bytes() == b"1"
        return Ended(2, b"", b"error: x itself failed: y\n", 6.0, waited=True, memory=501 << 20)

    bomb = Bomb("a b", lambda folder, scale: plain(folder / "x", ["1"]), lines("metrics"))
    (one,) = running.answers([bomb], tmp_path / "bombs", 1.0, BOUNDS, run)
    assert (one.size, one.line) == (1, ("metrics", "{}"))
    assert [fault.partition(":")[0] for fault in one.faults] == [
        "waited for ever",
        "more than 5 s",
        "more than 500 MB",
        "said error",
        "ended with 2",
    ]
    assert "2     6.00" in running.row(one)


def test_what_a_fresh_process_took_is_its_own(tmp_path: Path) -> None:
    """And not that of the process that started it."""
    room = b"1" * (400 << 20)
    ended = running.Fresh(20)(("metrics", str(tmp_path / "none")), tmp_path)
    assert len(room) > 0
    assert (ended.status, ended.waited) == (4, False)
    assert ended.err.startswith(b"error: ")
    assert 0 < ended.seconds < 20
