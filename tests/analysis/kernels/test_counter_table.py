"""Raw counters as a table: units, sums and means by plain pandas on recorded files, and in every
form of report.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.analysis.kernels.counter_table import counter_rows, merge_counter_rows, unit_of
from profharness.analysis.run.summary import summarise_run
from profharness.analysis.summarise import summarise_trace
from profharness.cli import run_cli
from profharness.report.json import metrics_json
from profharness.report.page import html
from profharness.report.tables import counters as shown
from profharness.rundir.manifest import PassRecord
from profharness.trace.model import Counters, Source, Trace
from profharness.understand import report_run as understand
from tests.analysis.run.run_scene import manifest
from tests.analysis.scene import Scene

DISPATCHES = {"gemm": (4, 3_000), "copy<float>": (2, 500)}  # number and ns of each


def counted(
    names: tuple[str, ...] = ("SQ_WAVES", "FETCH_SIZE", "VALUBusy"),
    sources: tuple[Source, ...] = (Source("a.csv", "rocprofv3-csv"),),
) -> Trace:
    """Dispatch i of a kernel has the value 10 (i + 1) of every counter; the last one of `copy`
    lacks the last counter.
    """
    scene = Scene(sources=sources)
    rows = [
        (kernel, number, length)
        for kernel, (count, length) in DISPATCHES.items()
        for number in range(count)
    ]
    for place, (kernel, _, length) in enumerate(rows):
        scene.kernel(10_000 * place, 10_000 * place + length, name=kernel)
    trace = scene.build()
    values = [
        (place, trace.strings.code(name), 10.0 * (number + 1), at % len(sources))
        for place, (kernel, number, _) in enumerate(rows)
        for at, name in enumerate(names)
        if (kernel, number, name) != ("copy<float>", 1, names[-1])
    ]
    places, codes, numbers, origins = (list(column) for column in zip(*values, strict=True))
    return replace(
        trace, counters=Counters.build(kernel=places, name=codes, value=numbers, source=origins)
    )


def test_a_kernel_without_a_name_has_counters_too() -> None:
    whole = counted()
    names = np.where(whole.kernels.name == whole.strings.code("gemm"), -1, whole.kernels.name)
    trace = replace(whole, kernels=replace(whole.kernels, name=names.astype(np.int32)))
    before = [(row.kernel, row.counter, row.sum) for row in counter_rows(whole)]
    found = [(row.kernel, row.counter, row.sum) for row in counter_rows(trace)]
    assert found == [(kernel.replace("gemm", ""), *rest) for kernel, *rest in before]


def test_sum_mean_number_and_unit_per_kernel() -> None:
    found = {
        (row.kernel, row.counter): (
            row.dispatches,
            row.sum,
            row.mean,
            row.low,
            row.high,
            row.unit,
            row.pass_name,
        )
        for row in counter_rows(counted())
    }
    assert found == {
        ("gemm", "FETCH_SIZE"): (4, 100.0, 25.0, 10.0, 40.0, "KiB", None),
        ("gemm", "SQ_WAVES"): (4, 100.0, 25.0, 10.0, 40.0, "count", None),
        ("gemm", "VALUBusy"): (4, None, 25.0, 10.0, 40.0, "%", None),
        ("copy<float>", "FETCH_SIZE"): (2, 30.0, 15.0, 10.0, 20.0, "KiB", None),
        ("copy<float>", "SQ_WAVES"): (2, 30.0, 15.0, 10.0, 20.0, "count", None),
        ("copy<float>", "VALUBusy"): (1, None, 10.0, 10.0, 10.0, "%", None),
    }
    assert next(iter(found)) == ("gemm", "FETCH_SIZE")  # the kernel with the most time first
    assert counter_rows(replace(counted(), counters=Counters.empty())) == ()


@pytest.mark.parametrize(
    ("name", "unit"),
    [
        ("GRBM_GUI_ACTIVE", "cycles"),
        ("SQ_WAVE_CYCLES", "cycles"),
        ("SQ_INSTS_VALU", "count"),
        ("WRITE_SIZE", "KiB"),
        ("L2CacheHit", "%"),
        ("SIMD_UTILIZATION", "count"),
        ("MY_OWN", "count"),
        ("TCC_EA0_RDREQ_sum", "count"),
    ],
)
def test_units(name: str, unit: str) -> None:
    assert unit_of(name) == unit


def test_counters_of_two_passes_stay_apart() -> None:
    passes = tuple(
        Source(f"{name}.csv", "rocprofv3-csv", pass_name=name) for name in ("pmc1", "pmc2")
    )
    rows = counter_rows(counted(("SQ_WAVES", "SQ_WAVES"), passes))
    assert [(row.kernel, row.pass_name, row.dispatches) for row in rows] == [
        ("gemm", "pmc1", 4),
        ("gemm", "pmc2", 4),
        ("copy<float>", "pmc1", 1),
        ("copy<float>", "pmc2", 1),
    ]


@given(st.integers(0, 6))
def test_parts_joined_are_the_whole(cut: int) -> None:
    trace = counted()
    parts = [
        replace(trace, counters=trace.counters.take(side))
        for side in (trace.counters.kernel < cut, trace.counters.kernel >= cut)
    ]
    together = merge_counter_rows(counter_rows(part) for part in parts)
    assert sorted(together, key=lambda row: (row.kernel, row.counter)) == sorted(
        counter_rows(trace), key=lambda row: (row.kernel, row.counter)
    )


@pytest.mark.parametrize(
    "folder", ["bank_conflict_MI300X", "vcopy_MI300X", "vcopy_MI350_v3", "vcopy_MI100"]
)
def test_recorded_counters_are_those_of_plain_pandas(shared: Path, folder: str) -> None:
    import pandas as pd

    path = shared / "fixtures/rocm/rocprof_compute" / folder / "pmc_perf.csv"
    rows = pd.read_csv(path)
    trace = understand.load([path]).trace
    found = counter_rows(trace)
    assert len({row.counter for row in found}) > 300
    names = [row.counter for row in found]
    (kernel,) = {row.kernel for row in found}  # each of these runs has one
    own = rows[rows["Kernel_Name"].str.strip('"') == kernel][names].astype(float)
    assert [row.dispatches for row in found] == own.count().tolist()
    for column, of_pandas in (
        ("mean", own.mean()),
        ("low", own.min()),
        ("high", own.max()),
        ("sum", own.sum()),
    ):
        known = [getattr(row, column) for row in found]
        np.testing.assert_allclose(
            [np.nan if one is None else one for one in known],
            [np.nan if one is None else other for one, other in zip(known, of_pandas, strict=True)],
            rtol=1e-12,
        )


def test_every_form_of_report_shows_them(shared: Path, capsys: pytest.CaptureFixture[str]) -> None:
    summary = summarise_trace(counted(), "x")
    assert [row["counter"] for row in json.loads(metrics_json(summary))["counters"]] == [
        row.counter for row in summary.counters
    ]
    text = list(shown.lines(summary.counters))
    assert text[:2] == ["counters, mean per dispatch:", "  gemm"]
    assert "    SQ_WAVES    25 count  (4 dispatches, sum 100)" in text
    assert "    VALUBusy    25 %  (4 dispatches)" in text
    page = html.render(summary)
    assert "Hardware counters" in page
    assert "SQ_WAVES" in page
    without = replace(counted(), counters=Counters.empty())
    assert "counters" not in json.loads(metrics_json(summarise_trace(without, "x")))
    assert "Hardware counters" not in html.render(summarise_trace(without, "x"))
    path = str(shared / "fixtures/rocm/rocprofv3/csv/gfx950_bank_test_counter_collection.csv")
    for command in ("metrics", "hotspots"):
        assert run_cli([command, path]) == 0
        assert "SQ_LDS_BANK_CONFLICT  0 count  (1 dispatch, sum 0)" in capsys.readouterr().out
        assert run_cli([command, path, "--json"]) == 0
        assert {row["counter"] for row in json.loads(capsys.readouterr().out)["counters"]} == {
            "SQ_INSTS_LDS",
            "SQ_LDS_BANK_CONFLICT",
        }


def test_more_than_the_text_holds_is_said() -> None:
    many = counter_rows(counted(tuple(f"C{number:02d}" for number in range(shown.COUNTERS + 3))))
    text = "\n".join(shown.lines(many))
    assert "and 3 more counters (--json has all)" in text
    assert shown.left_out(many) == "6 more rows are in summary.json."
    assert list(shown.lines(many, {"no such kernel"})) == []


def test_a_runs_counter_pass_stands_in_its_summary() -> None:
    sources = (
        Source("t.db", "rocpd", pass_name="rocprofv3", layer="rocprofv3"),
        Source("c.db", "rocpd", pass_name="rocprofv3-pmc1", layer="rocprofv3"),
    )
    trace = counted(sources=sources)
    trace = replace(trace, counters=trace.counters.with_columns(source=1))
    passes = (
        PassRecord(name="rocprofv3", layers=("rocprofv3",)),
        PassRecord(name="rocprofv3-pmc1", layers=("rocprofv3",), perturbing=True),
    )
    summary = summarise_run(
        manifest(kind="command", points=(), passes=passes, scan=None), trace, "x"
    )  # type: ignore[no-untyped-call]  # the scene of runs has no types
    assert {row.pass_name for row in summary.counters} == {"rocprofv3-pmc1"}
    assert {row.counter for row in summary.counters} == {"SQ_WAVES", "FETCH_SIZE", "VALUBusy"}
