"""The records of a HIP log as tables of a trace.

Calls and submissions are on CLOCK_MONOTONIC. The GPU's own times of a signal are on CLOCK_BOOTTIME,
so that they belong to a source of their own.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from profharness.trace import log_names
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    Api,
    ClockDomain,
    Kernels,
    Marks,
    Problem,
    Source,
    Strings,
    Trace,
)

Triple = tuple[int, int, int]
Geometry = tuple[Triple, Triple]  # workgroups, and work-items of each
_UNNAMED = "device work of a signal without a kernel"


class Moment(NamedTuple):
    """Time of a line and who wrote it; NULL where the line does not say."""

    ns: int
    pid: int
    tid: int


@dataclass
class LogRows:
    """Records as they are found, in order of their end."""

    strings: Strings = field(default_factory=Strings)
    calls: list[tuple[int, int, int, int, int]] = field(
        default_factory=list
    )  # start, end, name, pid, tid
    marks: list[tuple[int, int, int, int, int]] = field(default_factory=list)
    signals: list[tuple[int, int, int, int]] = field(
        default_factory=list
    )  # start, end, name, workgroups
    _waiting: dict[int, tuple[str, Geometry | None]] = field(default_factory=dict)

    def call(self, begin: int, end: Moment, name: str) -> None:
        """A call of the runtime."""
        self.calls.append((begin, end.ns, self.strings.code(name), end.pid, end.tid))

    def submission(
        self, begin: int, end: Moment, kernel: str, geometry: Geometry | None, signal: int
    ) -> None:
        """A kernel on its way to a queue; `signal` is the one that its end sets, 0 for none."""
        shape = (
            "" if geometry is None else f"{_text(geometry[0])} workgroups of {_text(geometry[1])}"
        )
        self.marks.append(
            (
                begin,
                end.ns,
                self.strings.code(log_names.submission(kernel, shape)),
                end.pid,
                end.tid,
            )
        )
        if signal:
            self._waiting[signal] = (kernel, geometry)

    def signal(self, address: int, start: int, end: int) -> None:
        """The GPU's times of what a signal belongs to."""
        kernel, geometry = self._waiting.pop(address, (_UNNAMED, None))
        self.signals.append(
            (
                start,
                end,
                self.strings.code(kernel),
                NULL if geometry is None else _product(geometry[0]),
            )
        )


def _product(triple: Triple) -> int:
    """NULL where no 64 bits hold it, which only a damaged log has."""
    product = math.prod(triple)
    return product if product < 2**63 else NULL


def _text(triple: Triple) -> str:
    return " x ".join(map(str, triple))


def trace_of(rows: LogRows, path: Path, format_name: str, problems: tuple[Problem, ...]) -> Trace:
    """The trace of one log."""
    calls, marks = (np.array(table, np.int64).reshape(-1, 5) for table in (rows.calls, rows.marks))
    signals = np.array(rows.signals, np.int64).reshape(-1, 4)
    pids = np.unique(np.concatenate((calls[:, 3], marks[:, 3])))
    pids = pids[pids != NULL]
    source = Source(
        str(path),
        format_name,
        ClockDomain.MONOTONIC,
        pid=int(pids[0]) if len(pids) == 1 else None,
        has_host_calls=len(calls) > 0,
    )
    api = Api.build(
        start_ns=calls[:, 0],
        dur_ns=np.maximum(calls[:, 1] - calls[:, 0], 0),
        name=calls[:, 2],
        domain=rows.strings.code("hip"),
        pid=calls[:, 3],
        tid=calls[:, 4],
        source=0,
    )
    ranges = Marks.build(
        start_ns=marks[:, 0],
        dur_ns=np.maximum(marks[:, 1] - marks[:, 0], 0),
        name=marks[:, 2],
        kind=rows.strings.code("range"),
        pid=marks[:, 3],
        tid=marks[:, 4],
        source=0,
    )
    kernels = Kernels.build(
        start_ns=signals[:, 0],
        dur_ns=np.maximum(signals[:, 1] - signals[:, 0], 0),
        name=signals[:, 2],
        workgroups=signals[:, 3],
        pid=source.pid if source.pid is not None else NULL,
        source=1,
    )
    sources: tuple[Source, ...] = (source,)
    if len(signals):
        sources = (
            source,
            Source(
                str(path), format_name, ClockDomain.BOOTTIME, pid=source.pid, has_host_calls=False
            ),
        )
    return Trace(
        sources=sources,
        strings=rows.strings,
        kernels=kernels,
        api=api.take(np.argsort(api.start_ns, kind="stable")),
        marks=ranges.take(np.argsort(ranges.start_ns, kind="stable")),
        problems=problems,
    )
