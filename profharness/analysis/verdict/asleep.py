"""No verdict on a time through which the host slept: nothing tells how it would have gone on."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from profharness.analysis.records import Summary
from profharness.findings import Finding
from profharness.trace.clocks.checks import SUSPENDED_NS

NEEDS = "a host that does not sleep meanwhile"


def without_sleep(summary: Summary, findings: Sequence[Finding]) -> Summary:
    """The summary without verdicts on the points that `findings` name as slept through, and without
    one on the whole where the host slept during the run.
    """
    slept = {
        item.point
        for item in findings
        if item.id == "suspended-host"
        and float(item.figures.get("slept_during_run_ns", 0)) >= SUSPENDED_NS
    }
    if not slept:
        return summary
    points = tuple(
        msgspec.structs.replace(point, verdict=None, verdict_needs=NEEDS)
        if point.point in slept
        else point
        for point in summary.points
    )
    return msgspec.structs.replace(summary, points=points, verdict=None, verdict_needs=NEEDS)
