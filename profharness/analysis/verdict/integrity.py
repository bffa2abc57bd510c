"""What a reader of the figures must know first: is the trace complete, and does it agree with
itself?

Each check looks at one way in which real tools lose records; each finding carries the figures that
triggered it. Checks of clocks, and those that need several passes, are elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import PurePath

import numpy as np
import numpy.typing as npt

from profharness.analysis import verdict
from profharness.analysis.kernels import patterns
from profharness.analysis.kernels.grouping import pack
from profharness.analysis.time.counts import device_keys, devices_with_work
from profharness.analysis.time.device_work import Work, backlogged_streams, work_of
from profharness.analysis.time.steps import steps
from profharness.analysis.time.timeless import no_places
from profharness.analysis.verdict.host_files import meant_none, of_host_files
from profharness.findings import Finding, finding
from profharness.stats import intervals
from profharness.stats.intervals import Intervals
from profharness.trace.columns.keys import distinct, first_rows
from profharness.trace.columns.table import NULL
from profharness.trace.graphs.captures import captured_calls
from profharness.trace.model import Problem, Trace

I64 = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]
NOTABLE_SHARE = 0.01
AMD_DEFAULT_QUEUES = 4
"""HIP maps all streams of a process onto this many hardware queues per device unless
GPU_MAX_HW_QUEUES says otherwise.
"""

_TRUNCATED = re.compile(
    r"ends (early|inside|abruptly)|not closed|truncat|interrupted|cut (off|short)|is cut or "
    r"damaged|bundles cannot be read"
)
_DROPPED = re.compile(
    r"dropped by|discarded|overwritten|buffer (was |is )?(full|overrun)|data[ _]loss|lost "
    r"(by|records|events)"
)


def findings(trace: Trace, work: Work | None = None) -> tuple[Finding, ...]:
    """All findings on the trace's own completeness and consistency, the graver checks first."""
    work = work_of(trace) if work is None else work
    from_checks = verdict.check(trace, work)
    return (*from_checks, *from_problems(trace.problems))


def empty_trace(trace: Trace, work: Work) -> list[Finding]:
    """No device work, and nothing that says that none was meant: no operators, or launches without
    records.

    Logs of the host's side, totals that a tool printed itself, and a loose file of host calls whose
    tool writes kernels into another never hold any.
    """
    if len(work.start) or trace.statistics or all(meant_none(source) for source in trace.sources):
        return []
    launches = int(patterns.matching(trace.strings, trace.api, patterns.LAUNCH).sum())
    if len(trace.ops) and not launches:
        return []
    message = "the trace holds no device work" + (
        f" although the host launched {launches} times" if launches else ""
    )
    return [
        finding(
            "empty-trace",
            message,
            launches=launches,
            host_calls=len(trace.api),
            operators=len(trace.ops),
        )
    ]


def kernels_missing(trace: Trace, work: Work) -> list[Finding]:
    """Launch calls without a device record, though later launches of the same process have one: one
    finding for each process that lost some.

    Launches after the last recorded one may have run beyond the end of the file. Launches into a
    graph that is being captured run no kernel. Kernels that carry no id of a launch (older RCCL
    under roctracer) are taken for those of launches whose id no kernel carries.
    """
    api = trace.api
    launches = patterns.matching(trace.strings, api, patterns.LAUNCH)
    launches = (
        launches
        & ~patterns.matching(trace.strings, api, patterns.GRAPH_LAUNCH)
        & ~captured_calls(trace)
        & ~of_host_files(trace)[api.source]
    )
    if not launches.any():
        return []
    recorded = recorded_calls(trace, work)
    first, process = first_rows(pack([api.source, api.pid]))
    last = _last_recorded_launch(trace, launches & recorded, work, process)
    missing = launches & ~recorded & (api.start_ns < last)
    lost = np.bincount(process[missing], minlength=len(first)) - _without_id(trace, work, first)
    whole = np.bincount(process[launches], minlength=len(first)).tolist()
    several = sum(count > 0 for count in whole) > 1
    return [
        _kernels_missing(_process_name(trace, int(row)) if several else "", count, total)
        for row, count, total in zip(first, lost.tolist(), whole, strict=True)
        if count > 0
    ]


