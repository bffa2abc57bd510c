"""What went wrong with a tool: from exit statuses, what it said on stderr and the files it left, to
findings. Pure.

A profiler's failure is never taken for the workload's, nor the reverse. The signs are those of
AMD's tools from ROCm 5.7 to 10.2; each finding says what to do.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import msgspec

from profharness import layers
from profharness.findings import Finding, finding
from profharness.launchers import describe_exit
from profharness.layers import known_faults
from profharness.layers.contract import Sign
from profharness.supervise.sentences import caught_signal, fatal_line, line_of, refusal

REFUSED = 3
"""The exit code when the tool refused to start the workload (as for a tool that is missing)."""


@dataclass(frozen=True)
class PassEnd:
    """How one pass ended. `own_status`: the workload's own, None where nobody knows. `overdue`:
    killed after its end.

    `never_ran`: the exit recorder inside the tool was never started; `ran`: the workload was seen
    to run; `vanished`: it is a Python program that began and never came to its own end. `guessed`:
    it ended by itself, but died before it could pass a status on, so that a sys.exit(n) would not
    be known.
    """

    exit_status: int
    own_status: int | None = None
    overdue: bool = False
    never_ran: bool = False
    ran: bool = False
    limit_s: float = 0.0
    interrupted: bool = False
    vanished: bool = False
    guessed: bool = False


@dataclass(frozen=True)
class LeftFile:
    """One file that the tool left. `kernels`: whether it holds any; None where that was not looked
    at.
    """

    path: str
    pid: int | None = None
    kernels: bool | None = None


@dataclass(frozen=True)
class Evidence:
    """All that is known of one pass of one tool.

    `users`: processes that used a framework, by the hooks' hellos; `refused`: the tool did not take
    the pass's counters; `passed_on`: the user's own arguments for the tool; `unopened`: why a
    window that was asked for never began; `closed`: why this user reaches no device, by the node's
    facts; `if_killed`: what a killed program means for the tool's files; `stepped`: processes that
    ran steps; `losing`: why children of a program may record nothing on this node.
    """

    layer: str
    ended: PassEnd
    said: str = ""
    files: tuple[LeftFile, ...] = ()
    users: tuple[int, ...] = ()
    expects_kernels: bool = True
    counting: bool = False
    refused: bool = False
    passed_on: tuple[str, ...] = ()
    unopened: str = ""
    closed: str = ""
    if_killed: str = ""
    stepped: tuple[int, ...] = ()
    losing: str = ""


@cache
def _signs() -> tuple[tuple[re.Pattern[str], Sign], ...]:
    """The sentences of all tools, since one may call another; the graver first."""
    of_layers = [sign for about in layers.descriptions() for sign in about.signs]
    return _compiled((*known_faults.SHARED, *of_layers, known_faults.LOST))


@cache
def _compiled(signs: tuple[Sign, ...]) -> tuple[tuple[re.Pattern[str], Sign], ...]:
    return tuple((re.compile(sign.pattern, re.IGNORECASE), sign) for sign in signs)


def final_status(ended: PassEnd, log_text: str) -> int:
    """The exit status to pass on: the workload's own where it is known, else what was seen.

    Where the tool aborted the workload, that is no status of the workload's: the tool could not be
    used.
    """
    if ended.interrupted:
        return ended.exit_status
    if (workload_status := _own_status(ended, log_text)) is not None:
        return workload_status
    return (
        REFUSED
        if _is_refused(ended, log_text) or _is_aborted(ended, log_text)
        else ended.exit_status
    )


def _own_status(ended: PassEnd, log_text: str) -> int | None:
    """As the witnesses say, else by the signal that the tool's handler caught before it changed,
    crashed or hung the end.
    """
    if (
        ended.own_status is not None
        or ended.exit_status == 0
        or not (ended.vanished or ended.overdue)
    ):
        return ended.own_status
    caught = caught_signal(log_text)
    return None if caught is None or fatal_line(log_text) else 128 + caught


def _is_aborted(ended: PassEnd, log_text: str) -> bool:
    """Whether the tool ended the workload in its midst."""
    return ended.exit_status > 128 and ended.own_status is None and bool(fatal_line(log_text))


def _is_refused(ended: PassEnd, log_text: str) -> bool:
    """Whether the tool failed before it started the workload; one that never started it has failed
    also where it ends with 0.
    """
    return (
        (ended.exit_status != 0 or ended.never_ran)
        and ended.own_status is None
        and not ended.ran
        and (ended.never_ran or bool(refusal(log_text)))
    )


def judge(evidence: Evidence) -> tuple[Finding, ...]:
    """All findings on one pass, the most telling first. Of one that the user ended by a signal only
    why it stood still.
    """
    if evidence.ended.interrupted:
        return _fault_findings(evidence, known_faults.HANGS)
    if _is_refused(evidence.ended, evidence.said):
        return _refused_findings(evidence)
    if evidence.refused:  # the finding that names the halves is made where they are decided
        return tuple(item for item in _sentence_findings(evidence) if item.id != "counters-refused")
    return (
        *_exit_findings(evidence),
        *_device_findings(_sentence_findings(evidence), evidence),
        *_file_findings(evidence),
    )


def _refused_findings(evidence: Evidence) -> tuple[Finding, ...]:
    """That the workload never ran, with the cause and the way out as far as the tool's words tell
    them, and what else it said.
    """
    words = refusal(evidence.said) or f"it {describe_exit(evidence.ended.exit_status)} first"
    causes = [
        sign
        for pattern, sign in _signs()
        if sign.finding == "profiler-failed" and pattern.search(evidence.said)
    ]
    cause = causes[0].message if causes else ""
    if not causes and evidence.passed_on:
        given = " ".join(evidence.passed_on)
        cause = f"this version may not take what --tool-arg gave it: {given}"
    message = f"{evidence.layer} did not start the workload: {words}"
    item = finding("profiler-failed", "; ".join(filter(None, (message, cause))))
    if causes and causes[0].advice:
        item = msgspec.structs.replace(item, advice=causes[0].advice)
    return (
        item,
        *(found for found in _sentence_findings(evidence) if found.id != "profiler-failed"),
    )


def _exit_findings(evidence: Evidence) -> tuple[Finding, ...]:
    ended, layer = evidence.ended, evidence.layer
    if ended.overdue:
        return (
            finding(
                "profiler-hung",
                f"{layer} went on for {ended.limit_s:g} s after the workload had ended, "
                "and wrote nothing: it was killed, "
                "its innermost processes first; what was written is kept",
                limit_s=ended.limit_s,
            ),
        )
    own_status = _own_status(ended, evidence.said)
    if own_status is None and _is_aborted(ended, evidence.said):
        return (
            finding(
                "profiler-failed",
                f"{layer} aborted the workload, which {describe_exit(ended.exit_status)}: "
                f"{fatal_line(evidence.said)}",
            ),
        )
    if own_status is None or own_status == ended.exit_status:
        return ()
    guessed = " (with which status is not known: it is taken as 0)" if ended.guessed else ""
    workload_end = (
        f"had ended by itself{guessed}"
        if own_status == 0
        else f"itself {describe_exit(own_status)}"
    )
    return (
        finding(
            "profiler-changed-exit",
            f"{layer} {describe_exit(ended.exit_status)}, but the workload {workload_end}",
            profiler=ended.exit_status,
            workload=own_status,
        ),
    )


def _sentence_findings(evidence: Evidence) -> tuple[Finding, ...]:
    """One finding per kind of sentence, with the line that it stands in. Known faults say more than
    a tool's own sentence of the same kind.
    """
    by_kind = {item.id: item for item in _fault_findings(evidence, known_faults.SIGNS)}
    for pattern, sign in _signs():
        match = pattern.search(evidence.said)
        if match and sign.finding not in by_kind:
            by_kind[sign.finding] = _sentence_finding(evidence, sign, match)
    return tuple(by_kind.values())


def _sentence_finding(evidence: Evidence, sign: Sign, match: re.Match[str]) -> Finding:
    line = line_of(evidence.said, match)
    item = finding(sign.finding, f"{evidence.layer}: {sign.message} ({line})")
    return msgspec.structs.replace(item, advice=sign.advice) if sign.advice else item


def _fault_findings(evidence: Evidence, signs: tuple[Sign, ...]) -> tuple[Finding, ...]:
    """The known faults that the pass told of, one per kind; none where it recorded what it was
    for, since then the sentences mean no harm.
    """
    by_kind: dict[str, Finding] = {}
    for pattern, sign in _compiled(signs) if _is_without_records(evidence) else ():
        match = pattern.search(evidence.said)
        if match and sign.finding not in by_kind:
            by_kind[sign.finding] = _sentence_finding(evidence, sign, match)
    return tuple(by_kind.values())


def _is_without_records(evidence: Evidence) -> bool:
    """Whether the tool did not record what it was for, or could not end by itself."""
    return (
        evidence.ended.overdue
        or not evidence.files
        or (evidence.expects_kernels and all(left.kernels is False for left in evidence.files))
    )


def _device_findings(findings: tuple[Finding, ...], evidence: Evidence) -> tuple[Finding, ...]:
    """The findings on the tool's sentences. Where no kernel was recorded and this user may not open
    the devices, a finding from the node's facts stands in place of the tool's own, which says less.
    """
    if (
        not evidence.closed
        or not evidence.expects_kernels
        or any(left.kernels is not False for left in evidence.files)
    ):
        return findings
    remaining = tuple(one for one in findings if one.id != "no-device-access")
    return (
        *remaining,
        finding("no-device-access", f"{evidence.layer} met no device: {evidence.closed}"),
    )


def _file_findings(evidence: Evidence) -> tuple[Finding, ...]:
    """Whether the files hold what the pass was for."""
    if not evidence.files:
        return (
            finding("profiler-failed", f"{evidence.layer} left no files: {_why_nothing(evidence)}"),
        )
    if not evidence.expects_kernels or any(left.kernels is not False for left in evidence.files):
        return _lost_children(evidence)
    traced = sorted({left.pid for left in evidence.files if left.pid is not None})
    elsewhere = sorted(set(evidence.users) - set(traced))
    if traced and elsewhere:
        return (
            finding(
                "launcher-traced",
                f"{evidence.layer} traced {_processes(traced)}, which ran no kernel, "
                f"and not {_processes(elsewhere)}, which used "
                "the framework: it followed the launcher, not the workers",
                traced=len(traced),
                missed=len(elsewhere),
            ),
        )
    shortfall = "counted no kernel" if evidence.counting else "recorded no kernel"
    return (
        finding(
            "empty-trace",
            f"{evidence.layer} wrote {len(evidence.files)} file{'s' * (len(evidence.files) != 1)} "
            f"but {shortfall}: {_why_nothing(evidence)}",
            files=len(evidence.files),
        ),
    )


def _lost_children(evidence: Evidence) -> tuple[Finding, ...]:
    """Processes that ran steps and have no kernel, beside others whose kernels were recorded, where
    that is a known fault of this node's software.
    """
    recorded = sorted({left.pid for left in evidence.files if left.kernels and left.pid})
    silent = set(evidence.stepped) - {
        left.pid for left in evidence.files if left.kernels is not False
    }
    if not evidence.losing or not recorded or not silent:
        return ()
    found = finding(
        "known-fault",
        f"{evidence.layer} recorded kernels of {_processes(recorded)}, and none of "
        f"{_processes(sorted(silent))}, which ran steps: {evidence.losing}",
        missed=len(silent),
    )
    way_out = (
        "have the program run os.environ.pop('ROCPROFILER_REGISTER_LIBRARY', None) "
        "before it starts them"
    )
    return (msgspec.structs.replace(found, advice=way_out),)


def _why_nothing(evidence: Evidence) -> str:
    if evidence.unopened:
        return evidence.unopened
    if evidence.closed:
        return "this user reaches no device here"
    workload_status = (
        evidence.ended.own_status
        if evidence.ended.own_status is not None
        else evidence.ended.exit_status
    )
    if evidence.if_killed and not evidence.files and evidence.ended.exit_status > 128:
        return f"the workload {describe_exit(evidence.ended.exit_status)}; {evidence.if_killed}"
    if workload_status != 0:
        return f"the workload {describe_exit(workload_status)}, perhaps before it used the device"
    return (
        "the workload ended before it used the device, used none, "
        "or another profiler had attached first"
    )


def _processes(pids: Sequence[int]) -> str:
    return f"process {pids[0]}" if len(pids) == 1 else f"processes {', '.join(map(str, pids[:5]))}"
