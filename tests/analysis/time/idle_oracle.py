"""Why a device was idle, worked out from the text of recorded files in the slowest and plainest
way: gap by gap, stretch by stretch, looking at every call.

It follows docs/metrics.md#idle-causes and #not-recorded and shares nothing with the package: its own reading of
Kineto JSON, rocpd and rocprof's JSON, its own names of calls, lists and loops only.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from collections import Counter
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

MICRO_NS = 10_000
DEVICE_WORK = {"kernel", "gpu_memcpy", "gpu_memset", "Kernel", "Memcpy", "Memset"}
HOST_CALLS = {"cuda_runtime", "cuda_driver", "Runtime"}
OTHER_HOST_RECORDS = {"cpu_op", "Operator", "user_annotation"}


@dataclass(frozen=True)
class Call:
    """A host call in ns; `key` is what its device work shares with it."""

    start: int
    end: int
    name: str
    thread: tuple[Any, ...]
    key: Any

    @property
    def launches(self) -> bool:
        return (
            "LaunchKernel" in self.name
            or "GraphLaunch" in self.name
            or "LaunchCooperativeKernel" in self.name
        )

    @property
    def copies(self) -> bool:
        return "Memcpy" in self.name or "Memset" in self.name

    @property
    def synchronises(self) -> bool:
        return self.name.partition("_v")[0].endswith(
            ("DeviceSynchronize", "StreamSynchronize", "EventSynchronize", "CtxSynchronize")
        )

    @property
    def waits_for_event(self) -> bool:
        return "StreamWaitEvent" in self.name


@dataclass(frozen=True)
class Piece:
    """A kernel or a copy, with the call that launched it."""

    start: int
    end: int
    device: str
    call: Call | None
    copies: bool

    @property
    def kind(self) -> str:
        """How it starts."""
        if self.copies:
            return "copy"
        return "graph" if self.call is not None and "GraphLaunch" in self.call.name else "kernel"


@dataclass(frozen=True)
class Recording:
    """All of one file. `reach` is from the first to the last record of the host."""

    pieces: list[Piece]
    calls: list[Call]
    reach: tuple[int, int]

    @cached_property
    def with_work(self) -> set[int]:
        """The calls that started device work, by identity."""
        return {id(piece.call) for piece in self.pieces if piece.call is not None}


def of_kineto(path: Path) -> Recording:
    """A Kineto file; times are decimal microseconds since a base."""
    text = gzip.decompress(path.read_bytes()).decode("utf-8", "replace")
    document = json.loads(text, parse_float=Decimal, parse_int=Decimal)
    events = [
        one
        for one in (document if isinstance(document, list) else document["traceEvents"])
        if one.get("ph") == "X" and "dur" in one
    ]

    base = int(document.get("baseTimeNanoseconds") or 0) if isinstance(document, dict) else 0

    def span(event: dict[str, Any]) -> tuple[int, int]:
        start = base + int(event["ts"] * 1000)
        return start, start + int(event["dur"] * 1000)

    calls = [
        Call(
            *span(one),
            one["name"],
            (one["pid"], one["tid"]),
            one.get("args", {}).get("correlation"),
        )
        for one in events
        if one.get("cat") in HOST_CALLS
    ]
    launched = by_key(calls)
    pieces = [
        Piece(
            *span(one),
            str(one["args"]["device"]),
            launched.get(one["args"].get("correlation")),
            one["cat"].lower().endswith(("memcpy", "memset")),
        )
        for one in events
        if one.get("cat") in DEVICE_WORK
    ]
    return Recording(
        pieces,
        calls,
        reach(
            [(call.start, call.end) for call in calls]
            + [span(one) for one in events if one.get("cat") in OTHER_HOST_RECORDS]
        ),
    )


def of_rocpd(path: Path, folder: Path) -> Recording:
    """A compressed rocprofv3 database, unpacked into `folder`."""
    plain = folder / path.name.removesuffix(".gz")
    plain.write_bytes(gzip.decompress(path.read_bytes()))
    connection = sqlite3.connect(plain)
    calls = [
        Call(start, end, name, (pid, tid), stack)
        for start, end, name, pid, tid, stack in connection.execute(
            "SELECT start, end, name, pid, tid, stack_id FROM regions"
        )
    ]
    launched = by_key(calls)
    pieces = [
        Piece(start, end, str(agent), launched.get(stack), table != "kernels")
        for table, agents in (
            ("kernels", "agent_log_index"),
            ("memory_copies", "dst_agent_log_index"),
        )
        for start, end, agent, stack in connection.execute(
            f"SELECT start, end, {agents}, stack_id FROM {table}"
        )
    ]
    connection.close()
    return Recording(pieces, calls, reach([(call.start, call.end) for call in calls]))


def of_rocprof(path: Path) -> Recording:
    """A results.json of the first rocprof: exact times stand in the arguments, and arrows lead from
    calls to device records by lane and microsecond.
    """
    events = [one for one in json.loads(path.read_text())["traceEvents"] if one]

    def lane(event: dict[str, Any]) -> tuple[int, int, int]:
        return int(event["pid"]), int(event["tid"]), int(event["ts"])

    begins = {one["id"]: lane(one) for one in events if one["ph"] == "s"}
    ends = {lane(one): one["id"] for one in events if one["ph"] == "t"}
    spans = [one for one in events if one["ph"] == "X"]
    calls, starts_of = [], {}
    for one in (one for one in spans if int(one["pid"]) == 2):
        section, thread, start = lane(one)
        inside = [
            key
            for key, begin in begins.items()
            if begin[:2] == (section, thread) and start <= begin[2] <= start + int(one["dur"])
        ]
        call = Call(
            int(one["args"]["BeginNs"]), int(one["args"]["EndNs"]), one["name"], (thread,), None
        )
        calls.append(call)
        starts_of.update(
            {
                key: call
                for key in inside
                if key not in starts_of or starts_of[key].start < call.start
            }
        )
    pieces = [
        Piece(
            int(one["args"]["BeginNs"]),
            int(one["args"]["EndNs"]),
            one["args"]["dev-id"],
            starts_of.get(ends.get(lane(one))),
            int(one["pid"]) == 1,
        )
        for one in spans
        if int(one["pid"]) not in (0, 2)
    ]
    host = [
        (int(one["args"]["BeginNs"]), int(one["args"]["EndNs"]))
        for one in spans
        if int(one["pid"]) in (0, 2)
    ]
    return Recording(pieces, calls, reach(host))


def by_key(calls: list[Call]) -> dict[Any, Call]:
    """The launching call of each key: a runtime and a driver call may share one, then the launch
    counts, else the first, else the longer.
    """
    found: dict[Any, Call] = {}
    for call in calls:
        other = found.get(call.key)
        if call.key is not None and (
            other is None
            or (not call.launches, call.start, -call.end)
            < (not other.launches, other.start, -other.end)
        ):
            found[call.key] = call
    return found


def reach(spans: list[tuple[int, int]]) -> tuple[int, int]:
    return (min(start for start, _ in spans), max(end for _, end in spans)) if spans else (0, 0)


@dataclass(frozen=True)
class Gap:
    """A stretch without device work; `ended_by` is what started at its end, None after the last
    piece.
    """

    start: int
    end: int
    ended_by: Piece | None


def gaps(recording: Recording, device: str, low: int, high: int) -> list[Gap]:
    """Those that reach into [low, high). Before the first and after the last piece they go as far
    as the window does.
    """
    lasting = sorted(
        (piece for piece in recording.pieces if piece.device == device and piece.end > piece.start),
        key=lambda piece: piece.start,
    )
    starting: dict[int, list[Piece]] = {}
    for piece in lasting:
        starting.setdefault(piece.start, []).append(piece)
    found, busy_until = [], low if not lasting else min(low, lasting[0].start)
    for piece in lasting:
        if piece.start > busy_until:
            found.append(
                Gap(
                    busy_until,
                    piece.start,
                    min(
                        starting[piece.start],
                        key=lambda one: (one.call is None, one.call.start if one.call else 0),
                    ),
                )
            )
        busy_until = max(busy_until, piece.end)
    if high > busy_until:
        found.append(Gap(busy_until, high, None))
    return [gap for gap in found if gap.end > low and gap.start < high]


def causes(recording: Recording, device: str, low: int, high: int) -> Counter[str]:
    """Idle ns of [low, high) by cause, `micro` and `macro` of them, and `not_recorded` instead of a
    cause where unrecorded work may have run.
    """
    found: Counter[str] = Counter()
    unknown = not_recorded(recording, device)
    for gap in gaps(recording, device, low, high):
        edges = {max(gap.start, low), min(gap.end, high)}
        times = [
            *(time for call in recording.calls for time in (call.start, call.end)),
            *recording.reach,
            *(time for span in unknown for time in span),
        ]
        edges.update(time for time in times if min(edges) < time < max(edges))
        for start, end in pairwise(sorted(edges)):
            if any(first <= start < last for first, last in unknown):
                found["not_recorded"] += end - start
            else:
                found[_cause(recording, device, gap, start)] += end - start
                found["micro" if gap.end - gap.start < MICRO_NS else "macro"] += end - start
    return +found


def not_recorded(recording: Recording, device: str) -> list[tuple[int, int]]:
    """Where work of the device had been launched and was late, or its host waited for nothing that
    is recorded.
    """
    pauses = gaps(recording, device, -(1 << 62), 1 << 62)
    delays: dict[str, list[int]] = {}
    for before, gap in pairwise(pauses):
        piece = gap.ended_by
        if piece is not None and piece.call is not None and piece.call.start >= gap.start:
            delays.setdefault(piece.kind, []).append(max(piece.start - piece.call.end, 0))
        assert before.end <= gap.start
    usual, pause = {}, {}
    for kind in ("kernel", "copy", "graph"):
        seen = sorted(delays.get(kind, ()))
        enough = len(seen) >= 20
        usual[kind] = min(seen[99 * (len(seen) - 1) // 100], 1_000_000) if enough else 1_000_000
        pause[kind] = min(max(usual[kind], 10_000), 100_000) if enough else 20_000
    found = []
    for gap in pauses:
        piece = gap.ended_by
        if piece is None or piece.call is None:
            continue
        start = max(gap.start, piece.call.end + usual[piece.kind])
        if gap.end - start <= 10_000 or gap.end - gap.start <= pause[piece.kind]:
            continue
        first = piece.start == min(one.start for one in recording.pieces if one.call == piece.call)
        if first and _behind_event(recording, piece.call):
            last = max((_until(one, gap.end) for one in recording.pieces), default=0)
            if gap.end - last <= 10_000:
                continue
        found.append((start, gap.end))
    launching = {
        one.call.thread for one in recording.pieces if one.device == device and one.call is not None
    }
    for call in recording.calls:
        if call.synchronises and call.end - call.start > 100_000 and call.thread in launching:
            last = max((_until(one, call.end) for one in recording.pieces), default=0)
            if call.end - max(last, call.start) > 100_000:
                found.append((max(last, call.start), call.end))
    return found


def _until(piece: Piece, at: int) -> int:
    """When a piece that began before `at` had ended, which is `at` itself if it went on."""
    return min(piece.end, at) if piece.start < at else -(1 << 62)


def _cause(recording: Recording, device: str, gap: Gap, instant: int) -> str:
    """The first that fits, in the order of docs/metrics.md#idle-causes. Nothing begins or ends
    between `instant` and the next edge.
    """
    if gap.ended_by is not None:
        call = gap.ended_by.call
        if call is None:
            return "no_host_record"
        if instant >= call.start:
            if _behind_event(recording, call) and gap.ended_by.start == min(
                piece.start for piece in recording.pieces if piece.call == call
            ):
                return "waiting_copy_or_event"
            return "queued_gap" if call.end <= gap.start else "launch_in_progress"
        asked = {call.thread}
    else:
        asked = {
            piece.call.thread
            for piece in recording.pieces
            if piece.device == device and piece.call is not None
        } or {call.thread for call in recording.calls}
    if not recording.reach[0] <= instant < recording.reach[1]:
        return "no_host_record"
    inside = [
        call
        for call in recording.calls
        if call.thread in asked and call.start <= instant < call.end
    ]
    if any(call.copies for call in inside):
        return "waiting_copy_or_event"
    return "synchronisation" if any(call.synchronises for call in inside) else "host_not_ready"


def _behind_event(recording: Recording, launching: Call) -> bool:
    """Whether the last thing that the thread did for the device before this call was to let it wait
    for an event.
    """
    before = [
        call
        for call in recording.calls
        if call.thread == launching.thread
        and call.start < launching.start
        and (call.waits_for_event or id(call) in recording.with_work)
    ]
    return bool(before) and max(before, key=lambda call: call.start).waits_for_event
