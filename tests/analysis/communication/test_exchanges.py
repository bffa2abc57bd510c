"""Exchanges with uneven parts, against the routing that they were made from."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest

from profharness.analysis.communication.collectives import Arrivals
from profharness.analysis.communication.exchanges import exchanges
from profharness.analysis.communication.figures import summarise
from profharness.analysis.communication.matching import matched
from profharness.readers.kineto.records import CommsArgs
from profharness.readers.kineto.values import Odd, collective_of
from profharness.report.tables import communication as shown
from profharness.trace.collectives import Collective, encode

RANKS, CALLS = 4, 50


def routed(seed: int) -> np.ndarray:
    """Tokens by (call, from, to); the third rank is the favourite of a router."""
    dice = np.random.default_rng(seed)
    tokens = dice.integers(0, 100, (CALLS, RANKS, RANKS))
    tokens[:, :, 2] += 120
    return tokens


def arrivals(tokens: np.ndarray, *, recorded: bool = True) -> list[Arrivals]:
    found, pool = [], {}
    for rank in range(RANKS):
        texts = [
            encode(
                Collective(
                    "all_to_all",
                    int(tokens[call, rank].sum()),
                    int(tokens[call, :, rank].sum()),
                    "Float",
                    RANKS,
                    "g",
                    tuple(tokens[call, rank].tolist()) if recorded else (),
                    tuple(tokens[call, :, rank].tolist()) if recorded else (),
                )
            )
            for call in range(CALLS)
        ]
        what = np.array([pool.setdefault(text, len(pool)) for text in texts])
        start = np.arange(CALLS) * 1_000_000
        found.append((start, what))
    every = tuple(pool)
    return [
        Arrivals(f"rank {rank}", start, np.full(CALLS, 50_000), what, every, common_clock=True)
        for rank, (start, what) in enumerate(found)
    ]


def test_what_ranks_receive_is_what_was_routed_to_them():
    tokens = routed(3)
    received = tokens.sum(axis=1)  # (calls, ranks)
    found = summarise((), arrivals(tokens)).exchange
    assert found is not None
    assert (found.calls, found.ranks, found.most) == (CALLS, RANKS, "rank 2")
    per_call = received.max(axis=1) / received.mean(axis=1)
    assert found.imbalance == pytest.approx(per_call.mean())
    assert found.worst == pytest.approx(per_call.max())
    assert found.most_calls == int((received.argmax(axis=1) == 2).sum())
    shares = dict(found.shares)
    assert shares["rank 1"] == pytest.approx(received[:, 1].sum() / received.sum())
    assert sum(shares.values()) == pytest.approx(1)


def test_even_exchanges_are_told_as_even():
    ranks = arrivals(np.full((CALLS, RANKS, RANKS), 10))
    found = exchanges(ranks, matched(ranks)[0])
    assert found is not None
    assert found.imbalance == found.worst == 1


def test_without_split_sizes_nothing_is_said():
    ranks = arrivals(routed(3), recorded=False)
    assert exchanges(ranks, matched(ranks)[0]) is None


def test_calls_that_differ_in_split_sizes_alone_are_one_row():
    tokens = np.array([np.roll(np.array([10, 20, 30, 40]), call) for call in range(CALLS)])
    ranks = arrivals(np.repeat(tokens[:, None, :], RANKS, axis=1))
    rows = summarise((), ranks).collectives
    assert sum(row.calls for row in rows) == CALLS * RANKS
    assert len(rows) == 4  # by what a rank receives, which is in the size


def test_the_lines_and_the_page_say_it():
    talk = summarise((), arrivals(routed(3)))
    (line,) = [line for line in shown.lines(talk) if "split sizes" in line]
    assert "50 calls of 4 ranks" in line
    assert "rank 2 receives most in" in line
    assert "times the mean" in shown.note(talk)


@pytest.mark.parametrize(
    ("text", "splits"),
    [
        ("[3, 0, 5]", (3, 0, 5)),
        ("[]", ()),
        ("[1, 2, ..., 9]", ()),  # torch cuts long lists
        ("[-1, 2]", ()),
        (None, ()),
        (7, ()),
    ],
)
def test_split_sizes_as_torch_writes_them(text, splits):
    args = msgspec.convert({"Collective name": "all_to_allv", "Out split size": text}, CommsArgs)
    found = collective_of(args, Odd())
    assert found.kind == "all_to_all"
    assert found.out_splits == splits