def _without_id(trace: Trace, work: Work, first: I64) -> I64:
    """How many kernels of each process carry no id of a launch; `first` is a call of each. Those
    that name no process count for the first of their file.
    """
    kernels, api = trace.kernels, trace.api
    counts = np.zeros(len(first), np.int64)
    rows = np.flatnonzero((kernels.correlation == NULL) & work.links.has_calls)
    if not len(rows):
        return counts
    of_each, place = first_rows(pack([kernels.source[rows], kernels.pid[rows]]))
    for row, count in zip(rows[of_each], np.bincount(place), strict=True):
        same = api.source[first] == kernels.source[row]
        named = same & (api.pid[first] == kernels.pid[row])
        counts[np.flatnonzero(named if named.any() else same)[:1]] += count
    return counts


def _kernels_missing(process: str, count: int, total: int) -> Finding:
    """So many of a process's launches have no kernel; `process` is empty for the only one."""
    share = count / total
    return finding(
        "kernels-missing",
        f"{process}{': ' if process else ''}{count} of {total} kernel launches have no kernel in "
        "the trace",
        severity="error" if share >= NOTABLE_SHARE else "warning",
        missing=count,
        launches=total,
        missing_share=share,
        **({"process": process} if process else {}),
    )


def _process_name(trace: Trace, call: int) -> str:
    """The process of a call: its number, and its file where the trace has several."""
    pid = int(trace.api.pid[call])
    name = f"process {pid}" if pid != NULL else "a process without a number"
    if len(trace.sources) < 2:
        return name
    return f"{name} of {PurePath(trace.sources[int(trace.api.source[call])].path).name}"


def launches_missing(trace: Trace, work: Work) -> list[Finding]:
    """Kernels whose launching call is not known although the file holds host calls: it is not in
    the file, or the kernel does not say which it was.
    """
    judged = work.links.has_calls
    unlinked = judged & (work.call[: work.kernels] == NULL)
    count, total = int(unlinked.sum()), int(judged.sum())
    if not count:
        return []
    durations = trace.kernels.dur_ns
    time_share = int(durations[unlinked].sum()) / max(int(durations[judged].sum()), 1)
    notable = max(count / total, time_share) >= NOTABLE_SHARE
    without_id = int((unlinked & (trace.kernels.correlation == NULL)).sum())
    which = "carry no id of the call that launched them"
    if without_id < count:
        which = "were launched by calls that the trace does not hold" + (
            f"; {without_id} of them {which}" if without_id else ""
        )
    return [
        finding(
            "launches-missing",
            f"{count} of {total} kernels ({time_share:.1%} of kernel time) {which}",
            severity="warning" if notable else "info",
            unlinked=count,
            without_id=without_id,
            kernels=total,
            unlinked_share=count / total,
            time_share=time_share,
        )
    ]


def steps_without_device_events(trace: Trace, work: Work) -> list[Finding]:
    """Steps in which nothing ran and nothing recorded was launched, while other steps have device
    work.

    Where the trace holds host calls, a step in which the host launched nothing is left out: it had
    no device work to lose. Nothing can be said of kernels that stand for no instant of the
    execution with the steps.
    """
    marked = steps(trace)
    if len(marked) < 2 or not len(work.start) or no_places(trace):
        return []
    spans = intervals.of([step.start_ns for step in marked], [step.end_ns for step in marked])
    ran = intervals.inside_ns(spans, intervals.merge(Intervals(work.start, work.end))) > 0
    called = trace.api.start_ns[work.call[work.call != NULL]]
    active = ran | (_between(np.sort(called), spans) > 0)
    expected = np.ones(len(spans), np.bool_)
    if len(trace.api):
        launches = trace.api.start_ns[patterns.matching(trace.strings, trace.api, patterns.LAUNCH)]
        expected = _between(np.sort(launches), spans) > 0
    silent = expected & ~active
    if not silent.any() or not active.any():
        return []
    names = [step.label for step, quiet in zip(marked, silent, strict=True) if quiet]
    return [
        finding(
            "steps-without-device-events",
            f"{len(names)} of {len(marked)} steps have no device work, first {names[0]}",
            silent=len(names),
            steps=len(marked),
            first=names[0],
        )
    ]


