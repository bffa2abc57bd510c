"""Findings and problems as lines: what, figures, what to do; errors first, three at most in a
summary.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from profharness.analysis.curves.records import Series
from profharness.analysis.records import Summary
from profharness.findings import Finding
from profharness.report.text.figures import suffixed_text
from profharness.report.text.labels import point_names_by_id, series_name
from profharness.rundir.shown.screen import one_line

SHOWN = 3
RANK = {"error": 0, "warning": 1, "info": 2}


def ordered(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Errors, warnings, then notes; the given order within each."""
    return tuple(sorted(findings, key=lambda finding: RANK[finding.severity]))


def all_findings(summary: Summary) -> tuple[Finding, ...]:
    """The summary's findings and those of its series, each once, errors first."""
    found = list(summary.findings)
    told = {(one.id, one.point, one.message) for one in found}
    for series in summary.series:
        for finding in series.findings:
            if (finding.id, finding.point, finding.message) in told and finding in found:
                continue
            found.append(_of_series(finding, series, summary))
            told.add((found[-1].id, found[-1].point, found[-1].message))
    return ordered(found)


def _of_series(finding: Finding, series: Series, summary: Summary) -> Finding:
    """Its message names the series among several."""
    if len(summary.series) < 2 or not series.key:
        return finding
    return msgspec.structs.replace(finding, message=f"{series_name(series)}: {finding.message}")


def finding_place(named: Mapping[str, str], finding: Finding) -> str:
    """`cold-cache at batch 4`: the id and the point that it is about. `named` are the names of the
    points by id (`point_names_by_id`); a point without one is called by its id.
    """
    if not finding.point:
        return finding.id
    return f"{finding.id} at {named.get(finding.point, finding.point)}"


def figures_of(finding: Finding) -> tuple[str, ...]:
    """The figures that triggered it, each with its unit."""
    return tuple(suffixed_text(name, value) for name, value in finding.figures.items())


def finding_line(named: Mapping[str, str], finding: Finding) -> str:
    """What, figures and what to do in one line. Figures are appended only where the message holds
    none. `named` as `finding_place` has it.
    """
    figures = ", ".join(figures_of(finding))
    has_figures = any(char.isdigit() for char in finding.message)
    statement = finding.message.rstrip(".") + (
        f" ({figures})" if figures and not has_figures else ""
    )
    return one_line(
        f"{finding_place(named, finding)}: {statement}"
        + (f"; {finding.advice}" if finding.advice else "")
    )


def finding_count(summary: Summary, limit: int = SHOWN) -> str:
    """`2 findings: cold-cache at batch 4, drift`, `and 4 more` after `limit` kinds; `no findings`
    without any.

    The same finding at several points is named once, with their number.
    """
    findings = all_findings(summary)
    if not findings:
        return "no findings"
    groups = grouped(findings)
    shown = groups[:limit]
    rest = len(findings) - sum(len(group) for group in shown)
    named = point_names_by_id(summary)
    places = ", ".join(
        finding_place(named, group[0]) if len(group) == 1 else f"{group[0].id} ({len(group)} times)"
        for group in shown
    )
    return f"{len(findings)} {'finding' if len(findings) == 1 else 'findings'}: {places}" + (
        f" and {rest} more" if rest else ""
    )


def grouped(findings: Sequence[Finding]) -> tuple[tuple[Finding, ...], ...]:
    """The findings of each id together, in the order in which the ids first stand."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.id, []).append(finding)
    return tuple(tuple(group) for group in groups.values())


def finding_lines(summary: Summary, limit: int = SHOWN) -> tuple[tuple[str, str], ...]:
    """(severity, line) of the errors and warnings that a terminal shows, and a last ("", "and 4
    more") where there are more.

    Notes are only counted there; without an error or a warning there is no line. What is missing of
    a run opens the answer, and what to do about it the next step: it is not said a third time.
    """
    findings = all_findings(summary)
    if findings and findings[0].id == "run-incomplete":
        findings = findings[1:]
    named = point_names_by_id(summary)
    told = [finding for finding in findings if finding.severity != "info"][:limit]
    lines = [(finding.severity, finding_line(named, finding)) for finding in told]
    rest = len(findings) - len(lines)
    return (*lines, ("", f"and {rest} more")) if rest > 0 and lines else tuple(lines)
