from __future__ import annotations

import json
from dataclasses import replace

import msgspec

from profharness.analysis.kernels import hotspots
from profharness.analysis.kernels.hotspots import tally
from profharness.analysis.kernels.tally import join
from profharness.cli.hotspots import text_of
from profharness.cli.listing.forms import Form
from profharness.report.text.hotspots import plain_table
from profharness.trace import merge
from profharness.trace.model import Source, Strings, Trace
from profharness.trace.parts import select
from profharness.trace.statistics import StatRow
from tests.analysis.scene import Scene

GEMM, COPY = "Cijk_Alik_Bljk_BBS_BH_MT128x128x64", "__amd_rocclr_copyBuffer"
ROWS = (
    StatRow(COPY, "kernel", 3, 30, 5, 15, 2.5),
    StatRow(GEMM, "kernel", 2, 70, 30, 40, 1.0),
    StatRow("hipMalloc", "hip", 4, 900),
    StatRow("MEMORY_COPY_HOST_TO_DEVICE", "copy", 1, 8, 8, 8, 0.0),
)


def printed(rows: tuple[StatRow, ...] = ROWS) -> Trace:
    return Trace(
        sources=(Source("kernel_stats.csv", "rocprofv3-csv"),), strings=Strings(), statistics=rows
    )


def test_kernel_totals_are_the_table_where_there_are_no_kernels() -> None:
    table = hotspots.default(printed())
    assert (table.by, table.total_ns) == ("kernel", 100)
    assert [
        (
            row.name,
            row.category,
            row.calls,
            row.total_ns,
            row.share,
            row.mean_ns,
            row.min_ns,
            row.max_ns,
            row.std_ns,
            row.median_ns,
        )
        for row in table.rows
    ] == [
        (GEMM, "gemm", 2, 70, 0.7, 35.0, 30, 40, 1.0, None),
        (COPY, "copy", 3, 30, 0.3, 10.0, 5, 15, 2.5, None),
    ]


def test_host_calls_and_copies_stand_by_op() -> None:
    assert [
        (row.name, row.calls, row.total_ns, row.min_ns) for row in hotspots.by_op(printed()).rows
    ] == [("hipMalloc", 4, 900, None), ("MEMORY_COPY_HOST_TO_DEVICE", 1, 8, 8)]
    assert hotspots.default(printed(ROWS[2:])).by == "op"


def test_categories_hold_kernels_and_copies() -> None:
    table = hotspots.by_category(printed())
    assert [(row.name, row.calls, row.total_ns, row.min_ns, row.max_ns) for row in table.rows] == [
        ("gemm", 2, 70, 30, 40),
        ("copy", 4, 38, 5, 15),
    ]


def test_records_go_before_statistics_of_the_same_run() -> None:
    scene = Scene()
    scene.kernel(0, 7, name="k")
    trace = replace(scene.build(), statistics=ROWS)
    assert [row.name for row in hotspots.default(trace).rows] == ["k"]
    assert [row.name for row in hotspots.by_category(trace).rows] == ["other"]


def test_merging_and_selecting_keep_whose_they_are() -> None:
    scene = Scene()
    scene.kernel(0, 7)
    both = merge.merge([scene.build(), printed()])
    assert {row.source for row in both.statistics} == {1}
    assert select.by_source(both, [True, False]).statistics == ()
    kept = select.by_source(both, [False, True])
    assert kept.statistics == ROWS


def test_what_is_not_known_is_a_dash_and_a_null() -> None:
    table = hotspots.by_op(printed())
    line = next(line for line in plain_table(table, 5, None).splitlines() if "hipMalloc" in line)
    assert line.split()[-5:-2] == ["ns", "-", "-"]
    row = json.loads(text_of(table, Form.JSON, None))["rows"][0]
    assert (row["min_ns"], row["median_ns"], row["std_ns"]) == (None, None, None)
    assert "hipMalloc,other,4,900," in text_of(table, Form.CSV, None)
    assert msgspec.json.encode(table)


def test_printed_totals_of_several_files_add_up_and_what_one_lacks_stays_unknown() -> None:
    more = (StatRow(GEMM, "kernel", 8, 730, 20, 190, 3.0), StatRow("fill", "kernel", 1, 5))
    both = join([tally(printed(), None), tally(printed(more), None)]).table()
    assert [
        (row.name, row.calls, row.total_ns, row.min_ns, row.max_ns, row.mean_ns, row.std_ns)
        for row in both.rows
    ] == [
        (GEMM, 10, 800, 20, 190, 80.0, None),
        (COPY, 3, 30, 5, 15, 10.0, 2.5),
        ("fill", 1, 5, None, None, 5.0, None),
    ]
