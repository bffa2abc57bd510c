from __future__ import annotations

from bisect import bisect_right

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.rundir import manifest
from profharness.trace.clocks import align as clocks
from profharness.trace.clocks.align import (
    Conversion,
    Snapshot,
    align,
    conversion,
    recorded_clock,
    unaligned,
)
from profharness.trace.clocks.checks import (
    RESOLUTION_NS,
    MarkerCheck,
    Measured,
    clock_findings,
    marker_check,
    residual_finding,
    with_marker_check,
)
from profharness.trace.columns.table import NULL
from profharness.trace.model import (
    ClockDomain,
    Device,
    Kernels,
    Ops,
    Requests,
    Samples,
    Source,
    Strings,
    Trace,
)

EPOCH = 1_795_000_000_000_000_000
SECOND = 1_000_000_000


def snapshot(
    boot: int, *, host: str = "a", real: int = EPOCH, raw: int = 0, slept: int = 0, width: int = 100
) -> Snapshot:
    """A reading at BOOTTIME `boot`; the others are offsets from it."""
    return Snapshot(host, "during", boot, boot - slept, boot + raw, boot + real, width)


@st.composite
def readings(draw: st.DrawFn) -> list[Snapshot]:
    """Rising readings whose raw clock drifts and jitters, up to a clock that runs at half or double
    speed.
    """
    count = draw(st.integers(1, 8))
    boot = draw(st.integers(0, 10**17))
    raw = draw(st.integers(-(10**12), 10**12))
    found = []
    for _ in range(count):
        found.append(snapshot(boot, raw=raw, width=draw(st.integers(0, 300))))
        step = draw(st.integers(2, 10**12))
        raw += (
            draw(st.one_of(st.integers(-200, 200), st.integers(-(step // 2), step)))
            if step > 1000
            else 0
        )
        boot += step
    return found


@given(readings(), st.lists(st.integers(-(10**13), 10**13), min_size=2, max_size=20))
def test_conversion_never_decreases_and_comes_back(
    read: list[Snapshot], offsets: list[int]
) -> None:
    there = conversion(read, ClockDomain.MONOTONIC_RAW, ClockDomain.BOOTTIME)
    back = conversion(read, ClockDomain.BOOTTIME, ClockDomain.MONOTONIC_RAW)
    times = np.sort(np.array([read[0].monotonic_raw_ns + offset for offset in offsets], np.int64))
    converted = there(times)
    assert (np.diff(converted) >= 0).all()
    # One ns of rounding each way; where the clock runs at twice the speed, 1 ns of one is 2 ns of
    # the other.
    assert np.abs(back(converted) - times).max() <= 3


@given(readings(), st.lists(st.integers(-(10**12), 10**13), min_size=1, max_size=20))
def test_conversion_is_exact(read: list[Snapshot], offsets: list[int]) -> None:
    """Against Python's unbounded integers."""
    step = conversion(read, ClockDomain.MONOTONIC_RAW, ClockDomain.BOOTTIME)
    knots, rises = step.knots_ns.tolist(), step.offsets_ns.tolist()
    for time, got in zip(
        [read[0].monotonic_raw_ns + o for o in offsets],
        step(np.array([read[0].monotonic_raw_ns + o for o in offsets], np.int64)).tolist(),
        strict=True,
    ):
        i = min(max(bisect_right(knots, time) - 1, 0), len(knots) - 1)
        if time <= knots[0] or i == len(knots) - 1:
            expected = rises[0] if time <= knots[0] else rises[-1]
        else:
            expected = rises[i] + (rises[i + 1] - rises[i]) * (time - knots[i]) // (
                knots[i + 1] - knots[i]
            )
        assert got == time + expected


@given(readings())
def test_conversion_meets_its_readings(read: list[Snapshot]) -> None:
    step = conversion(read, ClockDomain.MONOTONIC_RAW, ClockDomain.BOOTTIME)
    at = np.array([s.monotonic_raw_ns for s in read], np.int64)
    widths = np.array([s.width_ns for s in read])
    allowed = widths if len(step.knots_ns) == 1 else 0
    assert (np.abs(step(at) - np.array([s.boot_ns for s in read])) <= allowed).all()
    assert (step.outside_ns(at) == 0).all()
    assert step.outside_ns(np.array([at[0] - 5, at[-1] + 7])).tolist() == [5, 7]


def test_jitter_within_the_readings_widths_gives_one_offset() -> None:
    """Equal distances stay equal, so that nesting cannot break."""
    read = [snapshot(i * SECOND, real=EPOCH + jitter) for i, jitter in enumerate((0, 60, -70, 20))]
    step = conversion(read, ClockDomain.REALTIME, ClockDomain.BOOTTIME)
    assert len(step.knots_ns) == 1
    assert step(np.array([EPOCH + SECOND])).tolist() == [SECOND + 5]


def test_drift_is_followed_linearly() -> None:
    read = [snapshot(0), snapshot(10 * SECOND, raw=-650), snapshot(20 * SECOND, raw=-1300)]
    step = conversion(read, ClockDomain.MONOTONIC_RAW, ClockDomain.BOOTTIME)
    assert step(np.array([0, 5 * SECOND, 10 * SECOND - 650, 25 * SECOND])).tolist() == [
        0,
        5 * SECOND + 325,
        10 * SECOND,
        25 * SECOND + 1300,
    ]


def test_a_reading_after_the_wall_clock_was_set_back_is_left_out() -> None:
    read = [
        snapshot(0),
        snapshot(SECOND),
        snapshot(2 * SECOND, real=EPOCH - 5 * SECOND),
        snapshot(10 * SECOND, real=EPOCH - 5 * SECOND),
    ]
    step = conversion(read, ClockDomain.REALTIME, ClockDomain.BOOTTIME)
    assert EPOCH - 3 * SECOND not in step.knots_ns
    assert (np.diff(step(EPOCH + np.arange(0, 6 * SECOND, SECOND // 7))) >= 0).all()


def test_huge_jumps_do_not_overflow() -> None:
    read = [snapshot(0, real=0), snapshot(3600 * SECOND, real=EPOCH)]
    step = conversion(read, ClockDomain.REALTIME, ClockDomain.BOOTTIME)
    times = np.array([0, EPOCH // 2, EPOCH, EPOCH + 3600 * SECOND])
    assert step(times)[-1] == 3600 * SECOND
    expected = [int(t) - EPOCH * int(t) // (EPOCH + 3600 * SECOND) for t in times]
    assert (
        np.abs(step(times) - expected).max() <= 2
    )  # one rounding at the knots put in between, one after them


def _trace(clock: ClockDomain, start: int, host: str = "a", **source: object) -> Trace:
    return Trace(
        (Source("f", "kineto", clock, host, **source),),
        Strings(["k"]),  # type: ignore[arg-type]  # a list will do
        kernels=Kernels.build(2, start_ns=[start, start + 10], dur_ns=5, source=0),
    )


@pytest.mark.parametrize(
    ("clock", "start"),
    [
        (ClockDomain.REALTIME, EPOCH + 1500),
        (ClockDomain.MONOTONIC, 1500 - 300),
        (ClockDomain.MONOTONIC_RAW, 1500 + 77),
        (ClockDomain.BOOTTIME, 1500),
    ],
)
def test_every_clock_comes_to_boottime(clock: ClockDomain, start: int) -> None:
    read = {"a": [snapshot(1000, raw=77, slept=300), snapshot(2000, raw=77, slept=300)]}
    aligned = align(_trace(clock, start), read, "a")
    assert aligned.kernels.start_ns.tolist() == [1500, 1510]
    assert aligned.kernels.dur_ns.tolist() == [5, 5]
    source = aligned.sources[0]
    assert source.clock is ClockDomain.RUN
    assert recorded_clock(source) is clock
    assert (
        source.alignment
        == f"{clock.value} by one offset from 2 clock readings of at most 100 ns width"
    )
    again = align(aligned, read, "a")
    assert again.kernels.start_ns.tolist() == [1500, 1510]
    assert again.sources == aligned.sources


def test_times_outside_of_the_readings_are_flagged() -> None:
    aligned = align(
        _trace(ClockDomain.BOOTTIME, 5_000_000), {"a": [snapshot(1000), snapshot(2000)]}, "a"
    )
    assert (
        "times up to 4.998 ms outside of the readings take the nearest offset"
        in aligned.sources[0].alignment
    )


@pytest.mark.parametrize(
    ("trace", "why"),
    [
        (_trace(ClockDomain.UNKNOWN, 5), "does not say which clock"),
        (_trace(ClockDomain.REALTIME, 5, host=""), "on which host"),
        (_trace(ClockDomain.REALTIME, 5, host="b"), "no clock readings of host b"),
    ],
)
def test_what_cannot_be_aligned_stays_and_says_why(trace: Trace, why: str) -> None:
    aligned = align(trace, {"a": [snapshot(0)]}, "a")
    assert aligned.kernels.start_ns.tolist() == [5, 15]
    assert aligned.sources[0].alignment.startswith("not aligned: ")
    assert why in aligned.sources[0].alignment
    assert unaligned(aligned) == aligned.sources
    assert clock_findings(aligned, {}) == ()  # a single source needs no alignment


def test_another_host_comes_through_the_wall_clocks() -> None:
    read = {
        "a": [snapshot(1000, real=EPOCH)],
        "b": [snapshot(900_000, host="b", real=EPOCH - 899_000, slept=50)],
    }
    aligned = align(_trace(ClockDomain.MONOTONIC, 900_500 - 50, host="b"), read, "a")
    assert aligned.kernels.start_ns.tolist() == [1500, 1510]
    assert (
        "through the wall clocks of b and a, whose difference was not measured"
        in aligned.sources[0].alignment
    )


def test_all_tables_with_times_are_converted_and_absent_times_stay() -> None:
    trace = Trace(
        (Source("f", "x", ClockDomain.REALTIME, "a"), Source("g", "y", ClockDomain.BOOTTIME, "a")),
        Strings(["k"]),
        ops=Ops.build(2, start_ns=[EPOCH + 7, 9], source=[0, 1], dur_ns=3),
        samples=Samples.build(1, at_ns=EPOCH + 5, until_ns=EPOCH + 6, source=0),
        requests=Requests.build(
            1,
            intended_ns=NULL,
            sent_ns=EPOCH + 1,
            done_ns=EPOCH + 4,
            think_ns=8,
            server_queue_ns=2,
            source=0,
        ),
    )
    aligned = align(trace, {"a": [snapshot(0)]}, "a")
    assert aligned.ops.start_ns.tolist() == [7, 9]
    assert (aligned.samples.at_ns[0], aligned.samples.until_ns[0]) == (5, 6)
    requests = aligned.requests
    assert [
        int(c[0])
        for c in (
            requests.intended_ns,
            requests.sent_ns,
            requests.done_ns,
            requests.think_ns,
            requests.server_queue_ns,
        )
    ] == [NULL, 1, 4, 8, 2]
    assert set(clocks.TIME_COLUMNS) == {
        name for name, table in trace.tables() if hasattr(table, "source")
    } - {"counters"}


def test_the_manifests_records_serve_as_readings() -> None:
    record = manifest.ClockSnapshot(
        host="a",
        phase="before",
        boot_ns=1000,
        monotonic_ns=1000,
        monotonic_raw_ns=1000,
        realtime_ns=EPOCH,
        width_ns=80,
    )
    assert align(
        _trace(ClockDomain.REALTIME, EPOCH), {"a": [record]}, "a"
    ).kernels.start_ns.tolist() == [1000, 1010]


@given(
    st.integers(-5000, 5000),
    st.lists(
        st.tuples(st.integers(0, 300), st.integers(0, 300), st.integers(0, 300)),
        min_size=1,
        max_size=20,
    ),
)
def test_markers_enclose_the_true_error(error: int, brackets: list[tuple[int, int, int]]) -> None:
    """A span that truly starts `lead` after its bracket opens and ends `lag` before it closes is
    recorded `error` late.
    """
    before = np.arange(len(brackets), dtype=np.int64) * 10_000
    lead, length, lag = np.array(brackets, np.int64).T
    after = before + lead + length + lag
    check = marker_check(before + lead + error, before + lead + length + error, before, after)
    assert check is not None
    assert check.low_ns <= error <= check.high_ns
    assert check.bound_ns == int(lead.min() + lag.min())
    assert abs(check.residual_ns) <= abs(error)
    assert (check.residual_ns == 0) == (check.low_ns <= 0 <= check.high_ns)
    assert bool(residual_finding(Source("f", "x"), check)) == (
        abs(check.residual_ns) > RESOLUTION_NS
    )


def test_markers_that_contradict_one_another() -> None:
    check = marker_check(
        np.array([100, 9_000]),
        np.array([110, 9_010]),
        np.array([90, 14_500]),
        np.array([120, 14_600]),
    )
    assert check == MarkerCheck(-10, -5_500, 2)
    assert check.is_empty
    found = residual_finding(Source("f.json", "x"), check)
    assert found is not None
    assert found.id == "clock-residual"
    assert "2 markers disagree about its clock by 5.490 µs" in found.message
    empty = np.array([], np.int64)
    assert marker_check(empty, empty, empty, empty) is None
    with pytest.raises(ValueError, match="do not match"):
        marker_check(np.array([1]), empty, empty, empty)


def test_a_residual_is_recorded_and_found() -> None:
    check = MarkerCheck(2_500, 3_150, 20)
    trace = with_marker_check(_trace(ClockDomain.RUN, 5), 0, check)
    assert (trace.sources[0].residual_ns, trace.sources[0].bound_ns) == (2_500, 650)
    found = residual_finding(trace.sources[0], check)
    assert found is not None
    assert "off by at least 2.500 µs" in found.message
    assert found.figures == {"residual_ns": 2_500, "bound_ns": 650, "markers": 20}


def test_a_stepped_wall_clock_is_an_error_where_it_is_stamped() -> None:
    read = {"a": [snapshot(0), snapshot(SECOND, real=EPOCH + 100_001)]}
    (found,) = clock_findings(_trace(ClockDomain.REALTIME, EPOCH), read)
    assert (found.id, found.severity, found.figures["step_ns"]) == (
        "clock-stepped",
        "error",
        100_001,
    )
    (harmless,) = clock_findings(_trace(ClockDomain.BOOTTIME, 0), read)
    assert harmless.severity == "info"
    assert (
        clock_findings(
            _trace(ClockDomain.REALTIME, EPOCH),
            {"a": [snapshot(0), snapshot(SECOND, real=EPOCH + 99_000)]},
        )
        == ()
    )


def test_a_host_that_slept_matters_during_the_run_or_under_kineto_on_amd() -> None:
    slept = {"a": [snapshot(0, slept=0), snapshot(60 * SECOND, real=EPOCH, slept=30 * SECOND)]}
    found = {one.id for one in clock_findings(_trace(ClockDomain.BOOTTIME, 0), slept)}
    assert "suspended-host" in found
    before = {"a": [snapshot(0, slept=5 * SECOND), snapshot(SECOND, slept=5 * SECOND)]}
    assert clock_findings(_trace(ClockDomain.BOOTTIME, 0), before) == ()
    kernels = Kernels.build(1, start_ns=0, dur_ns=1, device=0, source=0)
    for vendor, expected in (("amd", ["suspended-host"]), ("nvidia", [])):
        trace = Trace(
            (Source("f", "kineto", ClockDomain.REALTIME, "a"),),
            Strings(),
            (Device("0", vendor=vendor),),
            kernels=kernels,
        )
        assert [one.id for one in clock_findings(trace, before)] == expected


def test_a_step_is_told_with_its_moment_and_sleep_is_none() -> None:
    read = [snapshot(at * SECOND, real=EPOCH - (at > 1) * 3600 * SECOND) for at in (2, 0, 1)]
    (found,) = clock_findings(_trace(ClockDomain.REALTIME, EPOCH), {"a": read})
    assert "back by 3\u2009600 s, 1.000 s to 2.000 s after its first reading" in found.message
    slept = [snapshot(0), snapshot(60 * SECOND, slept=59 * SECOND)]
    (asleep,) = clock_findings(_trace(ClockDomain.REALTIME, EPOCH), {"a": slept})
    assert asleep.id == "suspended-host"


def test_a_point_in_which_the_host_slept_has_a_finding_of_its_own() -> None:
    read = [snapshot(0), snapshot(SECOND), snapshot(62 * SECOND, slept=60 * SECOND)]
    points = [
        Measured("b1", "a", 0, SECOND - 1),
        Measured("b2", "a", SECOND + 5, SECOND + 6),
        Measured("b3", "other", SECOND + 5, SECOND + 6),
    ]
    found = clock_findings(_trace(ClockDomain.BOOTTIME, 0), {"a": read}, points)
    assert [(one.id, one.point) for one in found] == [
        ("suspended-host", None),
        ("suspended-host", "b2"),
    ]
    assert found[1].figures["slept_ns"] == 60 * SECOND


def test_sources_that_stay_apart_are_named() -> None:
    trace = Trace((Source("f", "x", ClockDomain.RUN, "a"), Source("g", "y", host="a")), Strings())
    (found,) = clock_findings(align(trace, {"a": [snapshot(0)]}, "a"), {})
    assert found.id == "clock-unaligned"
    assert found.message.startswith("g: not aligned: the file does not say which clock")


def test_a_source_that_is_aligned_is_not_named() -> None:
    trace = Trace(
        (Source("f", "x", ClockDomain.RUN, "a"), Source("g", "y", ClockDomain.BOOTTIME, host="a")),
        Strings(),
    )
    assert clock_findings(align(trace, {"a": [snapshot(0)]}, "a"), {}) == ()


def test_a_conversion_of_one_reading_is_an_offset() -> None:
    step = conversion([snapshot(500)], ClockDomain.REALTIME, ClockDomain.BOOTTIME)
    assert isinstance(step, Conversion)
    assert step(np.array([EPOCH - 3, EPOCH + 500])).tolist() == [-3, 500]


def _linked(host, boot, ahead, width):
    """A reading at which the reference's clock was ahead by so much."""
    return clocks.Snapshot(
        host, "before", boot, boot, boot, boot + 7, 100, "n0", boot + ahead, width
    )


def test_packets_tell_how_the_clocks_of_two_hosts_stand():
    own = [_linked("n1", 1_000_000, -500_000, 900), _linked("n1", 9_000_000, -500_300, 800)]
    snapshots = {"n0": [clocks.Snapshot("n0", "before", 5, 5, 5, 999, 10)], "n1": own}
    way = clocks.route(ClockDomain.BOOTTIME, "n1", snapshots, "n0")
    assert abs(int(way(np.array([5_000_000]))[0]) - 4_499_850) <= 800
    assert way.bound_ns == 1_000
    assert "2 readings by packets" in way.words
    assert clocks.link_bound_ns(own, "n0") == 900
    assert clocks.link_bound_ns(own, "n2") is None


def test_clocks_that_drift_apart_are_followed_between_the_packets():
    own = [_linked("n1", 0, 0, 500), _linked("n1", 10_000_000_000, 100_000, 500)]
    snapshots = {"n0": [clocks.Snapshot("n0", "before", 5, 5, 5, 999, 10)], "n1": own}
    way = clocks.route(ClockDomain.BOOTTIME, "n1", snapshots, "n0")
    assert int(way(np.array([5_000_000_000]))[0]) == 5_000_050_000
