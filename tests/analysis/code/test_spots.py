from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.code.spots import code_hotspots
from profharness.errors import UsageError
from profharness.trace.code_records import CodeFile, CodeRecord

WORDS = st.sampled_from(("", "a", "b"))
SAMPLED = st.builds(
    CodeRecord,
    kernel=WORDS,
    instruction=WORDS,
    source=WORDS,
    samples=st.integers(1, 50),
    lanes=st.integers(0, 500),
    masked=st.just(10),
    issued=st.integers(0, 1),
    stalls=st.just((("waitcnt", 1),)),
)


@given(st.lists(SAMPLED, min_size=1), st.sampled_from(("line", "instruction")))
def test_every_sample_stands_in_one_row(records: list[CodeRecord], by: str) -> None:
    half = len(records) // 2
    files = [
        CodeFile("a", "stochastic", tuple(records[:half])),
        CodeFile("b", "stochastic", tuple(records[half:])),
    ]
    table = code_hotspots(files, by)  # type: ignore[arg-type]  # drawn from the two words
    wanted: Counter[tuple[str, str, str, bool]] = Counter()
    lanes: Counter[tuple[str, str, str, bool]] = Counter()
    for record in records:
        decoded = bool(record.instruction)
        text = record.instruction if by == "instruction" else ""
        wanted[record.kernel, record.source, text, decoded] += record.samples
        lanes[record.kernel, record.source, text, decoded] += 1
    found = {
        (row.kernel or "", row.source or "", row.instruction or "", row.decoded): row
        for row in table.rows
    }
    assert {place: row.samples for place, row in found.items()} == wanted
    total = sum(record.samples for record in records)
    assert table.samples == total
    assert sum(row.share for row in table.rows) == pytest.approx(1)
    for place, row in found.items():
        assert row.share == wanted[place] / total
        assert row.share_low is not None
        assert row.share_high is not None
        assert row.share_low <= row.share <= row.share_high
        assert row.stalled == (row.samples or 0) - (row.issued or 0)
        assert [reason.samples for reason in row.stall_reasons] == [lanes[place]]
    assert table.undecoded == sum(r.samples for r in records if not r.instruction)
    assert table.without_source == sum(r.samples for r in records if r.instruction and not r.source)
    assert [row.share for row in table.rows] == sorted((r.share for r in table.rows), reverse=True)


def test_thread_traces_are_shared_by_latency_without_a_sampling_error() -> None:
    records = (
        CodeRecord(kernel="k", instruction="a", source="x:1", hits=2, latency=30, stall=5, idle=1),
        CodeRecord(kernel="k", instruction="b", source="x:1", hits=2, latency=60, stall=7, idle=2),
        CodeRecord(kernel="k", instruction="c", source="", hits=1, latency=10, stall=0, idle=0),
    )
    table = code_hotspots([CodeFile("t", "thread_trace", records)], "line")
    assert (table.samples, table.latency_cycles, table.without_source) == (None, 100, 10)
    first, second = table.rows
    assert (first.source, first.share, first.latency_cycles) == ("x:1", 0.9, 90)
    assert (first.hits, first.stall_cycles, first.idle_cycles) == (4, 12, 3)
    assert (first.share_low, first.samples, first.lanes) == (None, None, None)
    assert second.source is None


def test_counts_of_two_methods_are_not_added() -> None:
    one = CodeRecord(kernel="k", instruction="a", source="", samples=1)
    files = [CodeFile("a", "host_trap", (one,)), CodeFile("b", "thread_trace", (one,))]
    with pytest.raises(UsageError, match="hold host_trap and thread_trace"):
        code_hotspots(files, "line")


def test_nothing_recorded_is_an_empty_table() -> None:
    table = code_hotspots([CodeFile("a", "host_trap", ())], "line")
    assert (table.method, table.samples, table.rows) == (None, None, ())
