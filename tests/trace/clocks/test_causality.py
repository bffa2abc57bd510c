from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.trace.clocks.causality import causal_interval, causal_intervals, causality_findings
from profharness.trace.columns.table import NULL
from profharness.trace.launches import launching_calls
from profharness.trace.merge import merge
from profharness.trace.model import Api, Copies, Device, Kernels, Source, Stream, Strings, Trace
from tests.steps import calls_of

LAUNCH, DEVICE_SYNC, STREAM_SYNC, EVENT_SYNC = range(4)
CALLS = ("hipLaunchKernel", "hipDeviceSynchronize", "hipStreamSynchronize", "hipEventSynchronize")


def _trace(
    kernels: list[tuple[int, int, int]],
    calls: list[tuple[int, int, int, int]],
    *,
    pid: int = 1,
    streams: tuple[int, ...] = (),
    devices: tuple[int, ...] = (),
    copies: Copies | None = None,
) -> Trace:
    """Kernels (start, end, correlation) and calls (name, start, end, correlation) of one
    process.
    """
    start, end, correlation = np.array(kernels, np.int64).reshape(-1, 3).T
    name, call_start, call_end, call_correlation = np.array(calls, np.int64).reshape(-1, 4).T
    return Trace(
        (Source("f.json", "kineto"),),
        Strings(CALLS),
        tuple(Device(str(i)) for i in range(3)),
        tuple(Stream(0, str(i)) for i in range(3)),
        kernels=Kernels.build(
            len(start),
            start_ns=start,
            dur_ns=end - start,
            correlation=correlation,
            pid=pid,
            source=0,
            device=devices or 0,
            stream=streams or 0,
        ),
        api=Api.build(
            len(name),
            name=name,
            start_ns=call_start,
            dur_ns=call_end - call_start,
            correlation=call_correlation,
            pid=pid,
            source=0,
        ),
        copies=copies or Copies.empty(),
    )


def test_a_kernel_lies_between_its_launch_and_the_synchronisation_that_follows() -> None:
    interval = causal_interval(
        _trace([(1_500, 4_001, 7)], [(LAUNCH, 1_000, 1_100, 7), (DEVICE_SYNC, 1_200, 5_000, 8)]), 0
    )
    assert interval is not None
    assert (interval.low_ns, interval.high_ns, interval.launches, interval.synchronised) == (
        -500,
        999,
        1,
        1,
    )
    assert interval.excess_ns == 0


def test_a_kernel_that_ends_after_the_return_needs_a_shift_back() -> None:
    trace = _trace([(1_500, 5_301, 7)], [(LAUNCH, 1_000, 1_100, 7), (DEVICE_SYNC, 1_200, 5_000, 8)])
    (found,) = causality_findings(trace)
    assert found.id == "clock-causality"
    assert found.figures == {"excess_ns": -301, "launches": 1, "synchronised": 1}
    assert "ends 301 ns after the return" in found.message


def test_a_kernel_before_its_launch_needs_a_shift_on() -> None:
    (found,) = causality_findings(_trace([(701, 900, 7)], [(LAUNCH, 1_000, 1_100, 7)]))
    assert found.figures["excess_ns"] == 299
    assert "starts 299 ns before the call" in found.message


def test_no_shift_repairs_a_device_clock_that_drifts() -> None:
    trace = _trace(
        [(701, 900, 7), (2_001, 9_000, 9)],
        [(LAUNCH, 1_000, 1_100, 7), (LAUNCH, 1_900, 1_950, 9), (DEVICE_SYNC, 2_000, 8_000, 8)],
    )
    interval = causal_interval(trace, 0)
    assert interval is not None
    assert interval.is_empty
    (found,) = causality_findings(trace)
    assert "no shift of the device's times" in found.message
    assert found.figures["excess_ns"] == 299 + 1000


@pytest.mark.parametrize(
    ("change", "high"),
    [
        ({}, 400),
        ({"streams": (0, 1)}, None),
        ({"devices": (0, 1)}, None),
        ({"copies": Copies.build(1, start_ns=0, dur_ns=1, device=0, stream=2, source=0)}, None),
    ],
)
def test_a_stream_synchronisation_counts_where_it_can_mean_one_stream_only(
    change: dict[str, object], high: int | None
) -> None:
    kernels, calls = (
        [(1_501, 1_600, 7), (1_601, 1_700, 8)],
        [(LAUNCH, 1_000, 1_010, 7), (LAUNCH, 1_020, 1_030, 8), (STREAM_SYNC, 1_100, 2_100, 9)],
    )
    interval = causal_interval(_trace(kernels, calls, **change), 0)  # type: ignore[arg-type]  # columns
    assert interval is not None
    assert interval.high_ns == high


