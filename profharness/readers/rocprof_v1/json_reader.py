"""results.json of rocprof v1: a Chrome trace whose arguments hold exact nanoseconds as text.

Process ids of the events are sections: 0 markers, 1 copies, 2 HIP calls, 3 HSA calls, 4 KFD calls,
6 + N GPU N, and from 518 barriers of queues. `ts` is rounded, and in older files counts from the
first record: only arrows are read from it. A run without any traced API leaves one line that is no
JSON.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.json_stream import EventStream
from profharness.readers.kineto.records import Number
from profharness.readers.kineto.values import integers
from profharness.readers.rocprof_v1.geometry import with_dispatches
from profharness.readers.rocprof_v1.rows import Rows, build_trace
from profharness.rundir.blocks import BLOCK_BYTES
from profharness.trace import nesting
from profharness.trace.columns.build import Growing
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Problem, Trace
from profharness.trace.wanted import Wanted

name = "rocprof-json"

_MARKERS, _COPIES, _FIRST_GPU, _FIRST_BARRIERS = 0, 1, 6, 518
_CALLS = {2: "hip", 3: "hsa", 4: "kfd"}
_NO_JSON = re.compile(rb'\s*,\s*\{"args":\{"name":"')
_SECTION = re.compile(
    rb'"args"\s*:\s*\{\s*"name"\s*:\s*"(?:COPY|CPU HIP API|CPU HSA API|Markers and '
    rb'Ranges|GPU\d+)"\s*\}'
)
_PLACES = {"device": "dev-id", "queue": "queue-id", "stream": "stream-id"}
_ARROW_PHASES = ("s", "t")


class Args(msgspec.Struct, gc=False):
    """Arguments of a record: decimal numbers as text."""

    begin: Number = msgspec.field(default=None, name="BeginNs")
    end: Number = msgspec.field(default=None, name="EndNs")
    device: Number = msgspec.field(default=None, name="dev-id")
    queue: Number = msgspec.field(default=None, name="queue-id")
    stream: Number = msgspec.field(default=None, name="stream-id")
    process: Number = msgspec.field(default=None, name="proc-id")
    pid: Number = None
    tid: Number = None


class Event(msgspec.Struct, gc=False):
    """One event; ids are numbers in some releases and text in others."""

    ph: str = ""
    name: str | None = ""
    pid: Number = None
    tid: Number = None
    ts: Number = None
    dur: Number = None
    id: Number = None
    args: Args | None = None


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """A list of events with rocprof's sections or times, or the remains of one that rocprof left
    without events.
    """
    is_trace = (
        b'"traceEvents"' in head
        and (b'"BeginNs"' in head or b'"sort_index"' in head)
        and _SECTION.search(head) is not None
    )
    return is_trace or _NO_JSON.match(head) is not None


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The trace of one file: kernels, copies, calls and roctx ranges.

    Raises InputError for a file that rocprof wrote without its list of events, and for one in which
    nothing is readable.
    """
    return read_blocks(path)


def read_blocks(path: Path, *, block_bytes: int = BLOCK_BYTES) -> Trace:
    """`read` with blocks of a size of your choice. The result does not depend on it."""
    rows, arrows = Rows(), _Arrows()
    stream = EventStream(path, Event, block_bytes)
    try:
        for batch in stream:
            _add(rows, arrows, batch)
            del batch  # before the next is decoded
    except InputError as error:
        raise InputError(
            f"{path} holds no list of events: rocprof writes such a results.json when no API "
            "was traced",
            "read results.csv, results.stats.csv or results.db of the same run, "
            "or record with --hip-trace",
        ) from error
    unlinked = arrows.link(rows)
    problems = list(stream.problems())
    if unlinked:
        problems.append(
            Problem(
                "info",
                str(path),
                unlinked,
                "arrows from calls to device records point nowhere and were left out",
            )
        )
    return with_dispatches(build_trace(rows, path, name, problems), path)


def _add(rows: Rows, arrows: _Arrows, batch: list[Event]) -> None:
    sections = integers([e.pid for e in batch]).tolist()
    spans = [
        (section, e)
        for section, e in zip(sections, batch, strict=True)
        if e.ph == "X" and e.args is not None
    ]
    arrows.add(
        [(section, e) for section, e in zip(sections, batch, strict=True) if e.ph in _ARROW_PHASES]
    )
    groups: dict[str, list[tuple[int, Event]]] = {
        "kernels": [],
        "copies": [],
        "calls": [],
        "marks": [],
    }
    for section, event in spans:
        kind = _kind(section)
        if kind is None:
            rows.left_out["barriers" if section >= _FIRST_BARRIERS else f"section {section}"] += 1
        else:
            groups[kind].append((section, event))
    for kind, members in groups.items():
        if members:
            _add_spans(rows, arrows, kind, members)


def _kind(section: int) -> str | None:
    if section in _CALLS:
        return "calls"
    if section in (_MARKERS, _COPIES):
        return "marks" if section == _MARKERS else "copies"
    return "kernels" if _FIRST_GPU <= section < _FIRST_BARRIERS else None


