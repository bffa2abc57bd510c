"""Groups of ranks, on figures whose groups are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.communication.groups import rank_groups
from profharness.analysis.communication.records import Communication, RankCell, RankCells
from profharness.report.pictures.rank_heat import rank_heat_plot
from profharness.report.tables import communication as shown
from profharness.report.text.measured import rank_groups as words


def ranks_of(compute, late=None):
    late = np.zeros(len(compute)) if late is None else late
    return tuple(
        RankCells(
            rank=f"rank {rank}",
            cells=(
                RankCell(of="device", name="compute", value=float(share)),
                RankCell(of="arrival", name="behind", value=float(ns), is_share=False),
            ),
        )
        for rank, (share, ns) in enumerate(zip(compute, late, strict=True))
    )


def job(count=128):
    """One rank that computes more, eight that come late, and the others."""
    dice = np.random.default_rng(3)
    compute = 0.5 + dice.uniform(-0.01, 0.01, count)
    late = dice.uniform(0, 5_000, count)
    compute[77] = 0.8
    late[24:32] += 190_000
    return ranks_of(compute, late)


def test_outliers_come_first_and_the_largest_group_last():
    groups = rank_groups(job())
    assert [words.names(group.ranks) for group in groups] == [
        "8 ranks (24-31)",  # 190 us late, of which 20 us count
        "rank 77",  # 30 % more, of which 5 % count
        "119 ranks (0-23, 32-76, 78-127)",
    ]
    most = {len(group.ranks): group.differs[0].name for group in groups[:-1]}
    assert most == {1: "compute", 8: "behind"}
    assert groups[-1].differs == ()


def test_ranks_that_only_scatter_are_one_group():
    dice = np.random.default_rng(5)
    groups = rank_groups(ranks_of(0.5 + dice.uniform(-0.02, 0.02, 128)))
    assert [len(group.ranks) for group in groups] == [128]
    assert list(words.lines(groups)) == []


@given(st.lists(st.floats(0, 1), min_size=3, max_size=40))
def test_every_rank_is_in_one_group(compute):
    groups = rank_groups(ranks_of(compute))
    named = [rank for group in groups for rank in group.ranks]
    assert sorted(named) == sorted(f"rank {rank}" for rank in range(len(compute)))


def test_a_figure_that_few_ranks_have_tells_them_apart():
    plain = ranks_of(np.full(6, 0.5))
    more = RankCell(of="range", name="load", value=0.3)
    ranks = (*plain[:5], RankCells(rank="rank 5", cells=(*plain[5].cells, more)))
    groups = rank_groups(ranks)
    assert groups[0].ranks == ("rank 5",)
    assert "figures that others do not have" in list(words.lines(groups))[1]


def test_what_is_printed_does_not_grow_with_the_ranks():
    dice = np.random.default_rng(9)
    few, many = (
        list(words.lines(rank_groups(ranks_of(dice.integers(0, 13, count) / 13))))
        for count in (16, 1024)
    )
    assert 0 < len(few) <= 12
    assert len(many) <= 12
    assert max(map(len, many)) < 250


def test_the_heat_map_has_outliers_on_top_and_one_row_for_all_others():
    ranks = job()
    talk = Communication(devices=(), collectives=(), ranks=ranks, groups=rank_groups(ranks))
    plot = rank_heat_plot(talk)
    assert plot is not None
    option = json.loads(plot.json)
    names = option["yAxis"]["data"]
    assert set(names[:9]) == {"77", *map(str, range(24, 32))}
    assert names[9:] == ["119 ranks (0-23, 32-76, 78-127)"]
    top = {tuple(cell["value"][:2]): cell for cell in option["series"][0]["data"]}
    row = names.index("77")
    assert top[0, row]["value"][2] > 3
    assert "compute: 80.0 %" in top[0, row]["told"]
    assert len(plot.json) < 40_000


def test_few_ranks_have_a_row_each_and_two_have_no_picture():
    ranks = ranks_of(np.full(8, 0.5))
    talk = Communication(devices=(), collectives=(), ranks=ranks, groups=rank_groups(ranks))
    assert len(json.loads(rank_heat_plot(talk).json)["yAxis"]["data"]) == 8
    two = Communication(devices=(), collectives=(), ranks=ranks[:2], groups=rank_groups(ranks[:2]))
    assert rank_heat_plot(two) is None


def test_the_page_has_the_groups_as_a_table():
    ranks = job()
    talk = Communication(devices=(), collectives=(), ranks=ranks, groups=rank_groups(ranks))
    (table,) = shown.tables(talk)
    assert table.title == "Groups of ranks"
    assert len(table.rows) == 3


@pytest.mark.parametrize(
    ("ranks", "told"),
    [
        (("rank 7",), "rank 7"),
        (("rank 0", "rank 1", "rank 4"), "3 ranks (0-1, 4)"),
        (tuple(f"rank {n}" for n in range(0, 40, 2)), "20 ranks (0, 2, 4, 6, ...)"),
        (("a", "b"), "2 ranks (a, b)"),
    ],
)
def test_names(ranks, told):
    assert words.names(ranks) == told