def test_a_device_synchronisation_covers_all_streams_but_not_several_devices() -> None:
    kernels, calls = (
        [(1_501, 1_600, 7), (1_601, 1_700, 8)],
        [(LAUNCH, 1_000, 1_010, 7), (LAUNCH, 1_020, 1_030, 8), (DEVICE_SYNC, 1_100, 2_100, 9)],
    )
    both = causal_interval(_trace(kernels, calls, streams=(0, 1)), 0)
    apart = causal_interval(_trace(kernels, calls, devices=(0, 1)), 0)
    assert both is not None
    assert apart is not None
    assert (both.high_ns, apart.high_ns) == (400, None)


def test_what_was_launched_during_or_after_the_synchronisation_is_not_bounded_by_it() -> None:
    calls = [
        (LAUNCH, 1_000, 1_300, 7),
        (DEVICE_SYNC, 1_200, 1_400, 8),
        (EVENT_SYNC, 1_350, 1_500, 10),
        (LAUNCH, 1_500, 1_510, 9),
    ]
    interval = causal_interval(_trace([(1_501, 9_000, 7), (9_001, 9_900, 9)], calls), 0)
    assert interval is not None
    assert interval.high_ns is None
    assert interval.excess_ns == 0


def test_other_processes_synchronise_for_themselves() -> None:
    own = _trace([(1_501, 9_000, 7)], [(LAUNCH, 1_000, 1_010, 7)])
    other = _trace(
        [(1_501, 1_600, 7)], [(LAUNCH, 1_000, 1_010, 7), (DEVICE_SYNC, 1_200, 1_900, 8)], pid=2
    )
    found = causal_intervals(merge([own, other]))
    assert {key: interval.high_ns for key, interval in found.items()} == {(0, 0): None, (1, 3): 300}


def test_without_linked_kernels_nothing_is_said() -> None:
    assert causal_interval(_trace([(5, 6, NULL)], [(LAUNCH, 1, 2, NULL)]), 0) is None
    assert causal_interval(_trace([(5, 6, 3)], [(LAUNCH, 1, 2, 4)]), 0) is None
    assert causal_intervals(_trace([], [])) == {}


def test_whole_microseconds_may_be_two_off() -> None:
    calls = [(LAUNCH, 1_000, 2_000, 7), (DEVICE_SYNC, 3_000, 9_000, 8)]
    assert causality_findings(_trace([(4_000, 11_000, 7)], calls)) == ()
    assert len(causality_findings(_trace([(4_000, 12_000, 7)], calls))) == 1
    assert len(causality_findings(_trace([(4_001, 11_000, 7)], calls))) == 1


@given(
    st.integers(-3_000, 3_000),
    st.lists(
        st.tuples(st.integers(1, 50), st.integers(0, 200), st.integers(0, 300)),
        min_size=1,
        max_size=15,
    ),
)
def test_the_repairing_shift_lies_in_the_interval(
    error: int, work: list[tuple[int, int, int]]
) -> None:
    """A device that runs kernels in order, with a clock that is `error` ahead: -error must be
    allowed, for any timing. All begins so late that no time is -1, which means none.
    """
    host = device_free = 10_000
    kernels, calls = [], []
    for i, (call, delay, length) in enumerate(work):
        calls.append((LAUNCH, host, host + call, i))
        start = max(device_free, host + delay)
        device_free = start + length
        kernels.append((start + error, device_free + error, i))
        host += call
        if i % 4 == 3:
            done = max(host, device_free) + 1
            calls.append((DEVICE_SYNC, host, done, 1_000 + i))
            host = done
    calls.append((STREAM_SYNC, host, max(host, device_free) + 1, 5_000))
    interval = causal_interval(_trace(kernels, calls), 0)
    assert interval is not None
    assert interval.low_ns is not None
    assert interval.high_ns is not None
    assert interval.low_ns <= -error <= interval.high_ns
    assert interval.synchronised == len(work)
    assert abs(interval.excess_ns) <= abs(error)


