"""The table of a replay as text: what stands first, and what a hostile name does to it."""

from __future__ import annotations

import pytest

from profharness.analysis.replay.records import NotReplayed, ReplayRow, Replays, Split
from profharness.report.replay.text import answer, heading, replay_text
from profharness.stats.estimate import Estimate

PARTS = Split(own_ns=6e6, profiler_ns=1e6, cold_ns=2e6, rest_ns=1e6)


def row(name: str = "aten::mm", reading: str = "surroundings", **changes: object) -> ReplayRow:
    values: dict[str, object] = {
        "overload": "",
        "shapes": "[[8, 4], [4, 4]]",
        "dtypes": '["float", "float"]',
        "calls": 1000,
        "share": 0.25,
        "self_ns": 10_000_000,
        "in_trace": Estimate(value=1e4, low=9.8e3, high=1.02e4),
        "in_trace_median": 1e4,
        "alone": Estimate(value=6e3),
        "alone_median": 6e3,
        "profiled": Estimate(value=7e3),
        "cold": Estimate(value=8e3),
        "ratio": Estimate(value=1.43, low=1.4, high=1.46),
        "split": PARTS,
    }
    return ReplayRow(name=name, reading=reading, **{**values, **changes})  # type: ignore[arg-type]


def table(*rows: ReplayRow, **changes: object) -> Replays:
    values: dict[str, object] = {
        "source": "trace.json",
        "device": "cpu",
        "torch": "2.9",
        "threads": 2,
        "in_trace_ns": 10_000_000,
        "sum": PARTS,
    }
    return Replays(rows=rows, **{**values, **changes})  # type: ignore[arg-type]  # as above


def test_the_answer_tells_the_parts():
    assert answer(table(row(), row())) == (
        "Of 10.00 ms that the 2 hottest calls took in the trace, 60.0 % is their own: alone and "
        "warm they take 6.000 ms. Their surroundings cost 30.0 %, of which cold caches explain "
        "20.0 % at most; the profiler costs 10.0 %."
    )


def test_where_all_is_their_own_nothing_else_is_told():
    own = Split(own_ns=9.9e6, profiler_ns=0.0, cold_ns=0.1e6, rest_ns=0.0)
    assert "surroundings" not in answer(table(row(), sum=own))


def test_doubtful_rows_are_counted_with_what_to_do():
    said = answer(table(row(reading="doubtful"), row()))
    assert said.startswith("Of 10.00 ms that 1 of the 2 hottest calls took in the trace, ")
    assert "The other one took longer alone than in the trace" in said
    assert "longer alone" not in answer(table(row()))


def test_where_all_rows_are_doubtful_nothing_is_claimed():
    said = answer(table(row(reading="doubtful"), row(reading="doubtful")))
    assert said.startswith("What is the calls' own cannot be told: all of them took longer alone")
    assert "%" not in said


def test_a_busy_machine_is_told():
    assert "up to 40.0 % of the time for a core" in answer(table(row(waited=0.4), row()))
    assert "Other programs" not in answer(table(row(waited=0.01)))


def test_rows_with_their_choices_and_what_was_left_out():
    left = NotReplayed(
        name="x::y", shapes="", dtypes="", calls=3, share=0.1, reason="it is an operator of x"
    )
    text = replay_text(table(row(chosen=("tensors: element type fp32",)), not_replayed=(left,)))
    lines = text.splitlines()
    assert lines[2] == "alone on cpu, 2 threads, torch 2.9; trace.json"
    assert lines[4].split("  ")[-2:] == ["surroundings", "aten::mm(8×4, 4×4) fp32"]
    assert "10.00 µs ± 2 %" in lines[4]
    assert "  row 1: tensors: element type fp32" in lines
    assert lines[-1] == "  10.0 %  x::y  it is an operator of x"


@pytest.mark.parametrize(
    ("follows", "says"),
    [
        ("", "2 threads,"),
        ("asked", "2 threads,"),
        ("trace", "2 threads as recorded,"),
        ("run", "2 threads as the run set,"),
    ],
)
def test_it_is_told_where_the_number_of_threads_is_from(follows: str, says: str):
    assert heading(table(row(), threads_by=follows)).startswith(f"alone on cpu, {says}")


def test_without_rows_it_says_so():
    assert answer(table()) == "None of the hottest calls could be replayed."


def test_a_name_stays_in_its_line():
    text = replay_text(table(row("aten::x\n\x1b[31mroot")))
    assert "\x1b" not in text
    assert "aten::x\\n\\u001b[31mroot" in text