def _add_spans(
    rows: Rows, arrows: _Arrows, kind: str, members: Sequence[tuple[int, Event]]
) -> None:
    args = [e.args or Args() for _, e in members]
    begin, end = integers([a.begin for a in args]), integers([a.end for a in args])
    timed = (begin >= 0) & (end >= 0)
    rows.untimed += int((~timed).sum())
    members = [member for member, good in zip(members, timed.tolist(), strict=True) if good]
    args = [a for a, good in zip(args, timed.tolist(), strict=True) if good]
    section = np.array([s for s, _ in members], np.int64)
    whole = rows.odd.whole
    stated = whole("pid", [a.pid for a in args])
    columns: dict[str, I64] = {
        "start": begin[timed],
        "end": end[timed],
        "name": rows.names.codes([e.name or "" for _, e in members]).astype(np.int64),
    }
    if kind in ("kernels", "copies"):
        process = whole("proc-id", [a.process for a in args])
        older = process != NULL
        rows.older |= bool(older.any())
        columns |= {
            "pid": np.where(older, process, stated),
            "tid": np.where(older, NULL, whole("tid", [a.tid for a in args])),
            **{key: whole(name, [getattr(a, key) for a in args]) for key, name in _PLACES.items()},
        }
    else:
        columns |= {
            "pid": np.where(stated == section, NULL, stated),
            "tid": whole("tid", [a.tid for a in args]),
        }
    if kind == "calls":
        columns["domain"] = np.array(
            [rows.strings.code(_CALLS[s]) for s in section.tolist()], np.int64
        )
    links = (
        {} if kind == "marks" else {"link": arrows.places(kind, section, [e for _, e in members])}
    )
    getattr(rows, kind).add(len(members), **columns, **links)


class _Arrows:
    """Arrows from calls to what they launched, which an arrow names by section, lane and rounded
    time.
    """

    def __init__(self) -> None:
        self._ends = Growing("id", "section", "tid", "ts", "is_target")
        self._calls = Growing("row", "section", "tid", "ts", "dur")
        self._targets = Growing("row", "section", "tid", "ts")
        self._counts = {"kernels": 0, "copies": 0, "calls": 0}

    def add(self, events: Sequence[tuple[int, Event]]) -> None:
        self._ends.add(
            len(events),
            id=integers([e.id for _, e in events]),
            section=[s for s, _ in events],
            tid=integers([e.tid for _, e in events]),
            ts=integers([e.ts for _, e in events]),
            is_target=[e.ph == "t" for _, e in events],
        )

    def places(self, kind: str, section: I64, events: Sequence[Event]) -> I64:
        """Notes where these records stand; they get their links when all arrows are known."""
        first = self._counts[kind]
        self._counts[kind] += len(events)
        row = np.arange(first, first + len(events))
        lane = {
            "section": section,
            "tid": integers([e.tid for e in events]),
            "ts": integers([e.ts for e in events]),
        }
        if kind == "calls":
            self._calls.add(len(events), row=row, dur=integers([e.dur for e in events]), **lane)
        else:
            self._targets.add(len(events), row=row if kind == "kernels" else -1 - row, **lane)
        return np.full(len(events), NULL, np.int64)

    def link(self, rows: Rows) -> int:
        """Gives each launched record and its call the call's number, from 1; how many arrows found
        no record or no call.

        An arrow begins inside its call: halfway, or where the launched record begins if that is
        earlier.
        """
        ends = {key: self._ends.take(key) for key in ("id", "section", "tid", "ts", "is_target")}
        calls = {key: self._calls.take(key) for key in ("row", "section", "tid", "ts", "dur")}
        targets = {key: self._targets.take(key) for key in ("row", "section", "tid", "ts")}
        is_target = ends["is_target"] == 1
        call_of = self._calling(calls, {key: ends[key][~is_target] for key in ends})
        record = _matched(
            [ends[key][is_target] for key in ("section", "tid", "ts")],
            [targets[key] for key in ("section", "tid", "ts")],
        )
        by_id = dict(zip(ends["id"][~is_target].tolist(), call_of.tolist(), strict=True))
        links: dict[str, dict[int, int]] = {"kernels": {}, "copies": {}}
        lost = 0
        for arrow, at in zip(ends["id"][is_target].tolist(), record.tolist(), strict=True):
            call = by_id.get(arrow, NULL)
            if NULL in (call, at):
                lost += 1
                continue
            row = int(targets["row"][at])
            links["kernels" if row >= 0 else "copies"][row if row >= 0 else -1 - row] = call + 1
        for kind, numbers_of_rows in links.items():
            rows.set_links(kind, numbers_of_rows)
        rows.set_links(
            "calls",
            {
                number - 1: number
                for numbers_of_rows in links.values()
                for number in numbers_of_rows.values()
            },
        )
        return lost

    @staticmethod
    def _calling(calls: dict[str, I64], tails: dict[str, I64]) -> I64:
        """The row of the call that holds each arrow's beginning; NULL for none."""
        if not len(calls["row"]):
            return np.full(len(tails["ts"]), NULL, np.int64)
        thread = nesting.threads(
            np.concatenate((calls["section"], tails["section"])),
            np.concatenate((calls["tid"], tails["tid"])),
        )
        call_thread, asked = thread[: len(calls["row"])], thread[len(calls["row"]) :]
        nested = nesting.nest(calls["ts"], calls["dur"], call_thread)
        return nesting.innermost(
            calls["ts"], calls["dur"], call_thread, nested, (tails["ts"], asked)
        )


def _matched(wanted: Sequence[I64], offered: Sequence[I64]) -> I64:
    """For each wanted triple the position of the offered one that is equal, the k-th for the k-th;
    NULL for none.
    """
    places: dict[tuple[int, ...], list[int]] = {}
    for position, key in enumerate(zip(*(column.tolist() for column in offered), strict=True)):
        places.setdefault(key, []).append(position)
    waiting = {key: iter(positions) for key, positions in places.items()}
    return np.array(
        [
            next(waiting.get(key, iter(())), NULL)
            for key in zip(*(column.tolist() for column in wanted), strict=True)
        ],
        np.int64,
    )
