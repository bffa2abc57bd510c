from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness.trace.columns.table import NULL
from profharness.trace.merge import merge
from profharness.trace.model import Copies, Device, Kernels, Ops, Source, Stream, Strings, Trace
from profharness.trace.parts.select import by_point, by_source, window
from tests.trace.making import spelled, traces

FEW = settings(max_examples=40)  # each example is a whole trace


@pytest.mark.slow
@FEW
@given(st.lists(traces(), min_size=1, max_size=4))
def test_merging_keeps_every_record_and_what_it_refers_to(parts: list[Trace]) -> None:
    merged = merge(parts)
    whole = spelled(merged)
    for kind, rows in whole.items():
        assert Counter(rows) == sum((Counter(spelled(part)[kind]) for part in parts), Counter())
    assert len(merged.sources) == sum(len(part.sources) for part in parts)


@pytest.mark.slow
@FEW
@given(st.lists(traces(), min_size=1, max_size=3))
def test_merging_keeps_start_duration_and_name_of_every_event(parts: list[Trace]) -> None:
    def events(trace: Trace) -> Counter[tuple[str, int, int, str]]:
        return Counter(
            (kind, start, dur, name)
            for kind in ("kernels", "copies", "api", "ops", "marks")
            for table in (getattr(trace, kind),)
            for start, dur, name in zip(
                table.start_ns.tolist(),
                table.dur_ns.tolist(),
                trace.strings.decode(table.name),
                strict=True,
            )
        )

    assert events(merge(parts)) == sum((events(part) for part in parts), Counter())


@pytest.mark.slow
@FEW
@given(st.lists(traces(), min_size=2, max_size=3))
def test_merging_in_two_steps_says_the_same(parts: list[Trace]) -> None:
    assert spelled(merge([merge(parts[:1]), *parts[1:]])) == spelled(merge(parts))
    assert spelled(merge([merge(parts[:-1]), parts[-1]])) == spelled(merge(parts))


def _one(device: Device, stream: Stream, tool: str = "kineto") -> Trace:
    strings = Strings(["k"])
    return Trace(
        (Source("f", tool),),
        strings,
        (device,),
        (stream,),
        kernels=Kernels.build(1, start_ns=0, dur_ns=1, name=0, device=0, stream=0, source=0),
    )


def test_devices_of_one_identity_become_one_and_their_attributes_join() -> None:
    merged = merge(
        [
            _one(Device("0", "a", "pci1", rank=0), Stream(0, "0", 5)),
            _one(
                Device("1", "a", "pci1", name="MI300X", compute_units=304, rank=1),
                Stream(0, "0", 5),
            ),
        ]
    )
    assert merged.devices == (Device("0", "a", "pci1", "MI300X", "", 304, None),)
    assert merged.streams == (Stream(0, "0", 5),)
    assert merged.kernels.device.tolist() == [0, 0]


def test_devices_on_two_hosts_or_without_identity_stay_apart() -> None:
    hosts = merge(
        [
            _one(Device("0", "a", "pci1"), Stream(0, "0", 5)),
            _one(Device("0", "b", "pci1"), Stream(0, "0", 5)),
        ]
    )
    loose = merge(
        [_one(Device("0", "a"), Stream(0, "0", 5)), _one(Device("0", "a"), Stream(0, "0", 5))]
    )
    for merged in (hosts, loose):
        assert merged.kernels.device.tolist() == [0, 1]
        assert [stream.device for stream in merged.streams] == [0, 1]


def test_streams_are_joined_within_one_process_and_tool_only() -> None:
    device = Device("0", "a", "pci1")
    assert (
        len(merge([_one(device, Stream(0, "0", 5)), _one(device, Stream(0, "0", 6))]).streams) == 2
    )
    assert len(merge([_one(device, Stream(0, "0")), _one(device, Stream(0, "0"))]).streams) == 2
    assert (
        len(
            merge(
                [_one(device, Stream(0, "0", 5)), _one(device, Stream(0, "0", 5), "rocpd")]
            ).streams
        )
        == 2
    )


