"""Which rank the others wait for, how long, and what it does that they do not
(docs/metrics.md#communication).

What a rank waits is the time in which one of its collectives runs and nothing else of it. Moving
the data takes all ranks as long; so what the others have more of it than the slowest rank is
waiting for that one, whatever the clocks say.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from profharness.analysis.communication.lateness import STEADY
from profharness.analysis.communication.rank_times import RankTimes
from profharness.analysis.communication.records import Skew, SlowestRank
from profharness.analysis.communication.skew import COSTS, late
from profharness.analysis.host.in_collectives import HANDING_OVER
from profharness.analysis.host.kinds import Kind
from profharness.analysis.host.records import HostPart

_WAITS = 0.05  # of the others' time: less may come of how the node shares out its cores
_LEADS = 0.15  # of the others' time: a smaller part comes before no single operator
_NAMED = 0.25  # of the waiting, that a part of the host's time must explain to be named
_OWN = frozenset(
    kind.key
    for kind in (Kind.PYTHON, Kind.DATA_LOADER, Kind.GARBAGE_COLLECTION, Kind.RANGE, Kind.OPTIMIZER)
)
"""What a rank does beside its operators: where it is not the same on all ranks, the program says
so, and not the cores that an operator happened to get."""
_OPERATOR = Kind.OPERATOR.key
_WAITING = frozenset({Kind.SYNCHRONISATION.key, Kind.COLLECTIVE.key})
_Key = tuple[str, str]


def slowest(
    skew: Skew | None, times: Sequence[RankTimes], parts: Sequence[Sequence[RankTimes]] = ()
) -> SlowestRank | None:
    """The rank that persistently arrives last, else the one that keeps doing what the others do not
    while they wait; `parts` are the times in consecutive parts of the window, without which only
    arrivals tell. None where the ranks wait for each other in turn, or hardly.
    """
    if skew is None or len(times) < 2:
        return None
    arriving = late(skew) if skew.wait_share >= COSTS else None
    name = (
        arriving[0].rank
        if arriving is not None
        else min(times, key=lambda one: _share(one, one.exposed_ns)).rank
    )
    whole = _compared(name, times)
    if whole is None:
        return None
    every = [known for group in parts if (known := _compared(name, group)) is not None]
    if arriving is not None:
        return _record(whole, every, "arrivals")
    found = _record(whole, every, "work")
    return found if len(every) > 1 and _keeps_doing(found, every) else None


@dataclass(frozen=True)
class _Compared:
    """One rank and the others, in one window."""

    own: RankTimes
    others: tuple[RankTimes, ...]

    @property
    def waiting(self) -> float:
        """How much larger a share of their time the others are in collectives alone."""
        theirs = _mean([_share(one, one.exposed_ns) for one in self.others])
        return max(theirs - _share(self.own, self.own.exposed_ns), 0.0)

    @cached_property
    def surplus(self) -> dict[_Key, float]:
        """Of each part of the rank's time, and of the others' operators, how much larger its share
        is than on the others on average. Waiting and handing a collective over are no work of its
        own.
        """
        more = _shares(self.own)
        for one in self.others:
            for key, share in _shares(one).items():
                if key in more or key[0] == _OPERATOR:
                    more[key] = more.get(key, 0.0) - share / len(self.others)
        return more


def _compared(name: str, times: Sequence[RankTimes]) -> _Compared | None:
    own = next((one for one in times if one.rank == name), None)
    others = tuple(one for one in times if one.rank != name)
    return _Compared(own, others) if own is not None and others and own.window_ns else None


def _record(
    whole: _Compared, parts: Sequence[_Compared], by: Literal["arrivals", "work"]
) -> SlowestRank:
    own, waiting = whole.own, whole.waiting
    return SlowestRank(
        rank=own.rank,
        window_ns=own.window_ns,
        steps=own.steps,
        waiting_share=waiting,
        talking_share=_share(own, own.exposed_ns),
        is_largest=_is_largest(whole),
        meanwhile=_meanwhile(whole, parts),
        longer_kernels_ns=_longer(whole),
        by=by,
    )


def _is_largest(whole: _Compared) -> bool:
    """Whether the others wait for it longer than they take for anything else: one operator,
    kernels, moving data, or what is outside of these. Operators together are the work itself, and
    no one cause.
    """
    causes: dict[_Key, float] = {}
    for one in whole.others:
        for part in one.parts:
            if part.kind not in _WAITING and (part.name or part.kind != _OPERATOR):
                key = _key(part) if part.kind == _OPERATOR else _group(part)
                causes[key] = causes.get(key, 0.0) + _share(one, part.ns) / len(whole.others)
        computing = _share(one, one.compute_ns or 0) / len(whole.others)
        causes["kernels", ""] = causes.get(("kernels", ""), 0.0) + computing
    causes[Kind.COLLECTIVE.key, ""] = _share(whole.own, whole.own.exposed_ns)
    return whole.waiting >= _LEADS and whole.waiting >= max(causes.values())


def _group(part: HostPart) -> _Key:
    return ("own" if part.kind in _OWN else part.kind), ""


def _keeps_doing(found: SlowestRank, parts: Sequence[_Compared]) -> bool:
    """Whether the others wait enough, and the rank does what they do not in every part of the
    window.
    """
    part = found.meanwhile
    if part is None or part.kind not in _OWN or found.waiting_share < _WAITS:
        return False
    return _floor(_key(part), parts) >= STEADY * part.share


def _floor(key: _Key, parts: Sequence[_Compared]) -> float:
    """The least that the rank has more of a part, of all parts of the window."""
    return min(one.surplus.get(key, 0.0) for one in parts)


def _longer(whole: _Compared) -> int | None:
    """How much longer its kernels take, where that explains half of the waiting."""
    own, others = whole.own, whole.others
    if own.compute_ns is None or any(one.compute_ns is None for one in others):
        return None
    mean = _mean([_share(one, one.compute_ns or 0) for one in others])
    more = _share(own, own.compute_ns) - mean
    return round(more * own.window_ns) if more >= 0.5 * whole.waiting > 0 else None


def _meanwhile(whole: _Compared, parts: Sequence[_Compared]) -> HostPart | None:
    """What the rank's host does more than the others' on average: the part that stands out most in
    every part of the window, else operators as a whole.
    """
    if not whole.own.parts or not all(one.parts for one in whole.others) or whole.waiting <= 0:
        return None
    named = {_key(part): part for part in reversed(whole.own.parts) if part.name}
    fitting = [
        key
        for key in named
        if whole.surplus.get(key, 0.0) >= _NAMED * whole.waiting
        and _is_certain(named[key], whole.others)
    ]
    shares = _shares(whole.own)
    least = {key: _floor(key, parts) if parts else whole.surplus[key] for key in fitting}
    # what only this rank does says more than what takes longer on it, as anything may on a crowded
    # core
    alone = {key: whole.surplus[key] / max(shares[key], whole.surplus[key]) for key in fitting}
    most = max(fitting, key=lambda key: (alone[key] * least[key], whole.surplus[key]), default=None)
    if most is not None:
        return _part(named[most], whole.surplus[most], whole.own)
    operators = sum(share for key, share in whole.surplus.items() if key[0] == _OPERATOR)
    if operators >= 2 * _NAMED * whole.waiting:
        return _part(HostPart(kind=_OPERATOR, ns=0, share=0.0), operators, whole.own)
    return None


def _part(part: HostPart, share: float, own: RankTimes) -> HostPart:
    return HostPart(
        kind=part.kind,
        name=part.name,
        ns=round(share * own.window_ns),
        share=share,
        samples=part.samples,
        running=part.running,
    )


def _shares(one: RankTimes) -> dict[_Key, float]:
    shares: dict[_Key, float] = {}
    for part in one.parts:
        if part.kind not in _WAITING and not part.name.startswith(HANDING_OVER):
            key = _key(part)
            shares[key] = shares.get(key, 0.0) + _share(one, part.ns)
    return shares


def _key(part: HostPart) -> _Key:
    """What is the same on all ranks. A place in the program is a function, or a line outside of
    any: which of its lines is seen most, and what it called, differ from rank to rank.
    """
    if part.kind != Kind.PYTHON.key:
        return part.kind, part.name
    place, _, function = part.name.partition(" > ")[0].partition(" ")
    return part.kind, f"{place.rpartition(':')[0]} {function}" if function else place


def _is_certain(part: HostPart, others: Sequence[RankTimes]) -> bool:
    """Whether samples leave no doubt that the rank has more of it than each of the others."""
    if part.low is None:
        return True
    low = part.low
    return all(
        low > (same.share if same.high is None else same.high)
        for one in others
        for same in one.parts
        if _key(same) == _key(part)
    )


def _share(one: RankTimes, ns: int) -> float:
    return ns / one.window_ns if one.window_ns else 0.0


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)
