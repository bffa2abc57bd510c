"""Counters of several executions: a dispatch that all of them recorded is one call, before the
tool's own analysis and after it, in every form that a release leaves.

Sums are worked out anew here, row by row, by the csv module.
"""

from __future__ import annotations

import csv
import gzip
from collections.abc import Iterable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness import readers
from profharness.readers.rocprof_compute import folder as workload_folder
from profharness.readers.rocprof_compute import reader
from profharness.trace.model import Trace
from profharness.understand import report_run as understand
from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import GpuAgent, Kernel, Program, Symbol

RECORDED = "fixtures/rocm-new/rocprof_compute/rdna35_krackan2_3.7.0"
HEAD = (
    "GPU_ID,GUID,Correlation_Id,Dispatch_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,"
    "Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Kernel_Name,Start_Timestamp,End_Timestamp,"
    "Kernel_ID,Counter_Name,Counter_Value"
)
Row = tuple[str, int, str, int, str, float]
"""Of one value: GUID, dispatch, kernel, begin, counter, value. Every launch takes 40 ns."""


def line(row: Row) -> str:
    guid, dispatch, kernel, begin, counter, value = row
    return (
        f'1,{guid},1,{dispatch},512,256,0,0,8,4,16,"{kernel}",{begin},{begin + 40},3,'
        f"{counter},{value}"
    )


def table(path: Path, rows: Iterable[Row]) -> Path:
    text = "\n".join((HEAD, *map(line, rows))) + "\n"
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


def execution(
    number: int,
    *,
    counters: tuple[str, ...] | None = None,
    processes: int = 2,
    dispatches: int = 3,
    first: int = 0,
) -> list[Row]:
    """The rows of one execution: each process launches as many kernels, a quarter apart."""
    return [
        (
            f"guid-{number}-{process}",
            first + dispatch,
            f"k{process}<{dispatch % 2}, int>",
            10_000 * number + 1_000 * process + 100 * dispatch,
            counter,
            float(100 * process + 10 * dispatch + place),
        )
        for process in range(processes)
        for dispatch in range(dispatches)
        for place, counter in enumerate(counters or (f"A{number}", f"B{number}"))
    ]


def sums(trace: Trace) -> dict[tuple[str, str], float]:
    """The sum of each counter by kernel name."""
    found: dict[tuple[str, str], float] = {}
    kernels = trace.strings.decode(trace.kernels.name)
    for kernel, name, value in zip(
        trace.counters.kernel.tolist(),
        trace.strings.decode(trace.counters.name),
        trace.counters.value.tolist(),
        strict=True,
    ):
        key = (kernels[kernel], name)
        found[key] = found.get(key, 0.0) + value
    return found


def summed(rows: Iterable[Row]) -> dict[tuple[str, str], float]:
    found: dict[tuple[str, str], float] = {}
    for _, _, kernel, _, counter, value in rows:
        found[kernel, counter] = found.get((kernel, counter), 0.0) + value
    return found


def said(trace: Trace, words: str) -> bool:
    return any(words in problem.message for problem in trace.problems)


def test_tables_that_hold_nothing_are_named_in_a_folder(tmp_path: Path) -> None:
    table(tmp_path / "results_pmc_perf_0.csv", execution(0))
    (tmp_path / "results_pmc_perf_1.csv").write_bytes(b"")
    (tmp_path / "results_pmc_perf_2.csv").write_text("a,b\n1,2\n")
    (tmp_path / "sysinfo.csv").write_text("gpu_arch,gpu_model,num_xcd\ngfx942,MI300X,8\n")
    trace = workload_folder.read(tmp_path)
    assert sums(trace) == summed(execution(0))
    lost = [(Path(one.source).name, one.severity) for one in trace.problems[:2]]
    assert lost == [("results_pmc_perf_1.csv", "error"), ("results_pmc_perf_2.csv", "error")]
    (tmp_path / "results_pmc_perf_0.csv").unlink()
    (one,) = [one for one in workload_folder.read(tmp_path).problems if one.severity == "error"]
    assert (one.count, one.source) == (2, str(tmp_path))
    assert one.message.startswith(
        "no table of an execution holds a dispatch: rocprof-compute's filter by"
    )
    (tmp_path / "results_pmc_perf_2.csv").unlink()
    assert said(workload_folder.read(tmp_path), "is empty; its counters are left out")
    table(tmp_path / "pmc_perf.csv", execution(0))
    assert not said(workload_folder.read(tmp_path), "left out")


