"""The rows of the table of faults, and how one is filled."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import cast

from tests.faults.outcome import Outcome

Attempt = Callable[[Path, Random], Outcome]
_MOST = 3  # tries for each victim that is to be hit live


@dataclass(frozen=True)
class Row:
    """A fault: where its `attempt` lies, as `module:function` below this folder."""

    name: str
    where: str

    def attempt(self) -> Attempt:
        """The function that makes one try."""
        module, _, function = self.where.partition(":")
        return cast("Attempt", getattr(importlib.import_module(f"tests.faults.{module}"), function))


ROWS = (
    Row("kill -9 of the harness", "kills:of_harness"),
    Row("kill -9 of the worker", "kills:of_worker"),
    Row("kill -9 of the sampler", "kills:of_sampler"),
    Row("kill -9 of the server", "kills:of_server"),
    Row("kill -9 of the tool", "kills:of_tool"),
    Row("kill -9 of a SQLite writer", "sqlite_writer:attempt"),
    Row("kill -9 of scrub", "scrub_writer:attempt"),
    Row("disk full", "disks:of_full"),
    Row("quota", "disks:of_quota"),
    Row("ulimit -f", "disks:of_limit"),
    Row("read-only", "disks:of_read_only"),
    Row("folder vanished", "disks:of_vanished"),
    Row("SIGTERM", "signals:of_sigterm"),
    Row("SIGINT", "signals:of_sigint"),
    Row("second signal", "signals:of_second"),
    Row("starts at once", "starts:attempt"),
    Row("holders", "holders:attempt"),
)


@dataclass(frozen=True)
class Counted:
    """A filled row: how many tries, how many of them hit a live victim, and what they cost."""

    name: str
    tries: int
    hits: int
    lost: int
    differing: int
    faults: int

    @property
    def cost(self) -> int:
        """Everything that must be 0."""
        return self.lost + self.differing + self.faults


def rows_named(words: Sequence[str]) -> tuple[Row, ...]:
    """The rows whose name holds one of the words; all without any. Raises SystemExit for none."""
    rows = tuple(row for row in ROWS if not words or any(word in row.name for word in words))
    if not rows:
        raise SystemExit(f"no row is named {' or '.join(words)}")
    return rows


def struck(row: Row, tries: int, seed: int, place: Path, say: Callable[[str], None]) -> Counted:
    """Strike until `tries` live victims were hit, with moments and choices by `seed`."""
    outcomes: list[Outcome] = []
    try:
        attempt = row.attempt()
    except ModuleNotFoundError as error:
        say(f"{row.name}: there is no {error.name}, so that nothing was tried")
        return Counted(row.name, 0, 0, 0, 0, 1)
    while sum(one.hit for one in outcomes) < tries and len(outcomes) < _MOST * tries + 10:
        folder = place / str(len(outcomes))
        folder.mkdir()
        outcome = attempt(folder, Random(f"{row.where} {seed} {len(outcomes)}"))
        outcomes.append(outcome)
        for sentence in outcome.faults:
            say(f"{row.name}, try {len(outcomes)}: {sentence}")
        shutil.rmtree(folder, ignore_errors=True)
    hit = [one for one in outcomes if one.hit]
    return Counted(
        row.name,
        len(outcomes),
        len(hit),
        sum(one.lost_points for one in hit),
        sum(one.differing_figures for one in hit),
        sum(len(one.faults) for one in hit),
    )


def text_of(counted: Sequence[Counted]) -> str:
    """The table, one line per row."""
    heads = ("fault", "tries", "hit live", "points lost", "figures differing", "other faults")
    lines = [heads] + [
        (one.name, *map(str, (one.tries, one.hits, one.lost, one.differing, one.faults)))
        for one in counted
    ]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if at == 0 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        )
        for line in lines
    )
