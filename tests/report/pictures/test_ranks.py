from __future__ import annotations

import json

import msgspec
import pytest

from profharness.analysis.communication.records import Communication, RankRow, Skew
from profharness.analysis.pictures.records import Pictures, RankShare
from profharness.analysis.records import Summary
from profharness.report.pictures.ranks import ranks_plot
from tests.report.samples import gpu_scan


def share(rank: int | None, compute: int) -> RankShare:
    return RankShare(
        device=f"node0/{rank}/0",
        rank=rank,
        window_ns=1_000,
        compute_ns=compute,
        exposed_communication_ns=200,
        exposed_copy_ns=0,
        idle_ns=800 - compute,
    )


def late(*behind: float) -> Summary:
    rows = tuple(
        RankRow(rank=f"rank {rank}", calls=9, last=1, wait_ns=5, mean_behind_ns=ns)
        for rank, ns in enumerate(behind)
    )
    skew = Skew(
        ranks=len(rows),
        matched=9,
        unmatched=0,
        noticeable=1,
        median_ns=1.0,
        p95_ns=1.0,
        max_ns=1,
        wait_share=0.1,
        aligned="",
        rows=rows,
    )
    talk = Communication(devices=(), collectives=(), skew=skew)
    return msgspec.structs.replace(gpu_scan(), communication=talk)


def test_ranks_stand_in_their_order_with_shares_that_sum_to_all() -> None:
    plot = ranks_plot(gpu_scan(), Pictures(ranks=(share(1, 500), share(0, 600))))
    assert plot is not None
    option = json.loads(plot.json)
    assert option["xAxis"]["data"] == ["0", "1"]
    values = [[item["value"] for item in one["data"]] for one in option["series"]]
    assert [one["name"] for one in option["series"]] == [
        "compute",
        "communication, exposed",
        "idle",
    ]
    assert values[0] == [60.0, 50.0]
    assert [sum(column) for column in zip(*values, strict=True)] == pytest.approx([100.0, 100.0])
    assert "50.0 % to 60.0 % is compute" in plot.description


def test_lateness_has_a_line_where_it_was_seen() -> None:
    ranks = tuple(share(rank, 500) for rank in range(3))
    plot = ranks_plot(late(100.0, 45_000.0), Pictures(ranks=ranks))
    assert plot is not None
    line = json.loads(plot.json)["series"][-1]
    assert [one if one == "-" else one["value"] for one in line["data"]] == [100, 45_000, "-"]
    assert "The latest at collectives is rank 1: 45.00 µs" in plot.description


def test_a_hundred_and_twenty_eight_ranks_fit() -> None:
    plot = ranks_plot(gpu_scan(), Pictures(ranks=tuple(share(rank, 500) for rank in range(128))))
    assert plot is not None
    assert len(plot.json) < 80_000


def test_one_rank_has_no_picture() -> None:
    assert ranks_plot(gpu_scan(), Pictures(ranks=(share(0, 1),))) is None
    assert ranks_plot(gpu_scan(), None) is None