class TestOneCall:
    @pytest.mark.parametrize("suffix", ["", ".gz"])
    @pytest.mark.parametrize("first", [0, 1])
    @pytest.mark.parametrize("state", ["before analyze", "after it", "both"])
    def test_of_two_processes_in_three_executions(
        self, tmp_path: Path, state: str, first: int, suffix: str
    ) -> None:
        parts = [execution(number, first=first) for number in range(3)]
        if state != "after it":
            for number, rows in enumerate(parts):
                table(tmp_path / f"results_pmc_perf_{number}.csv{suffix}", rows)
        if state != "before analyze":
            table(tmp_path / f"pmc_perf.csv{suffix}", [row for rows in parts for row in rows])
        trace = understand.load([tmp_path]).trace
        assert (len(trace.kernels), int(trace.kernels.dur_ns.sum())) == (6, 240)
        assert sorted(trace.kernels.start_ns.tolist()) == [0, 100, 200, 1000, 1100, 1200]
        assert sums(trace) == summed(row for rows in parts for row in rows)
        assert said(trace, "3 executions recorded the same 6 dispatches")

    def test_loose_files_are_one_workload_too(self, tmp_path: Path) -> None:
        paths = [
            table(tmp_path / f"results_pmc_perf_{number}.csv", execution(number))
            for number in range(3)
        ]
        assert readers.group_files(paths) == [tuple(paths)]
        assert len(understand.load(paths).trace.kernels) == 6
        # the table of all of them is among `*.csv`
        paths.append(table(tmp_path / "pmc_perf.csv", execution(0)))
        assert len(understand.load(paths).trace.kernels) == 6
        assert len(readers.read(paths[1]).kernels) == 6

    def test_several_instances_of_a_counter_count_and_repeated_ones_do_not(
        self, tmp_path: Path
    ) -> None:
        rows: list[Row] = [
            ("a", 0, "k", 100, "TCC_HIT", 3.0),
            ("a", 0, "k", 100, "TCC_HIT", 4.0),
            ("b", 0, "k", 900, "TCC_HIT", 50.0),
            ("b", 0, "k", 900, "GRBM_COUNT", 9.0),
        ]
        for number, guid in enumerate("ab"):
            table(
                tmp_path / f"results_pmc_perf_{number}.csv", [row for row in rows if row[0] == guid]
            )
        trace = workload_folder.read(tmp_path)
        assert sums(trace) == {("k", "TCC_HIT"): 7.0, ("k", "GRBM_COUNT"): 9.0}
        assert trace.kernels.start_ns.tolist() == [100]

    def test_another_kernel_under_the_same_number_is_said_and_not_counted(
        self, tmp_path: Path
    ) -> None:
        table(tmp_path / "results_pmc_perf_0.csv", [("a", 0, "k", 100, "A", 3.0)])
        table(
            tmp_path / "results_pmc_perf_1.csv",
            [("b", 0, "other", 900, "B", 5.0), ("b", 0, "other", 900, "C", 5.0)],
        )
        trace = workload_folder.read(tmp_path)
        assert sums(trace) == {("k", "A"): 3.0}
        (problem,) = [row for row in trace.problems if "another kernel" in row.message]
        assert (problem.severity, problem.count) == ("warning", 1)

    def test_a_launch_that_only_a_later_execution_has_counts_too(self, tmp_path: Path) -> None:
        table(tmp_path / "results_pmc_perf_0.csv", execution(0, processes=1, dispatches=2))
        table(tmp_path / "results_pmc_perf_1.csv", execution(1, processes=1, dispatches=3))
        assert len(workload_folder.read(tmp_path).kernels) == 3

    def test_tables_with_a_column_per_counter(self, tmp_path: Path) -> None:
        head = "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,{},Start_Timestamp,"
        for number, counter in enumerate(("SQ_WAVES", "GRBM_COUNT")):
            (tmp_path / f"pmc_perf_{number}.csv").write_text(
                f"{head.format(counter)}End_Timestamp\n0,k,1,512,256,{number + 7},100,150\n"
                f"1,k,1,512,256,{number + 70},200,250\n"
            )
        trace = workload_folder.read(tmp_path)
        assert (len(trace.kernels), int(trace.kernels.dur_ns.sum())) == (2, 100)
        assert sums(trace) == {("k", "SQ_WAVES"): 77.0, ("k", "GRBM_COUNT"): 79.0}
        assert trace.kernels.workgroups.tolist() == [2, 2]

    def test_a_cut_table_of_one_execution_leaves_the_others(self, tmp_path: Path) -> None:
        table(tmp_path / "results_pmc_perf_0.csv", execution(0))
        whole = table(tmp_path / "results_pmc_perf_1.csv.gz", execution(1))
        whole.write_bytes(whole.read_bytes()[:-30])
        trace = workload_folder.read(tmp_path)
        assert len(trace.kernels) == 6
        assert any(row.severity == "error" for row in trace.problems)

    @given(
        executions=st.integers(1, 5),
        processes=st.integers(1, 4),
        dispatches=st.integers(1, 5),
        first=st.integers(0, 1),
    )
    def test_any_number_of_them(
        self,
        tmp_path_factory: pytest.TempPathFactory,
        executions: int,
        processes: int,
        dispatches: int,
        first: int,
    ) -> None:
        rows = [
            row
            for number in range(executions)
            for row in execution(number, processes=processes, dispatches=dispatches, first=first)
        ]
        path = table(tmp_path_factory.mktemp("long") / "pmc_perf.csv", rows)
        trace = reader.read(path)
        assert len(trace.kernels) == processes * dispatches
        assert int(trace.kernels.dur_ns.sum()) == 40 * processes * dispatches
        assert sums(trace) == summed(rows)


