"""`--fail-on`: conditions on the changes between two runs, for use as a gate in continuous
integration.

    EXPR      := CONDITION { ("," | "or") CONDITION }
    CONDITION := NAME OPERATOR NUMBER ["%"]
    OPERATOR  := "<" | "<=" | ">" | ">="

NAME is a figure of the comparison (throughput, latency, latency_p99, busy ...). With "%" NUMBER is
the change in per cent, b / a - 1; without, the difference b - a in the figure's own unit. Nothing
is evaluated as code.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable
from dataclasses import dataclass

from profharness.analysis.compare.records import Comparison, Delta
from profharness.errors import UsageError

_CONDITION = re.compile(
    r"\s*([a-z][a-z0-9_]*)\s*(<=|>=|<|>)\s*([+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*(%?)\s*"
)
_SEPARATOR = re.compile(r",|\bor\b")
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_EXAMPLE = "write a condition such as 'throughput<-5%' or 'latency_p99>2%, latency>0.5'"


@dataclass(frozen=True)
class Condition:
    """One condition; `bound` is a relative change where `relative`, else a difference in the
    figure's unit.
    """

    name: str
    sign: str
    bound: float
    relative: bool

    def holds(self, delta: Delta) -> bool:
        """Whether the change meets the condition and is significant."""
        value = delta.change if self.relative else delta.b - delta.a
        return (
            delta.name == self.name
            and _OPERATORS[self.sign](value, self.bound)
            and delta.significant is True
        )


@dataclass(frozen=True)
class Breach:
    """A condition that holds, and where: a point, or the whole run."""

    condition: str
    point: str
    delta: Delta


def parse(text: str) -> tuple[Condition, ...]:
    """The conditions of an expression; any of them fails the gate. Raises UsageError for anything
    else.
    """
    conditions = []
    for part in _SEPARATOR.split(text):
        match = _CONDITION.fullmatch(part)
        if match is None:
            raise UsageError(f"--fail-on: {part.strip() or text!r} is not a condition", _EXAMPLE)
        name, sign, number, percent = match.groups()
        conditions.append(
            Condition(name, sign, float(number) / 100 if percent else float(number), bool(percent))
        )
    return tuple(conditions)


def breaches(comparison: Comparison, conditions: tuple[Condition, ...]) -> tuple[Breach, ...]:
    """Where the conditions hold. Raises UsageError for a name that no figure of the comparison has.

    A gate that can never fail is a mistake, not a pass: so it is refused also when the runs share
    no points, and for a figure that has no noise bound anywhere, where a change cannot be told from
    chance.
    """
    deltas = [(point.point, delta) for point in comparison.points for delta in point.deltas]
    deltas += [("", delta) for delta in comparison.run]
    names = {delta.name for _, delta in deltas}
    ranges = {
        one.name
        for found in (comparison.run_ranges, *(point.ranges for point in comparison.points))
        for one in found
    }
    for condition in conditions:
        if condition.name not in names and condition.name in ranges:
            raise UsageError(
                f"--fail-on: at least one of the runs knows of {condition.name!r} only between "
                "which values it lies, since the device may have done work that was not recorded",
                "record all work of the device, or name another figure",
            )
        if condition.name not in names:
            raise UsageError(
                f"--fail-on: the runs have no {condition.name!r} in common",
                f"figures of both: {', '.join(sorted(names))}"
                if names
                else "the runs share no measured point",
            )
        if all(delta.significant is None for _, delta in deltas if delta.name == condition.name):
            bounded = sorted({delta.name for _, delta in deltas if delta.significant is not None})
            raise UsageError(
                f"--fail-on: {condition.name!r} has no noise bound in these runs, "
                "so that no change of it can be told from chance",
                f"figures with one: {', '.join(bounded)}"
                if bounded
                else "raise --trials, so that figures have intervals",
            )
    return tuple(
        Breach(_text(condition), point, delta)
        for condition in conditions
        for point, delta in deltas
        if condition.holds(delta)
    )


def _text(condition: Condition) -> str:
    number = f"{100 * condition.bound:g}%" if condition.relative else f"{condition.bound:g}"
    return f"{condition.name}{condition.sign}{number}"
