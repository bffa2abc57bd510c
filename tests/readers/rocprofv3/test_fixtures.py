"""Recorded files of rocprofv3: rows, times and names as they were counted in the files
themselves.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.kernels import hotspots
from profharness.analysis.time.counts import count
from profharness.analysis.time.linking import link_kernels
from profharness.errors import InputError
from profharness.readers.bytes import sqlite_file
from profharness.readers.rocprofv3 import csv_reader as rocprofv3_csv
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Trace

# file: kernels, total ns, distinct names, first start, span ns, top kernel's beginning, its total
# ns and calls, first row's workgroups and size
KERNELS = {
    "csv/gfx1151_decode_kernel_trace.csv": (
        144,
        1857381,
        17,
        342331487558371,
        180266420,
        "void mul_mat_vec_q<(ggml_type)13, 1, false",
        807978,
        10,
        (96, 256),
    ),
    "docs_samples_0.5.0/kernel_trace.csv": (
        7,
        795453,
        3,
        8819330200067564,
        301795,
        "void addition_kernel<float>(float*, float",
        413506,
        4,
        (16384, 64),
    ),
    "readme_snippets/hip_readme_10_kernel_trace.csv": (
        3,
        413761,
        3,
        4484384527705139,
        430401,
        "NormKernel1(int, double, double, double",
        401121,
        1,
        (NULL, NULL),
    ),
    "json/908_results.json.gz": (
        43915,
        4441741378,
        80,
        63857982592000,
        15122023494,
        "ncclDevKernel_Generic_1(ncclDevKernelArgsStorage<4096ul>)",
        4158756678,
        1310,
        (1, 512),
    ),
    "rocpd/mi300x_batched_gemm_16_results.db.gz": (
        301,
        3938871,
        2,
        728463568053912,
        20754195,
        "void batched_matrix_multiplication_matrix_core_128x128x16",
        2786378,
        150,
        (304, 256),
    ),
    "rocpd/mi300x_ck_gemm_28_results.db.gz": (
        151,
        2604546,
        2,
        1071423114883652,
        15719660,
        "void ck_tile::kentry<1, ck_tile::BatchedGemmKernel",
        2580371,
        150,
        (304, 256),
    ),
}
# file: calls or marks, total ns, the function with most time, its ns and calls, domains
CALLS = {
    "csv/gfx1151_decode_hip_api_trace.csv": (
        920,
        4449331,
        "hipLaunchKernel",
        3491687,
        180,
        {"hip"},
    ),
    "docs_samples_0.5.0/hip_compile_trace.csv": (
        4,
        23324,
        "__hipRegisterFunction",
        11113,
        1,
        {"hip"},
    ),
    "docs_samples_0.5.0/hip_runtime_trace.csv": (8, 972177644, "hipMemcpy", 858194498, 2, {"hip"}),
    "docs_samples_0.5.0/hsa_api_trace.csv": (
        10,
        13473,
        "hsa_amd_agent_iterate_memory_pools",
        10470,
        1,
        {"hsa"},
    ),
    "readme_snippets/hip_readme_4_hip_api_trace.csv": (
        9,
        382401945,
        "hipStreamCreate",
        248234029,
        2,
        {"hip"},
    ),
}
# file: rows, dispatches, sums by counter
COUNTERS = {
    "csv/gfx1151_decode_fetch_counter_collection.csv": (34, 34, {"FETCH_SIZE": 42346.7}),
    "csv/gfx1151_decode_stall_counter_collection.csv": (
        340,
        34,
        {
            "GRBM_EA_BUSY": 886516,
            "GRBM_GUI_ACTIVE": 1.29581e6,
            "L2CacheHit": 1077.82,
            "LDSBankConflict": 0,
        },
    ),
    "csv/gfx950_bank_test_counter_collection.csv": (
        6,
        3,
        {"SQ_INSTS_LDS": 1, "SQ_LDS_BANK_CONFLICT": 0},
    ),
    "csv/gfx950_phase_test_counter_collection.csv": (
        6,
        3,
        {"SQ_INSTS_LDS": 1, "SQ_LDS_BANK_CONFLICT": 1},
    ),
    "docs_samples_0.5.0/counter_collection.csv": (7, 7, {"SQ_WAVES": 114688}),
    "docs_samples_0.5.0/kernel_names.csv": (4, 4, {"SQ_WAVES": 65536}),
    "readme_snippets/shallow_novice1_counter.csv": (8, 8, {"OccupancyPercent": 388.002}),
}
# file: rows, calls, total ns, first name, its ns
STATISTICS = {
    "docs_samples_0.5.0/hip_api_stats.csv": (
        "op",
        17,
        155,
        308269675,
        "hipStreamCreateWithFlags",
        262497406,
    ),
    "readme_snippets/hip_readme_9_kernel_stats.csv": (
        "kernel",
        7,
        6004,
        1267306899,
        "JacobiIterationKernel(int, double, double, double const*",
        545275480,
    ),
    "readme_snippets/pytorch_readme_2_kernel_stats.csv": (
        "kernel",
        9,
        17311,
        95395329,
        "__amd_rocclr_copyBuffer",
        17229993,
    ),
}


@pytest.fixture
def root(shared: Path) -> Path:
    return shared / "fixtures/rocm/rocprofv3"


def ready(trace: Trace) -> Trace:
    assert trace.sources[0].clock is ClockDomain.BOOTTIME
    return trace


@pytest.mark.parametrize("file", KERNELS)
def test_kernels_are_exact_to_the_nanosecond(root: Path, file: str) -> None:
    trace = ready(readers.read(root / file))
    kernels, total, names, first, span, top, top_ns, top_calls, shape = KERNELS[file]
    figures = count(trace)
    assert (figures.kernels, figures.sum_kernel_ns, figures.distinct_kernels, figures.span_ns) == (
        kernels,
        total,
        names,
        span,
    )
    assert int(trace.kernels.start_ns.min()) == first
    row = hotspots.by_kernel(trace).rows[0]
    assert (row.name[: len(top)], row.total_ns, row.calls) == (top, top_ns, top_calls)
    assert (int(trace.kernels.workgroups[0]), int(trace.kernels.workgroup_size_x[0])) == shape


@pytest.mark.slow
def test_the_large_json_has_its_streams_and_one_device(root: Path) -> None:
    trace = readers.read(root / "json/908_results.json.gz")
    assert (count(trace).streams, len(trace.devices), count(trace).unlinked_kernels) == (
        567,
        1,
        None,
    )
    device = trace.devices[0]
    assert (
        device.index,
        device.identity,
        device.name,
        device.compute_units,
        device.dies,
        device.max_clock_mhz,
        device.architecture,
        device.host,
    ) == (
        "2",
        "0000:75:00.0",
        "AMD Instinct MI350X",
        256,
        8,
        2200,
        "gfx950",
        "smci350-zts-gtu-c6-25",
    )
    assert (trace.sources[0].pid, trace.problems) == (908, ())


@pytest.mark.parametrize("name", ["mi300x_batched_gemm_16", "mi300x_ck_gemm_28"])
def test_databases_agree_with_their_own_totals(root: Path, name: str) -> None:
    path = root / f"rocpd/{name}_results.db.gz"
    trace = readers.read(path)
    with sqlite_file.opened(path) as (connection, _):
        vendor = connection.execute(
            "SELECT name, total_calls, total_duration FROM top_kernels"
        ).fetchall()
        regions = connection.execute('SELECT COUNT(*), SUM("end" - start) FROM regions').fetchone()
    rows = {row.name: (row.calls, row.total_ns) for row in hotspots.by_kernel(trace).rows}
    assert rows == {
        kernel: (calls, round(microseconds * 1000)) for kernel, calls, microseconds in vendor
    }
    assert (len(trace.api), int(trace.api.dur_ns.sum())) == regions
    assert link_kernels(trace).linked.all()
    assert (trace.devices[0].name, trace.devices[0].compute_units, trace.devices[0].index) == (
        "AMD Instinct MI300X",
        304,
        "2",
    )
    assert [problem.severity for problem in trace.problems] == ["info"]
    assert "environment" in trace.problems[0].message


@pytest.mark.parametrize("file", CALLS)
def test_calls_are_exact_to_the_nanosecond(root: Path, file: str) -> None:
    trace = ready(readers.read(root / file))
    rows, total, top, top_ns, top_calls, domains = CALLS[file]
    assert (
        len(trace.api),
        int(trace.api.dur_ns.sum()),
        set(trace.strings.decode(trace.api.domain)),
    ) == (rows, total, domains)
    mine = trace.api.take(trace.api.name == trace.strings.find(top))
    assert (int(mine.dur_ns.sum()), len(mine)) == (top_ns, top_calls)


def test_markers_are_ranges(root: Path) -> None:
    trace = ready(readers.read(root / "docs_samples_0.5.0/marker_api_trace.csv"))
    marks = trace.marks
    assert (len(marks), int(marks.dur_ns.sum()), set(trace.strings.decode(marks.kind))) == (
        5,
        4962639,
        {"range"},
    )
    longest = int(marks.name[marks.dur_ns == 1813674][0])
    assert trace.strings[longest] == "hipLaunchKernel range"
    assert len(trace.api) == 0


def test_copies_have_their_directions(root: Path) -> None:
    trace = ready(readers.read(root / "docs_samples_0.5.0/memory_copy_trace.csv"))
    assert (
        int(trace.copies.dur_ns.sum()),
        trace.strings.decode(trace.copies.kind),
        set(trace.copies.bytes.tolist()),
    ) == (1145680, ["h2d", "d2h"], {NULL})
    assert [d.index for d in trace.devices] == ["1"]


@pytest.mark.parametrize("file", COUNTERS)
def test_counters_give_each_dispatch_once(root: Path, file: str) -> None:
    trace = ready(readers.read(root / file))
    rows, dispatches, sums = COUNTERS[file]
    assert (len(trace.counters), len(trace.kernels)) == (rows, dispatches)
    for name, total in sums.items():
        values = trace.counters.value[trace.counters.name == trace.strings.find(name)]
        assert len(values) == dispatches
        assert float(values.sum()) == pytest.approx(total, rel=1e-5)
    timeless = file.startswith("docs_samples")
    assert bool(trace.problems) == timeless
    assert (int(trace.kernels.dur_ns.sum()) == 0) == timeless


@pytest.mark.parametrize("file", STATISTICS)
def test_statistics_are_the_hotspots(root: Path, file: str) -> None:
    trace = readers.read(root / file)
    by, rows, calls, total, name, top_ns = STATISTICS[file]
    table = hotspots.default(trace)
    assert (table.by, len(table.rows), sum(row.calls for row in table.rows), table.total_ns) == (
        by,
        rows,
        calls,
        total,
    )
    first = next(row for row in table.rows if row.name.startswith(name))
    assert (first.total_ns, first.median_ns) == (top_ns, None)
    assert len(trace.kernels) == 0


def test_an_agent_file_gives_the_devices(root: Path) -> None:
    trace = readers.read(root / "csv/gfx950_bank_test_agent_info.csv")
    assert [d.index for d in trace.devices] == [str(n) for n in range(2, 10)]
    assert {
        (d.architecture, d.name, d.compute_units, d.dies, d.max_clock_mhz) for d in trace.devices
    } == {("gfx950", "AMD Radeon Graphics", 256, 8, 2400)}
    assert len({d.identity for d in trace.devices}) == 8
    beside = readers.read(root / "csv/gfx950_bank_test_counter_collection.csv")
    assert beside.devices == trace.devices[:1]


def test_every_recorded_csv_is_recognised(root: Path) -> None:
    files = sorted(root.rglob("*.csv"))
    assert len(files) >= 20
    assert {readers.find_reader(file).name for file in files} == {"rocprofv3-csv"}
    for group in rocprofv3_csv.sets(files):
        trace = readers.read_group(group)
        assert not [problem for problem in trace.problems if problem.severity == "error"]


def test_rocm_profile_data_is_refused_with_a_sentence(shared: Path) -> None:
    with pytest.raises(InputError, match="rocmProfileData") as refused:
        readers.read(shared / "fixtures/rocm/rpd_legacy/matmul_result.rpd.gz")
    assert refused.value.hint


def test_no_other_tools_csv_is_taken(shared: Path) -> None:
    others = [
        path
        for folder in ("rocprof_v1", "rocprof_compute")
        for path in sorted((shared / "fixtures/rocm" / folder).rglob("*.csv"))
    ]
    assert others
    taken = [
        path.name for path in others if rocprofv3_csv.sniff(path.read_bytes()[:4096], path.name)
    ]
    assert taken == []
