"""The rank that the others wait for, from made accounts of ranks whose cause is planted."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.communication.matching import matched
from profharness.analysis.communication.rank_times import RankTimes
from profharness.analysis.communication.records import Communication, Skew, SlowestRank
from profharness.analysis.communication.skew import skew
from profharness.analysis.communication.slowest import slowest
from profharness.analysis.communication.straggler import straggler
from profharness.analysis.host.records import HostPart
from profharness.analysis.summarise import summarise_trace
from profharness.report.text.measured import slow_rank
from profharness.understand.many.figures import summarise_files
from tests.analysis.communication.test_on_cpu import arrivals_of, rank_file

STEPS, STEP_NS = 20, 100_000_000
WINDOW = STEPS * STEP_NS


def part(kind: str, name: str, ms: float, *, window: int = WINDOW, wide: float = 0.01) -> HostPart:
    """A part of `ms` of each step; a Python line has an interval `wide` to either side."""
    share = ms * 1e6 / STEP_NS
    sampled = kind == "python"
    return HostPart(
        kind=kind,
        name=name,
        ns=round(share * window),
        share=share,
        samples=100 if sampled else None,
        low=max(share - wide, 0.0) if sampled else None,
        high=share + wide if sampled else None,
        running=0.02 if sampled else None,
    )


def rank(number: int, waits_ms: float, *parts: HostPart, compute_ms: float | None = None):
    return RankTimes(
        f"rank {number}",
        WINDOW,
        round(waits_ms * 1e6 * STEPS),
        STEPS,
        None if compute_ms is None else round(compute_ms * 1e6 * STEPS),
        parts,
    )


def in_turn(calls: int = 40) -> Skew:
    """Two ranks that arrive last in turn, by 20 ms, as on cores that other work holds."""
    starts = np.arange(calls) * 50_000_000 + np.zeros((2, calls), np.int64)
    starts[0, ::2] += 20_000_000
    starts[1, 1::2] += 20_000_000
    ranks = arrivals_of(starts)
    found = skew(ranks, *matched(ranks))
    assert found is not None
    return found


def asleep(ms: float, waits_ms: float, line: str = "ddp.py:7") -> tuple[RankTimes, RankTimes]:
    """Rank 1 is `ms` of each step in a line where rank 0 is not, and rank 0 waits."""
    works = part("operator", "aten::mm", 40)
    backward = part("python", "ddp.py:8 > _tensor.backward", 5)
    return (
        rank(0, waits_ms, works, backward, part("collective", "gloo:all_reduce", waits_ms)),
        rank(1, 5, works, part("python", line, ms), part("python", "ddp.py:8 > module.call", 5)),
    )


def test_who_sleeps_is_found_although_the_ranks_arrive_last_in_turn() -> None:
    found = slowest(in_turn(), asleep(30, 35), [asleep(30, 35)] * 4)
    assert found is not None
    assert (found.rank, found.by, found.steps) == ("rank 1", "work", STEPS)
    assert found.waiting_share == pytest.approx(0.30)
    assert found.talking_share == pytest.approx(0.05)
    assert not found.is_largest  # computing takes 40 %
    assert found.meanwhile is not None
    assert (found.meanwhile.kind, found.meanwhile.name) == ("python", "ddp.py:7")
    assert found.meanwhile.ns == STEPS * 30_000_000
    talk = Communication(devices=(), collectives=(), skew=in_turn(), slowest=found)
    (told,) = straggler(talk)
    assert told.figures["rank"] == "rank 1"
    assert "rank 1 is in ddp.py:7 30.00 ms of each step more than the others" in told.message
    assert "30.0 % more of their time" in told.message


@pytest.mark.parametrize(
    "quarters",
    [
        [asleep(30, 35), asleep(30, 35), asleep(30, 35), asleep(0, 35)],  # not in all of them
        [],  # of files that are read apart there are no quarters
    ],
)
def test_what_a_rank_does_now_and_then_shows_no_slow_rank(
    quarters: list[tuple[RankTimes, RankTimes]],
) -> None:
    assert slowest(in_turn(), asleep(30, 35), quarters) is None


@pytest.mark.parametrize(
    "times",
    [
        asleep(30, 8),  # the other one hardly waits
        asleep(3, 35),  # it explains a tenth of the waiting
        (rank(0, 35), rank(1, 5)),  # no account of the host
    ],
)
def test_ranks_that_hardly_wait_or_do_the_same_have_no_slow_one(
    times: tuple[RankTimes, RankTimes],
) -> None:
    assert slowest(in_turn(), times, [times] * 4) is None


def test_a_line_that_samples_may_have_seen_on_both_ranks_tells_nothing() -> None:
    wide = part("python", "ddp.py:7", 20, wide=0.2)
    times = (rank(0, 35, part("python", "ddp.py:7", 10, wide=0.2)), rank(1, 5, wide))
    assert slowest(in_turn(), times, [times] * 4) is None


def test_a_function_is_one_place_whatever_its_line_and_what_it_calls() -> None:
    times = (
        rank(0, 35, part("python", "train.py:31 load > io.read", 30)),
        rank(1, 5, part("python", "train.py:35 load", 30), part("python", "train.py:9 wait", 20)),
    )
    found = slowest(in_turn(), times, [times] * 4)
    assert found is not None
    assert found.meanwhile is not None
    assert found.meanwhile.name == "train.py:9 wait"


def test_what_only_one_rank_does_is_named_before_what_takes_longer_on_it() -> None:
    """On a crowded core an operator may take twice as long, in every part of the window."""
    times = (
        rank(0, 55, part("operator", "aten::mm", 25)),
        rank(1, 5, part("operator", "aten::mm", 48), part("python", "ddp.py:7", 20)),
    )
    found = slowest(in_turn(), times, [times] * 4)
    assert found is not None
    assert found.meanwhile is not None
    assert found.meanwhile.name == "ddp.py:7"


def test_longer_kernels_of_the_last_rank_are_told_before_its_host() -> None:
    starts = np.arange(40) * 50_000_000 + np.zeros((2, 40), np.int64)
    starts[1] += 20_000_000
    last = skew(arrivals_of(starts), *matched(arrivals_of(starts)))
    times = (rank(0, 35, compute_ms=30), rank(1, 5, compute_ms=60))
    found = slowest(last, times)
    assert found is not None
    assert (found.by, found.longer_kernels_ns) == ("arrivals", STEPS * 30_000_000)
    assert slow_rank.sentence(found) == (
        "Rank 1 holds the others back: its kernels take 30.00 ms of each step more than theirs; "
        "they wait 30.0 % of each step (100.0 ms) for it"
    )


def test_waiting_leads_over_operators_that_only_together_take_longer() -> None:
    """Of 100 ms the others wait 30, which no operator alone takes."""
    several = [part("operator", f"aten::{name}", 20) for name in ("mm", "addmm", "copy_")]
    asleep_one = (rank(0, 35, *several), rank(1, 5, *several, part("python", "ddp.py:7", 30)))
    found = slowest(in_turn(), asleep_one, [asleep_one] * 4)
    assert found is not None
    assert found.is_largest
    longest = part("operator", "aten::mm", 35)
    others = (rank(0, 35, longest), rank(1, 5, longest, part("python", "ddp.py:7", 30)))
    found = slowest(in_turn(), others, [others] * 4)
    assert found is not None
    assert not found.is_largest


def test_what_is_said_and_advised_of_a_sleeping_rank() -> None:
    found = slowest(in_turn(), asleep(45, 55), [asleep(45, 55)] * 4)
    assert found is not None
    assert found.is_largest
    assert slow_rank.sentence(found) == (
        "Rank 1 holds the others back: it spends 45.00 ms of each step more than they do in "
        "ddp.py:7, outside of any operation; they wait 50.0 % of each step (100.0 ms) for it"
    )
    assert slow_rank.advice(found) == (
        "Look at ddp.py:7 on rank 1: 45.00 ms of each step more than on the others (it waits there "
        "98 % of the time); in step with the others the job gains at most 2x."
    )
    assert "waits there" not in slow_rank.advice(found, own_pace=False)
    assert slow_rank.part_of_collectives(found, 0.30) == ", most of it waiting for rank 1"
    assert slow_rank.part_of_collectives(None, 0.30) == ""


@given(
    st.lists(
        st.tuples(st.integers(1, 10**12), st.floats(0, 1), st.floats(0, 1)), min_size=2, max_size=8
    )
)
def test_no_share_exceeds_the_whole(rows: list[tuple[int, float, float]]) -> None:
    times = [
        RankTimes(
            f"rank {number}",
            window,
            round(window * waits),
            3,
            None,
            (
                HostPart(
                    kind="python",
                    name="a.py:1",
                    ns=round(window * own),
                    share=own,
                    low=own,
                    high=own,
                ),
            ),
        )
        for number, (window, waits, own) in enumerate(rows)
    ]
    starts = np.arange(20) * 1000 + np.zeros((2, 20), np.int64)
    starts[0] += 900_000
    last = skew(arrivals_of(starts), *matched(arrivals_of(starts)))
    for differences, parts in ((last, []), (in_turn(), [times] * 4)):
        found = slowest(differences, times, parts)
        if found is not None:
            assert 0 <= found.waiting_share <= 1
            assert 0 <= found.talking_share <= 1
            assert found.waiting_share + found.talking_share <= 1 + 1e-9
            assert found.meanwhile is None or 0 <= found.meanwhile.share <= 1


def test_files_of_ranks_name_the_late_one_and_what_it_computes(tmp_path: Path) -> None:
    """Each file by itself: arrivals say who is late, the files' own windows how long others
    wait.
    """
    paths = [rank_file(tmp_path, number, 2000 * number, calls=20) for number in range(2)]
    talk = summarise_files(paths).communication
    assert talk is not None
    found = talk.slowest
    assert found is not None
    # rank 0 is alone in its collectives from 3 to 6 ms of each 10, rank 1 from 5 to 6
    assert (found.rank, found.by) == ("rank 1", "arrivals")
    assert found.waiting_share == pytest.approx(20 * 2 / 198, abs=0.01)


def test_collectives_with_nothing_beside_them_are_a_part_of_the_hosts_time(tmp_path: Path) -> None:
    host = summarise_trace(readers.read(rank_file(tmp_path, 0, 0)), "rank0.json").host
    assert host is not None
    told = {(one.kind, one.name): one.ns for one in host.parts}
    assert told["collective", "gloo:all_reduce"] == 10 * 3_000_000  # from 3 to 6 ms of each 10
    assert sum(told.values()) == host.total_ns == host.window_ns
    assert ("operator", "c10d::allreduce_") not in told  # it hands over while the collective runs


def test_the_record_reads_back() -> None:
    found = SlowestRank(rank="rank 3", window_ns=5, waiting_share=0.5, talking_share=0.1)
    assert msgspec.json.decode(msgspec.json.encode(found), type=SlowestRank) == found
