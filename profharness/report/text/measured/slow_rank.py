"""In words: the rank that the others wait for, what it does meanwhile, and what to change."""

from __future__ import annotations

from profharness.analysis.communication.records import SlowestRank
from profharness.analysis.communication.straggler import each_step
from profharness.analysis.host.kinds import LABELS, Kind
from profharness.analysis.host.records import HostPart
from profharness.report.text.figures import brief_text
from profharness.report.text.measured.host_time import name_of
from profharness.units import format_ns, format_share

_WORTH_A_WORD = 0.05
_MOST = 0.5
_KINDS = {kind.key: kind for kind in Kind}


def worth_saying(slowest: SlowestRank | None) -> SlowestRank | None:
    """The slowest rank where the others wait for it long enough to be told of."""
    told = slowest is not None and slowest.waiting_share >= _WORTH_A_WORD
    return slowest if told else None


def is_named(slowest: SlowestRank) -> bool:
    """Whether a place in the program, or another thing beside operators, explains the waiting."""
    part = slowest.meanwhile
    return part is not None and bool(part.name) and part.kind != Kind.OPERATOR.key


def sentence(slowest: SlowestRank) -> str:
    """`Rank 1 holds the others back: it spends 30.1 ms of each step more than they do in
    train.py:7; they wait 38.8 % of each step (157.2 ms) for it`, without the full stop.
    """
    rank, doing = slowest.rank, _doing(slowest)
    if rank.startswith("rank "):
        rank = f"R{rank[1:]}"
    share = format_share(slowest.waiting_share)
    because = f"{doing}; " if doing else ""
    return f"{rank} holds the others back: {because}they wait {share} of {_window(slowest)} for it"


def advice(slowest: SlowestRank, *, own_pace: bool = True) -> str:
    """What to change, and what it would gain at most. Not of its `own_pace` where other work held
    the cores: that it waited there need not mean anything then.
    """
    rank = slowest.rank
    if slowest.longer_kernels_ns is not None:
        look = f"Look at the device of {rank} and at what it gets to compute: {_doing(slowest)}"
    elif slowest.meanwhile is not None and slowest.meanwhile.name:
        part = slowest.meanwhile
        waits = _waiting(part) if own_pace else ""
        longer = each_step(slowest, part.ns)
        look = f"Look at {name_of(part, 48)} on {rank}: {longer} more than on the others{waits}"
    elif slowest.meanwhile is not None:
        look = f"Give {rank} no more to compute than the others: {_doing(slowest)}"
    else:
        look = (
            f"Look at what {rank} does before its collectives: input, host work, clock and power "
            "of its device"
        )
    rest = 1 - slowest.waiting_share
    gain = f"; in step with the others the job gains at most {brief_text(1 / rest, 3)}x"
    return f"{look}{gain if rest > 0 else ''}."


def part_of_collectives(slowest: SlowestRank | None, share: float) -> str:
    """`, most of it waiting for rank 1`, behind the `share` of all ranks' time that collectives
    take.
    """
    told = worth_saying(slowest)
    if told is None or share <= told.talking_share:
        return ""
    most = share - told.talking_share >= _MOST * share
    return f", {'most of it' if most else 'some of it'} waiting for {told.rank}"


def _doing(slowest: SlowestRank) -> str:
    """`it spends 30.1 ms of each step more than they do in train.py:7`; empty where nothing stands
    out.
    """
    if slowest.longer_kernels_ns is not None:
        longer = each_step(slowest, slowest.longer_kernels_ns)
        return f"its kernels take {longer} more than theirs"
    part = slowest.meanwhile
    if part is None:
        return ""
    where = name_of(part, 48) if part.name else LABELS[_KINDS[part.kind]]
    outside = ", outside of any operation" if part.kind == Kind.PYTHON.key else ""
    more = each_step(slowest, part.ns)
    return f"it spends {more} more than they do in {where}{outside}"


def _waiting(part: HostPart) -> str:
    if part.running is None or part.running > _MOST:
        return ""
    return f" (it waits there {format_share(1 - part.running, 0)} of the time)"


def _window(slowest: SlowestRank) -> str:
    if slowest.steps > 0:
        return f"each step ({format_ns(slowest.window_ns / slowest.steps)})"
    return f"the recorded {format_ns(slowest.window_ns)}"
