"""What the logs of the HIP runtime and of MIOpen say: launches, calls, and what MIOpen was asked
for, looked up and built (docs/metrics.md#runtime-log).

A log knows what the host did and when. It holds no device times, and writing it slows the program
down, so that its durations say which calls are long, not how fast the program is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.trace import log_names
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Trace

FORMATS = frozenset({"amd-log", "miopen-log"})
_SLOW = 10.0  # times the median of the later calls
_SLOW_NS = 1_000_000
_LATER = 2  # later calls at least


class LoggedKernel(msgspec.Struct, frozen=True, kw_only=True):
    """A kernel by its launches. `shape` is the most common geometry, empty where none is known, and
    `shapes` how many there are; `submitting_ns` is the host's time from its name to its dispatch.
    """

    name: str
    launches: int
    shape: str
    shapes: int
    submitting_ns: int


class LoggedCall(msgspec.Struct, frozen=True, kw_only=True):
    """A function of the runtime: host times in ns. `first_ns` is the call that began first, and
    `later_ns` the median of the others, None where there is none.
    """

    name: str
    calls: int
    total_ns: int
    longest_ns: int
    first_ns: int
    later_ns: int | None

    @property
    def slow_at_first(self) -> bool:
        """Whether the first call took ten times the median of at least two later ones, and 1 ms
        more.
        """
        return (
            self.later_ns is not None
            and self.calls > _LATER
            and self.first_ns >= _SLOW * self.later_ns
            and self.first_ns - self.later_ns >= _SLOW_NS
        )


class LoggedCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A line for MIOpenDriver that repeats a call, and how often MIOpen logged it."""

    command: str
    count: int


class RuntimeLog(msgspec.Struct, frozen=True, kw_only=True):
    """All logs of a run or file. Kernels stand by launches, calls by total time, commands by count.

    `lookups` are lines in which MIOpen looks for a record or solution, `built` those in which it
    keeps a kernel or record that it compiled or tuned; the last of these was `built_until_ns` after
    the begin of the logs (None without one that has a time).
    """

    pass_name: str = ""
    processes: int = 0
    kernels: tuple[LoggedKernel, ...] = ()
    calls: tuple[LoggedCall, ...] = ()
    commands: tuple[LoggedCommand, ...] = ()
    lookups: int = 0
    built: int = 0
    built_until_ns: int | None = None

    @property
    def launches(self) -> int:
        return sum(kernel.launches for kernel in self.kernels)


def runtime_log(trace: Trace) -> RuntimeLog | None:
    """What the logs among the sources of a trace say; None where there is none, or nothing in
    them.
    """
    logs = np.array([source.format in FORMATS for source in trace.sources], np.bool_)
    if not logs.any():
        return None
    calls, marks = (_among(table.source, logs) for table in (trace.api, trace.marks))
    submitted, lines = _submissions(trace, marks), list(_lines(trace, marks))
    built = [at for at, function, _ in lines if log_names.builds(function)]
    begins = np.concatenate((trace.api.start_ns[calls], trace.marks.start_ns[marks]))
    pids = np.concatenate((trace.api.pid[calls], trace.marks.pid[marks]))
    commands = Counter(command for _, _, command in lines if command)
    names = dict.fromkeys(source.pass_name for source in trace.sources if source.format in FORMATS)
    found = RuntimeLog(
        pass_name=", ".join(name for name in names if name),
        processes=len(np.unique(pids[pids != NULL])),
        kernels=submitted,
        calls=tuple(sorted(_calls(trace, calls), key=lambda row: (-row.total_ns, row.name))),
        commands=tuple(
            LoggedCommand(command=command, count=count)
            for command, count in sorted(commands.items(), key=lambda item: (-item[1], item[0]))
        ),
        lookups=sum(log_names.looks_up(function) for _, function, _ in lines),
        built=len(built),
        built_until_ns=max(built) - int(begins.min()) if built else None,
    )
    return found if found.kernels or found.calls or lines else None


def _among(sources: npt.NDArray[np.int32], logs: npt.NDArray[np.bool_]) -> I64:
    """Rows whose source is a log."""
    rows: I64 = np.flatnonzero((sources != NULL) & logs[sources])
    return rows


def _calls(trace: Trace, rows: I64) -> Iterator[LoggedCall]:
    """One row per function, over calls that stand in `rows`."""
    name, start, dur = (
        column[rows] for column in (trace.api.name, trace.api.start_ns, trace.api.dur_ns)
    )
    order = np.lexsort((start, name))
    codes, first = np.unique(name[order], return_index=True)
    for code, durations in zip(
        codes.tolist(), np.split(dur[order], first[1:]) if len(codes) else (), strict=True
    ):
        yield LoggedCall(
            name=trace.strings[code] if code != NULL else "",
            calls=len(durations),
            total_ns=int(durations.sum()),
            longest_ns=int(durations.max()),
            first_ns=int(durations[0]),
            later_ns=int(np.median(durations[1:])) if len(durations) > 1 else None,
        )


def _submissions(trace: Trace, rows: I64) -> tuple[LoggedKernel, ...]:
    """One row per kernel: its launches over all shapes."""
    codes, place, counts = np.unique(
        trace.marks.name[rows], return_inverse=True, return_counts=True
    )
    spent = np.bincount(place, weights=trace.marks.dur_ns[rows], minlength=len(codes))
    shapes: dict[str, dict[str, int]] = {}
    times: dict[str, int] = {}
    for code, count, ns in zip(codes.tolist(), counts.tolist(), spent.tolist(), strict=True):
        submitted = None if code == NULL else log_names.submitted(trace.strings[code])
        if submitted is not None:
            kernel, shape = submitted
            shapes.setdefault(kernel, {})[shape] = count
            times[kernel] = times.get(kernel, 0) + round(ns)
    found = [
        LoggedKernel(
            name=kernel,
            launches=sum(of_shape.values()),
            shape=max(of_shape, key=lambda shape: (of_shape[shape], shape)),
            shapes=len(of_shape),
            submitting_ns=times[kernel],
        )
        for kernel, of_shape in shapes.items()
    ]
    return tuple(sorted(found, key=lambda row: (-row.launches, -row.submitting_ns, row.name)))


def _lines(trace: Trace, rows: I64) -> Iterator[tuple[int, str, str]]:
    """Time, function and, of a command, the text of each line of MIOpen."""
    parsed = {
        code: log_names.line_parts(trace.strings[code])
        for code in np.unique(trace.marks.name[rows]).tolist()
        if code != NULL
    }
    for code, at in zip(
        trace.marks.name[rows].tolist(), trace.marks.start_ns[rows].tolist(), strict=True
    ):
        parts = parsed.get(code)
        if parts is not None:
            level, function, text = parts
            yield at, function, text if level == "Command" else ""
