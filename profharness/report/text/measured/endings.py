"""How a command ended, and which of its steps were captured, in a clause."""

from __future__ import annotations

import re
import signal
from collections.abc import Sequence

from profharness.analysis.records import RunInfo, Summary
from profharness.findings import Finding
from profharness.report.text.labels import is_command
from profharness.rundir.manifest import ENDED_BY

_SIGNALLED = 128
_REFUSED = 3  # the status where the tool did not let the command come to its own
_OF_HOOKS = ("hook-message", "nothing-recorded")
_ENDED_BY = re.compile(rf"{ENDED_BY}(.+?)(?: \(process(?:es)? [0-9, and more]+\))?$", re.DOTALL)
_KEPT_FROM_ITS_END = re.compile(r"(\S+) (did not start|aborted) the workload")


def ending(run: RunInfo, findings: Sequence[Finding] = ()) -> str:
    """How the command ended: `python exited 1`, `python was killed by signal 9 (137)`; a shell adds
    128 to a signal. Where a tool kept it from its end, the status 3 is none of its own.
    """
    program, status = (
        run.command[0].rsplit("/", 1)[-1] if run.command else "the command",
        run.exit_status or 0,
    )
    number = -status if status < 0 else status - _SIGNALLED
    if number in set(signal.Signals):
        return f"{program} was killed by signal {number}" + (f" ({status})" if status > 0 else "")
    if status == _REFUSED:
        said = (item.message for item in findings if item.id == "profiler-failed")
        if by := next(filter(None, map(_KEPT_FROM_ITS_END.match, said)), None):
            return f"{by[1]} {by[2]} {program} (exit status {status})"
    return f"{program} exited {status}{_by_exception(findings)}"


def _by_exception(findings: Sequence[Finding]) -> str:
    """` by ModuleNotFoundError: No module named 'x' (train.py:3)`, as the hooks noted it."""
    for item in findings:
        told = _ENDED_BY.search(item.message) if item.id in _OF_HOOKS else None
        if told:
            return f" by {told[1]}"
    return ""


def failed_before_anything(summary: Summary) -> bool:
    """Whether the command failed before a layer saw anything of it: what is missing then is missing
    because of that.
    """
    run = summary.run
    if run is None or not run.exit_status or not is_command(summary):
        return False
    kept = any(_KEPT_FROM_ITS_END.match(item.message) for item in summary.findings)
    seen = any(table.rows for table in summary.hotspots) or summary.host_lines or summary.log
    return not kept and not seen


def captured(summary: Summary) -> str:
    """`20 steps captured (10 to 29)` where the trace says it, else the window that was asked for;
    empty for the default one.
    """
    for row in summary.passes:
        if row.captured_steps:
            steps = (
                f"{row.captured_steps} {'step' if row.captured_steps == 1 else 'steps'} captured"
            )
            if row.first_step is None:
                return steps
            last = row.first_step + row.captured_steps - 1
            return (
                f"{steps} ({row.first_step})"
                if row.captured_steps == 1
                else f"{steps} ({row.first_step} to {last})"
            )
    asked = "" if summary.run is None else summary.run.capture
    return f"capture {asked}" if asked not in ("", "default") else ""
