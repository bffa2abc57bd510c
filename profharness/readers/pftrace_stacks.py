"""Begin and end events of a Perfetto trace, replayed track by track as a viewer does.

An end closes the innermost open begin of its track; events of one time count in the order of the file.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.readers.pftrace_events import BEGIN, END
from profharness.readers.proto_scan import I64, Mask


@dataclass(frozen=True)
class StackEvents:
    """Begin and end events: track number, time, packet, and the interned name in its state (0: not given)."""

    track: I64
    ns: I64
    packet: I64
    type: I64
    name: I64
    state: I64


@dataclass(frozen=True)
class Replay:
    """Pairs that close each other, and packets of the events that break a rule.

    `begins[i]` and `ends[i]` are positions among the events that were given.
    """

    slices: int
    begins: I64
    ends: I64
    unopened: I64
    unclosed: I64
    crossing: I64
    ties: I64
    nested_empty: int


def replay(events: StackEvents) -> Replay:
    """Replay all tracks at once."""
    order = np.lexsort((events.packet, events.ns, events.track))
    track, begin = events.track[order], events.type[order] == BEGIN
    depth, unopened = _depths(track, begin)
    kept = ~unopened
    order, track, begin, depth = order[kept], track[kept], begin[kept], depth[kept]
    level = depth + ~begin
    # per track and level begins and ends alternate; only the last begin may lack its end
    chain = np.lexsort((np.arange(len(order)), level, track))
    same = np.zeros(len(chain), np.bool_)
    same[:-1] = (np.diff(track[chain]) == 0) & (np.diff(level[chain]) == 0)
    opens = begin[chain]
    paired = opens & same
    first, last = chain[paired], chain[np.flatnonzero(paired) + 1]
    begins, ends = order[first], order[last]
    empty = events.ns[begins] == events.ns[ends]
    named = (events.name[begins] > 0) & (events.name[ends] > 0) & (events.state[begins] == events.state[ends])
    apart = empty & (last == first + 1) & (_file_rank(events)[ends] - _file_rank(events)[begins] > 1)
    return Replay(
        slices=len(begins), begins=begins, ends=ends,
        unopened=events.packet[np.lexsort((events.packet, events.ns, events.track))[unopened]],
        unclosed=events.packet[order[chain[opens & ~same]]],
        crossing=events.packet[ends[named & (events.name[begins] != events.name[ends])]],
        ties=events.packet[ends[apart]],
        nested_empty=int(np.count_nonzero(empty & (level[first] > 1))),
    )


def only_stacked(events: StackEvents) -> StackEvents:
    """The begins and ends among them."""
    mine = (events.type == BEGIN) | (events.type == END)
    return StackEvents(events.track[mine], events.ns[mine], events.packet[mine], events.type[mine], events.name[mine],
                       events.state[mine])


def _depths(track: I64, begin: Mask) -> tuple[I64, Mask]:
    """Open slices after each event, and the ends that have none to close, which count for nothing."""
    count = len(track)
    if not count:
        return np.zeros(0, np.int64), np.zeros(0, np.bool_)
    total = np.cumsum(np.where(begin, 1, -1))
    first = np.concatenate(([True], np.diff(track) != 0))
    number = np.cumsum(first) - 1  # tracks from 0
    before = np.concatenate(([0], total[:-1]))[first]
    depth = total - before[number]
    # one running minimum for all tracks: each track is lowered by more than any depth of the track before it
    lowered = -(2 * count + 1) * number
    floor = np.minimum(np.minimum.accumulate(depth + lowered), lowered)
    previous = np.concatenate(([0], floor[:-1]))
    previous = np.where(first, lowered, previous)
    return depth - (floor - lowered), depth + lowered < previous


def _file_rank(events: StackEvents) -> I64:
    """Position of each event among those of its track, in file order."""
    order = np.lexsort((events.packet, events.track))
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return rank
