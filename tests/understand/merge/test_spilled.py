"""Traces set aside: what is kept, in which order, and what must be taken up together."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from profharness.trace.model import (
    ClockDomain,
    Counters,
    Device,
    Kernels,
    Source,
    Stream,
    Strings,
    Trace,
)
from profharness.trace.parts.cutting import Cut
from profharness.understand.merge.spilled import in_order, linked_groups, spill
from profharness.writers import columns

NONE = Trace((), Strings())


def two_ranks() -> Trace:
    """Ranks 0 and 1 in one file, six kernels in no order on two devices, a counter on the last."""
    sources = tuple(
        Source("f", "rocpd", ClockDomain.BOOTTIME, host="n0", rank=rank, pid=10 + rank)
        for rank in range(2)
    )
    kernels = Kernels.build(
        start_ns=[50, 10, 30, 20, 60, 40],
        dur_ns=1,
        name=0,
        device=[1, 0, 1, 0, 0, 1],
        stream=[1, 0, 1, 0, 0, 1],
        source=[0, 0, 1, 1, 0, 1],
        pid=-1,
    )
    return Trace(
        sources,
        Strings(("k", "C")),
        (Device("0", "n0"), Device("1", "n0")),
        (Stream(0, "0"), Stream(1, "0")),
        kernels=kernels,
        counters=Counters.build(kernel=[5], name=1, value=7.0, source=1),
    )


def test_rows_come_by_device_and_time_and_counters_follow():
    trace = in_order(two_ranks())
    assert trace.kernels.device.tolist() == [0, 0, 0, 1, 1, 1]
    assert trace.kernels.start_ns.tolist() == [10, 20, 60, 30, 40, 50]
    assert trace.kernels.start_ns[trace.counters.kernel].tolist() == [40]


def test_a_file_of_several_ranks_gives_those_that_are_wanted(tmp_path):
    part = spill(two_ranks(), tmp_path / "p", Cut(ranks=frozenset({1})))
    assert part.dropped == Counter({"kernels": 3})
    assert [source.rank for source in part.sketch.sources] == [1]
    back = columns.read(part.folder, part.sketch)
    assert (back.kernels.start_ns.tolist(), part.first_ns) == ([20, 30, 40], 20)
    assert spill(two_ranks(), tmp_path / "q", Cut(ranks=frozenset({0, 1}))).dropped == Counter()


def test_sources_of_which_one_has_the_calls_of_the_other_are_linked(tmp_path):
    device = spill(two_ranks(), tmp_path / "p", Cut())
    assert {link[0] for link in device.links} == {"launches"}
    named = replace(
        two_ranks(),
        sources=tuple(replace(source, pass_name="rocprofv3") for source in two_ranks().sources),
    )
    links = spill(named, tmp_path / "q", Cut()).links
    assert ("points", "n0", "rocprofv3", 10) in links
    assert ("process", "n0", "rocprofv3", 1, 11) in links


@given(st.lists(st.sets(st.integers(0, 12), max_size=3), max_size=25))
def test_groups_are_the_connected_components(links):
    groups = linked_groups([frozenset((link,) for link in own) for own in links])
    assert sorted(position for group in groups for position in group) == list(range(len(links)))
    assert [group[0] for group in groups] == sorted(group[0] for group in groups)
    assert all(group == sorted(group) for group in groups)
    shared = [set().union(*(links[position] for position in group)) for group in groups]
    for number, one in enumerate(shared):  # nothing is shared between groups
        assert not any(one & other for other in shared[number + 1 :])
    for group in groups:  # and no group could be split
        reached, open_ = {group[0]}, [group[0]]
        while open_:
            at = open_.pop()
            new = {
                position
                for position in group
                if position not in reached and links[position] & links[at]
            }
            reached |= new
            open_ += new
        assert reached == set(group)


def test_in_order_keeps_every_row():
    random = np.random.default_rng(1)
    kernels = Kernels.build(
        start_ns=random.integers(0, 50, 500),
        dur_ns=random.integers(0, 9, 500),
        device=random.integers(0, 4, 500),
        correlation=np.arange(500),
    )
    trace = in_order(replace(NONE, kernels=kernels))
    assert sorted(trace.kernels.correlation.tolist()) == list(range(500))
    keys = list(zip(trace.kernels.device.tolist(), trace.kernels.start_ns.tolist(), strict=True))
    assert keys == sorted(keys)
