"""Axes of a scan of a command or of a server's settings, and what its points must keep, as a run
records them. Pure.

A value is kept as it was written, since that is what the command is given; it is a number where it
reads as one. An axis with any value that is no number is a category.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from profharness.errors import UsageError
from profharness.rundir.latency_limit import parse_latency_limit

ENVIRONMENT = "env:"
POWER_CAP = "power-cap"
"""The axis whose values are power caps of the accelerators, in W per package."""
RANKS = "ranks"
"""The axis whose values are numbers of ranks, where the command has no `{ranks}` itself."""
_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?")


@dataclass(frozen=True)
class Axis:
    """One axis: `name` is what stands left of `=`, `values` are as written, in their order."""

    name: str
    values: tuple[str, ...]

    @property
    def is_number(self) -> bool:
        """Whether every value is a number; otherwise the axis is a category."""
        return all(_NUMBER.fullmatch(value) for value in self.values)

    @property
    def variable(self) -> str:
        """The environment variable that it sets; empty for another axis."""
        return self.name.removeprefix(ENVIRONMENT) if self.name.startswith(ENVIRONMENT) else ""

    def typed(self, value: str) -> int | float | str:
        """A value as figures and JSON show it: a number on an axis of numbers, else its text."""
        if not self.is_number:
            return value
        return int(value) if re.fullmatch(r"[+-]?\d+", value) else float(value)


def axes_of(table: Mapping[str, Sequence[str]]) -> tuple[Axis, ...]:
    """The axes of a request, in the order in which they were given."""
    return tuple(Axis(name, tuple(values)) for name, values in table.items())


Bound = Literal[">=", "<=", ">", "<"]


@dataclass(frozen=True)
class Requirement:
    """A figure of the script that a point must keep: `accuracy >= 0.7`."""

    name: str
    bound: Bound
    limit: float

    def holds(self, value: float) -> bool:
        """Whether a value keeps it."""
        return {
            ">=": value >= self.limit,
            "<=": value <= self.limit,
            ">": value > self.limit,
            "<": value < self.limit,
        }[self.bound]

    def kept_by(self, values: Mapping[str, float]) -> bool:
        """Whether figures by name keep it; a figure that is missing does not."""
        return self.name in values and self.holds(values[self.name])

    def __str__(self) -> str:
        return f"{self.name} {self.bound} {self.limit:g}"


def requirement(text: str) -> Requirement:
    """`accuracy>=0.7` as a requirement. Raises UsageError."""
    match = re.fullmatch(rf"\s*([^\s<>=]+)\s*(>=|<=|>|<)\s*({_NUMBER.pattern})\s*", text)
    if match is None:
        raise UsageError(
            f"--require: {text!r} is not NAME>=NUMBER",
            'name a figure that the script gives by profharness_mark.value: "accuracy>=0.7"',
        )
    return Requirement(match[1], match[2], float(match[3]))  # type: ignore[arg-type]  # one of four


def requirements_of(texts: Sequence[str], latency_limit: str = "") -> tuple[Requirement, ...]:
    """What points must keep: figures by name, and a limit of the latency as `p99_ms`. Raises
    UsageError.
    """
    limit = parse_latency_limit(latency_limit)
    asked = tuple(requirement(text) for text in texts)
    if limit is None:
        return asked
    return (*asked, Requirement(f"{limit.name}_ms", "<=", limit.limit_ms))
