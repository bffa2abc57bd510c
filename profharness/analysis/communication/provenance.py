"""What files of ranks without a common clock say of how they were put on one."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from profharness.analysis.communication.clocks import BY_COMMON_END
from profharness.analysis.communication.collectives import Arrivals
from profharness.analysis.communication.records import Communication, RankRow
from profharness.analysis.communication.straggler import straggler
from profharness.analysis.records import SourceRow
from profharness.findings import Finding, finding
from profharness.units import format_ns, format_number

_LEADS = f"others are put on its clock {BY_COMMON_END} collectives"


def of_ranks(talk: Communication | None) -> tuple[Finding, ...]:
    """What is to be said of ranks whose files were summarised apart."""
    return (*straggler(talk), *_clock_finding(talk))


def _clock_finding(talk: Communication | None) -> tuple[Finding, ...]:
    """That ranks share no clock, and how right the one is that their collectives gave them."""
    skew = None if talk is None else talk.skew
    rows = [] if skew is None else [row for row in skew.rows if row.clock_calls]
    if skew is None or not rows:
        return ()
    widest = max(rows, key=lambda row: row.clock_bound_ns or 0)
    bound = (
        "how far that can be wrong is not bounded"
        if skew.clock_bound_ns is None
        else f"wrong by at most {format_ns(skew.clock_bound_ns)} (most: {widest.rank})"
    )
    return (
        finding(
            "clock-by-collectives",
            f"{skew.ranks} ranks share no clock; {BY_COMMON_END} "
            f"{format_number(skew.matched)} collectives they are put on one: 19 of 20 ends within "
            f"{format_ns(skew.clock_scatter_ns)}, {bound}",
            ranks=skew.ranks,
            scatter_ns=skew.clock_scatter_ns,
            bound_ns=-1 if skew.clock_bound_ns is None else skew.clock_bound_ns,
        ),
    )


def sources_on_clock(
    files: Sequence[tuple[tuple[SourceRow, ...], int]],
    ranks: Sequence[Arrivals],
    talk: Communication | None,
) -> tuple[SourceRow, ...]:
    """The sources of all files, with what put each on the common clock. Of each file its sources,
    and how many of the `ranks` (in order) are its own.
    """
    skew = None if talk is None else talk.skew
    rows = {} if skew is None else {row.rank: row for row in skew.rows}
    told: list[SourceRow] = []
    first = 0
    for sources, count in files:
        of_file = ranks[first : first + count]
        own = [rows[rank.rank] for rank in of_file if rank.rank in rows]
        first += count
        aligned = any(row.clock_calls for row in rows.values())
        told += [_told(source, own) if own and aligned else source for source in sources]
    return tuple(told)


def _told(source: SourceRow, own: Sequence[RankRow]) -> SourceRow:
    row = max(own, key=lambda one: (one.clock_bound_ns is None, one.clock_bound_ns or 0))
    words = (
        f"{BY_COMMON_END} {format_number(row.clock_calls)} collectives"
        if row.clock_calls
        else _LEADS
    )
    return msgspec.structs.replace(
        source,
        alignment=f"{source.alignment}; {words}" if source.alignment else words,
        residual_ns=row.clock_scatter_ns,
        bound_ns=row.clock_bound_ns,
    )