class TestOneExecution:
    def test_its_coverage_is_told(self, tmp_path: Path) -> None:
        """Of two processes each launch carries one counter of three; `rare` was launched once."""
        rows: list[Row] = [
            (guid, launch, "often", begin + launch * 100, counter, float(launch))
            for guid, begin in (("a", 0), ("b", 50_000))
            for launch, counter in enumerate(("A", "B", "C", "A"))
        ]
        rows.append(("a", 9, "rare", 5000, "A", 7.0))
        for name in ("results_pmc_perf_0.csv", "pmc_perf.csv"):
            folder = tmp_path / name.removesuffix(".csv")
            folder.mkdir()
            table(folder / name, rows)
            trace = workload_folder.read(folder)
            assert len(trace.kernels) == 9
            assert sums(trace) == summed(rows)
            assert said(trace, "a dispatch carries 1 of 3 counters on average")
            assert said(trace, "launched too few times to have all: rare")
            assert not said(trace, "executions recorded the same")


class TestDatabases:
    @staticmethod
    def program(pid: int, execution: int, counter: str) -> Program:
        begin = 10_000 * execution + pid
        kernels = tuple(
            Kernel(
                symbol=1,
                start=begin + 100 * number,
                end=begin + 100 * number + 40,
                agent=2,
                dispatch=number + 1,
                correlation=number + 1,
                grid=(512, 2, 1),
                size=(256, 1, 1),
                counters=((counter, (float(pid + number), 1.0)),),
            )
            for number in range(3)
        )
        return Program(
            host="node1",
            pid=pid,
            agents=(GpuAgent(2, 11),),
            symbols=(Symbol(1, "k<int>"),),
            kernels=kernels,
        )

    def test_databases_of_single_processes_and_executions(self, tmp_path: Path) -> None:
        (tmp_path / "sysinfo.csv").write_text(
            "workload_path,hostname,gpu_model,gpu_arch,cu_per_gpu,num_xcd,max_sclk\n"
            "w,node1,MI300X_A1,gfx942,304,8,2100\n"
        )
        for number, counter in enumerate(("SQ_WAVES", "GRBM_COUNT")):
            for pid in (71 + 10 * number, 72 + 10 * number):
                path = tmp_path / "out" / f"pmc_perf_{number}" / str(pid) / f"{pid}.db"
                path.parent.mkdir(parents=True)
                write_rocpd(path, self.program(pid, number, counter))
        trace = understand.load([tmp_path]).trace
        assert (len(trace.kernels), int(trace.kernels.dur_ns.sum())) == (6, 240)
        assert trace.kernels.workgroups.tolist() == [4] * 6
        assert sums(trace) == {
            ("k<int>", "SQ_WAVES"): sum(71 + n + 1 for n in range(3))
            + sum(73 + n for n in range(3)),
            ("k<int>", "GRBM_COUNT"): sum(82 + n for n in range(3)) + sum(83 + n for n in range(3)),
        }
        assert said(trace, "2 executions recorded the same 6 dispatches")
        assert trace.devices[0].compute_units == 304
        # the databases of a folder without the tool's other files are not its own
        (tmp_path / "sysinfo.csv").unlink()
        assert not workload_folder.holds(tmp_path)


