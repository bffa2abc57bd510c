"""Points, overlay and throughput from marks."""

from __future__ import annotations

import numpy as np
import pytest

from profharness.trace.columns.table import NULL
from profharness.trace.derive import with_throughput
from profharness.trace.model import (
    Api,
    ClockDomain,
    Kernels,
    Marks,
    Ops,
    Samples,
    Source,
    Strings,
    Trace,
)
from profharness.trace.overlay import overlay
from profharness.trace.parts.points import assign_points
from profharness.trace.parts.select import by_point

STRINGS = ("point", "b1", "b4", "trial", "k")
POINT, B1, B4, TRIAL, K = range(5)


def _marks(*rows: tuple[int, int, int, int, int], items: int = NULL) -> Marks:
    """Rows of start, duration, kind, point, source."""
    start, dur, kind, point, source = np.array(rows).T
    return Marks.build(
        start_ns=start, dur_ns=dur, kind=kind, point=point, source=source, name=K, items=items
    )


def test_records_belong_to_the_point_in_which_they_start() -> None:
    trace = Trace(
        (Source("f", "kineto"),),
        Strings(STRINGS),
        marks=_marks((100, 50, POINT, B1, 0), (200, 50, POINT, B4, 0), (210, 5, TRIAL, NULL, 0)),
        ops=Ops.build(5, start_ns=[99, 100, 150, 175, 249], source=0),
    )
    assigned = assign_points(trace)
    assert assigned.strings.decode(assigned.ops.point) == ["", "b1", "b1", "", "b4"]
    assert assigned.strings.decode(assigned.marks.point) == ["b1", "b4", "b4"]


def test_a_kernel_belongs_where_its_launch_started() -> None:
    trace = Trace(
        (Source("f", "kineto"),),
        Strings(STRINGS),
        marks=_marks((100, 50, POINT, B1, 0), (150, 50, POINT, B4, 0)),
        api=Api.build(1, start_ns=140, dur_ns=2, correlation=9, source=0),
        kernels=Kernels.build(3, start_ns=[155, 155, 99], correlation=[9, 8, 8], source=0),
    )
    assigned = assign_points(trace)
    assert assigned.strings.decode(assigned.kernels.point) == ["b1", "b4", ""]


def test_a_file_of_one_point_gives_it_to_all_and_known_points_stay() -> None:
    trace = Trace(
        (Source("f", "onnxruntime", point="b16"), Source("g", "onnxruntime")),
        Strings(STRINGS),
        ops=Ops.build(3, start_ns=[1, 2, 3], source=[0, 0, 1], point=[NULL, B4, NULL]),
    )
    assigned = assign_points(trace)
    assert assigned.strings.decode(assigned.ops.point) == ["b16", "b4", ""]
    assert trace.strings.find("b16") == NULL  # the trace that was given is unchanged


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (Source("marks", "rocprofv3", ClockDomain.BOOTTIME, "h", pid=3, pass_name="p"), ["b1"]),
        (Source("marks", "rocprofv3", ClockDomain.BOOTTIME, "h", pid=4, pass_name="p"), [""]),
        (Source("marks", "rocprofv3", ClockDomain.REALTIME, "h", pid=3, pass_name="p"), [""]),
    ],
)
def test_marks_in_a_file_beside_count_for_the_same_process_and_clock(
    other: Source, expected: list[str]
) -> None:
    own = Source("kernels", "rocprofv3", ClockDomain.BOOTTIME, "h", pid=3, pass_name="p")
    trace = Trace(
        (own, other),
        Strings(STRINGS),
        marks=_marks((100, 50, POINT, B1, 1)),
        kernels=Kernels.build(1, start_ns=120, source=0),
    )
    assigned = assign_points(trace)
    assert assigned.strings.decode(assigned.kernels.point) == expected


def test_telemetry_of_a_point_is_taken_by_time() -> None:
    trace = Trace(
        (Source("f", "kineto"), Source("t", "telemetry")),
        Strings(STRINGS),
        marks=_marks((100, 50, POINT, B1, 0), (200, 50, POINT, B4, 0)),
        samples=Samples.build(4, at_ns=[90, 100, 149, 150], until_ns=0, metric=K, source=1),
    )
    assert by_point(trace, "b1").samples.at_ns.tolist() == [100, 149]


def _passes(
    bare: list[tuple[int, int, int]], traced: list[tuple[int, int, int]], ops: list[int]
) -> Trace:
    """Point marks (start, duration, point) of a bare and a traced pass; ops of the traced pass."""
    marks = _marks(
        *((s, d, POINT, p, 0) for s, d, p in bare), *((s, d, POINT, p, 1) for s, d, p in traced)
    )
    return Trace(
        (
            Source("bare", "control", pass_name="bare"),
            Source("f", "kineto", pass_name="torch"),
            Source("t", "telemetry"),
        ),
        Strings(STRINGS),
        marks=marks,
        ops=Ops.build(len(ops), start_ns=ops, dur_ns=7, source=1),
        samples=Samples.build(1, at_ns=1500, until_ns=1510, metric=K, source=2),
    )


def test_overlay_moves_each_point_onto_the_bare_one() -> None:
    laid = overlay(
        _passes(
            [(100, 300, B1), (500, 300, B4)],
            [(1000, 50, B1), (1060, 70, B4)],
            [990, 1000, 1049, 1055, 1060, 1200],
        )
    )
    assert laid.ops.start_ns.tolist() == [90, 100, 149, 155, 500, 640]
    assert laid.ops.dur_ns.tolist() == [7] * 6
    assert laid.marks.start_ns.tolist() == [100, 500, 100, 500]
    assert laid.samples.at_ns.tolist() == [1500]
    assert [source.alignment for source in laid.sources] == ["", "laid over pass bare", ""]


def test_overlaid_points_that_take_longer_push_the_next_on() -> None:
    laid = overlay(
        _passes(
            [(100, 30, B1), (140, 30, B4)], [(1000, 500, B1), (1500, 500, B4)], [1000, 1499, 1500]
        )
    )
    assert laid.ops.start_ns.tolist() == [100, 599, 600]


def test_a_pass_without_common_points_stays() -> None:
    laid = overlay(_passes([(100, 30, B1)], [(1000, 500, B4)], [1000]))
    assert laid.ops.start_ns.tolist() == [1000]
    assert laid.sources[1].alignment == ""


def test_throughput_is_items_over_the_trials_time() -> None:
    marks = _marks(
        (100, 50, POINT, B1, 0),
        (130, 20, TRIAL, B1, 0),
        (110, 10, TRIAL, B1, 0),
        (160, 0, TRIAL, B1, 0),
        items=4,
    )
    trace = with_throughput(Trace((Source("f", "kineto"),), Strings(STRINGS), marks=marks))
    assert trace.samples.at_ns.tolist() == [110, 130]
    assert trace.samples.until_ns.tolist() == [120, 150]
    assert trace.samples.value.tolist() == pytest.approx([4e8, 2e8])
    assert trace.strings.decode(trace.samples.metric) == ["throughput", "throughput"]
    without = Trace(
        (Source("f", "kineto"),), Strings(STRINGS), marks=_marks((130, 20, TRIAL, B1, 0))
    )
    assert len(with_throughput(without).samples) == 0
