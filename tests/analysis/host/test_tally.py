"""What a set of idle time sees of a thread's timeline is what a look at the whole timeline says."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.host.tally import _seen_in
from profharness.analysis.host.timeline import Timeline
from profharness.stats import intervals
from profharness.stats.intervals import Intervals

gaps_and_lengths = st.lists(st.tuples(st.integers(0, 9), st.integers(1, 9)), max_size=12)


def disjoint(parts: list[tuple[int, int]]) -> Intervals:
    """Intervals in order, each so far behind the one before and so long; some touch."""
    gap, length = (np.array([part[at] for part in parts], np.int64) for at in (0, 1))
    end = np.cumsum(gap + length)
    return Intervals(end - length, end)


@given(gaps_and_lengths, gaps_and_lengths)
def test_what_is_seen_is_what_lies_inside(
    stretches: list[tuple[int, int]], held: list[tuple[int, int]]
) -> None:
    spans, merged = disjoint(stretches), intervals.merge(disjoint(held))
    rows = np.arange(len(spans))
    line = Timeline(spans.start, spans.end, rows.astype(np.int8), rows, rows)
    whole = intervals.inside_ns(spans, merged)
    seen, inside = _seen_in(line, merged)
    assert seen.tolist() == np.flatnonzero(whole).tolist()
    assert inside.tolist() == whole[whole > 0].tolist()
