from __future__ import annotations

from profharness.analysis.pictures.ranks import rank_shares, shares_of_files
from profharness.analysis.records import Partition, Summary, TraceCounts
from profharness.analysis.time.windows import Windows
from profharness.stats import intervals
from profharness.trace.model import Device
from tests.analysis.scene import Scene


def test_each_device_has_the_parts_of_its_window() -> None:
    scene = Scene(devices=(Device("0", rank=0), Device("1", rank=1)))
    scene.kernel(0, 60, device=0)
    scene.kernel(60, 70, name="ncclKernel_AllReduce", device=0)
    scene.kernel(0, 30, device=1)
    scene.copy(30, 35, device=1)
    first, second = rank_shares(scene.build(), Windows(intervals.window(0, 100), ""))
    assert (first.rank, first.compute_ns, first.exposed_communication_ns, first.idle_ns) == (
        0,
        60,
        10,
        30,
    )
    assert (second.rank, second.compute_ns, second.exposed_copy_ns, second.idle_ns) == (
        1,
        30,
        5,
        65,
    )
    for row in (first, second):
        parts = row.compute_ns + row.exposed_communication_ns + row.exposed_copy_ns + row.idle_ns
        assert parts == row.window_ns == 100


def test_one_device_is_nothing_to_compare() -> None:
    scene = Scene()
    scene.kernel(0, 10)
    assert rank_shares(scene.build(), Windows(intervals.window(0, 10), "")) == ()


def of_file(name: str, compute: int) -> Summary:
    split = Partition(
        window_ns=100,
        compute_ns=compute,
        exposed_communication_ns=0,
        exposed_copy_ns=0,
        idle_ns=100 - compute,
    )
    return Summary(source=f"folder/{name}", trace=TraceCounts(), partition=split)


def test_files_are_ranks_where_they_say_so() -> None:
    rows = shares_of_files(
        [
            (of_file("a.json", 40), frozenset({3})),
            (of_file("b.json", 50), frozenset({None})),
            (of_file("c.json", 60), frozenset({4, 5})),
            (Summary(source="d.json", trace=TraceCounts()), frozenset({6})),
        ]
    )
    assert [(row.device, row.rank, row.compute_ns) for row in rows] == [
        ("a.json", 3, 40),
        ("b.json", None, 50),
        ("c.json", None, 60),
    ]
    assert shares_of_files([(of_file("a.json", 40), frozenset({3}))]) == ()