@pytest.mark.slow
@FEW
@given(traces(), st.data())
def test_a_source_and_the_rest_are_the_whole(trace: Trace, data: st.DataObject) -> None:
    mask = np.array(
        data.draw(
            st.lists(st.booleans(), min_size=len(trace.sources), max_size=len(trace.sources))
        ),
        bool,
    )
    part, rest = by_source(trace, mask), by_source(trace, ~mask)
    assert [s.path for s in part.sources] == [
        s.path for s, keep in zip(trace.sources, mask, strict=True) if keep
    ]
    whole = spelled(trace)
    for kind in ("copies", "api", "ops", "marks", "samples"):
        assert Counter(spelled(part)[kind]) + Counter(spelled(rest)[kind]) == Counter(whole[kind])
    for picked in (part, rest):
        kept = {row[0:2] for row in spelled(picked)["kernels"]}
        assert kept <= {row[0:2] for row in whole["kernels"]}
        assert not len(picked.kernels) or picked.kernels.op.max() < len(picked.ops)
        assert not len(picked.counters) or picked.counters.kernel.max() < len(picked.kernels)
    assert len(part.kernels) + len(rest.kernels) == len(trace.kernels)


@FEW
@given(traces())
def test_choosing_all_sources_changes_nothing(trace: Trace) -> None:
    part = by_source(trace, np.ones(len(trace.sources), bool))
    assert spelled(part) == spelled(trace)
    assert part.devices == trace.devices
    assert part.streams == trace.streams


def test_devices_of_the_other_sources_only_are_left_out() -> None:
    merged = merge([_one(Device("0", "a"), Stream(0, "7")), _one(Device("1", "a"), Stream(0, "8"))])
    part = by_source(merged, [False, True])
    assert part.devices == (Device("1", "a"),)
    assert part.streams == (Stream(0, "8"),)
    assert part.kernels.device.tolist() == [0]
    assert part.kernels.stream.tolist() == [0]


@pytest.mark.slow
@FEW
@given(traces(), st.lists(st.integers(0, 10_000), min_size=2, max_size=4).map(sorted))
def test_adjacent_windows_lose_and_share_nothing(trace: Trace, cuts: list[int]) -> None:
    edges = [-1, *cuts, 20_000]
    parts = [window(trace, start, end) for start, end in pairwise(edges)]
    for kind in ("kernels", "api", "ops", "marks", "samples"):
        assert sum(len(getattr(part, kind)) for part in parts) == len(getattr(trace, kind))


def test_a_window_keeps_references_right() -> None:
    strings = Strings(["a", "b"])
    trace = Trace(
        (Source("f", "x"),),
        strings,
        kernels=Kernels.build(3, start_ns=[5, 15, 16], op=[0, 1, 0], source=0),
        copies=Copies.build(4, start_ns=[6, 17, 18, 19], op=[0, 1, 0, NULL], source=0),
        ops=Ops.build(2, start_ns=[4, 14], name=[0, 1], source=0),
    )
    part = window(trace, 10, 20)
    assert part.kernels.op.tolist() == [0, NULL]
    assert part.copies.op.tolist() == [0, NULL, NULL]
    assert part.strings.decode(part.ops.name) == ["b"]


@FEW
@given(traces())
def test_points_are_picked_by_name(trace: Trace) -> None:
    part = by_point(trace, "b1")
    code = trace.strings.find("b1")
    for kind in ("kernels", "ops", "marks"):
        assert len(getattr(part, kind)) == int((getattr(trace, kind).point == code).sum())
    assert not any(len(table) for _, table in by_point(trace, "no such point").tables())


def _piece(pid: int = 7, rank: int | None = None, pass_name: str = "torch") -> Trace:
    """A file of a run's process, as torch's profiler names devices and streams: by number alone."""
    source = Source("f", "kineto", host="a", pid=pid, rank=rank, pass_name=pass_name)
    return replace(_one(Device("0", "a", rank=rank), Stream(0, "7")), sources=(source,))


def test_the_files_of_one_process_of_a_run_are_of_one_device() -> None:
    merged = merge([_piece(), _piece(), _piece()])
    assert merged.devices == (Device("0", "a"),)
    assert merged.streams == (Stream(0, "7"),)
    assert merged.kernels.device.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "other", [_piece(8), _piece(rank=1), _piece(pass_name="bare"), _piece(pass_name="")]
)
def test_files_of_other_processes_and_passes_are_of_other_devices(other: Trace) -> None:
    merged = merge([_piece(), other])
    assert len(merged.devices) == len(merged.streams) == 2


def test_devices_that_one_file_gives_the_same_number_stay_apart() -> None:
    double = replace(
        _piece(), devices=(Device("0", "a"),) * 2, streams=(Stream(0, "7"), Stream(1, "7"))
    )
    assert len(merge([double, double]).devices) == 4
