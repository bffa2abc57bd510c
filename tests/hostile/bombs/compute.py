"""What counts inside of kernels: folders of rocprof-compute, and samples of the program counter."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.fakes.amd_tools.compute_files import write_analysis_database, write_workload
from tests.fakes.code_files import HOST_TRAP, STOCHASTIC, THREAD_TRACE
from tests.hostile.bombs.bomb import Bomb, lines, pack, pack_file, plain, scaled

_WIDE = (
    "Dispatch_ID,Kernel_Name,GPU_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,"
    "Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Wave_Size,Correlation_ID,Kernel_ID"
)
_LONG = (
    "GPU_ID,GUID,Correlation_Id,Dispatch_ID,Grid_Size,Workgroup_Size,LDS_Per_Workgroup,"
    "Scratch_Per_Workitem,Arch_VGPR,Accum_VGPR,SGPR,Kernel_Name,Start_Timestamp,End_Timestamp,"
    "Kernel_ID,Counter_Name,Counter_Value"
)


def _workload(folder: Path, version: tuple[int, ...]) -> Path:
    """A folder with sysinfo.csv, and no counters yet."""
    made = folder / "made"
    one = [
        {
            "pid": 7,
            "kernels": [
                {"name": "k", "call": 1, "start": 2, "end": 9, "workgroups": 1, "size": 64}
            ],
        }
    ]
    write_workload(made, version, [one])
    target = folder / "workload"
    target.mkdir()
    shutil.copy(made / "sysinfo.csv", target / "sysinfo.csv")
    shutil.rmtree(made)
    return target


def wide(folder: Path, scale: float, *, kernels: int, counters: int, length: int = 0) -> Path:
    """pmc_perf.csv of the older form: a column for each counter."""
    kernels, counters = scaled(kernels, scale), scaled(counters, scale)
    target = _workload(folder, (2, 0, 0))

    def rows() -> Iterator[str]:
        names = "".join(f",C{n}_sum" for n in range(counters))
        yield f"{_WIDE}{names},Start_Timestamp,End_Timestamp\n"
        cells = ",5" * counters
        for n in range(kernels):
            at = 10**12 + 1000 * n
            name = f"k{n if length else n % 9}{'<a>' * (length // 3)}"
            yield f'{n},"{name}",1,256,64,0,0,8,0,16,64,{n},1{cells},{at},{at + 500}\n'

    pack(target / "pmc_perf.csv.gz", rows())
    return target


def long(folder: Path, scale: float, *, rows: int, counters: int, guids: int) -> Path:
    """results_pmc_perf_0.csv.gz of the newer form: a row for each value, of many processes."""
    count = scaled(rows, scale)
    target = _workload(folder, (3, 10, 0))

    def parts() -> Iterator[str]:
        yield f"{_LONG}\n"
        for n in range(count):
            dispatch = n // 4 + 1
            at = 10**12 + 1000 * dispatch
            guid = f"{dispatch % guids:08x}-0000-7000-8000-000000000007"
            yield (
                f"1,{guid},{dispatch},{dispatch},256,64,0,0,8,0,16,k{dispatch % 99},{at},"
                f"{at + 500},1,C{n % counters},5.0\n"
            )

    pack(target / "results_pmc_perf_0.csv.gz", parts())
    return target


def executions(folder: Path, scale: float, *, count: int) -> Path:
    """A folder of hundreds of executions, each with a table of its own."""
    count = scaled(count, scale)
    target = _workload(folder, (3, 10, 0))
    for number in range(count):
        guid = f"{number:08x}-0000-7000-8000-000000000007"
        rows = (
            f"1,{guid},{n},{n},256,64,0,0,8,0,16,k{n % 9},{10**12 + n},{10**12 + n + 5},1,"
            f"C{number},5.0\n"
            for n in range(1, 200)
        )
        pack(target / f"results_pmc_perf_{number}.csv.gz", (f"{_LONG}\n", *rows))
    return target


def analysed(folder: Path, scale: float, *, kernels: int, metrics: int) -> Path:
    """An analysis database of thousands of kernels and metrics."""
    kernels, metrics = scaled(kernels, scale), scaled(metrics, scale)
    path = folder / "rocprof_compute_x.db"
    write_analysis_database(path)
    database = sqlite3.connect(path)
    with database:
        database.executemany(
            "INSERT INTO compute_kernel VALUES (?, 1, ?)",
            ((10 + n, f"k{n}") for n in range(kernels)),
        )
        database.executemany(
            "INSERT INTO compute_dispatch VALUES (?, ?, ?, 0, ?, ?)",
            ((10 + n, 10 + n, 10 + n, n, n + 5) for n in range(kernels)),
        )
        database.executemany(
            "INSERT INTO compute_metric_definition VALUES (?, 1, ?, ?, '', 'T', '', 'Gflop/s')",
            ((10 + n, f"M{n}", f"2.1.{n}") for n in range(metrics)),
        )
        database.executemany(
            "INSERT INTO compute_kernel_metric_value VALUES (?, ?, ?, 'Avg', 1.5)",
            (
                (10 + n * metrics + m, 10 + m, 10 + n)
                for n in range(kernels)
                for m in range(metrics)
            ),
        )
    database.close()
    return pack_file(path)


def samples(folder: Path, scale: float, *, count: int, lines_of: int) -> Path:
    """Samples of the program counter, at as many places."""
    count = scaled(count, scale)

    def rows() -> Iterator[str]:
        yield ",".join(STOCHASTIC) + "\n"
        for n in range(count):
            yield (
                f"{10**12 + n},{(1 << 64) - 1 >> n % 60},{n % 99_999 + 1},"
                f'"v_add_f32 v{n % lines_of}","/a.cpp:{n % lines_of}",'
                f"{n},0,T_VALU,REASON_{n % 999},4\n"
            )

    return pack(folder / "7_pc_sampling_stochastic.csv.gz", rows())


def host_trap(folder: Path, scale: float, *, count: int, length: int) -> Path:
    """Samples whose source lines are texts of so many characters, all different."""
    count = scaled(count, scale)

    def rows() -> Iterator[str]:
        yield ",".join(HOST_TRAP) + "\n"
        for n in range(count):
            yield f'{10**12 + n},1,{n + 1},"s_nop {n}","/{"d/" * (length // 2)}{n}.cpp:{n}",{n}\n'

    return pack(folder / "7_pc_sampling_host_trap.csv.gz", rows())


def thread_trace(folder: Path, scale: float, *, count: int) -> Path:
    """Instructions of a thread trace, each a kernel of its own."""
    count = scaled(count, scale)

    def rows() -> Iterator[str]:
        yield ",".join(THREAD_TRACE) + "\n"
        for n in range(count):
            if n % 2:
                yield f'7,{8 * n},"v_add_f32 v{n}",3,40,30,2,"/a{n}.cpp:{n}"\n'
            else:
                yield f'7,{8 * n},"; gemm{n}(float*).kd",0,0,0,0,"gemm{n}(float*)"\n'

    return plain(folder / "stats_ui_output_agent_2_dispatch_1.csv", rows())


_OFTEN = ("metrics", "hotspots")
_CODE = ("hotspots --by line", "hotspots --by instruction", "metrics")
BOMBS = (
    Bomb("compute 9,900 counters", partial(wide, kernels=290, counters=9_900), lines(*_OFTEN)),
    Bomb("compute 150,000 kernels", partial(wide, kernels=150_000, counters=9), lines(*_OFTEN)),
    Bomb(
        "compute 20,000 names",
        partial(wide, kernels=20_000, counters=3, length=800),
        lines(*_OFTEN),
    ),
    Bomb(
        "compute rows of counters",
        partial(long, rows=120_000, counters=9_900, guids=3),
        lines(*_OFTEN),
    ),
    Bomb(
        "compute 30,000 processes",
        partial(long, rows=120_000, counters=9, guids=30_000),
        lines(*_OFTEN),
    ),
    Bomb("compute 250 executions", partial(executions, count=250), lines(*_OFTEN)),
    Bomb("compute 2,500 executions", partial(executions, count=2_500), lines(*_OFTEN)),
    Bomb("compute analysis", partial(analysed, kernels=2_000, metrics=300), lines(*_OFTEN)),
    Bomb("PC samples", partial(samples, count=350_000, lines_of=175_000), lines(*_CODE)),
    Bomb("PC samples long", partial(host_trap, count=40_000, length=2_000), lines(*_CODE)),
    Bomb("thread trace", partial(thread_trace, count=110_000), lines(*_CODE)),
)
