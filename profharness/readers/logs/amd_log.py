"""The text that the HIP runtime logs with AMD_LOG_LEVEL, of ROCm 4.5 to 10.

A line is `:LEVEL:FILE:LINE: TIME us: [ID] MESSAGE`, CLOCK_MONOTONIC in microseconds; how process
and thread are written changed several times, and some levels leave them out. A call logs its entry
and its return. A kernel is logged when the host submits it: the log knows no kernel times, except
where profiling prints the GPU's own start and end of a signal. Other text of the program is mixed
in. With AMD_LOG_ASYNC=1 a thread of the runtime writes the lines, and times may step back by some
microseconds.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import open_line
from profharness.readers.bytes.limits import lines_of
from profharness.readers.bytes.text_lines import TextLines
from profharness.readers.logs.amd_log_lines import Record, records
from profharness.readers.logs.amd_log_rows import Geometry, LogRows, Moment, trace_of
from profharness.trace.columns.table import NULL
from profharness.trace.model import Problem, Trace
from profharness.trace.wanted import Wanted

name = "amd-log"

_SNIFF = re.compile(rb"^:\d+:\S*[ \t]*:\d+\s*: \d+d? us: ", re.MULTILINE)
_ID = re.compile(
    r"(?:(?P<pid>\d{1,10})\s*:\s*)?"
    r"\[(?:pid:(?P<pid6>\d{1,10})\s+)?(?:tid:\s*)?(?:0x)?(?P<tid>[0-9a-f]+)\]\s*!?\s*"
)
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# a line that was wrapped at a blank may have lost it
_RETURN = re.compile(r"(\w+): ?Returned ?(\w+)")
_DURATION = re.compile(r"duration: (\d{1,15}) us")
_ENTRY = re.compile(r"\s*(_*i?hip\w+) ?\( ?(.*)\)\s*\Z")
_SHADER = re.compile(r"(?:Graph )?ShaderName\s*: (.*)\Z")
_DEVICE = ", device id : "  # behind the name, in launches of a graph
_DISPATCH = re.compile(r"Dispatch Header = 0x[0-9a-f]+ \(type=2\b")
_TRIPLE = re.compile(r"\b(grid|workgroup)=\[(\d{1,10}), ?(\d{1,10}), ?(\d{1,10})\]")
_COMPLETION = re.compile(r"completion_signal=0x([0-9a-f]+)")
_SIGNAL = re.compile(r"Signal = \(0x([0-9a-f]+)\), start = (\d{1,18}), end = (\d{1,18})\b")
_DIM3 = re.compile(r"\{(\d{1,10}),(\d{1,10}),(\d{1,10})\}")
_NEVER_RETURN = frozenset({"hipGetLastError", "hipPeekAtLastError"})  # they log their entry alone
_DEEPEST = 256


@dataclass
class _Thread:
    """What is open on one thread: entries without return, how many of each call, the last kernel
    name without its dispatch, and the geometry of the last launch, in workgroups.
    """

    entries: list[tuple[int, str]] = field(default_factory=list)
    open_calls: dict[str, int] = field(default_factory=dict)
    shader: tuple[int, str] | None = None
    launch: Geometry | None = None

    def enter(self, at_ns: int, call: str) -> int:
        """How many entries were forgotten for it."""
        forgotten = len(self.entries) == _DEEPEST
        if forgotten:
            self.open_calls[self.entries.pop(0)[1]] -= 1
        self.entries.append((at_ns, call))
        self.open_calls[call] = self.open_calls.get(call, 0) + 1
        return int(forgotten)

    def leave(self, call: str) -> tuple[int, int] | None:
        """When the call was entered last, and how many entries behind that have no return; None
        where none of it is open.
        """
        if not self.open_calls.get(call):
            return None
        behind = -1
        while True:
            at_ns, name = self.entries.pop()
            self.open_calls[name] -= 1
            behind += 1
            if name == call:
                return at_ns, behind


@dataclass
class _Log:
    """A log as it is read, line by line."""

    rows: LogRows = field(default_factory=LogRows)
    threads: dict[tuple[int, int], _Thread] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    latest_ns: int = 0
    back_ns: int = 0


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """At least one line of the log, also behind other text."""
    return _SNIFF.search(head) is not None


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The trace of one file: calls, submissions of kernels as ranges, and device work where signals
    have times.

    Raises InputError when no line is of the log.
    """
    log, lines = _Log(), TextLines(path, lines_of(path))
    for record in records(iter(lines), log.counts):
        _take(log, record)
    if not log.counts["lines"]:
        raise InputError(
            f"{path} holds no line of a HIP log", "record it with AMD_LOG_LEVEL=3 or more"
        )
    _close(log)
    problems = (
        *_problems(path, log, lines.damage),
        *open_line(path, is_open=lines.is_open),
    )
    return trace_of(log.rows, path, name, problems)


def _take(log: _Log, record: Record) -> None:
    log.counts["lines"] += 1
    at_ns = int(record.time) * 1000
    if at_ns < log.latest_ns:
        log.counts["back"] += 1
        log.back_ns = max(log.back_ns, log.latest_ns - at_ns)
    else:
        log.latest_ns = at_ns
    rest = record.rest
    pid, tid, message = _identified(_COLOUR.sub("", rest) if "\x1b" in rest else rest)
    _understand(log, Moment(at_ns, pid, tid), message)


