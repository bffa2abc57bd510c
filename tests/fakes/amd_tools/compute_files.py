"""Writes the folders of rocprof-compute, in the form of each of its versions, of what a stand-in
program did in each execution.
"""

from __future__ import annotations

import csv
import gzip
import io
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_program import GpuAgent, Kernel, Program, Symbol

Version = tuple[int, ...]
Execution = Sequence[dict[str, Any]]
"""The processes of one execution, each with its pid and its kernels."""

COUNTERS = ("SQ_WAVES", "GRBM_COUNT", "TCC_HIT_sum")
"""One for each execution."""

_LONG, _GUIDS, _GZIP = (3, 3), (3, 6), (3, 10)  # versions from which files look otherwise
_PATH, _MEMORY = (3, 5), (3, 8)
_FRONT = (
    "Grid_Size",
    "Workgroup_Size",
    "LDS_Per_Workgroup",
    "Scratch_Per_Workitem",
    "Arch_VGPR",
    "Accum_VGPR",
    "SGPR",
)
_TIMES = ("Start_Timestamp", "End_Timestamp")


def write_workload(
    folder: Path, version: Version, executions: Sequence[Execution], *, shared: bool = False
) -> None:
    """The counters of all executions, and sysinfo.csv. `shared`: there is one execution, whose
    launches carry one counter each.
    """
    folder.mkdir(parents=True, exist_ok=True)
    _sysinfo(folder, version)
    if version < _LONG:
        _write(folder / "pmc_perf.csv", _joined(executions[0]))
        for number, execution in enumerate(executions):
            _write(folder / f"pmc_perf_{number}.csv", _joined(execution, (COUNTERS[number],)))
        return
    tables = [
        _long(execution, number, version, shared=shared)
        for number, execution in enumerate(executions)
    ]
    if version < _GUIDS:
        # the first execution's times stand for all
        head, rows = tables[0][0], [row for table in tables for row in table[1:]]
        begin = {tuple(row[:2]): row[10:12] for row in reversed(rows)}
        _write(
            folder / "pmc_perf.csv",
            [head, *((*r[:10], *begin[tuple(r[:2])], *r[12:]) for r in rows)],
        )
        return
    suffix = ".csv.gz" if version >= _GZIP else ".csv"
    for number, table in enumerate(tables):
        _write(folder / f"results_pmc_perf_{number}{suffix}", table)


def join(folder: Path, version: Version) -> None:
    """What `analyze` adds from 3.6 on: all executions, one after the other."""
    suffix = ".csv.gz" if version >= _GZIP else ".csv"
    found = sorted(folder.glob(f"results_*{suffix}"))
    if version < _GUIDS or not found or (folder / f"pmc_perf{suffix}").exists():
        return
    tables = [_read(path) for path in found]
    _write(
        folder / f"pmc_perf{suffix}", [tables[0][0], *(r for table in tables for r in table[1:])]
    )


def write_databases(folder: Path, host: str, executions: Sequence[Execution]) -> None:
    """What --retain-rocpd-output keeps: a database of each process, by execution."""
    for number, execution in enumerate(executions):
        for process in execution:
            path = folder / "out" / f"pmc_{number + 1}" / host / f"{process['pid']}_results.db"
            path.parent.mkdir(parents=True, exist_ok=True)
            names = list(dict.fromkeys(k["name"] for k in process["kernels"]))
            kernels = tuple(
                Kernel(
                    symbol=names.index(k["name"]) + 1,
                    start=k["start"],
                    end=k["end"],
                    agent=2,
                    dispatch=place + 1,
                    correlation=place + 1,
                    grid=(k["workgroups"] * k["size"], 1, 1),
                    size=(k["size"], 1, 1),
                    counters=((COUNTERS[number], (float(_value(k, COUNTERS[number])),)),),
                )
                for place, k in enumerate(process["kernels"])
            )
            symbols = tuple(Symbol(place + 1, name) for place, name in enumerate(names))
            write_rocpd(
                path,
                Program(
                    host=host,
                    pid=process["pid"],
                    agents=(GpuAgent(2, 11),),
                    symbols=symbols,
                    kernels=kernels,
                ),
            )


