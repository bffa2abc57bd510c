"""Begin and end events of a Perfetto trace, replayed track by track as a viewer does.

An end closes the innermost open begin of its track; events of one time count in the order of the
file.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from profharness.readers.bytes.proto_scan import I64, Mask
from profharness.readers.perfetto.events import BEGIN, END

Rows = npt.NDArray[np.int32]
Ints = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class StackEvents:
    """Begin and end events: track number, time, packet, and the interned name in its state (0: not
    given).
    """

    track: Ints
    ns: I64
    packet: I64
    type: I64
    name: I64
    state: Ints


@dataclass(frozen=True)
class Replay:
    """Pairs that close each other, and packets of the events that break a rule.

    `begins[i]` and `ends[i]` are positions among the events that were given.
    """

    slices: int
    begins: Rows
    ends: Rows
    unopened: I64
    unclosed: I64
    crossing: I64
    ties: I64
    nested_empty: int


def replay(events: StackEvents) -> Replay:
    """Replay all tracks at once."""
    order = _rows(np.lexsort((events.packet, events.ns, events.track)))
    track, begin = events.track[order], events.type[order] == BEGIN
    depth, unopened = _depths(track, begin)
    lost = events.packet[order[unopened]]
    if len(lost):
        kept = ~unopened
        order, track, begin, depth = order[kept], track[kept], begin[kept], depth[kept]
    level = depth + ~begin
    # per track and level begins and ends alternate; only the last begin may lack its end
    chain = _rows(np.lexsort((level, track)))  # a stable sort: events of a level keep their order
    same = np.zeros(len(chain), np.bool_)
    same[:-1] = (np.diff(track[chain]) == 0) & (np.diff(level[chain]) == 0)
    opens = begin[chain]
    paired = opens & same
    first, last = chain[paired], chain[np.flatnonzero(paired) + 1]
    begins, ends = order[first], order[last]
    empty = events.ns[begins] == events.ns[ends]
    named = (
        (events.name[begins] > 0)
        & (events.name[ends] > 0)
        & (events.state[begins] == events.state[ends])
    )
    apart = empty & (last == first + 1)
    if apart.any():
        rank = _file_rank(events)
        apart &= rank[ends] - rank[begins] > 1
    return Replay(
        slices=len(begins),
        begins=begins,
        ends=ends,
        unopened=lost,
        unclosed=events.packet[order[chain[opens & ~same]]],
        crossing=events.packet[ends[named & (events.name[begins] != events.name[ends])]],
        ties=events.packet[ends[apart]],
        nested_empty=int(np.count_nonzero(empty & (level[first] > 1))),
    )


def only_stacked(events: StackEvents) -> StackEvents:
    """The begins and ends among them."""
    stacked = (events.type == BEGIN) | (events.type == END)
    return StackEvents(
        events.track[stacked],
        events.ns[stacked],
        events.packet[stacked],
        events.type[stacked],
        events.name[stacked],
        events.state[stacked],
    )


def _rows(positions: I64) -> Rows:
    """Positions in half the room: there are several events per kernel, and never 2**31."""
    return positions.astype(np.int32)


def _depths(track: Ints, begin: Mask) -> tuple[Rows, Mask]:
    """Open slices after each event, and the ends that have none to close, which count for
    nothing.
    """
    count = len(track)
    if not count:
        return np.zeros(0, np.int32), np.zeros(0, np.bool_)
    total = np.cumsum(np.where(begin, np.int8(1), np.int8(-1)), dtype=np.int32)
    first = np.concatenate(([True], np.diff(track) != 0))
    number = np.cumsum(first, dtype=np.int32) - np.int32(1)  # tracks from 0
    before = np.concatenate((np.zeros(1, np.int32), total[:-1]))[first]
    depth = total - before[number]
    del total, before
    # one running minimum for all tracks: each track is lowered by more than any depth of the track
    # before it
    lowered = -(2 * count + 1) * number.astype(np.int64)
    floor = np.minimum(np.minimum.accumulate(depth + lowered), lowered)
    sunk: Mask = ~first & (depth + lowered < np.concatenate((floor[:1], floor[:-1])))
    sunk |= first & (depth < 0)
    return (depth - (floor - lowered)).astype(np.int32), sunk


def _file_rank(events: StackEvents) -> I64:
    """Position of each event among those of its track, in file order."""
    order = np.lexsort((events.packet, events.track))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank
