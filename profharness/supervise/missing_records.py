"""What the hooks said from inside a command's processes, and why a layer that was asked for left
nothing. Pure.

A hello file says that the hooks loaded in a process and what became of its capture window; a bye
file says that its Python ended by itself. From both follows the cause, which is one finding for all
the processes that share it.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import msgspec

from profharness.findings import Finding, finding
from profharness.layers.contract import Description
from profharness.rundir.manifest import ENDED_BY, Hello

_TELLING = (
    "stood back",
    " failed: ",
    ENDED_BY,
)  # messages of the hooks that explain why nothing came of a process


REPAIR = "repair the command first: it ended before there was anything to record"
EMPTY = "nothing recorded"
"""What became of a window in which nothing happened."""


@dataclass(frozen=True)
class HookReports:
    """One pass as its hooks saw it.

    `hellos` of the pass, `byes` the processes whose Python ended by itself, `steps` how many each
    process counted, `recorded` the processes that left a file of the layer (None for one that does
    not say), `capture` as asked.
    """

    hellos: Sequence[Hello]
    byes: Collection[int]
    steps: Mapping[int, int]
    recorded: Collection[int | None]
    capture: str = "default"


def message_findings(hellos: Sequence[Hello]) -> tuple[Finding, ...]:
    """What the hooks noted, one finding per sentence; a failure of theirs weighs more than a
    note.
    """
    findings = []
    for sentence, pids in _grouped(
        [(message, hello.pid) for hello in hellos for message in hello.messages]
    ).items():
        kind = "profiler-failed" if " failed: " in sentence else "hook-message"
        findings.append(
            finding(
                kind, f"{sentence} ({_processes(pids)})", severity="warning", processes=len(pids)
            )
        )
    return tuple(findings)


def nothing_recorded(about: Description, reports: HookReports) -> tuple[Finding, ...]:
    """Why a layer inside the processes left no file; where it left some, only which processes lost
    theirs at their end. A process that did nothing but fork others, which did the work, has lost
    nothing: of these there is a finding.
    """
    layer = about.name
    started = [hello for hello in reports.hellos if not hello.forked]
    users = [hello for hello in started if layer in hello.frameworks]
    if reports.recorded:
        cut = [
            hello.pid
            for hello in users
            if hello.pid not in reports.recorded and _cut_off(hello, reports)
        ]
        return (_finding(layer, _CUT_OFF, cut, "warning"),) if cut else ()
    if not started:
        return (
            finding(
                "nothing-recorded",
                f"{layer} recorded nothing: no Python process of the command loaded the hooks "
                "(it started none, or one before Python 3.8, or starts it with -S, -I or -E, or "
                "with a PYTHONPATH of its own)",
            ),
        )
    if not users:
        return (
            finding(
                "nothing-recorded",
                f"{layer} recorded nothing: {_count(started)}, and none imported {layer}",
                processes=len(started),
            ),
        )
    forked = {hello.parent_pid for hello in reports.hellos if hello.forked and layer in hello.used}
    causes = _grouped(
        [
            (_cause(about, hello, reports), hello.pid)
            for hello in users
            if not (hello.pid in forked and hello.window == EMPTY)
        ]
    )
    return tuple(_finding(layer, cause, pids, "error") for cause, pids in causes.items())


_CUT_OFF = (
    "the process ended by os._exit or a signal while its window was open, so it was never written"
)


def _cause(about: Description, hello: Hello, reports: HookReports) -> str:
    telling = next(
        (message for message in hello.messages if any(words in message for words in _TELLING)), ""
    )
    if telling:
        return telling
    if _cut_off(hello, reports):
        return _CUT_OFF
    if hello.window == EMPTY:
        return "its window was open and held no event"
    if about.windowed and not hello.window and hello.pid in reports.byes:
        return (
            f"its window never opened: --capture {reports.capture}, "
            f"and the script had {reports.steps.get(hello.pid, 0)} steps"
        )
    if hello.pid not in reports.byes:
        return "the process ended by os._exit or a signal before anything was written"
    return about.silent


def _cut_off(hello: Hello, reports: HookReports) -> bool:
    return hello.window == "open" and hello.pid not in reports.byes


def _finding(layer: str, cause: str, pids: Sequence[int], severity: str) -> Finding:
    message = f"{layer} recorded nothing of {_processes(pids)}: {cause}"
    found = finding(
        "nothing-recorded",
        message,
        severity="error" if severity == "error" else "warning",
        processes=len(pids),
    )
    return msgspec.structs.replace(found, advice=REPAIR) if cause.startswith(ENDED_BY) else found


def _grouped(sentences: Sequence[tuple[str, int]]) -> dict[str, list[int]]:
    """The pids by the sentence about them, in the order in which the sentences first stand."""
    groups: dict[str, list[int]] = {}
    for words, pid in sentences:
        groups.setdefault(words, []).append(pid)
    return groups


def _count(hellos: Sequence[Hello]) -> str:
    return "one Python process ran" if len(hellos) == 1 else f"{len(hellos)} Python processes ran"


def _processes(pids: Sequence[int]) -> str:
    if len(pids) == 1:
        return f"process {pids[0]}"
    shown = ", ".join(map(str, pids[:5]))
    return f"processes {shown}" + (f" and {len(pids) - 5} more" if len(pids) > 5 else "")