def write_roofline(folder: Path) -> None:
    """Ceilings of one device, as a few of the columns say them."""
    (folder / "roofline.csv").write_text("device,HBMBw,MFMAF16Flops\n0,4171.5,926342.4\n")


def write_analysis(folder: Path, version: Version) -> None:
    """Tables of `analyze`: of its report before 3.7, of the views of its database from then on."""
    folder.mkdir(parents=True)
    if version < (3, 7):
        (folder / "0.1_Top_Kernels.csv").write_text(
            "Kernel_Name,Count,Sum(ns),Mean(ns),Median(ns),Pct\nk,1,100,100,100,100\n"
        )
        (folder / "2.1_Speed-of-Light.csv").write_text(
            "Metric,Avg,Unit,Peak,Pct of Peak\nVALU FLOPs,125.86,Gflop/s,72089.6,0.17\n"
        )
        return
    sampling = "pc_sampling_summary.csv" if version >= (3, 9) else "pc_sampling.csv"
    for name, text in {
        "kernel.csv": "kernel_uuid,kernel_name,dispatch_count\n1,k,1\n",
        "kernel_metric.csv": "kernel_name,metric_name,metric_id,unit,value_name,value\n",
        "workload_metric.csv": "metric_name,metric_id,unit,value_name,value\n",
        sampling: "source,instruction,count\n",
    }.items():
        (folder / name).write_text(text)


def write_analysis_database(path: Path) -> None:
    """The tables of `analyze --output-format db`, with two kernels and metrics of both."""
    path.unlink(missing_ok=True)
    with closing(sqlite3.connect(path)) as database, database:
        for table, columns in _ANALYSIS.items():
            database.execute(f"CREATE TABLE {table} ({columns})")
        for table, rows in _ANALYSED.items():
            marks = ", ".join("?" * len(rows[0]))
            database.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)


_ANALYSIS = {
    "compute_metadata": "id INTEGER, compute_version VARCHAR, schema_version VARCHAR",
    "compute_workload": "workload_id INTEGER, name VARCHAR, sub_name VARCHAR",
    "compute_kernel": "kernel_uuid INTEGER, workload_id INTEGER, kernel_name VARCHAR",
    "compute_dispatch": (
        "dispatch_uuid INTEGER, kernel_uuid INTEGER, dispatch_id INTEGER, gpu_id INTEGER, "
        "start_timestamp INTEGER, end_timestamp INTEGER"
    ),
    "compute_metric_definition": (
        "metric_uuid INTEGER, workload_id INTEGER, name VARCHAR, metric_id VARCHAR, "
        "description TEXT, table_name VARCHAR, sub_table_name VARCHAR, unit VARCHAR"
    ),
    "compute_kernel_metric_value": (
        "value_uuid INTEGER, metric_uuid INTEGER, kernel_uuid INTEGER, value_name VARCHAR, "
        "value FLOAT"
    ),
    "compute_workload_metric_value": (
        "value_uuid INTEGER, metric_uuid INTEGER, workload_id INTEGER, value_name VARCHAR, "
        "value FLOAT"
    ),
}
_ANALYSED: dict[str, list[tuple[object, ...]]] = {
    "compute_metadata": [(1, "3.7.0", "2.0.0")],
    "compute_workload": [(1, "profharness", "MI300X")],
    "compute_kernel": [(1, 1, "gemm"), (2, 1, "copy")],
    "compute_dispatch": [(1, 1, 0, 0, 1000, 1500), (2, 2, 1, 0, 2000, 2100)],
    "compute_metric_definition": [
        (1, 1, "VALU FLOPs", "2.1.0", "", "System Speed-of-Light", "", "Gflop/s"),
        (2, 1, "Wavefront Occupancy", "2.1.15", "", "System Speed-of-Light", "", "Wavefronts"),
        (3, 1, "Read (32B)", "17.5.1", "", "L2", "L2 Channel", "Requests"),
    ],
    "compute_kernel_metric_value": [
        (1, 1, 1, "Avg", 125.5),
        (2, 1, 1, "Peak", 1000.0),
        (3, 1, 1, "Percent of Peak", 12.55),
        (4, 1, 2, "Avg", 0.0),
        (5, 2, 1, "Avg", 1500.25),
        (6, 2, 2, "Avg", None),
        (7, 3, 1, "Avg", 17.0),
        (8, 3, 1, "Min", 1.0),
    ],
    "compute_workload_metric_value": [
        (1, 1, 1, "Avg", 100.5),
        (2, 1, 1, "Peak", 1000.0),
        (3, 1, 1, "Percent of Peak", 10.05),
        (4, 2, 1, "Avg", 1250.0),
        (5, 3, 1, "Avg", 17.0),
    ],
}


