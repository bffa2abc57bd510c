"""rocprof-compute: every generation of its counter tables, its machine files and its database."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.kernels import hotspots
from profharness.errors import InputError
from profharness.readers.rocprof_compute import folder as rocprof_compute_folder
from profharness.readers.rocprof_compute import reader as rocprof_compute
from profharness.trace.model import ClockDomain, Trace
from profharness.understand import report_run as understand
from tests import started

COMPUTE = "fixtures/rocm/rocprof_compute"
V1 = (
    "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,"
    "accum_vgpr,sgpr,wave_size,sig,obj,SQ_WAVES,DispatchNs,BeginNs,EndNs,CompleteNs"
)
V2 = (
    "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,"
    "Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,wave_size,obj,"
    "SQ_WAVES,wave_size_1,obj_1,TCC_HIT[0],Start_Timestamp,End_Timestamp"
)
LONG = (
    "GPU_ID,Dispatch_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,Scratch_Per_Workitem,"
    "Arch_VGPR,Accum_VGPR,SGPR,Kernel_Name,Start_Timestamp,"
    "End_Timestamp,Kernel_ID,Counter_Name,Counter_Value"
)


def written(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n")
    return path


def counters(trace: Trace) -> dict[tuple[int, str], float]:
    return {
        (int(kernel), name): value
        for kernel, name, value in zip(
            trace.counters.kernel,
            trace.strings.decode(trace.counters.name),
            trace.counters.value.tolist(),
            strict=True,
        )
    }


class TestWide:
    def test_release_one_has_rocprofs_columns(self, tmp_path: Path) -> None:
        path = written(
            tmp_path / "pmc_perf.csv",
            V1,
            '0,"k(a, b)",2,0,0,5,6,1024,256,0,0,8,0,16,64,0x0,0x1,16,1,100,150,160',
        )
        trace = readers.read(path)
        assert trace.sources[0].format == "rocprof-compute"
        assert (trace.kernels.dur_ns.tolist(), trace.kernels.workgroups.tolist()) == ([50], [4])
        assert counters(trace) == {(0, "SQ_WAVES"): 16.0}
        assert any("no timeline" in p.message for p in trace.problems)

    def test_columns_that_the_join_repeats_are_no_counters(self, tmp_path: Path) -> None:
        path = written(
            tmp_path / "pmc_perf.csv",
            V2,
            '7,"k",2,1000,256,512,0,8,4,16,64,0x1,16,64,0x2,3.5,100,150',
        )
        trace = readers.read(path)
        assert counters(trace) == {(0, "SQ_WAVES"): 16.0, (0, "TCC_HIT[0]"): 3.5}
        assert (
            trace.kernels.workgroups.tolist(),
            trace.kernels.dispatch.tolist(),
            trace.kernels.accum_vgpr.tolist(),
        ) == ([4], [7], [4])

    def test_means_of_times_are_rounded_and_said_to_be_means(self, tmp_path: Path) -> None:
        rows = (
            # 21761.5: half to even
            '0,"k",2,256,256,0,0,8,4,16,64,0x1,16,64,0x2,1,1248227792617386.5,1248227792639148.0',
            '1,"k",2,256,256,0,0,8,4,16,64,0x1,16,64,0x2,1,100.25,150.75',
        )
        trace = readers.read(written(tmp_path / "pmc_perf.csv", V2, *rows))
        assert trace.kernels.dur_ns.tolist() == [21762, 50]
        assert trace.kernels.start_ns.tolist() == [1248227792617386, 100]
        assert any("means over executions" in p.message for p in trace.problems)

    def test_a_spreadsheets_times_leave_the_counters(self, tmp_path: Path) -> None:
        trace = readers.read(
            written(
                tmp_path / "pmc_perf.csv",
                V2,
                '0,"k",2,256,256,0,0,8,4,16,64,0x1,16,64,0x2,1,8.1097E+14,8.1097E+14',
            )
        )
        assert counters(trace)[0, "SQ_WAVES"] == 16.0
        assert trace.sources[0].clock is ClockDomain.UNKNOWN
        assert [(p.severity, p.count) for p in trace.problems] == [("error", 1)]
        assert "spreadsheet" in trace.problems[0].message

    def test_without_counters_such_a_file_is_refused(self, tmp_path: Path) -> None:
        path = written(
            tmp_path / "timestamps.csv",
            "Dispatch_ID,GPU_ID,Kernel_Name,Start_Timestamp,End_Timestamp",
            "0,1,k,8.1E+14,8.2E+14",
        )
        with pytest.raises(InputError, match="spreadsheet"):
            readers.read(path)

    def test_a_field_that_is_empty_is_no_value(self, tmp_path: Path) -> None:
        trace = readers.read(
            written(
                tmp_path / "pmc_perf.csv", V2, '0,"k",2,256,256,0,0,8,4,16,64,0x1,,64,0x2,1,100,150'
            )
        )
        assert counters(trace) == {(0, "TCC_HIT[0]"): 1.0}


class TestLong:
    def test_one_kernel_per_dispatch(self, tmp_path: Path) -> None:
        rows = [
            f'0,{dispatch},512,256,0,0,8,0,16,"k<a, b>",{begin},{begin + 40},3,{name},{value}'
            for dispatch, begin in ((4, 1000), (2, 500))
            for name, value in (("SQ_WAVES", 8 + dispatch), ("GRBM_COUNT", 1.5))
        ]
        trace = readers.read(written(tmp_path / "pmc_perf.csv", LONG, *rows))
        assert trace.kernels.dispatch.tolist() == [4, 2]  # in the order of the file
        assert trace.kernels.dur_ns.tolist() == [40, 40]
        assert counters(trace) == {
            (0, "SQ_WAVES"): 12.0,
            (0, "GRBM_COUNT"): 1.5,
            (1, "SQ_WAVES"): 10.0,
            (1, "GRBM_COUNT"): 1.5,
        }

    def test_a_value_that_is_no_number_is_counted(self, tmp_path: Path) -> None:
        rows = [
            '0,1,512,256,0,0,8,0,16,"k",100,140,3,SQ_WAVES,8',
            '0,1,512,256,0,0,8,0,16,"k",100,140,3,GRBM_COUNT,?',
        ]
        trace = readers.read(written(tmp_path / "pmc_perf.csv", LONG, *rows))
        assert counters(trace) == {(0, "SQ_WAVES"): 8.0}
        assert any(p.count == 1 and "no numbers" in p.message for p in trace.problems)


class TestMachine:
    def test_device_facts_come_from_the_file_beside(self, tmp_path: Path) -> None:
        written(
            tmp_path / "sysinfo.csv",
            "command,hostname,rocm_version,gpu_model,gpu_arch,cu_per_gpu,num_xcd,max_sclk",
            '"./run --secret x",node1,6.4.1,MI300X_A1,gfx942,304,8,0',
        )
        trace = rocprof_compute.read(
            written(
                tmp_path / "pmc_perf.csv",
                V2,
                '0,"k",2,256,256,0,0,8,4,16,64,0x1,16,64,0x2,1,100,150',
            )
        )
        device = trace.devices[0]
        assert (
            device.index,
            device.host,
            device.name,
            device.architecture,
            device.compute_units,
            device.dies,
            device.max_clock_mhz,
        ) == ("2", "node1", "MI300X_A1", "gfx942", 304, 8, None)
        assert ("rocm_version", "6.4.1") in trace.sources[0].details
        assert "secret" not in str(trace.sources[0].details)
        assert rocprof_compute_folder.read(tmp_path).kernels.dur_ns.tolist() == [50]

    def test_a_folder_without_counters(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match=r"holds no pmc_perf\.csv"):
            rocprof_compute_folder.read(tmp_path)

    def test_kernels_by_their_sums(self, tmp_path: Path) -> None:
        path = written(
            tmp_path / "pmc_kernel_top.csv",
            "Kernel_Name,Count,Sum(us),Mean(us),Median(us),Pct",
            '"k(a,\n b)",3,6.25,2,2,100',
        )
        assert [
            (row.name, row.calls, row.total_ns) for row in hotspots.default(readers.read(path)).rows
        ] == [("k(a, b)", 3, 6250)]

    def test_ceilings_and_metrics_are_details(self, tmp_path: Path) -> None:
        ceilings = readers.read(
            written(
                tmp_path / "roofline.csv",
                "device,HBMBw,HBMBwLow,hbmBwHigh,MFMAF16Flops",
                "0,4171.5,4169,4173,926342.4",
            )
        )
        assert ceilings.sources[0].details == (
            ("HBMBw of device 0", "4171.5 GB/s"),
            ("MFMAF16Flops of device 0", "926342.4 GFLOP/s"),
        )
        metrics = readers.read(
            written(
                tmp_path / "2.1_Speed-of-Light.csv",
                "Metric,Avg,Unit,Peak,Pct of Peak",
                "VALU IOPs,2852.58,Giop,81715.2,3.49",
            )
        )
        assert metrics.sources[0].details == (("VALU IOPs", "2852.58 Giop"),)


class TestFolder:
    ROW = '0,"k",2,256,256,0,0,8,4,16,64,0x1,16,64,0x2,1,100,150'

    @pytest.mark.parametrize("below", ["", "MI300X", "vcopy/MI300X"])
    def test_the_joined_counters_are_read_once(self, tmp_path: Path, below: str) -> None:
        folder = tmp_path / below
        folder.mkdir(parents=True, exist_ok=True)
        for name in ("pmc_perf.csv", "pmc_perf_0.csv", "SQ_LEVEL_WAVES.csv", "timestamps.csv"):
            written(folder / name, V2, self.ROW)
        written(folder / "roofline.csv", "device,HBMBw,MFMAF16Flops", "0,4171.5,926342.4")
        loaded = understand.load([tmp_path])
        assert (len(loaded.trace.kernels), len(loaded.trace.sources)) == (1, 1)
        assert ("HBMBw of device 0", "4171.5 GB/s") in loaded.trace.sources[0].details
        assert loaded.manifest is None

    def test_two_models_have_to_be_told_apart(self, tmp_path: Path) -> None:
        for model in ("MI210", "MI300X"):
            (tmp_path / model).mkdir()
            written(tmp_path / model / "pmc_perf.csv", V2, self.ROW)
        with pytest.raises(InputError, match="holds 2 workloads"):
            understand.load([tmp_path])

    def test_another_folder_is_no_run(self, tmp_path: Path) -> None:
        with pytest.raises(InputError, match="is not a run directory"):
            understand.load([tmp_path])

    @pytest.mark.parametrize(
        ("folder", "kernels", "total", "counted"),
        [
            ("bank_conflict_MI300X", 1, 6249, 550),
            ("vcopy_MI100", 3, 62560, 2847),
            ("vcopy_MI300X", 3, 0, 7995),
            ("vcopy_MI350_v3", 3, 55546, 3063),
        ],
    )
    def test_recorded_folders_of_every_generation(
        self, shared: Path, folder: str, kernels: int, total: int, counted: int
    ) -> None:
        trace = understand.load([shared / COMPUTE / folder]).trace
        assert (len(trace.kernels), int(trace.kernels.dur_ns.sum()), len(trace.counters)) == (
            kernels,
            total,
            counted,
        )
        assert trace.devices[0].compute_units is not None

    def test_recorded_tables_of_analyze(self, shared: Path) -> None:
        trace = understand.load([shared / COMPUTE / "analyze_csv_MI300X"]).trace
        assert [(row.name, row.calls, row.total_ns) for row in hotspots.default(trace).rows] == [
            ("transpose_conflict(float*, float const*, int, int) [clone .kd]", 1, 10_000)
        ]
        assert {len(source.details) for source in trace.sources} == {0, 5, 10, 31}

    def test_the_commands_take_a_folder(self, tmp_path: Path) -> None:
        written(tmp_path / "pmc_perf.csv", V2, self.ROW)
        for words, said in (
            (("hotspots",), "by kernel, 50 ns in 1 calls"),
            (("metrics",), "on no common timeline"),
        ):
            done = started.run(*words, str(tmp_path))
            assert (done.returncode, said in done.stdout) == (0, True), done.stderr


class TestDatabase:
    def test_dispatches_with_their_kernels(self, tmp_path: Path) -> None:
        path = tmp_path / "rocprof_compute_0123.db"
        with sqlite3.connect(path) as made:
            made.execute(
                "CREATE TABLE compute_kernel (kernel_uuid INTEGER PRIMARY KEY, "
                "workload_id INTEGER, kernel_name VARCHAR)"
            )
            made.execute(
                "CREATE TABLE compute_dispatch (dispatch_uuid INTEGER PRIMARY KEY, "
                "kernel_uuid INTEGER, dispatch_id INTEGER, "
                "gpu_id INTEGER, start_timestamp INTEGER, end_timestamp INTEGER)"
            )
            made.execute("INSERT INTO compute_kernel VALUES (1, 1, 'k<a>'), (2, 1, 'q')")
            made.execute(
                "CREATE VIEW all_kernels AS SELECT kernel_uuid, kernel_name, workload_id, "
                "1 AS calls, 2 AS total FROM compute_kernel"
            )
            made.execute(
                "INSERT INTO compute_dispatch VALUES (1, 2, 0, 3, 1000, 1500), (2, 1, 1, 3, "
                "1248227792617386.5, 1248227792639148.5)"
            )
        made.close()
        trace = readers.read(path)
        assert trace.sources[0].format == "rocprof-compute-db"
        assert trace.strings.decode(trace.kernels.name) == ["q", "k<a>"]
        assert trace.kernels.dur_ns.tolist() == [500, 21762]


# file: rows, sum of durations (ns), sums of counters
RECORDED = {
    "bank_conflict_MI300X/pmc_perf.csv": (
        1,
        6249,
        {"SQ_WAVES": 16384, "GRBM_GUI_ACTIVE": 156660, "GRBM_COUNT": 156660},
    ),
    "bank_conflict_MI300X/SQ_LEVEL_WAVES.csv": (
        1,
        6249,
        {"SQ_WAVES": 16384, "GRBM_GUI_ACTIVE": 174757},
    ),
    "bank_conflict_MI300X/SQ_INST_LEVEL_LDS.csv": (1, 6249, {}),
    "bank_conflict_MI300X/timestamps.csv": (1, 6249, {}),
    "vcopy_MI100/pmc_perf.csv": (
        3,
        62560,
        {"SQ_WAVES": 49152, "GRBM_GUI_ACTIVE": 135987, "GRBM_COUNT": 135987},
    ),
    "vcopy_MI100/SQ_LEVEL_WAVES.csv": (3, 62560, {"SQ_WAVES": 49152, "GRBM_COUNT": 135318}),
    "vcopy_MI100/SQ_INST_LEVEL_LDS.csv": (3, 62560, {}),
    "vcopy_MI100/timestamps.csv": (3, 62560, {}),
    "vcopy_MI300X/pmc_perf.csv": (3, 0, {"SQ_WAVES": 49152, "GRBM_COUNT": 7602850}),
    "vcopy_MI300X/SQ_LEVEL_WAVES.csv": (3, 0, {"SQ_WAVES": 49152, "GRBM_COUNT": 1357650}),
    "vcopy_MI350_v3/pmc_perf.csv": (
        3,
        55546,
        {"SQ_WAVES": 49152, "GRBM_GUI_ACTIVE": 205976, "GRBM_COUNT": 205112},
    ),
    "vcopy_MI350_v3/pmc_perf_0.csv": (3, 55478, {}),
    "vcopy_MI350_v3/pmc_perf_1.csv": (3, 55998, {}),
    "vcopy_MI350_v3/pmc_perf_2.csv": (3, 55317, {}),
    "vcopy_MI350_v3/SQ_LEVEL_WAVES.csv": (3, 55360, {}),
    "vcopy_MI350_v3/SQ_INST_LEVEL_LDS.csv": (3, 55438, {}),
}


class TestRecorded:
    @pytest.mark.parametrize("file", RECORDED)
    def test_durations_and_counters(self, shared: Path, file: str) -> None:
        rows, total, sums = RECORDED[file]
        trace = readers.read(shared / COMPUTE / file)
        assert (len(trace.kernels), int(trace.kernels.dur_ns.sum())) == (rows, total)
        for name, expected in sums.items():
            value = float(
                trace.counters.value[trace.counters.name == trace.strings.find(name)].sum()
            )
            assert float(f"{value:.6g}") == float(f"{expected:.6g}")
        assert any(p.severity == "error" for p in trace.problems) == (total == 0)

    def test_the_damaged_timestamps(self, shared: Path) -> None:
        with pytest.raises(InputError, match="spreadsheet"):
            readers.read(shared / COMPUTE / "vcopy_MI300X/timestamps.csv")

    @pytest.mark.parametrize(
        ("run", "model", "units", "dies"),
        [
            ("bank_conflict_MI300X", "MI300X_A1", 304, 8),
            ("vcopy_MI100", "MI100", 120, 1),
            ("vcopy_MI300X", "MI300X_A1", 304, 8),
            ("vcopy_MI350_v3", "MI350", 128, 8),
        ],
    )
    def test_machines(self, shared: Path, run: str, model: str, units: int, dies: int) -> None:
        for file in ("sysinfo.csv", "pmc_perf.csv"):
            device = readers.read(shared / COMPUTE / run / file).devices[0]
            assert (device.name, device.compute_units, device.dies) == (model, units, dies)

    def test_statistics_of_kernels_are_those_of_the_dispatches(self, shared: Path) -> None:
        folder = shared / COMPUTE / "bank_conflict_MI300X"
        printed = hotspots.default(readers.read(folder / "pmc_kernel_top.csv")).rows
        measured = hotspots.default(readers.read(folder / "pmc_perf.csv")).rows
        assert [(r.name, r.calls, r.total_ns) for r in printed] == [
            (r.name, r.calls, r.total_ns) for r in measured
        ]

    @pytest.mark.parametrize(
        ("file", "rows"),
        [
            ("0.1_Top_Kernels.csv", 0),
            ("12.2_LDS_Stats.csv", 10),
            ("17.1_Speed-of-Light.csv", 5),
            ("2.1_Speed-of-Light.csv", 31),
        ],
    )
    def test_tables_of_analyze(self, shared: Path, file: str, rows: int) -> None:
        trace = readers.read(shared / COMPUTE / "analyze_csv_MI300X" / file)
        assert len(trace.sources[0].details) == rows
        assert len(trace.statistics) == (rows == 0)
