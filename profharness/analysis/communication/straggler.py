"""The finding on a rank that the others wait for."""

from __future__ import annotations

from profharness.analysis.communication.records import Communication, RankRow, Skew, SlowestRank
from profharness.analysis.communication.skew import COSTS, late
from profharness.analysis.host.kinds import LABELS, Kind
from profharness.findings import Finding, finding
from profharness.units import format_ns

_KINDS = {kind.key: kind for kind in Kind}


def straggler(talk: Communication | None) -> tuple[Finding, ...]:
    """A rank that arrives last persistently and costs the others at least 2 % of their time, or one
    that keeps doing what the others do not while they wait for it.
    """
    if talk is None or talk.skew is None:
        return ()
    of_arrivals = late(talk.skew) if talk.skew.wait_share >= COSTS else None
    if of_arrivals is not None:
        return (_by_arrivals(talk.skew, *of_arrivals, talk.slowest),)
    if talk.slowest is not None and talk.slowest.by == "work":
        return (_by_work(talk.skew, talk.slowest),)
    return ()


def _by_arrivals(
    differences: Skew, rank: RankRow, how_often: str, slowest: SlowestRank | None
) -> Finding:
    others = [row for row in differences.rows if row is not rank]
    waited, all_waited = (sum(row.wait_ns for row in rows) for rows in (others, differences.rows))
    mean_wait = waited / sum(row.calls for row in others)
    share = differences.wait_share * waited / all_waited if all_waited else 0.0
    more = "" if slowest is None else doing_more(slowest)
    return finding(
        "straggler",
        f"{rank.rank} arrives last in {how_often}; the others wait {format_ns(mean_wait)} per "
        f"collective on average ({100 * share:.1f} % of all ranks' time)"
        f"{f'; {more}' if more else ''}",
        rank=rank.rank,
        last=rank.last,
        collectives=differences.noticeable,
        wait_share=share,
    )


def _by_work(differences: Skew, slowest: SlowestRank) -> Finding:
    row = next((row for row in differences.rows if row.rank == slowest.rank), None)
    return finding(
        "straggler",
        f"{doing_more(slowest)}, and these are in collectives with nothing to compute for "
        f"{100 * slowest.waiting_share:.1f} % more of their time",
        rank=slowest.rank,
        last=0 if row is None else row.last,
        collectives=differences.noticeable,
        wait_share=differences.wait_share,
    )


def doing_more(slowest: SlowestRank) -> str:
    """`rank 1 is in ddp.py:7 for 30.1 ms of each step more than the others`; empty where nothing
    stands out.
    """
    if slowest.longer_kernels_ns is not None:
        longer = each_step(slowest, slowest.longer_kernels_ns)
        return f"kernels of {slowest.rank} take {longer} more than those of the others"
    part = slowest.meanwhile
    if part is None:
        return ""
    where = part.name or LABELS[_KINDS[part.kind]]
    return f"{slowest.rank} is in {where} {each_step(slowest, part.ns)} more than the others"


def each_step(slowest: SlowestRank, ns: float) -> str:
    """`30.1 ms of each step`, or of the window where it has no steps."""
    if slowest.steps > 0:
        return f"{format_ns(ns / slowest.steps)} of each step"
    return f"{format_ns(ns)} of {format_ns(slowest.window_ns)}"
