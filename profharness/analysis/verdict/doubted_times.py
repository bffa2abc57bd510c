"""Records that count and whose times say nothing: tools write 0 for a time that they lost
(docs/findings.md#times-missing), and wrong ends (docs/findings.md#overlong-kernels).
"""

from __future__ import annotations

from profharness.analysis.time.believed import overlong
from profharness.analysis.time.device_work import Work
from profharness.analysis.time.timeless import counted_ranges, no_timeline, without_times
from profharness.findings import Finding, finding
from profharness.trace.columns.table import NULL
from profharness.trace.model import Trace


def times_missing(trace: Trace, work: Work) -> list[Finding]:  # noqa: ARG001  a check's form
    """Kernels and copies without times, where others of the trace have some. Without any, there is
    no timeline at all, which figures say themselves.
    """
    unknown, ranges = without_times(trace), counted_ranges(trace)
    kernels = 0 if unknown is None else int(unknown.sum())
    kernels -= 0 if ranges is None else int(ranges.sum())
    copies = int((trace.copies.start_ns == NULL).sum())
    if not kernels + copies or no_timeline(trace):
        return []
    said = [
        f"{count} of {total} {what}"
        for count, total, what in (
            (kernels, len(trace.kernels), "kernels"),
            (copies, len(trace.copies), "copies"),
        )
        if count
    ]
    return [
        finding(
            "times-missing",
            f"{' and '.join(said)} have no times in the file (0 and 0 are none): they count, and "
            "when they ran is not known",
            kernels=kernels,
            copies=copies,
        )
    ]


def overlong_kernels(trace: Trace, work: Work) -> list[Finding]:  # noqa: ARG001  a check's form
    """Kernels that hold whole successors of their own stream."""
    lengths = overlong(trace)
    if lengths is None:
        return []
    count = int(lengths.sum())
    return [
        finding(
            "overlong-kernels",
            f"{count} of {len(lengths)} kernels end after whole later ones of their own stream: "
            "these lengths cannot be true, and stand in sums of the whole file alone",
            kernels=count,
        )
    ]
