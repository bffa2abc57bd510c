"""How much of a window start-up holds, and how much lies before it (docs/metrics.md#start-up)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.measurement import Measurement
from profharness.analysis.time.start_up import NOTABLE, calls_of_device, start_up_calls
from profharness.findings import Finding, finding
from profharness.stats import intervals
from profharness.units import format_ns, format_share

I64 = npt.NDArray[np.int64]


@dataclass(frozen=True)
class StartUp:
    """Time in ns in which a device is known to have had no work while a call loaded or created
    something, summed over devices: `inside` the window, and before it. `told` and `told_before`
    name the calls.
    """

    inside_ns: int = 0
    before_ns: int = 0
    calls: int = 0
    told: str = ""
    told_before: str = ""


def start_up_of(m: Measurement) -> StartUp:
    """The start-up of a measurement's devices; of its file alone, not of what other files did.
    Kept with the calls: findings and grounds ask for it.
    """
    others = (m.trace.kernels, m.trace.copies, m.trace.strings, m.windows)
    return m.trace.api.kept((start_up_of, m.point), others, lambda: _start_up_of(m))


def _start_up_of(m: Measurement) -> StartUp:
    rows = start_up_calls(m.trace)
    every = m.windows.everywhere
    if not len(rows) or m.timeless or not every.total:
        return StartUp()
    api = m.trace.api
    opened, closed = int(every.start[0]), int(every.end[-1])
    begun = int(api.start_ns[rows[0]])
    inside_ns = before_ns = 0
    for device in m.devices:
        known = m.whole.idle.known(device, calls_of_device(m.trace, device))
        idle = intervals.subtract(known, m.work.busy(device).times)
        inside_ns += intervals.intersect(idle, m.windows.on(device)).total
        before_ns += intervals.clip(idle, begun, max(begun, opened)).total
    ends = api.start_ns[rows] + api.dur_ns[rows]
    inside = rows[(ends > opened) & (api.start_ns[rows] < closed)]
    return StartUp(
        inside_ns,
        before_ns,
        len(inside),
        _told(m, inside),
        _told(m, rows[api.start_ns[rows] < opened]),
    )


def _told(m: Measurement, rows: I64) -> str:
    """`hipLaunchKernel of 6.543 ms`, or `3 calls, the longest hipMalloc of 12 ms`."""
    if not len(rows):
        return ""
    api = m.trace.api
    longest = rows[int(np.argmax(api.dur_ns[rows]))]
    name = m.trace.strings[int(api.name[longest])]
    said = f"{name} of {format_ns(int(api.dur_ns[longest]))}"
    return f"one {said}" if len(rows) == 1 else f"{len(rows)} calls, the longest {said}"


def start_up_findings(m: Measurement) -> Iterator[Finding]:
    """That start-up holds a notable part of the window, or took as long before it."""
    found, several = start_up_of(m), len(m.devices)
    who = "the device" if several == 1 else f"each of {several} devices, in the mean,"
    if found.inside_ns and found.inside_ns >= NOTABLE * m.window_ns:
        share = found.inside_ns / m.window_ns
        yield finding(
            "start-up",
            f"start-up holds {format_share(share)} of the window: "
            f"for {format_ns(found.inside_ns // several)} {who} had nothing to do while the host "
            f"loaded or created something ({found.told})",
            severity="warning",
            start_up_ns=found.inside_ns,
            window_share=share,
            calls=found.calls,
        )
    if found.before_ns and found.before_ns >= NOTABLE * m.window_ns:
        yield finding(
            "start-up",
            f"start-up took {format_ns(found.before_ns // several)} before the window "
            f"and is left out ({found.told_before})",
            left_out_ns=found.before_ns,
        )


def needs_of(m: Measurement) -> str:
    """What a verdict takes where start-up makes up at least half of the idle time; else empty."""
    found = start_up_of(m)
    if not found.inside_ns or 2 * found.inside_ns < m.partition.idle_ns:
        return ""
    return (
        "a recording that begins after a warm-up, as start-up holds "
        f"{format_share(found.inside_ns / m.window_ns)} of the window ({found.told}), "
        "which device graphs would not shorten"
    )
