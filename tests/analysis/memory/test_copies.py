"""Copies by direction and size, against traces whose answer is known, and recorded ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.measurement import Measurement, measure
from profharness.analysis.memory.copies import (
    SIZE_CLASSES,
    copy_rows,
    merge_copy_rows,
    size_classes,
)
from profharness.analysis.memory.records import CopyRow
from profharness.analysis.time.windows import Windows
from profharness.report.tables.memory.copies import (
    copies_table,
    copy_items,
    lines,
    size_class,
    title,
)
from profharness.stats import intervals
from profharness.trace.columns.table import NULL
from profharness.trace.model import Copies, Trace
from tests.analysis.scene import Scene

MIB = 1 << 20


def copies(trace: Trace, *rows: tuple[str, str, int, int, int]) -> Trace:
    """The trace with copies of (kind, name, start, dur, bytes) on device 0."""
    strings = trace.strings
    columns = list(zip(*rows, strict=True))
    table = Copies.build(
        kind=[strings.code(kind) for kind in columns[0]],
        name=[strings.code(name) for name in columns[1]],
        start_ns=np.array(columns[2]),
        dur_ns=np.array(columns[3]),
        bytes=np.array(columns[4]),
        device=0,
        pid=7,
        source=0,
        correlation=np.arange(1, len(rows) + 1),
    )
    return replace(trace, copies=table)


def in_window(trace: Trace, start: int, end: int) -> Measurement:
    return Measurement(trace, Windows(intervals.window(start, end), "a window"))


def test_a_row_per_direction_memory_and_size() -> None:
    scene = Scene()
    scene.kernel(0, 1000)
    scene.call("cudaMemcpyAsync", 900, 3100, correlation=1)
    scene.call("cudaMemcpyAsync", 3200, 3210, correlation=2)
    trace = copies(
        scene.build(),
        ("h2d", "Memcpy HtoD (Pageable -> Device)", 500, 2500, 3 * MIB),
        ("h2d", "Memcpy HtoD (Pageable -> Device)", 4000, 500, 2 * MIB),
        ("d2h", "Memcpy DtoH (Device -> Pinned)", 5000, 100, 8),
        ("fill", "Memset (Device)", 20_000, 100, 8),
    )
    large, small = copy_rows(in_window(trace, 0, 10_000))
    assert large == CopyRow(
        direction="h2d",
        host_memory="pageable",
        least_bytes=MIB,
        below_bytes=16 * MIB,
        calls=2,
        bytes=5 * MIB,
        total_ns=3000,
        busy_ns=3000,
        exposed_ns=2500,
        window_ns=10_000,
        bytes_per_s=5 * MIB * 1e9 / 3000,
        bytes_per_s_median=(3 * MIB / 2500 + 2 * MIB / 500) / 2 * 1e9,
        linked_calls=2,
        blocking_calls=1,
    )
    assert (small.direction, small.host_memory, small.bytes) == ("d2h", "pinned", 8)
    assert (small.linked_calls, small.blocking_calls) == (0, None)


def test_what_has_no_size_has_a_row_of_its_own_and_no_bandwidth() -> None:
    scene = Scene()
    scene.kernel(0, 1)
    trace = copies(
        scene.build(),
        ("d2d", "CopyDeviceToDevice", 0, 10, NULL),
        ("d2d", "CopyDeviceToDevice", 20, 10, 64),
    )
    rows = copy_rows(in_window(trace, 0, 100))
    assert [(row.bytes, row.least_bytes, row.bytes_per_s) for row in rows] == [
        (None, None, None),
        (64, 0, 6.4e9),
    ]
    table = copies_table(rows)
    assert table is not None
    assert table.rows[0][3].text == "not known"
    assert "no size of 1 of them" in table.note


def test_copies_of_one_byte_have_no_bandwidth() -> None:
    """Tools of ROCm write one byte where they know no size."""
    scene = Scene()
    scene.kernel(0, 1)
    flags = [("d2h", "Memcpy DtoH (Device -> Pinned)", at, 10, 1) for at in (0, 20)]
    alone = copy_rows(in_window(copies(scene.build(), *flags), 0, 100))
    assert [(row.bytes, row.bytes_per_s, row.bytes_per_s_median) for row in alone] == [
        (2, None, None)
    ]
    merged = merge_copy_rows([alone, alone])
    assert [(row.bytes, row.bytes_per_s) for row in merged] == [(4, None)]
    beside = ("d2h", "Memcpy DtoH (Device -> Pinned)", 40, 10, 64)
    (row,) = copy_rows(in_window(copies(scene.build(), *flags, beside), 0, 100))
    assert (row.bytes, row.bytes_per_s, row.bytes_per_s_median) == (66, 66 * 1e9 / 30, 6.4e9)


def test_copies_that_are_kernels_are_named_and_keep_their_time_as_kernels() -> None:
    scene = Scene()
    scene.kernel(0, 40, name="__amd_rocclr_copyBuffer")
    scene.kernel(50, 60, name="__amd_rocclr_fillBufferAligned")
    scene.kernel(70, 90, name="gemm")
    scene.kernel(90, 95, name="MEMORY_COPY_HOST_TO_DEVICE")
    rows = copy_rows(in_window(scene.build(), 0, 100))
    assert [(row.direction, row.kernel, row.total_ns) for row in rows] == [
        ("unknown", "__amd_rocclr_copyBuffer", 40),
        ("fill", "__amd_rocclr_fillBufferAligned", 10),
        ("h2d", "MEMORY_COPY_HOST_TO_DEVICE", 5),
    ]
    assert all(row.bytes is None and row.exposed_ns is None for row in rows)
    assert title(rows[0]) == "copy, direction not known (kernel __amd_rocclr_copyBuffer)"


def test_the_terminal_names_only_what_costs() -> None:
    costly = CopyRow(
        direction="h2d",
        host_memory="pageable",
        calls=5,
        bytes=10 * MIB,
        least_bytes=MIB,
        below_bytes=16 * MIB,
        total_ns=300,
        busy_ns=300,
        exposed_ns=123,
        window_ns=1000,
        bytes_per_s=2e9,
    )
    cheap = replace_row(costly, direction="d2h", exposed_ns=9)
    assert copy_items([cheap, costly]) == [
        "host to device, pageable 12.3 % exposed: 5 copies of 2.0 MiB at 2.00 GB/s"
    ]
    assert list(lines([])) == []
    assert any("1 MiB to 16 MiB" in line for line in lines([costly]))
    assert "and 2 more rows" in list(lines([costly] * 10))[-1]
    assert size_class(replace_row(costly, below_bytes=None)) == "from 1 MiB"


def replace_row(row: CopyRow, **changed: object) -> CopyRow:
    values = {name: getattr(row, name) for name in CopyRow.__struct_fields__}
    return CopyRow(**{**values, **changed})


def test_files_add_up_and_median_counts_copies() -> None:
    one = CopyRow(
        direction="h2d",
        least_bytes=0,
        below_bytes=4096,
        calls=1,
        bytes=10,
        total_ns=10,
        busy_ns=10,
        exposed_ns=5,
        window_ns=100,
        bytes_per_s=1e9,
        bytes_per_s_median=1e9,
    )
    more = replace_row(one, calls=3, bytes=90, bytes_per_s_median=3e9, blocking_calls=2)
    (both,) = merge_copy_rows([(one,), (more,)])
    assert (both.calls, both.bytes, both.total_ns, both.window_ns) == (4, 100, 20, 200)
    assert (both.bytes_per_s, both.bytes_per_s_median) == (5e9, 3e9)
    assert (both.exposed_ns, both.blocking_calls) == (10, 2)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["h2d", "d2h", "d2d", "p2p"]),
            st.integers(0, 90),
            st.integers(0, 40),
            st.one_of(st.just(NULL), st.integers(0, 1 << 40)),
        ),
        min_size=1,
    )
)
def test_rows_divide_the_copies_of_the_window(rows: list[tuple[str, int, int, int]]) -> None:
    scene = Scene()
    scene.kernel(20, 30)
    trace = copies(scene.build(), *((kind, "copy", *rest) for kind, *rest in rows))
    found = copy_rows(in_window(trace, 10, 60))
    inside = [row for row in rows if 10 <= row[1] < 60]
    assert sum(row.calls for row in found) == len(inside)
    assert sum(row.total_ns for row in found) == sum(row[2] for row in inside)
    assert sum(row.bytes or 0 for row in found) == sum(row[3] for row in inside if row[3] != NULL)
    for row in found:
        assert 0 <= (row.exposed_ns or 0) <= row.busy_ns <= min(row.total_ns, 50)


@pytest.mark.parametrize(
    ("size", "begins"), [(NULL, None), (0, 0), (4095, 0), (4096, 4096), (1 << 50, SIZE_CLASSES[-1])]
)
def test_classes_of_size(size: int, begins: int | None) -> None:
    (found,) = size_classes(np.array([size])).tolist()
    assert (None if found == NULL else SIZE_CLASSES[found]) == begins


def test_without_copies_or_times_there_are_no_rows() -> None:
    assert copy_rows(measure(Scene().build())) == ()
    assert copies_table(()) is None
