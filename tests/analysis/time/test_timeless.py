"""Kernels that lie on no time axis: figures of time are refused with the reason, what lengths and
counters give stays.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from profharness import readers
from profharness.analysis.kernels import hotspots
from profharness.analysis.kernels.tally import join
from profharness.analysis.measurement import measure
from profharness.analysis.parts import combine, part
from profharness.analysis.records import Summary
from profharness.analysis.summarise import summarise_trace
from profharness.analysis.time import counts
from profharness.analysis.time.timeless import no_timeline
from profharness.analysis.verdict import integrity
from profharness.readers.rocprofv3 import rocpd_reader as rocpd
from profharness.report.csv import hotspots_csv
from profharness.report.page import html
from profharness.report.text.hotspots import plain_table
from profharness.report.text.metrics import metrics_text
from profharness.trace.columns.table import NULL
from profharness.trace.model import Counters, Strings, Trace
from profharness.understand import frames
from profharness.understand import report_run as understand
from tests.analysis.scene import Scene
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import program

HEADER = (
    "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,"
    "Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,wave_size,obj,"
    "SQ_WAVES,Start_Timestamp,End_Timestamp\n"
)
OF_TIME = (
    "busy",
    "busy_any",
    "sum_busy",
    "concurrency",
    "compute",
    "idle",
    "idle_macro_gaps",
    "idle_longest_gap",
    "fill",
    "fill_busy",
    "underfilled",
    "launch_latency_median",
    "achieved_flops",
    "mfu",
    "kernels_per_step",
    "slots_full_time",
)


@pytest.fixture
def replayed(tmp_path: Path) -> Trace:
    """Two dispatches whose places say that the device was idle nine tenths of the time."""
    path = tmp_path / "pmc_perf.csv"
    path.write_text(
        HEADER
        + (
            '0,"k",2,25600,256,0,0,8,0,16,64,0x1,400,1000,6000\n'
            '1,"k",2,25600,256,0,0,8,0,16,64,0x1,400,91000,96000\n'
        )
    )
    return readers.read(path)


def refused(summary: Summary, reason: str) -> None:
    for name in OF_TIME:
        figure = summary.metrics[name]
        assert (figure.value, reason in figure.needs) == (None, True), name
    assert summary.partition is None
    assert summary.verdict is None
    assert "idle" not in metrics_text(summary).split("metrics:")[0]


def test_replayed_dispatches_have_lengths_and_no_places(replayed: Trace) -> None:
    summary = summarise_trace(replayed, "pmc_perf.csv")
    refused(summary, "a timeline (rocprof-compute joins executions, or counts in one")
    assert (
        summary.metrics["short_kernels_by_count"].value,
        summary.metrics["short_kernels_by_time"].value,
    ) == (1.0, 1.0)
    assert (summary.trace.kernels, summary.trace.sum_kernel_ns) == (2, 10_000)
    assert (summary.trace.busy_ns, summary.trace.busy_any_ns, summary.trace.span_ns) == (
        None,
        None,
        None,
    )
    assert [(one.kernels, one.busy_ns, one.span_ns) for one in summary.devices.values()] == [
        (2, None, None)
    ]
    table = hotspots.by_kernel(replayed)
    assert [(row.name, row.calls, row.total_ns, row.workgroups) for row in table.rows] == [
        ("k", 2, 10_000, 100)
    ]
    assert (table.busy_ns, table.device_span_ns) == (None, None)
    assert "kernels (sum), on no common timeline" in metrics_text(summary)
    assert "device busy" not in html.render(summary)


def test_kernels_without_length_are_refused_too(tmp_path: Path) -> None:
    whole = rocpd.read(write_rocpd(tmp_path / "a.db", program(1)))
    flat = replace(
        whole, kernels=whole.kernels.with_columns(dur_ns=np.zeros(len(whole.kernels), np.int64))
    )
    assert no_timeline(whole) == ""
    refused(summarise_trace(flat, "a.db"), "no kernel in the file has a length")
    # where they stand is known all the same
    assert counts.count(flat).span_ns is not None
    nowhere = replace(
        flat, kernels=flat.kernels.with_columns(start_ns=np.zeros(len(flat.kernels), np.int64))
    )
    assert counts.count(nowhere).busy_ns is None


def test_several_files_of_which_one_has_no_timeline(tmp_path: Path, replayed: Trace) -> None:
    whole = rocpd.read(write_rocpd(tmp_path / "a.db", program(1)))
    together = combine([part(whole, "a.db"), part(replayed, "pmc_perf.csv")], "both")
    assert together.trace.kernels == 42
    assert (together.trace.busy_ns, together.trace.span_ns) == (None, None)
    assert together.trace.sum_kernel_ns == int(whole.kernels.dur_ns.sum()) + 10_000


def test_a_trace_without_kernels_has_other_reasons() -> None:
    assert no_timeline(Trace(sources=(), strings=Strings())) == ""


@pytest.mark.parametrize(
    "name", ["bank_conflict_MI300X", "vcopy_MI100", "vcopy_MI300X", "vcopy_MI350_v3"]
)
def test_recorded_workloads(shared: Path, name: str) -> None:
    loaded = understand.load([shared / "fixtures/rocm/rocprof_compute" / name])
    summary = understand.summarise(loaded)
    refused(summary, "a timeline (rocprof-compute joins executions, or counts in one")
    assert len(loaded.trace.counters) > 500


COUNTERS_ALONE = (
    "rocprofv3/docs_samples_0.5.0/counter_collection.csv",
    "rocprof_compute/vcopy_MI300X/pmc_dispatch_info.csv",
    "rocprof_v1/mi300a_vecadd/output_vec_add_gpu.csv",
)
_TIMES = ("total_ns", "share", "mean_ns", "median_ns", "min_ns", "max_ns", "std_ns")


@pytest.mark.parametrize("file", COUNTERS_ALONE)
def test_times_that_nobody_recorded_are_unknown_and_not_zero(shared: Path, file: str) -> None:
    trace = readers.read(shared / "fixtures/rocm" / file)
    counted = counts.count(trace)
    assert counted.kernels
    assert (counted.sum_kernel_ns, counted.busy_ns, counted.busy_any_ns, counted.span_ns) == (
        (None,) * 4
    )
    for table in (hotspots.by_kernel(trace), hotspots.by_category(trace)):
        assert (table.total_ns, table.busy_ns, table.device_span_ns) == (None,) * 3
        assert sum(row.calls for row in table.rows) == len(trace.kernels)
        assert all(getattr(row, name) is None for row in table.rows for name in _TIMES)
        names = [row.name for row in table.rows]
        assert names == sorted(names)
        assert "0 ns" not in plain_table(table, 10, 200)
        assert "times not recorded" in plain_table(table, 10, 200)
    csv = hotspots_csv(hotspots.by_kernel(trace)).splitlines()
    assert all(",,,,,,," in line for line in csv[1:])


def test_a_table_of_all_forms_says_that_times_are_not_recorded(tmp_path: Path) -> None:
    path = tmp_path / "results.csv"
    path.write_text(
        'Index,KernelName,gpu-id,queue-id,pid,tid,grd,wgr,Wavefronts\n0,"b",4,0,1,1,64,64,8.0\n'
        '1,"a",4,0,1,1,64,64,8.0\n'
    )
    with pytest.warns(UserWarning, match="durations are not known"):
        frame = frames.hotspots(path)
    assert frame["name"].tolist() == ["a", "b"]
    assert frame["total_ns"].isna().all()
    assert frame["mean_ns"].isna().all()
    assert frame.attrs["total_ns"] is None
    summary = summarise_trace(readers.read(path), str(path))
    page = html.render(summary)
    assert "times not recorded in all" in page
    assert ">0 ns<" not in page
    assert "the times of kernels are not recorded" in metrics_text(summary)


def test_files_with_and_without_times_together() -> None:
    """A name has the times of the records that have some; only without any it has no total."""
    known, unknown = Scene(), Scene()
    known.kernel(5, 15, name="a")
    known.kernel(20, 27, name="b")
    for name in ("a", "c"):
        unknown.kernel(NULL, NULL, name=name)
    timed, untimed = (hotspots.tally(scene.build(), "kernel") for scene in (known, unknown))
    rows = {row.name: row.total_ns for row in join([timed, untimed]).table().rows}
    assert rows == {"a": 10, "b": 7, "c": None}
    assert join([timed, untimed]).table().total_ns == 17


def mixed() -> Scene:
    """Twenty kernels of 60 ns, 100 ns apart, of which the second and the last lost their times, and
    a copy that did.
    """
    scene = Scene()
    for number in range(20):
        at = 10_000 + 100 * number
        lost = number in (1, 19)
        launch = scene.launch(at - 50, at - 40)
        scene.kernel(*((NULL, NULL) if lost else (at, at + 60)), launch)
    scene.copy(NULL, NULL, scene.call("hipMemcpyAsync", 9_000, 9_010))
    return scene


def test_records_without_times_count_and_have_none() -> None:
    trace = mixed().build()
    counted = counts.count(trace)
    assert (counted.kernels, counted.copies, counted.sum_kernel_ns) == (20, 1, 18 * 60)
    assert (counted.busy_any_ns, counted.span_ns) == (18 * 60, 1_860)
    assert [(one.kernels, one.span_ns) for one in counts.counts_of_devices(trace)] == [(20, 1_860)]
    (row,) = hotspots.by_kernel(trace).rows
    assert (row.calls, row.total_ns, row.min_ns, row.max_ns) == (20, 18 * 60, 60, 60)
    assert (row.mean_ns, row.median_ns, row.std_ns) == (60.0, 60.0, 0.0)


def test_records_without_times_have_no_place_in_a_window() -> None:
    whole = measure(mixed().build())
    assert (whole.window_ns, whole.partition.compute_ns) == (1_860, 18 * 60)
    assert set(whole.delays.delay.tolist()) == {50}
    summary = summarise_trace(whole.trace, "a.json")
    (item,) = summary.findings
    assert (item.id, item.figures) == ("times-missing", {"kernels": 2, "copies": 1})
    assert "2 of 20 kernels and 1 of 1 copies" in item.message


def test_records_that_all_have_times_are_not_told_of() -> None:
    scene = Scene()
    scene.kernel(0, 0, scene.launch(0, 1))
    scene.kernel(5, 9, scene.launch(2, 3))
    assert "times-missing" not in {one.id for one in integrity.findings(scene.build())}


def test_ranges_of_counters_are_no_kernels_that_lost_their_times() -> None:
    """Beside them a kernel without times stays one."""
    scene = mixed()
    scene.kernel(NULL, NULL, name="range")
    trace = scene.build()
    counters = Counters.build(kernel=[20], name=trace.strings.code("sum"), value=[1.0], source=0)
    counted = replace(trace, counters=counters)
    assert counts.count(counted).kernels == 20
    (item,) = [one for one in integrity.findings(counted) if one.id == "times-missing"]
    assert item.figures["kernels"] == 2
