"""What a script marked in one execution: its steps and its figures, from the files of the hooks
(wrappers/hooks/profharness_hooks/step_log.py). Only what the script says itself counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import msgspec

from profharness.rundir.foreign.limits import LINES_BYTES
from profharness.rundir.foreign.small_files import read_file

LineT = TypeVar("LineT")
_STEPS, _VALUES = "steps-*.jsonl", "values-*.jsonl"


class _Step(msgspec.Struct, frozen=True):
    monotonic_ns: int
    items: int | None = None
    source: str = ""


class _Value(msgspec.Struct, frozen=True):
    name: str
    value: float


_STEP, _FIGURE = msgspec.json.Decoder(_Step), msgspec.json.Decoder(_Value)


@dataclass(frozen=True)
class StepMarks:
    """The steps that one process marked: their ends on CLOCK_MONOTONIC of its `host`, in order, and
    the items of each; None where the script did not say them.
    """

    ends_ns: tuple[int, ...]
    items: tuple[int | None, ...]
    host: str = ""


def files(root: Path) -> frozenset[Path]:
    """The files of marks that a run holds by now."""
    folder = root / "artifacts" / "steps"
    return frozenset(
        path for pattern in (_STEPS, _VALUES) for path in folder.glob(f"*/*/{pattern}")
    )


def read_steps(paths: Iterable[Path]) -> tuple[StepMarks, ...]:
    """The marked steps of each process that marked any; lines that are cut are left out."""
    found = []
    for path in sorted(path for path in paths if path.match(_STEPS)):
        steps = [step for step in _lines(path, _STEP) if step.source == "mark"]
        steps.sort(key=lambda step: step.monotonic_ns)
        if steps:
            found.append(
                StepMarks(
                    tuple(step.monotonic_ns for step in steps),
                    tuple(step.items for step in steps),
                    path.parts[-3],
                )
            )
    return tuple(found)


def read_values(paths: Iterable[Path]) -> dict[str, float]:
    """The last number of each name; of several processes, the one read last. Numbers that are not
    finite are left out.
    """
    return {
        one.name: one.value
        for path in sorted(path for path in paths if path.match(_VALUES))
        for one in _lines(path, _FIGURE)
        if math.isfinite(one.value)
    }


def _lines(path: Path, decoder: msgspec.json.Decoder[LineT]) -> list[LineT]:
    try:
        data = read_file(path, LINES_BYTES, text=True)
    except OSError:
        return []
    found = []
    for line in data.splitlines():
        try:
            found.append(decoder.decode(line))
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue
    return found
