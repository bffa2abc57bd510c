"""What runtimes and drivers call their functions: launches, graph launches, synchronisation,
copies.

Names are those of HIP, HSA, CUDA's runtime and driver as the tracers stamp them; matching is by
search in the whole name, so that suffixes (`_v2`, `_ptsz`, `R0600`) do not matter.
"""

from __future__ import annotations

import re
from re import Pattern

import numpy as np
import numpy.typing as npt

from profharness.trace.model import Api, Ops, Strings

LAUNCH: Pattern[str] = re.compile(
    r"Launch(Cooperative)?Kernel|GraphLaunch|^cu(da)?Launch(_\w+)?$|^hipLaunchByPtr"
)
GRAPH_LAUNCH: Pattern[str] = re.compile(r"GraphLaunch")
SYNCHRONISE: Pattern[str] = re.compile(
    r"(Device|Stream|Event|Ctx)Synchronize|^hsa_(amd_)?signal_wait"
)
STREAM_SYNCHRONISE: Pattern[str] = re.compile(r"(Device|Stream|Event|Ctx)Synchronize")
"""Synchronising calls that return when work of a device has ended: an HSA signal may be the host's
own.
"""
COPY_CALL: Pattern[str] = re.compile(r"Memcpy|Memset|^hsa_(amd_)?memory_(async_)?(copy|fill)")
EVENT_WAIT: Pattern[str] = re.compile(r"StreamWait(Event|Value)")
HOST_FUNCTION: Pattern[str] = re.compile(r"LaunchHostFunc|StreamAddCallback")
"""Calls that put a function of the host into a stream."""
CAPTURE_BEGIN: Pattern[str] = re.compile(r"StreamBeginCapture")
CAPTURE_END: Pattern[str] = re.compile(r"StreamEndCapture")

EVENT_DOMAINS = ("kfd", "scratch", "graph")
"""Domains of records that stand among host calls and are none: what the kernel driver and the
runtime did for the process.
"""


def is_call(strings: Strings, calls: Api) -> npt.NDArray[np.bool_]:
    """Which rows are host calls, and not events of drivers and runtimes."""
    codes = [code for code in map(strings.find, EVENT_DOMAINS) if code >= 0]
    if not codes:
        return np.ones(len(calls), np.bool_)
    return ~np.isin(calls.domain, codes)


def matching(strings: Strings, calls: Api | Ops, pattern: Pattern[str]) -> npt.NDArray[np.bool_]:
    """Which rows' names the pattern is found in; looks at each distinct name once, and keeps the
    answer, which cannot be written to.
    """
    return calls.kept(pattern, (strings,), lambda: _matching(strings, calls.name, pattern))


def _matching(
    strings: Strings, names: npt.NDArray[np.int32], pattern: Pattern[str]
) -> npt.NDArray[np.bool_]:
    present = np.zeros(len(strings) + 1, np.bool_)
    present[names] = True  # NULL is the last one
    wanted = np.zeros(len(present), np.bool_)
    for code in np.flatnonzero(present).tolist():
        wanted[code] = pattern.search(strings[code] if code < len(strings) else "") is not None
    found: npt.NDArray[np.bool_] = wanted[names]
    found.flags.writeable = False
    return found
