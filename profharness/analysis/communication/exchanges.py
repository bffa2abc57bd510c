"""How evenly exchanges of all with all whose parts differ (all-to-all-v) serve the ranks, by the
split sizes that torch records. Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from profharness.analysis.communication.collectives import Arrivals, described
from profharness.analysis.communication.matching import Matched
from profharness.analysis.communication.records import Exchange
from profharness.trace.model import F64

_KIND = "all_to_all"


def exchanges(ranks: Sequence[Arrivals], groups: Sequence[Matched]) -> Exchange | None:
    """Over the matched calls of which every rank recorded what it receives from each; None without
    any.

    The ranks of a call wait for the one that receives most, so each call counts by itself: the most
    over the mean of its ranks.
    """
    imbalance: list[F64] = []
    most: list[int] = []
    received = np.zeros(len(ranks))
    for group in groups:
        sizes = _received(ranks, group)
        whole = sizes.sum(axis=1)
        known = np.isfinite(whole) & (whole > 0)
        if not known.any():
            continue
        sizes = sizes[known]
        imbalance.append(sizes.max(axis=1) / sizes.mean(axis=1))
        members = np.array(group.ranks)
        most += members[sizes.argmax(axis=1)].tolist()
        received[members] += sizes.sum(axis=0)
    if not imbalance:
        return None
    calls = np.concatenate(imbalance)
    often, count = max(
        ((rank, most.count(rank)) for rank in dict.fromkeys(most)), key=lambda pair: pair[1]
    )
    takers = np.flatnonzero(received)
    return Exchange(
        calls=len(calls),
        ranks=len(takers),
        imbalance=float(calls.mean()),
        worst=float(calls.max()),
        most=ranks[often].rank,
        most_calls=count,
        shares=tuple(
            (ranks[rank].rank, float(received[rank] / received.sum())) for rank in takers.tolist()
        ),
    )


def _received(ranks: Sequence[Arrivals], group: Matched) -> F64:
    """What each rank receives in each call, (calls, ranks), in the unit of the splits; NaN where it
    is no exchange, or no split sizes were recorded.
    """
    sizes = np.full(group.each.shape, np.nan)
    for column, rank in enumerate(group.ranks):
        distinct, place = np.unique(group.each[:, column], return_inverse=True)
        told = [described(ranks[rank].texts[what]) for what in distinct.tolist()]
        of_text = np.array(
            [
                float(sum(one.out_splits)) if one.kind == _KIND and one.out_splits else np.nan
                for one in told
            ]
        )
        sizes[:, column] = of_text[place.reshape(-1)]
    return sizes
