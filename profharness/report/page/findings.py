"""Findings as the page shows them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from profharness.analysis.records import Summary
from profharness.findings import Finding
from profharness.report.text.findings import all_findings, figures_of, finding_place
from profharness.report.text.labels import point_names_by_id


@dataclass(frozen=True)
class FindingBox:
    """A finding as the page shows it."""

    anchor: str
    severity: str
    place: str
    message: str
    figures: tuple[str, ...]
    advice: str


def finding_boxes(summary: Summary) -> tuple[FindingBox, ...]:
    """Every finding, errors first."""
    named = point_names_by_id(summary)
    return tuple(_box(named, index, finding) for index, finding in enumerate(all_findings(summary)))


def _box(named: Mapping[str, str], index: int, finding: Finding) -> FindingBox:
    return FindingBox(
        f"finding-{index}",
        finding.severity,
        finding_place(named, finding),
        finding.message,
        figures_of(finding),
        finding.advice,
    )