def streams_exceed_queues(trace: Trace, work: Work) -> list[Finding]:
    """More streams of an AMD device held unfinished work at once than there are hardware queues."""
    keys = device_keys(trace)
    exceeded = []
    for device in devices_with_work(trace):
        queues = _hardware_queues(trace, device)
        if queues is None:
            continue
        backlog = backlogged_streams(work, device)
        peak = int(backlog.value.max(initial=0))
        if peak > queues:
            time_ns = backlog.where(partial(np.less, queues)).total
            exceeded.append(
                finding(
                    "streams-exceed-queues",
                    f"device {keys[device]}: up to {peak} streams shared {queues} hardware "
                    f"queue{'' if queues == 1 else 's'}",
                    streams=peak,
                    queues=queues,
                    shared_ns=time_ns,
                )
            )
    return exceeded


def from_problems(problems: Sequence[Problem]) -> list[Finding]:
    """Reader problems that make a trace incomplete: files cut short, records that the tool itself
    dropped.
    """
    incomplete = []
    for problem in problems:
        if problem.severity == "error" and _TRUNCATED.search(problem.message):
            incomplete.append(
                finding(
                    "truncated-file", f"{problem.source}: {problem.message}", count=problem.count
                )
            )
        elif _DROPPED.search(problem.message):
            incomplete.append(
                finding(
                    "events-dropped", f"{problem.source}: {problem.message}", count=problem.count
                )
            )
    return incomplete


def recorded_calls(trace: Trace, work: Work) -> Mask:
    """Calls that share their id with a device record; a runtime and a driver call may share
    one id.
    """
    api = trace.api
    key = pack([api.source, api.pid, api.correlation])
    linked = distinct(key[work.call[work.call != NULL]])
    recorded: Mask = np.isin(key, linked) & (api.correlation != NULL)
    return recorded


def _last_recorded_launch(trace: Trace, recorded: Mask, work: Work, process: I64) -> I64:
    """Per call, the start of the last launch of its process that has a record; of a process without
    one, that of its file.

    A file with no recorded launch has lost them all where the trace holds no kernels, and cannot be
    judged where it holds some that are linked to nothing.
    """
    api = trace.api
    none = np.iinfo(np.int64).min
    of_source = np.full(len(trace.sources), none if work.kernels else np.iinfo(np.int64).max)
    of_source[distinct(api.source[recorded])] = none
    np.maximum.at(of_source, api.source[recorded], api.start_ns[recorded])
    of_process = np.full(int(process.max(initial=-1)) + 1, none)
    np.maximum.at(of_process, process[recorded], api.start_ns[recorded])
    last: I64 = np.where(of_process[process] == none, of_source[api.source], of_process[process])
    return last


def _between(sorted_times: I64, spans: Intervals) -> I64:
    """How many of the times lie in each span."""
    counts: I64 = np.searchsorted(sorted_times, spans.end) - np.searchsorted(
        sorted_times, spans.start
    )
    return counts


def _hardware_queues(trace: Trace, device: int) -> int | None:
    """As recorded, where the tool tells queues and streams apart; HIP's default for AMD devices;
    None where not known.
    """
    on_device = trace.kernels.device == device
    queues = distinct(trace.kernels.queue[on_device])
    streams = distinct(trace.kernels.stream[on_device])
    if len(queues) and NULL not in queues and len(streams) > 1:
        return len(queues)
    record = trace.devices[device] if device != NULL else None
    is_amd = record is not None and (
        "amd" in record.vendor.lower()
        or re.search(r"AMD|Instinct|Radeon|^gfx", record.name) is not None
    )
    return AMD_DEFAULT_QUEUES if is_amd else None