def test_launches_are_joined_by_id_within_process_and_source_the_earliest_first() -> None:
    strings = Strings(["f"])
    trace = Trace(
        (Source("a", "x", pid=1, host="h"), Source("b", "x")),
        strings,
        kernels=Kernels.build(
            6,
            start_ns=0,
            source=[0, 0, 0, 1, 0, 1],
            pid=[1, 2, 1, 1, 1, 1],
            correlation=[5, 5, 6, 5, NULL, 6],
        ),
        api=Api.build(
            5,
            start_ns=[30, 20, 10, 9, 8],
            source=[0, 0, 0, 0, 1],
            pid=[1, 1, 2, 1, 1],
            correlation=[5, 5, 5, NULL, 6],
        ),
    )
    assert launching_calls(trace).tolist() == [1, 2, NULL, NULL, NULL, 4]


def test_kernels_and_calls_in_two_files_of_one_process_are_joined() -> None:
    sources = (
        Source("kernel_trace.csv", "rocprofv3", pid=1, host="h"),
        Source("hip_api_trace.csv", "rocprofv3", pid=1, host="h"),
    )
    trace = Trace(
        sources,
        Strings(CALLS),
        (Device("0"),),
        (Stream(0, "0"),),
        kernels=Kernels.build(
            1, start_ns=10, dur_ns=100, source=0, pid=1, correlation=5, device=0, stream=0
        ),
        api=Api.build(
            2,
            name=[LAUNCH, DEVICE_SYNC],
            start_ns=[4, 6],
            dur_ns=[1, 60],
            source=1,
            pid=1,
            correlation=[5, 6],
        ),
    )
    assert launching_calls(trace).tolist() == [0]
    assert {key: (i.low_ns, i.high_ns) for key, i in causal_intervals(trace).items()} == {
        (0, 0): (-6, -44)
    }


@pytest.mark.parametrize(
    ("file", "excess_us"),
    [
        ("mi300x_qwen0.5b_prefill", -8.066),
        ("h100_qwen0.5b_prefill", 0),
        ("mi300x_bert_small", 0),
        ("v100_epoch_ns_timestamps", 0),
        ("a100_event_sync", 0),
    ],
)
def test_recorded_traces(shared: Path, file: str, excess_us: float) -> None:
    """On the MI300X one kernel ends 8.07 µs after the synchronisation that waited for it had
    returned.
    """
    from profharness.readers.kineto import reader as chrome_json

    trace = chrome_json.read(shared / "fixtures" / "kineto" / f"{file}.json.gz")
    (interval,) = causal_intervals(trace).values()
    assert interval.excess_ns / 1000 == excess_us
    assert len(causality_findings(trace)) == bool(excess_us)


def _of_processes(count: int) -> Trace:
    """As many processes as asked for, each with a launch, a kernel 10 ns later, and then a
    synchronisation that returns before the kernel ends in every second one.
    """
    at = np.arange(count) * 1_000
    return Trace(
        (Source("f.json", "kineto"),),
        Strings(CALLS),
        (Device("0"),),
        (Stream(0, "0"),),
        kernels=Kernels.build(
            count,
            start_ns=at + 10,
            dur_ns=50 + np.arange(count) % 2 * 30,
            correlation=np.arange(count),
            pid=np.arange(count),
            source=0,
            device=0,
            stream=0,
        ),
        api=Api.build(
            2 * count,
            name=np.tile([LAUNCH, DEVICE_SYNC], count),
            start_ns=np.repeat(at, 2) + np.tile([0, 20], count),
            dur_ns=np.tile([5, 60], count),
            correlation=np.stack((np.arange(count), np.arange(count) + 1_000_000), axis=1).ravel(),
            pid=np.repeat(np.arange(count), 2),
            source=0,
        ),
    )


def test_each_of_many_processes_waits_for_its_own_kernels_alone() -> None:
    interval = causal_intervals(_of_processes(6))[0, 0]
    assert (interval.low_ns, interval.high_ns) == (-10, 80 - 90)
    assert (interval.launches, interval.synchronised) == (6, 6)


def test_many_processes_are_looked_at_together() -> None:
    few, many = (_of_processes(count) for count in (10, 4_000))
    assert calls_of(lambda: causal_intervals(many)) < 2 * calls_of(lambda: causal_intervals(few))
