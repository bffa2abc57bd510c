"""All bombs, family by family."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tests.hostile.bombs import (
    compute,
    kineto,
    logs,
    others,
    perfetto,
    rocprofv3,
    runs,
    sampled,
    tables,
)
from tests.hostile.bombs.bomb import Bomb

BOMBS: tuple[Bomb, ...] = (
    *runs.BOMBS,
    *sampled.BOMBS,
    *kineto.BOMBS,
    *rocprofv3.BOMBS,
    *tables.BOMBS,
    *compute.BOMBS,
    *perfetto.BOMBS,
    *logs.BOMBS,
    *others.BOMBS,
)

WARM = (
    "run 8 series",
    "run telemetry 60",
    "kineto 60,000 op",
    "rocpd 150",
    "rocprofv3 CSV 250",
    "ls",
)
"""Bombs, by the begins of their names, whose commands import most of what all others need."""


def names() -> tuple[str, ...]:
    """The names of all bombs."""
    return tuple(bomb.name for bomb in BOMBS)


def chosen(wanted: Sequence[str], command: str = "") -> tuple[Bomb, ...]:
    """The bombs whose names begin as one of `wanted` does (all without), each with those of its
    commands that begin with `command`.
    """
    found = []
    for bomb in BOMBS:
        lines = tuple(line for line in bomb.lines if line[0].startswith(command))
        if lines and (not wanted or any(bomb.name.startswith(name) for name in wanted)):
            found.append(replace(bomb, lines=lines))
    return tuple(found)