def _identified(rest: str) -> tuple[int, int, str]:
    """Process, thread and message; NULL for what the line leaves out."""
    match = _ID.match(rest)
    if match is None:
        return NULL, NULL, rest.lstrip()  # below level 4 the place of the ids is empty
    pid = match["pid"] or match["pid6"]
    return int(pid) if pid else NULL, int(match["tid"], 16) & (2**63 - 1), rest[match.end() :]


def _understand(log: _Log, at: Moment, message: str) -> None:
    thread = log.threads.get((at.pid, at.tid))
    if thread is None:
        thread = log.threads[at.pid, at.tid] = _Thread()
    # words are found faster than patterns, and most records are none of these
    if "Signal = (" in message and (signal := _SIGNAL.search(message)):
        log.rows.signal(int(signal[1], 16), int(signal[2]), int(signal[3]))
    elif "ShaderName" in message and (shader := _SHADER.match(message)):
        log.counts["not dispatched"] += thread.shader is not None
        thread.shader = (at.ns, shader[1].partition(_DEVICE)[0].strip())
    elif "Dispatch Header" in message and _DISPATCH.search(message):
        _dispatch(log, thread, at, message)
    elif "Returned" in message and (returned := _RETURN.match(message)):
        _returned(log, thread, at, returned, message)
    elif entry := _ENTRY.match(message):
        _entered(log, thread, at, entry[1], entry[2])


def _dispatch(log: _Log, thread: _Thread, at: Moment, message: str) -> None:
    """A packet to a queue; its kernel is the one last named on the thread."""
    if thread.shader is None:
        log.counts["unnamed"] += 1
        return
    triples = {key: (int(x), int(y), int(z)) for key, x, y, z in _TRIPLE.findall(message)}
    grid, group = triples.get("grid"), triples.get("workgroup")
    geometry = (
        None
        if grid is None or group is None or 0 in group
        else ((-(-grid[0] // group[0]), -(-grid[1] // group[1]), -(-grid[2] // group[2])), group)
    )
    completion = _COMPLETION.search(message)
    _submit(log, thread, at, geometry, int(completion[1], 16) if completion else 0)


def _submit(
    log: _Log, thread: _Thread, at: Moment, geometry: Geometry | None, signal: int = 0
) -> None:
    if thread.shader is not None:
        started, kernel = thread.shader
        log.rows.submission(started, at, kernel, geometry, signal)
    thread.shader = thread.launch = None


def _entered(log: _Log, thread: _Thread, at: Moment, call: str, arguments: str) -> None:
    if call in _NEVER_RETURN:
        log.rows.call(at.ns, at, call)
        return
    if "LaunchKernel" in call:
        axes = [(int(x), int(y), int(z)) for x, y, z in _DIM3.findall(arguments)]
        thread.launch = (axes[0], axes[1]) if len(axes) > 1 else None
    log.counts["unreturned"] += thread.enter(at.ns, call)


def _returned(
    log: _Log, thread: _Thread, at: Moment, returned: re.Match[str], message: str
) -> None:
    call = returned[1]
    if call in _NEVER_RETURN:
        return
    if "LaunchKernel" in call and thread.shader is not None:
        if returned[2] == "hipSuccess":
            _submit(log, thread, at, thread.launch)
        else:
            log.counts["not dispatched"] += 1
            thread.shader = None
    if (left := thread.leave(call)) is not None:
        begin, unreturned = left
        log.counts["unreturned"] += unreturned
    elif duration := _DURATION.search(message):
        begin = at.ns - int(duration[1]) * 1000
    else:
        log.counts["not entered"] += 1
        return
    log.rows.call(begin, at, call)


def _close(log: _Log) -> None:
    for thread in log.threads.values():
        log.counts["unreturned"] += len(thread.entries)
        log.counts["not dispatched"] += thread.shader is not None


def _problems(path: Path, log: _Log, damage: str) -> Iterator[Problem]:
    where, counts = str(path), log.counts
    yield Problem(
        "info",
        where,
        counts["lines"],
        "lines of a HIP log: the time of kernels is when the host submitted them, "
        "and logging slows the program down",
    )
    sentences = {
        "other text": "lines are no lines of the log (text of the program) and were passed over",
        "unreturned": "calls have no return in the log and were left out",
        "untimed": "lines of the runtime without a time, or warnings, were passed over",
        "wrapped": "lines go on with the record of the line before: joined",
        "together": "records stand on the line of another: read one by one",
        "back": (
            f"lines have a time before that of a line above them, by {log.back_ns // 1000} us at "
            "most (AMD_LOG_ASYNC, or several writers): kept with their own times"
        ),
        "not entered": (
            "calls have neither an entry nor a duration in the log and were left out (a log above "
            "AMD_LOG_LEVEL_SIZE loses its begin)"
        ),
        "not dispatched": (
            "kernels were named and not seen to be dispatched (the level prints "
            "no packets, or the launch failed)"
        ),
        "unnamed": "packets with a kernel follow no kernel name and were left out",
    }
    for key, sentence in sentences.items():
        if counts[key]:
            yield Problem("info", where, counts[key], sentence)
    if damage:
        yield Problem("error", where, 1, f"the file is cut or damaged: {damage}")
