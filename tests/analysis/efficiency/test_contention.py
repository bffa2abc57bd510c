"""The same kernels alone and beside collectives or copies."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from profharness.analysis.efficiency.contention import Company, Medians, company
from tests.analysis.efficiency.device_work import MI300X, DeviceWork, found_in, measured

ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>"
GEMM = "Cijk_Alik_Bljk_BBS_MT128x128x64_MI16x16x1"


def sides(
    alone,
    beside,
    name=ADD,
    *,
    by="collective",
    share=1.0,
    workgroups=(64, 64),
    rows=(64, 64),
    crowd=0,
):
    """Kernels of these lengths in ns: first alone, then each beside a collective (or copy) for
    a share of its time; `crowd` ns of another compute kernel beside each. Their workgroups and the
    rows of their operator's tensors (None: without an operator) are those alone and those beside.
    """
    made = DeviceWork(MI300X)
    for number, length in enumerate((*alone, *beside)):
        side = int(number >= len(alone))
        tensor = ("float", [rows[side], 256]) if rows else None
        op = made.op("aten::add", tensor, tensor) if rows else -1
        start = made.at + 100
        end = start + round(share * length)
        if side and by == "collective":
            made.scene.kernel(start, end, name="ncclDevKernel_AllReduce", stream=1)
        elif side:
            made.scene.copy(start, end, stream=1)
        if crowd:
            made.scene.kernel(start, start + crowd, name="other", stream=2)
        made.kernel(name, length, op, workgroups=workgroups[side], pause=100)
    return made.build()


def spread(median, count=21):
    """Lengths around a median."""
    return [median + 10 * (number - count // 2) for number in range(count)]


@pytest.mark.parametrize("by", ["collective", "copy"])
def test_kernels_that_take_longer_in_company(by):
    (found,) = found_in(sides(spread(2000), spread(3000), by=by), "contention")
    figures = found.figures
    assert found.severity == "info"
    assert figures["ratio"] == pytest.approx(1.5)
    assert figures["ratio_low"] < 1.5 < figures["ratio_high"] < figures["ratio_low"] + 0.1
    assert (figures["kinds"], figures["beside"], figures["alone"]) == (1, 21, 21)
    assert figures["lost_ns"] == 21_000
    assert figures["lost_share"] == pytest.approx(1 / 5)
    assert "median 3.000 µs beside (21), 2.000 µs alone (21)" in found.message


@pytest.mark.parametrize(
    "trace",
    [
        sides(spread(2000), spread(2000)),
        sides(spread(3000), spread(2000)),
        sides(spread(2000), spread(2050)),
        sides([2000] * 21, [2010] * 21),
        sides(spread(2000), spread(3000), share=0.45),
        sides(spread(2000, 9), spread(3000)),
        sides(spread(2000), spread(3000, 9)),
        sides([1700, 2300] * 11, spread(4000)),
        sides(spread(2000), spread(3000), rows=(64, 96)),
        sides(spread(2000), spread(3000), rows=None, workgroups=(64, 96)),
        sides(spread(2000), spread(3000), workgroups=(-1, -1)),
        sides(spread(2000), spread(3000), crowd=500),
        sides(spread(2000), spread(3000), GEMM, rows=None),
    ],
    ids=[
        "the same",
        "shorter",
        "by chance",
        "by too little",
        "beside for less than half of the time",
        "few alone",
        "few beside",
        "times alone that scatter",
        "other shapes",
        "other workgroups",
        "no geometry",
        "beside other kernels",
        "a product of unknown extents",
    ],
)
def test_what_cannot_be_compared_or_does_not_differ_is_no_finding(trace):
    assert found_in(trace, "contention") == []


def test_half_of_the_time_beside_a_collective_is_enough():
    (found,) = found_in(sides(spread(2000), spread(3000), share=0.55), "contention")
    assert found.figures["beside"] == 21


def test_elementwise_kernels_of_as_many_workgroups_are_compared():
    (found,) = found_in(sides(spread(2000), spread(3000), rows=None), "contention")
    assert found.figures["ratio"] == pytest.approx(1.5)


def test_a_product_with_shapes_is_compared():
    (found,) = found_in(sides(spread(2000), spread(2200), GEMM), "contention")
    assert found.figures["ratio"] == pytest.approx(1.1)


def test_groups_weigh_as_many_times_as_they_ran_in_company():
    count, none = np.array([10, 30]), np.zeros(2)
    beside, alone = (
        Medians(count, times, times, times, none)
        for times in (np.array([300.0, 100.0]), np.array([100.0, 100.0]))
    )
    assert Company(np.arange(2), beside, alone).ratio == (1.5, 1.5, 1.5)


@pytest.mark.parametrize(
    ("count", "low", "high"), [(10, 2, 10), (11, 3, 10), (25, 8, 19), (60, 23, 39), (100, 41, 61)]
)
def test_medians_have_intervals_by_ranks(count, low, high):
    """The true median lies between two ranks as often as a fair coin falls that many times."""
    times = [2000 + 7 * rank for rank in range(1, count + 1)]
    shuffled = np.random.default_rng(5).permutation(times).tolist()
    groups = company(measured(sides(shuffled, [time + 1000 for time in shuffled])))
    assert groups is not None
    for side, more in ((groups.alone, 0), (groups.beside, 1000)):
        assert side.count.tolist() == [count]
        assert side.median.tolist() == [np.median(times) + more]
        assert side.low.tolist() == [2000 + 7 * low + more]
        assert side.high.tolist() == [2000 + 7 * high + more]
    assert sum(comb(count, heads) for heads in range(low, high)) / 2**count >= 0.95


def test_the_interval_covers_the_true_ratio():
    """Of 200 traces whose kernels take 1.2 times as long in company, the 95 % interval misses at
    most 19: chance alone gives more once in 250 times.
    """
    missed = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        made = [rng.normal(mean, 0.05 * mean, 25).astype(int).tolist() for mean in (10_000, 12_000)]
        groups = company(measured(sides(*made)))
        assert groups is not None
        _, low, high = groups.ratio
        missed += not low <= 1.2 <= high
    assert missed <= 19
