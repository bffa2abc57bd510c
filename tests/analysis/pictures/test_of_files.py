"""The pictures of several files against those of each: same sums, other places."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.pictures.flame import ROOT, FrameKind, Tree
from profharness.analysis.pictures.flame_layout import OTHERS, flame_of, joined
from profharness.analysis.pictures.of_files import (
    MOST_FRAMES,
    FilePictures,
    of_files,
    pieces_of_one,
)
from profharness.analysis.pictures.records import Flame, Pictures, Strip, Strips
from profharness.analysis.time.strips import ALL_PIECES, MOST_DEVICES

Path = tuple[str, ...]
PATHS = st.dictionaries(
    st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(tuple),
    st.integers(10**6, 2 * 10**6),
    min_size=1,
    max_size=12,
)


def tree_of(times: dict[Path, int], *, of_device: bool = True) -> Tree:
    tree = Tree(of_device)
    for path, ns in times.items():
        holder = ROOT
        for place, name in enumerate(path):
            kind: FrameKind = "kernel" if place + 1 == len(path) else "op"
            holder = tree.frame(holder, name, kind)
        tree.own_ns[holder] += ns
    return tree


def inclusive(flame: Flame | None) -> dict[tuple[tuple[str, str], ...], int]:
    """The time of each frame by its path of names and kinds, from the places of the picture."""
    assert flame is not None
    frames = list(zip(flame.depth, flame.at, flame.length, flame.name, flame.kind, strict=True))
    found: dict[tuple[tuple[str, str], ...], int] = {}
    for depth, at, length, *_ in frames:
        path = tuple(
            (flame.names[name], flame.kinds[kind])
            for deep, start, width, name, kind in sorted(frames)
            if deep <= depth and start <= at and at + length <= start + width
        )
        found[path] = found.get(path, 0) + length
    return found


@given(st.lists(PATHS, min_size=1, max_size=4))
def test_the_joined_flame_graph_is_that_of_all_trees_together(files: list[dict[Path, int]]) -> None:
    everything = Tree(True)
    for times in files:
        everything.add(tree_of(times))
    # the times are of one order, so that no frame is too short to be drawn by itself
    flames = [flame for times in files if (flame := flame_of(tree_of(times), "op")) is not None]
    together, whole = joined(flames), flame_of(everything, "op")
    assert together is not None
    assert whole is not None
    assert together.total_ns == whole.total_ns == sum(sum(times.values()) for times in files)
    assert inclusive(together) == inclusive(whole)


def test_what_is_too_short_in_a_file_stays_among_the_others() -> None:
    times: dict[Path, int] = {("a",): 10**6, ("b", "b"): 10, ("b", "c"): 20}
    flame = flame_of(tree_of(times), "op")
    assert flame is not None
    assert [flame.kinds[kind] for kind in flame.kind].count(OTHERS) == 1
    both = inclusive(joined([flame, flame]))
    assert sorted(both.values()) == [60, 2 * 10**6]
    assert sum(path[-1] == (OTHERS, OTHERS) for path in both) == 1


def test_the_hosts_time_is_not_added_to_that_of_devices() -> None:
    device = flame_of(tree_of({("a",): 5}), "op")
    host = flame_of(tree_of({("a",): 7}, of_device=False), "op")
    assert device is not None
    assert host is not None
    assert joined([host, device]) == device
    assert joined([host]) == host
    assert joined([]) is None


def strip(device: str, start: int, end: int) -> Strip:
    return Strip(
        device=device,
        start_ns=start,
        end_ns=end,
        window_ns=end - start,
        thinned=False,
        kind=(0,),
        at=(3,),
        width=(4,),
        before=(0,),
        ns=(4,),
    )


def test_each_strip_begins_with_its_window_and_names_its_file() -> None:
    many = [
        FilePictures(
            f"rank {number}",
            Pictures(strips=Strips(strips=(strip("0", 1000 * number, 1000 * number + 50),))),
        )
        for number in range(MOST_DEVICES + 3)
    ]
    strips = of_files(many).strips
    assert strips.own_clocks
    assert strips.left_out == 3
    assert [one.device for one in strips.strips] == [f"0 of rank {n}" for n in range(MOST_DEVICES)]
    assert {(one.start_ns, one.end_ns, one.at) for one in strips.strips} == {(0, 50, (3,))}


@pytest.mark.parametrize("files", [1, 2, 7, 16, 128])
def test_the_pieces_of_all_files_fit_on_a_page(files: int) -> None:
    assert pieces_of_one(files) * min(files, MOST_DEVICES) <= ALL_PIECES
    assert MOST_FRAMES > 0


def test_devices_that_stand_out_are_drawn_where_not_all_fit() -> None:
    strip = Strip(
        device="0", start_ns=0, end_ns=9, window_ns=9, thinned=False,
        kind=(0,), at=(0,), width=(9,), before=(0,), ns=(9,),
    )  # fmt: skip
    files = [
        FilePictures(f"rank {at}", Pictures(strips=Strips(strips=(strip,))))
        for at in range(MOST_DEVICES + 3)
    ]
    last, few = f"rank {MOST_DEVICES + 2}", files[:4]
    drawn = of_files(files, (last, "rank 5")).strips
    names = [one.device for one in drawn.strips]
    assert names[:3] == [f"0 of {last}", "0 of rank 5", "0 of rank 0"]
    assert (len(names), drawn.left_out) == (MOST_DEVICES, 3)
    in_order = [one.device for one in of_files(few, ("rank 3",)).strips.strips]
    assert in_order == [f"0 of rank {at}" for at in range(4)], "all fit: nothing is moved"
