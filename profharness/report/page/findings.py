"""Findings as the page shows them: those of one kind that ask for the same stand in one box."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from profharness.analysis.records import Summary
from profharness.findings import Finding
from profharness.report.text.findings import all_findings, figures_of, finding_place
from profharness.report.text.labels import point_names_by_id

MOST_LINES = 20
"""Findings of one kind that a box lists one by one."""


@dataclass(frozen=True)
class FindingBox:
    """One finding, or several of a kind: `message` and `figures` are those of a single one, `lines`
    what each of several says. Of `count` findings `left_out` have no line.
    """

    anchor: str
    severity: str
    place: str
    message: str
    figures: tuple[str, ...]
    advice: str
    lines: tuple[str, ...] = ()
    count: int = 1

    @property
    def left_out(self) -> int:
        """How many findings of the box have no line of their own."""
        return self.count - max(len(self.lines), 1)

    @property
    def length(self) -> int:
        """Characters that it takes, about."""
        return sum(map(len, (self.message, self.advice, *self.lines))) + 200


def finding_boxes(summary: Summary) -> tuple[FindingBox, ...]:
    """Every finding, errors first."""
    named = point_names_by_id(summary)
    alike: dict[tuple[str, str, str], list[Finding]] = {}
    for one in all_findings(summary):
        alike.setdefault((one.severity, one.id, one.advice), []).append(one)
    return tuple(_box(named, index, group) for index, group in enumerate(alike.values()))


def _box(named: Mapping[str, str], index: int, group: Sequence[Finding]) -> FindingBox:
    first, several = group[0], len(group) > 1
    return FindingBox(
        f"finding-{index}",
        first.severity,
        f"{first.id} ({len(group)} times)" if several else finding_place(named, first),
        "" if several else first.message,
        () if several else _unsaid(first),
        first.advice,
        tuple(_line(named, one) for one in group[:MOST_LINES]) if several else (),
        len(group),
    )


def _line(named: Mapping[str, str], finding: Finding) -> str:
    at = f"{named.get(finding.point, finding.point)}: " if finding.point else ""
    figures = ", ".join(_unsaid(finding))
    return f"{at}{finding.message}{f' ({figures})' if figures else ''}"


def _unsaid(finding: Finding) -> tuple[str, ...]:
    """Its figures, where the message holds none; as a terminal's line has them."""
    return () if any(char.isdigit() for char in finding.message) else figures_of(finding)