class TestRecorded:
    """Version 3.7.0 on an APU: three of 17 executions of vcopy, three launches each."""

    FILES = ("results_pmc_perf_0.csv", "results_pmc_perf_10.csv", "results_pmc_perf_14.csv")

    def rows(self, shared: Path, file: str) -> list[dict[str, str]]:
        with (shared / RECORDED / file).open(newline="") as text:
            return list(csv.DictReader(text))

    @pytest.mark.parametrize("file", FILES)
    def test_each_table(self, shared: Path, file: str) -> None:
        rows = self.rows(shared, file)
        trace = readers.read(shared / RECORDED / file)
        launches = {
            row["Dispatch_ID"]: int(row["End_Timestamp"]) - int(row["Start_Timestamp"])
            for row in rows
        }
        assert len(trace.kernels) == len(launches) == 3
        assert int(trace.kernels.dur_ns.sum()) == sum(launches.values())
        assert len(trace.counters) == len(rows)
        expected: dict[tuple[str, str], float] = {}
        for row in rows:
            key = (row["Kernel_Name"], row["Counter_Name"])
            expected[key] = expected.get(key, 0.0) + float(row["Counter_Value"])
        assert sums(trace) == expected
        assert trace.kernels.workgroups.tolist() == [1048576 // 256] * 3

    def test_the_folder_counts_each_launch_once(self, shared: Path, tmp_path: Path) -> None:
        every = [row for file in self.FILES for row in self.rows(shared, file)]
        first = {
            row["Dispatch_ID"]: int(row["End_Timestamp"]) - int(row["Start_Timestamp"])
            for row in self.rows(shared, self.FILES[0])
        }
        trace = understand.load([shared / RECORDED]).trace
        assert (len(trace.kernels), len(trace.counters)) == (3, len(every))
        assert int(trace.kernels.dur_ns.sum()) == sum(first.values())
        # as `analyze` writes them, one after the other
        joined = tmp_path / "pmc_perf.csv"
        with joined.open("w", newline="") as file:
            writer = csv.DictWriter(file, every[0], lineterminator="\n")
            writer.writeheader()
            writer.writerows(every)
        after = readers.read(joined)
        assert sums(after) == sums(trace)
        assert after.kernels.start_ns.tolist() == trace.kernels.start_ns.tolist()

    def test_the_machine(self, shared: Path) -> None:
        device = understand.load([shared / RECORDED]).trace.devices[0]
        with (shared / RECORDED / "sysinfo.csv").open(newline="") as text:
            (facts,) = csv.DictReader(text)
        assert (device.architecture, device.compute_units, device.dies, device.max_clock_mhz) == (
            facts["gpu_arch"],
            int(facts["cu_per_gpu"]),
            int(facts["num_xcd"]),
            int(facts["max_sclk"]),
        )

    @pytest.mark.parametrize(
        "file",
        [
            "sysinfo/MI300A_ml_api_trace_7.12.csv",
            "sysinfo/MI350_num_memory_channels.csv",
            "sysinfo/RDNA35_HALO_7.12.csv",
        ],
    )
    @pytest.mark.parametrize("ends", ["\n", "\r\n"])
    def test_facts_in_every_spelling(
        self, shared: Path, tmp_path: Path, file: str, ends: str
    ) -> None:
        text = (shared / RECORDED).parent.joinpath(file).read_text()
        (facts,) = csv.DictReader(text.splitlines())
        path = tmp_path / "sysinfo.csv"
        path.write_bytes("".join(f"{row}{ends}" for row in text.splitlines()).encode())
        trace = readers.read(path)
        device, details = trace.devices[0], dict(trace.sources[0].details)
        clock = float(facts["max_sclk"] or 0)
        assert (device.host, device.architecture, device.compute_units, device.dies) == (
            facts["hostname"],
            facts["gpu_arch"],
            int(facts["cu_per_gpu"]),
            int(facts["num_xcd"]),
        )
        assert device.max_clock_mhz == (clock or None)
        channels = facts.get("num_memory_channels") or facts.get("num_hbm_channels")
        assert details.get("memory_channels") == channels
        assert details.get("compute_partition") == {"N/A": None}.get(
            facts["compute_partition"], facts["compute_partition"]
        )
        assert "command" not in details
