"""What a reader must know of steps that are measured by what they launched: by how much the host
ran ahead, and which work in their window is not theirs.
"""

from __future__ import annotations

import numpy as np

from profharness.analysis.time.counts import device_keys
from profharness.analysis.time.device_work import Work
from profharness.analysis.time.steps import Step, device_steps, launched_by, measured
from profharness.findings import Finding, finding
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import coded
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace
from profharness.units import format_ns, format_share

AHEAD = 0.05
"""The part of a step by which its work outlasts its mark, from which instants of the host and of
the device are held to belong to different steps.
"""
NOTABLE_SHARE = 0.01
_LONGEST_NAME = 60


def host_ahead(trace: Trace, work: Work) -> list[Finding]:  # noqa: ARG001  as every check
    """The work of most steps ended on the device well after the host had gone on to the next."""
    ran = [step for step in device_steps(trace) if step.ran and step.kernels]
    if not ran:
        return []
    behind = np.array([step.span_ns[1] - step.end_ns for step in ran], np.int64)
    usual = float(np.median(behind))
    step_ns = float(np.median([_length(step) for step in ran]))
    if usual <= AHEAD * step_ns:
        return []
    several = f" (median of {len(ran)}, at most {format_ns(int(behind.max()))})"
    length = f", where a step takes {format_ns(step_ns)} on the device" if step_ns else ""
    said = finding(
        "host-ahead",
        f"the host ran ahead: the work of a step ended {format_ns(usual)} after its mark"
        f"{several if len(ran) > 1 else ''}{length}; host time and device time of one instant "
        "belong to different steps",
        ahead_ns=usual,
        most_ahead_ns=int(behind.max()),
        steps=len(ran),
    )
    if step_ns:
        said.figures["step_ns"] = step_ns
    return [said]


def _length(step: Step) -> float:
    start, end = step.span_ns
    return end - start if step.length_ns is None else step.length_ns


def work_of_others(trace: Trace, work: Work) -> list[Finding]:
    """Device time in the window of steps by work that none of them launched, and that none of
    theirs ran beside: of other processes, from between the steps, or of unknown launches.
    """
    launched = launched_by(trace)
    if not launched:
        return []
    strange = work.end > work.start
    strange[np.concatenate([one.rows for one in launched.values()])] = False
    windows, keys = measured(trace), device_keys(trace)
    window_ns, alone_ns, rows = 0, 0, []
    for device in keys:
        when, here = windows.on(device), work.device == device
        window_ns += when.total
        spans = Intervals(work.start, work.end)
        theirs = np.flatnonzero(here & strange & intervals.reaching(spans, when))
        if len(theirs):
            own = _merged(work, np.flatnonzero(here & ~strange))
            alone = intervals.subtract(_merged(work, theirs), own)
            alone_ns += intervals.intersect(alone, when).total
            rows.append(theirs)
    if not rows or alone_ns < NOTABLE_SHARE * window_ns:
        return []
    name = _largest(trace, work, np.concatenate(rows))
    return [
        finding(
            "work-of-others",
            f"{format_share(alone_ns / window_ns)} of the window of the steps is device work that "
            f"none of them launched, most of it {name[:_LONGEST_NAME]}; it counts as busy",
            others_share=alone_ns / window_ns,
            others_ns=alone_ns,
            records=sum(map(len, rows)),
        )
    ]


def _merged(work: Work, rows: I64) -> Intervals:
    return intervals.merge(Intervals(work.start[rows], work.end[rows]))


def _largest(trace: Trace, work: Work, rows: I64) -> str:
    """The name that most of the time of these records has."""
    names = np.concatenate((trace.kernels.name, trace.copies.name))[rows]
    codes, place = coded(names)
    times = np.bincount(place, weights=(work.end - work.start)[rows])
    code = int(codes[np.argmax(times)])
    return "work without a name" if code == NULL else trace.strings[code]
