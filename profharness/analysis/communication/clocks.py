"""One clock for ranks whose files have clocks of their own, by the common end of their collectives,
with a bound of how far it can be wrong. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.analysis.communication.collectives import Arrivals, described
from profharness.analysis.communication.skew import MEET, Matched

I64 = npt.NDArray[np.int64]
_SCATTER = 95


@dataclass(frozen=True)
class CommonClock:
    """`shift_ns` is what to take off the times of each rank (by its position) that could be put on
    the clock; `bound_ns` how far the ends of nineteen of twenty calls lie apart on it, 0 where the
    ranks share a clock.
    """

    shift_ns: dict[int, int]
    bound_ns: int
    shared: bool


def common_clock(ranks: Sequence[Arrivals], groups: Sequence[Matched]) -> CommonClock:
    """The clock of all ranks that calls connect with the first one of the largest group; ranks that
    share a clock as it is.
    """
    members = {position for group in groups for position in group.ranks}
    if all(ranks[position].common_clock for position in members):
        return CommonClock(dict.fromkeys(members, 0), 0, shared=True)
    shift: dict[int, int] = {}
    bound = 0
    left = sorted(groups, key=lambda group: -len(group.start))
    while left:
        group = next((one for one in left if shift.keys() & set(one.ranks)), None)
        if group is None and shift:
            break
        group = left[0] if group is None else group
        left = [one for one in left if one is not group]
        ends = _common_ends(group, ranks)
        if not len(ends):
            continue
        base = next((at for at, rank in enumerate(group.ranks) if rank in shift), 0)
        known = shift.setdefault(group.ranks[base], 0)
        for column, rank in enumerate(group.ranks):
            apart = ends[:, column] - ends[:, base]
            middle = int(np.median(apart))
            if rank not in shift:
                shift[rank] = known + middle
                off = np.percentile(np.abs(apart - middle), _SCATTER)
                bound = max(bound, int(np.ceil(off)))
    return CommonClock(shift, bound, shared=False)


def _common_ends(group: Matched, ranks: Sequence[Arrivals]) -> I64:
    """Ends of the calls that end on all ranks at about one time: (calls, ranks) ns."""
    texts = ranks[group.ranks[0]].texts
    meet = np.array([described(texts[call]).kind in MEET for call in group.what.tolist()], np.bool_)
    ends: I64 = (group.start + group.dur)[meet]
    return ends
