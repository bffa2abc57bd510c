"""Findings as the page shows them."""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import Summary
from profharness.findings import Finding
from profharness.report.text.findings import all_findings, figures_of, finding_place


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
    return tuple(
        _box(summary, index, finding) for index, finding in enumerate(all_findings(summary))
    )


def _box(summary: Summary, index: int, finding: Finding) -> FindingBox:
    return FindingBox(
        f"finding-{index}",
        finding.severity,
        finding_place(summary, finding),
        finding.message,
        figures_of(finding),
        finding.advice,
    )
