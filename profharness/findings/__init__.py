"""Findings: what a reader of the figures must know before trusting them.

The checks live in `analysis` and in the layers, which create `Finding` records from the catalogue
of their kinds (`profharness/findings/kinds_of_records.py` and `kinds_of_results.py`).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, cast

import msgspec

from profharness import families
from profharness.findings import kinds_of_records, kinds_of_results
from profharness.findings.kind import FindingKind
from profharness.findings.kind import Severity as Severity


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One integrity result: `figures` holds the numbers that triggered it, by name with unit
    suffix.
    """

    id: str
    severity: Severity
    message: str
    figures: dict[str, float | int | str] = {}
    advice: str = ""
    point: str | None = None


Grouped = dict[str | None, list[tuple[int, Finding]]]
"""Findings with their places in the whole, by their points."""


def by_point(findings: Iterable[Finding]) -> Grouped:
    """Under a point's name what is about it, under None what is about every point."""
    grouped: Grouped = {}
    for place, item in enumerate(findings):
        grouped.setdefault(item.point, []).append((place, item))
    return grouped


def about(point: str, grouped: Grouped) -> list[Finding]:
    """What is about this point, and what is about every one, in the order of the whole."""
    both = (*grouped.get(None, ()), *grouped.get(point, ()))
    return [item for _, item in sorted(both, key=lambda placed: placed[0])]


def problem_text(source: str, count: int, message: str) -> str:
    """`file: 12 x what it says`; once is not counted, and a file that the message names is not
    named twice.
    """
    said = message if count == 1 else f"{count} x {message}"
    return said if message.startswith(source) else f"{source}: {said}"


GROUP = "profharness.findings"
NEEDS = ("kinds", "check")


class Check(Protocol):
    """What another package adds under `GROUP`, a module for instance, beside its `check` of a trace
    (`analysis.verdict`): the kinds of findings that this makes.
    """

    kinds: tuple[FindingKind, ...]


CATALOGUE: dict[str, FindingKind] = {
    kind.id: kind for kind in (*kinds_of_records.KINDS, *kinds_of_results.KINDS)
}


def _of_others() -> dict[str, FindingKind]:
    """The kinds that the checks of other packages bring along, by their ids."""
    checks = families.foreign(GROUP, NEEDS)
    return {kind.id: kind for _, check in checks for kind in cast("Check", check).kinds}


def finding(
    kind_id: str,
    message: str,
    *,
    point: str | None = None,
    severity: Severity | None = None,
    **figures: float | str,
) -> Finding:
    """Make the finding `kind_id` with its default severity and advice. Raises KeyError for an
    unknown id.
    """
    kind = CATALOGUE.get(kind_id) or _of_others()[kind_id]
    return Finding(
        id=kind_id,
        severity=severity or kind.severity,
        message=message,
        figures=dict(figures),
        advice=kind.advice,
        point=point,
    )
