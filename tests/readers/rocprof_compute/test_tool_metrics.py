"""The metrics that rocprof-compute worked out itself, from its database and its tables, and where
they are shown.
"""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from profharness import readers
from profharness.analysis.kernels.counter_table import counter_rows, merge_counter_rows
from profharness.errors import InputError
from profharness.readers.rocprof_compute import folder as workload_folder
from profharness.report.tables.counters import counter_table
from profharness.trace.model import Trace
from tests import started
from tests.fakes.amd_tools.compute_files import write_analysis_database

ANALYSED = "fixtures/rocm/rocprof_compute/analyze_csv_MI300X"


def means(trace: Trace) -> dict[tuple[str, str], float]:
    return {(metric.kernel, metric.name): metric.mean for metric in trace.tool_metrics}


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("analysis") / "rocprof_compute_0123.db"
    write_analysis_database(path)
    return path


def test_values_of_kernels_and_of_the_workload(database: Path) -> None:
    trace = readers.read(database)
    with closing(sqlite3.connect(database)) as opened:
        expected = {
            (kernel, f"{number} {name}"): value
            for kernel, number, name, value in opened.execute(
                "SELECT K.kernel_name, D.metric_id, D.name, V.value "
                "FROM compute_kernel_metric_value V "
                "JOIN compute_metric_definition D USING (metric_uuid) "
                "JOIN compute_kernel K USING (kernel_uuid) "
                "WHERE V.value_name = 'Avg' AND V.value IS NOT NULL "
                "UNION ALL SELECT '', D.metric_id, D.name, V.value "
                "FROM compute_workload_metric_value V "
                "JOIN compute_metric_definition D USING (metric_uuid) "
                "WHERE V.value_name = 'Avg' AND V.value IS NOT NULL"
            )
        }
    assert means(trace) == expected
    assert len(expected) == 7
    assert (len(trace.kernels), int(trace.kernels.dur_ns.sum())) == (2, 600)
    (lowest,) = [metric for metric in trace.tool_metrics if metric.low is not None]
    assert (lowest.kernel, lowest.mean, lowest.low, lowest.high) == ("gemm", 17.0, 1.0, None)


def test_the_kernel_with_the_most_time_stands_first(database: Path) -> None:
    rows = counter_rows(readers.read(database))
    assert list(dict.fromkeys(row.kernel for row in rows)) == ["all kernels", "gemm", "copy"]
    assert {(row.dispatches, row.sum) for row in rows} == {(0, None)}
    assert rows[0].unit == "Gflop/s"


def test_a_range_that_the_tool_does_not_tell_is_none(database: Path, tmp_path: Path) -> None:
    table = tmp_path / "2.1_Speed-of-Light.csv"
    table.write_text("Metric,Avg,Unit\nIPC,0.25,Instr/cycle\n")
    (row,) = counter_rows(readers.read(table))
    assert (row.mean, row.low, row.high) == (0.25, None, None)
    shown = counter_table([row])
    assert shown is not None
    assert [cell.text for cell in shown.rows[0]][2:] == ["0.2500", "Instr/cycle", "", "", "", ""]


def test_metrics_of_two_workloads_both_stay(tmp_path: Path) -> None:
    rows = []
    for place in ("one", "two"):
        (tmp_path / place).mkdir()
        table = tmp_path / place / "2.1_Speed-of-Light.csv"
        table.write_text(f"Metric,Avg,Unit\nIPC,{len(rows)},Instr/cycle\n")
        rows.append(counter_rows(readers.read(table)))
    assert [row.mean for row in merge_counter_rows(rows)] == [0, 1]
    assert len(merge_counter_rows([rows[0], rows[0]])) == 1


def test_a_database_with_damaged_names_is_refused_in_one_sentence(
    database: Path, tmp_path: Path
) -> None:
    path = tmp_path / "damaged.db"
    path.write_bytes(database.read_bytes().replace(b"CREATE TABLE ", b"CREATE TABLE\xea"))
    with pytest.raises(InputError, match="no readable database"):
        readers.read(path)


