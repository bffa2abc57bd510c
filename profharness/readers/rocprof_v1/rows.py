"""The records of rocprof v1 as tables of a trace, whichever of its files they come from.

rocprof stamps CLOCK_BOOTTIME (HSA_SYSTEM_INFO_TIMESTAMP). Its first releases name the process of
device records only and number GPUs alone; newer ones name it everywhere and number all agents.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from profharness.readers.bytes.zero_times import times_of_zero
from profharness.readers.kineto.tables import marks_from
from profharness.readers.kineto.values import Odd, not_possible
from profharness.readers.left_out import left_out
from profharness.readers.rocprof_v1.rocminfo import Agents, agents_beside
from profharness.readers.rocprofv3.places import places
from profharness.trace.columns.build import Growing, Pool, per_text
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    I64,
    Api,
    ClockDomain,
    Copies,
    Kernels,
    Marks,
    Problem,
    Source,
    Strings,
    Trace,
)

_DIRECTION = re.compile(r"^Copy(Host|Device)To(Host|Device)$")
_SPAN = ("start", "end", "name", "pid", "tid")
_CALL = (*_SPAN, "domain", "link")
_ON_DEVICE = (*_SPAN, "device", "queue", "stream", "link")


@dataclass
class Rows:
    """Records as they are collected; times in ns, NULL for what is not known. `link` is a number
    that a call and what it launched share. `older` says that devices are numbered as in the first
    releases. `odd` counts values that cannot be.
    """

    strings: Strings = field(default_factory=Strings)
    kernels: Growing = field(default_factory=lambda: Growing(*_ON_DEVICE))
    copies: Growing = field(default_factory=lambda: Growing(*_ON_DEVICE))
    calls: Growing = field(default_factory=lambda: Growing(*_CALL))
    marks: Growing = field(default_factory=lambda: Growing(*_SPAN))
    left_out: Counter[str] = field(default_factory=Counter)
    odd: Odd = field(default_factory=Odd)
    untimed: int = 0
    older: bool = False
    _links: dict[str, dict[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.names: Pool[str] = Pool(self.strings.code)

    def set_links(self, kind: str, links: dict[int, int]) -> None:
        """Links of rows of `kernels`, `copies` or `calls`, by row, where they are known only at the
        end.
        """
        self._links[kind] = links

    def linked(self, kind: str, link: I64) -> I64:
        """The column with the links that were set."""
        links = self._links.get(kind, {})
        whole = link.copy()
        whole[list(links)] = list(links.values())
        return whole


def build_trace(
    rows: Rows, path: Path, format_name: str, problems: Sequence[Problem] = ()
) -> Trace:
    """The trace of one file; the columns of `rows` are used up."""
    agents = agents_beside(path)
    kernels, copies, calls = (
        _taken(table, names)
        for table, names in (
            (rows.kernels, _ON_DEVICE),
            (rows.copies, _ON_DEVICE),
            (rows.calls, _CALL),
        )
    )
    negative = sum(int((table["end"] < table["start"]).sum()) for table in (kernels, copies, calls))
    placed = places([kernels["device"], copies["device"]], [_stream(kernels), _stream(copies)])
    process = _sole_process(kernels["pid"], copies["pid"])
    api = Api.build(
        start_ns=calls["start"],
        dur_ns=_length(calls),
        name=calls["name"],
        domain=calls["domain"],
        pid=_real(calls["pid"], process),
        tid=calls["tid"],
        correlation=rows.linked("calls", calls["link"]),
        source=0,
    )
    kernel_table = Kernels.build(
        **_on_device(kernels, process, rows.linked("kernels", kernels["link"])),
        device=placed.device[0],
        stream=placed.stream[0],
        queue=kernels["queue"],
        tid=kernels["tid"],
    )
    copy_table = Copies.build(
        **_on_device(copies, process, rows.linked("copies", copies["link"])),
        device=placed.device[1],
        stream=placed.stream[1],
    ).with_columns(**_directions(rows.strings, copies["name"], placed.device[1]))
    tables = Trace(
        sources=(_source(path, format_name, api, kernel_table),),
        strings=rows.strings,
        kernels=kernel_table,
        copies=copy_table,
        api=api,
        marks=_marks(rows, process, {"source": 0}),
        streams=placed.streams,
        devices=agents.devices(
            placed.numbers, gpus_only=gpus_only(agents, placed.numbers, older=rows.older)
        ),
    )
    return replace(
        tables,
        problems=(
            *problems,
            *agents.problems,
            *_problems(path, rows, negative),
            *_emptiness(path, tables),
        ),
    )


def _on_device(rows: dict[str, I64], process: int, correlation: I64) -> dict[str, Any]:
    """The columns that kernels and copies have in common; times in ns."""
    lost = times_of_zero(rows["start"], rows["end"])
    return {
        "start_ns": np.where(lost, NULL, rows["start"]),
        "dur_ns": _length(rows),
        "name": rows["name"],
        "pid": _real(rows["pid"], process),
        "correlation": correlation,
        "source": 0,
    }


def gpus_only(agents: Agents, numbers: Sequence[int], *, older: bool) -> bool:
    """Whether device numbers count GPUs alone: in older files, and where one of them would be a
    CPU.
    """
    return older or bool({agent.node for agent in agents.agents if not agent.is_gpu} & set(numbers))


def _taken(table: Growing, names: Sequence[str]) -> dict[str, I64]:
    return {name: table.take(name) for name in names}


def _stream(table: dict[str, I64]) -> I64:
    """The stream, else the hardware queue."""
    return np.where(table["stream"] != NULL, table["stream"], table["queue"])


def _length(table: dict[str, I64]) -> I64:
    return np.maximum(table["end"] - table["start"], 0)


def _sole_process(*pids: I64) -> int:
    """The only process that device records name, else NULL."""
    named = np.unique(np.concatenate(pids))
    named = named[named != NULL]
    return int(named[0]) if len(named) == 1 else NULL


def _real(pid: I64, process: int) -> I64:
    """Process ids; where none is stated, the only process of the file."""
    return np.where(pid != NULL, pid, process)


def _directions(strings: Strings, names: I64, device: I64) -> dict[str, I64]:
    codes = {kind: strings.code(kind) for kind in ("h2d", "d2h", "d2d", "h2h", "fill", "unknown")}
    kind = per_text(strings, names, lambda text: codes[_direction(text)])
    reads, writes = (
        np.isin(kind, [codes[k] for k in kinds])
        for kinds in (("d2h", "d2d"), ("h2d", "d2d", "fill"))
    )
    return {
        "kind": kind,
        "src_device": np.where(reads, device, NULL),
        "dst_device": np.where(writes, device, NULL),
    }


def _direction(name: str) -> str:
    if name == "FillBuffer":
        return "fill"
    match = _DIRECTION.match(name)
    return f"{match[1][0]}2{match[2][0]}".lower() if match else "unknown"


def _marks(rows: Rows, process: int, shared: dict[str, int]) -> Marks:
    taken = {name: rows.marks.take(name) for name in _SPAN}
    grown = Growing("start", "dur", "name", "pid", "tid")
    grown.add(
        len(taken["start"]),
        start=taken["start"],
        dur=_length(taken),
        name=taken["name"],
        pid=_real(taken["pid"], process),
        tid=taken["tid"],
    )
    return marks_from(grown, rows.strings, 0, shared)


def _source(path: Path, format_name: str, api: Api, kernels: Kernels) -> Source:
    pids = np.unique(np.concatenate((api.pid, kernels.pid)))
    pids = pids[pids != NULL]
    return Source(
        str(path),
        format_name,
        ClockDomain.BOOTTIME,
        pid=int(pids[0]) if len(pids) == 1 else None,
        has_host_calls=len(api) > 0,
    )


def _problems(path: Path, rows: Rows, negative: int) -> Iterator[Problem]:
    where = str(path)
    if rows.untimed:
        yield Problem(
            "warning",
            where,
            rows.untimed,
            "records have no readable begin and end and were left out",
        )
    yield from not_possible(path, rows.odd)
    if negative:
        yield Problem(
            "warning",
            where,
            negative,
            "records end before they begin: their duration is taken as zero",
        )
    yield from left_out(where, rows.left_out, "records")


def _emptiness(path: Path, trace: Trace) -> Iterator[Problem]:
    if not (len(trace.kernels) or len(trace.copies) or len(trace.api) or len(trace.marks)):
        yield Problem(
            "warning",
            str(path),
            1,
            "the file is complete and holds no record: the program did no work that the tool saw",
        )