def _value(kernel: dict[str, Any], counter: str) -> int:
    """Four waves per workgroup, and multiples of that for the other counters."""
    return int(kernel["workgroups"]) * 4 * (COUNTERS.index(counter) + 1)


def _numbers(k: dict[str, Any]) -> tuple[object, ...]:
    return (k["workgroups"] * k["size"], k["size"], 0, 0, 32, 4, 48)


def _joined(execution: Execution, counters: Sequence[str] = COUNTERS) -> list[tuple[object, ...]]:
    head = (
        *("Dispatch_ID", "Kernel_Name", "GPU_ID", *_FRONT, "Wave_Size", "Correlation_ID"),
        *("Kernel_ID", *counters, *_TIMES),
    )
    kernels = [kernel for process in execution for kernel in process["kernels"]]
    return [
        head,
        *(
            (
                *(n, k["name"], 2, *_numbers(k), 64, n, 10),
                *(_value(k, counter) for counter in counters),
                *(k["start"], k["end"]),
            )
            for n, k in enumerate(kernels)
        ),
    ]


def _long(
    execution: Execution, number: int, version: Version, *, shared: bool
) -> list[tuple[object, ...]]:
    guids = version >= _GUIDS
    first = int(version >= _GZIP)  # dispatches are counted from 1
    head = (
        *("GPU_ID", *(("GUID", "Correlation_Id") if guids else ()), "Dispatch_ID", *_FRONT),
        *("Kernel_Name", *_TIMES, "Kernel_ID", "Counter_Name", "Counter_Value"),
    )
    rows: list[tuple[object, ...]] = [head]
    place = 0  # without identifiers the dispatches of all processes are counted on
    for process in execution:
        guid = f"{number:08x}-0000-7000-8000-{process['pid']:012x}"
        for at, k in enumerate(process["kernels"]):
            dispatch = first + (at if guids else place)
            counter = COUNTERS[at % len(COUNTERS) if shared else number]
            rows.append(
                (
                    *(1, *((guid, dispatch) if guids else ()), dispatch, *_numbers(k), k["name"]),
                    *(k["start"], k["end"], 10, counter, f"{_value(k, counter):.1f}"),
                )
            )
            place += 1
    return rows


def _sysinfo(folder: Path, version: Version) -> None:
    workload = "workload_path" if version >= _PATH else "workload_name"
    channels = "num_memory_channels" if version >= _MEMORY else "num_hbm_channels"
    (folder / "sysinfo.csv").write_text(
        f"{workload},command,gpu_model,gpu_arch,cu_per_gpu,max_sclk,num_xcd,{channels}\n"
        "profharness,python,MI300X_A1,gfx942,304,2100,8,128\n"
    )


def _write(path: Path, rows: Iterable[Sequence[object]]) -> None:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    if path.suffix == ".gz":
        path.write_bytes(gzip.compress(text.getvalue().encode()))
    else:
        path.write_text(text.getvalue())


def _read(path: Path) -> list[list[str]]:
    text = gzip.decompress(path.read_bytes()).decode() if path.suffix == ".gz" else path.read_text()
    return list(csv.reader(io.StringIO(text)))