def test_dispatches_of_kernels_that_no_table_names_stay_apart(
    database: Path, tmp_path: Path
) -> None:
    path = tmp_path / "nameless.db"
    path.write_bytes(database.read_bytes())
    with closing(sqlite3.connect(path)) as opened:
        opened.execute("UPDATE compute_kernel SET kernel_name = NULL")
        opened.commit()
        numbers = [row[0] for row in opened.execute("SELECT kernel_uuid FROM compute_dispatch")]
    trace = readers.read(path)
    named = trace.strings.decode(trace.kernels.name)
    assert sorted(named) == sorted(f"kernel {number}" for number in numbers)


def test_the_commands_show_them(database: Path) -> None:
    for path in (database, database.parent):
        for word in ("hotspots", "metrics"):
            done = started.run(word, str(path))
            assert done.returncode == 0, done.stderr
            text = " ".join(done.stdout.split())
            assert "metrics of the tool's own analysis:" in text
            assert "2.1.0 VALU FLOPs 125.5 Gflop/s" in text
            assert "2.1.0 VALU FLOPs 100.5 Gflop/s" in text


def test_they_stand_beside_counters_of_the_same_folder(database: Path, tmp_path: Path) -> None:
    (tmp_path / "pmc_perf.csv").write_text(
        "Dispatch_ID,Kernel_Name,GPU_ID,SQ_WAVES,Start_Timestamp,End_Timestamp\n0,gemm,1,7,0,50\n"
    )
    (tmp_path / "analysis.db").write_bytes(database.read_bytes())
    trace = workload_folder.read(tmp_path)
    assert (len(trace.kernels), len(trace.tool_metrics)) == (1, 7)
    assert [(row.counter, row.dispatches) for row in counter_rows(trace)][:2] == [
        ("SQ_WAVES", 1),
        ("2.1.0 VALU FLOPs", 0),
    ]
    (tmp_path / "analysis.db").write_bytes(database.read_bytes()[:5000])
    assert len(workload_folder.read(tmp_path).kernels) == 1


def test_tables_of_single_values(tmp_path: Path) -> None:
    path = tmp_path / "kernel_metric.csv"
    path.write_text(
        "workload_name,kernel_name,metric_name,metric_id,unit,value_name,value\n"
        "w,gemm,VALU FLOPs,2.1.0,Gflop/s,Avg,125.5\nw,gemm,VALU FLOPs,2.1.0,Gflop/s,Peak,9\n"
        "w,gemm,IPC,2.1.16,,Avg,\nw,copy,IPC,2.1.16,,Avg,0.5\n"
    )
    assert means(readers.read(path)) == {
        ("gemm", "2.1.0 VALU FLOPs"): 125.5,
        ("copy", "2.1.16 IPC"): 0.5,
    }


@pytest.mark.parametrize(
    "file", ["12.2_LDS_Stats.csv", "17.1_Speed-of-Light.csv", "2.1_Speed-of-Light.csv"]
)
def test_recorded_tables_of_the_report(shared: Path, file: str) -> None:
    with (shared / ANALYSED / file).open(newline="") as text:
        rows = list(csv.DictReader(text))
    number = file.partition("_")[0]
    assert means(readers.read(shared / ANALYSED / file)) == {
        ("", f"{number} {row['Metric']}"): float(row["Avg"]) for row in rows if row["Avg"]
    }


def test_ceilings_under_newer_names(tmp_path: Path) -> None:
    path = tmp_path / "roofline.csv"
    path.write_text(
        "device,HBMBw,MALLBw,MFMA_FLOPs_F6F4,MFMAF4Flops,I8Ops\n"
        "1,6237.3,8000,9000000.5,9100000,70000\n"
    )
    assert readers.read(path).sources[0].details == (
        ("HBMBw of device 1", "6237.3 GB/s"),
        ("MALLBw of device 1", "8000 GB/s"),
        ("MFMA_FLOPs_F6F4 of device 1", "9000000.5 GFLOP/s"),
        ("MFMAF4Flops of device 1", "9100000 GFLOP/s"),
        ("I8Ops of device 1", "70000 Gop/s"),
    )
