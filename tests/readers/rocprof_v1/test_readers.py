"""rocprof v1: its tables, statistics, JSON and database, by hand and as recorded; all forms of one
run agree.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest

from profharness import readers
from profharness.analysis.kernels import hotspots
from profharness.analysis.summarise import summarise_trace
from profharness.errors import InputError
from profharness.readers.rocprof_v1 import csv_reader as rocprof_csv
from profharness.readers.rocprof_v1 import db_reader as rocprof_db
from profharness.readers.rocprof_v1 import json_reader as rocprof_json
from profharness.readers.rocprof_v1 import rocminfo
from profharness.readers.rocprof_v1 import stats_reader as rocprof_stats
from profharness.report.text.metrics import metrics_text
from profharness.trace.columns.table import NULL
from profharness.trace.model import ClockDomain, Trace

V1 = "fixtures/rocm/rocprof_v1"
HEADER = (
    '"Index","KernelName","gpu-id","queue-id","queue-index","pid","tid","grd","wgr","lds",'
    '"scr","arch_vgpr","accum_vgpr","sgpr",'
    '"wave_size","sig","obj"'
)
ROW = '0,"void k<a, b>(int) [clone .kd]",4,1,0,77,78,1000,256,512,16,24,4,32,64,"0x0","0x7f"'
TIMED = (
    f'{HEADER},"DispatchNs","BeginNs","EndNs","CompleteNs","DurationNs"\n{ROW},90,100,350,400,250\n'
)
DUMP = """\x1b[37mROCk module is loaded\x1b[0m
=====================
HSA System Attributes
=====================
==========
HSA Agents
==========
*******
Agent 1
*******
  Name:                    Some CPU
  Uuid:                    CPU-XX
  Device Type:             CPU
  Node:                    0
  Compute Unit:            48
*******
Agent 2
*******
  Name:                    gfx942
  Uuid:                    GPU-0123456789abcdef
  Marketing Name:          AMD Instinct MI300X
  Node:                    1
  Device Type:             GPU
  Max Clock Freq. (MHz):   2100
  BDFID:                   10496
  Compute Unit:            304
  Pool Info:
    Pool 1
      Name:                not the agent's
"""


def written(path: Path, text: str) -> Path:
    path.write_text(text)
    return path


def totals(trace: Trace) -> tuple[int, int]:
    return len(trace.kernels), int(trace.kernels.dur_ns.sum())


def printed(path: Path) -> list[tuple[str, int, int]]:
    """Name, calls and total of a statistics file, split from the end of each line as its writer
    needs.
    """
    rows = [line.rsplit(",", 4) for line in path.read_text().splitlines()[1:]]
    return sorted((row[0].strip('"'), int(row[1]), int(row[2])) for row in rows)


def by_name(table: hotspots.Hotspots) -> list[tuple[str, int, int]]:
    return sorted((row.name, row.calls, row.total_ns) for row in table.rows)


class TestDispatches:
    def test_geometry_registers_and_times(self, tmp_path: Path) -> None:
        trace = readers.read(written(tmp_path / "results.csv", TIMED))
        kernels = trace.kernels
        assert trace.sources[0].format == "rocprof"
        assert trace.sources[0].clock is ClockDomain.BOOTTIME
        assert trace.strings.decode(kernels.name) == ["void k<a, b>(int) [clone .kd]"]
        got = {
            name: int(getattr(kernels, name)[0])
            for name in (
                "start_ns",
                "dur_ns",
                "workgroups",
                "lds_bytes",
                "scratch_bytes",
                "vgpr",
                "accum_vgpr",
                "sgpr",
                "pid",
                "tid",
                "queue",
                "dispatch",
            )
        }
        assert got == {
            "start_ns": 100,
            "dur_ns": 250,
            "workgroups": 4,
            "lds_bytes": 512,
            "scratch_bytes": 16,
            "vgpr": 24,
            "accum_vgpr": 4,
            "sgpr": 32,
            "pid": 77,
            "tid": 78,
            "queue": 1,
            "dispatch": 0,
        }
        assert kernels.workgroup_size_x[0] == NULL  # only the product is recorded
        assert not trace.problems
        assert len(trace.counters) == 0

    def test_counters_without_times_say_that_durations_are_not_known(self, tmp_path: Path) -> None:
        trace = rocprof_csv.read(
            written(tmp_path / "out.csv", f"{HEADER},GPUBusy,Wavefronts\n{ROW},99.5,15625.0\n")
        )
        assert totals(trace) == (1, 0)
        assert trace.sources[0].clock is ClockDomain.UNKNOWN
        assert dict(
            zip(
                trace.strings.decode(trace.counters.name),
                trace.counters.value.tolist(),
                strict=True,
            )
        ) == {"GPUBusy": 99.5, "Wavefronts": 15625.0}
        assert [(p.severity, p.count) for p in trace.problems] == [("warning", 1)]
        assert "no times" in trace.problems[0].message

    def test_a_spreadsheets_times_are_refused(self, tmp_path: Path) -> None:
        damaged = TIMED.replace(
            ",90,100,350,400,250", ",8.1097E+14,8.1097E+14,8.1097E+14,8.1097E+14,250"
        )
        with pytest.raises(InputError, match="spreadsheet"):
            rocprof_csv.read(written(tmp_path / "results.csv", damaged))

    def test_one_damaged_row_among_others_is_left_out_and_counted(self, tmp_path: Path) -> None:
        bad = ROW.replace("0,", "1,", 1) + ",90,8.1E+14,8.1E+14,400,250"
        trace = rocprof_csv.read(written(tmp_path / "results.csv", TIMED + bad + "\nshort,row\n"))
        assert totals(trace) == (1, 250)
        assert sorted(
            (p.severity, p.count, "spreadsheet" in p.message) for p in trace.problems
        ) == [("warning", 1, False), ("warning", 1, True)]

    def test_a_row_that_ends_before_it_begins_has_no_length(self, tmp_path: Path) -> None:
        trace = rocprof_csv.read(
            written(tmp_path / "results.csv", TIMED.replace(",100,350,", ",350,100,"))
        )
        assert totals(trace) == (1, 0)
        assert "end before they begin" in trace.problems[0].message

    def test_a_column_that_is_no_number_is_named(self, tmp_path: Path) -> None:
        text = "".join(
            line + (",Mood\n" if line.startswith('"Index') else ",good\n")
            for line in TIMED.splitlines()
        )
        trace = rocprof_csv.read(written(tmp_path / "results.csv", text))
        assert totals(trace) == (1, 250)
        assert any("Mood" in p.message and p.count == 1 for p in trace.problems)

    def test_a_run_without_dispatches_is_whole(self, tmp_path: Path) -> None:
        trace = rocprof_csv.read(written(tmp_path / "results.csv", TIMED.splitlines()[0] + "\n"))
        assert totals(trace) == (0, 0)
        assert "did no work" in trace.problems[0].message

    def test_devices_are_named_by_the_dump_beside(self, tmp_path: Path) -> None:
        written(tmp_path / "results.sysinfo.txt", DUMP)
        packed = tmp_path / "results.csv.gz"
        packed.write_bytes(gzip.compress(TIMED.replace(",4,1,0,77", ",1,1,0,77").encode()))
        device = readers.read(packed).devices[0]
        assert (
            device.index,
            device.name,
            device.identity,
            device.compute_units,
            device.architecture,
            device.max_clock_mhz,
        ) == ("1", "AMD Instinct MI300X", "0000:29:00.0", 304, "gfx942", 2100)

    def test_a_dump_longer_than_any_is_read_in_part(self, tmp_path: Path) -> None:
        path = tmp_path / "results.sysinfo.txt.gz"
        path.write_bytes(gzip.compress((DUMP + " " * (20 << 20)).encode()))
        trace = readers.read(path)
        assert [device.name for device in trace.devices] == ["AMD Instinct MI300X"]
        assert "longer than 4 MiB" in trace.problems[0].message

    def test_a_number_of_thousands_of_digits_is_none(self, tmp_path: Path) -> None:
        text = DUMP.replace("304", "3" * 5000)
        (device,) = readers.read(written(tmp_path / "results.sysinfo.txt", text)).devices
        assert (device.compute_units, device.max_clock_mhz) == (None, 2100)

    def test_a_number_that_is_a_cpus_counts_gpus_alone(self, tmp_path: Path) -> None:
        written(tmp_path / "results.sysinfo.txt", DUMP)
        device = readers.read(
            written(tmp_path / "results.csv", TIMED.replace(",4,1,0,77", ",0,1,0,77"))
        ).devices[0]
        assert (device.index, device.name) == ("0", "AMD Instinct MI300X")

    def test_gpus_at_one_address_are_told_apart_by_their_ids(self) -> None:
        twin = (
            DUMP[DUMP.index("*******\nAgent 2") :]
            .replace("Agent 2", "Agent 3")
            .replace("Node:                    1", "Node:                    2")
        )
        agents = rocminfo.parse_agents(DUMP + twin.replace("0123456789abcdef", "fedcba9876543210"))
        assert [agent.identity for agent in agents.gpus] == [
            "GPU-0123456789abcdef",
            "GPU-fedcba9876543210",
        ]


class TestStatistics:
    def test_names_with_commas_without_quotes(self, tmp_path: Path) -> None:
        text = (
            '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\nvoid k<a, b>(int, '
            'c),3,600,200,60.0\n"q<d, e>",1,400,400,40.0\n'
        )
        trace = readers.read(written(tmp_path / "results.stats.csv", text))
        assert by_name(hotspots.default(trace)) == [
            ("q<d, e>", 1, 400),
            ("void k<a, b>(int, c)", 3, 600),
        ]

    def test_quoted_numbers_and_a_row_of_totals(self, tmp_path: Path) -> None:
        text = (
            '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n'
            '"void k<a, b>(int, c) [clone .kd]","3","600","200","60.0"\n'
            '"q","1", "400" ,"400","40.0"\n"Total","4","1000","250","100.0"\n'
        )
        trace = readers.read(written(tmp_path / "results.stats.csv", text))
        assert [(row.name, row.calls, row.total_ns) for row in trace.statistics] == [
            ("void k<a, b>(int, c) [clone .kd]", 3, 600),
            ("q", 1, 400),
        ]
        assert not trace.problems
        assert "trace     totals of 4 kernels of 2 names, and none by itself" in metrics_text(
            summarise_trace(trace, "results.stats.csv")
        )

    @pytest.mark.parametrize(
        ("name", "label", "domain"),
        [
            ("results.hip_stats.csv", "hipMemcpy", "hip"),
            ("results.copy_stats.csv", "FillBuffer", "copy"),
            ("results.stats.csv", "hipLike(int)", "kernel"),
            ("renamed.csv", "hsa_init", "hsa"),
            ("renamed.csv", "hipMemcpy", "hip"),
            ("renamed.csv", "CopyHostToDevice", "copy"),
            ("renamed.csv", "k", "kernel"),
        ],
    )
    def test_what_was_counted(self, tmp_path: Path, name: str, label: str, domain: str) -> None:
        text = f'"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n{label},1,5,5,100.0\n'
        assert rocprof_stats.read(written(tmp_path / name, text)).statistics[0].domain == domain

    def test_a_row_without_whole_numbers_is_counted(self, tmp_path: Path) -> None:
        text = (
            '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\nk,1,5,5,50.0\n'
            "q,1,8.1E+14,5,50.0\n"
        )
        trace = rocprof_stats.read(written(tmp_path / "results.stats.csv", text))
        assert [row.name for row in trace.statistics] == ["k"]
        assert trace.problems[0].count == 1

    def test_more_columns_are_another_tools(self) -> None:
        assert not rocprof_stats.sniff(
            b'"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs"\n', "x_stats.csv"
        )


def event(
    name: str, section: int, lane: int, begin: int, end: int, **args: object
) -> dict[str, object]:
    return {
        "ph": "X",
        "name": name,
        "pid": str(section),
        "tid": str(lane),
        "ts": str(begin // 1000),
        "dur": str((end - begin) // 1000),
        "args": {"BeginNs": str(begin), "EndNs": str(end), "Name": name, **args},
    }


def arrow(
    number: int, call: tuple[int, int], work: tuple[int, int, int]
) -> list[dict[str, object]]:
    return [
        {
            "ph": "s",
            "cat": "DataFlow",
            "id": number,
            "pid": 2,
            "tid": call[0],
            "ts": call[1] // 1000,
            "name": "dep",
        },
        {
            "ph": "t",
            "cat": "DataFlow",
            "id": number,
            "pid": work[0],
            "tid": work[1],
            "ts": work[2] // 1000,
            "name": "dep",
        },
    ]


def newer() -> list[dict[str, object]]:
    owner = {"pid": "77", "tid": "78"}
    return [
        {},
        {
            "args": {"name": "CPU HIP API"},
            "ph": "M",
            "pid": 2,
            "name": "process_name",
            "sort_index": 0,
        },
        event("hipLaunchKernel", 2, 78, 1_000_000, 1_009_000, **owner, args="( f(1))"),
        event("hipMemcpy", 2, 78, 1_020_000, 1_900_000, **owner),
        event("hsa_init", 3, 78, 900_000, 901_000, **owner),
        event(
            "k(int)",
            10,
            1,
            1_005_111,
            1_100_123,
            **owner,
            **{"dev-id": "4", "queue-id": "0", "stream-id": "1"},
        ),
        event("barrier", 522, 1, 1_200_000, 1_200_001, **owner),
        event(
            "CopyDeviceToHost",
            1,
            0,
            1_500_000,
            1_800_007,
            **owner,
            **{"dev-id": "4", "queue-id": "0", "stream-id": "0"},
        ),
        event("step", 0, 78, 800_000, 2_000_000, **owner),
        *arrow(0, (78, 1_004_500), (10, 1, 1_005_111)),
        *arrow(1, (78, 1_460_000), (1, 0, 1_500_000)),
    ]


def older() -> list[dict[str, object]]:
    """The dialect of 2021: sections for processes, the real one as proc-id, times counted from the
    first record.
    """
    rebased = [
        event("hipLaunchKernel", 2, 78, 9_001_000_000, 9_001_009_000, pid="2", tid="78"),
        event(
            "k(int)",
            6,
            1,
            9_001_005_000,
            9_001_100_000,
            **{"dev-id": "0", "queue-id": "0", "pid": "6", "tid": "1", "proc-id": "78"},
        ),
        event(
            "FillBuffer",
            1,
            0,
            9_001_200_000,
            9_001_200_005,
            **{"dev-id": "0", "queue-id": "0", "pid": "1", "tid": "0", "proc-id": "78"},
        ),
    ]
    for given in rebased:
        given["ts"] = str(int(str(given["ts"])) - 9_000_000)
    return [
        {},
        {"args": {"name": "COPY"}, "ph": "M", "pid": 1, "name": "process_name", "sort_index": 0},
        *rebased,
        *arrow(0, (78, 1_004_000), (6, 1, 1_005_000)),
    ]


class TestJson:
    def test_records_of_each_section(self, tmp_path: Path) -> None:
        trace = readers.read(
            written(
                tmp_path / "results.json", json.dumps({"traceEvents": newer(), "otherData": {}})
            )
        )
        assert trace.sources[0].format == "rocprof-json"
        assert trace.sources[0].clock is ClockDomain.BOOTTIME
        assert (trace.kernels.start_ns.tolist(), trace.kernels.dur_ns.tolist()) == (
            [1_005_111],
            [95_012],
        )
        assert trace.strings.decode(trace.copies.kind) == ["d2h"]
        assert trace.copies.dur_ns.tolist() == [300_007]
        assert trace.strings.decode(trace.api.domain) == ["hip", "hip", "hsa"]
        assert trace.strings.decode(trace.marks.name) == ["step"]
        assert [device.index for device in trace.devices] == ["4"]
        assert [stream.name for stream in trace.streams] == ["0", "1"]
        assert [(p.count, "barriers" in p.message) for p in trace.problems] == [(1, True)]

    def test_arrows_link_work_to_the_call_that_holds_their_beginning(self, tmp_path: Path) -> None:
        trace = rocprof_json.read(
            written(tmp_path / "results.json", json.dumps({"traceEvents": newer()}))
        )
        assert trace.api.correlation.tolist() == [1, 2, NULL]
        assert (trace.kernels.correlation.tolist(), trace.copies.correlation.tolist()) == ([1], [2])

    def test_the_dialect_of_2021(self, tmp_path: Path) -> None:
        trace = rocprof_json.read(
            written(tmp_path / "results.json", json.dumps({"traceEvents": older()}))
        )
        assert trace.kernels.start_ns.tolist() == [9_001_005_000]  # not the rebased time
        assert (trace.kernels.pid.tolist(), trace.kernels.tid.tolist(), trace.api.pid.tolist()) == (
            [78],
            [NULL],
            [78],
        )
        assert trace.kernels.correlation.tolist() == trace.api.correlation.tolist() == [1]
        assert trace.strings.decode(trace.copies.kind) == ["fill"]

    def test_blocks_of_any_size_give_the_same(self, tmp_path: Path) -> None:
        path = written(tmp_path / "results.json", json.dumps({"traceEvents": newer()}))
        whole, parts = rocprof_json.read(path), rocprof_json.read_blocks(path, block_bytes=200)
        assert whole.api.correlation.tolist() == parts.api.correlation.tolist()
        assert whole.kernels.start_ns.tolist() == parts.kernels.start_ns.tolist()

    def test_the_line_that_a_run_without_traced_calls_leaves(self, tmp_path: Path) -> None:
        path = written(
            tmp_path / "results.json",
            ',{"args":{"name":"COPY"},"ph":"M","pid":1,"name":"process_name","sort_index":0}\n',
        )
        with pytest.raises(InputError, match="no API was traced"):
            readers.read(path)

    def test_an_empty_run_is_whole(self, tmp_path: Path) -> None:
        text = (
            '{ "traceEvents":[{}\n'
            ',{"args":{"name":"COPY"},"ph":"M","pid":1,"name":"process_name",'
            '"sort_index":0}\n],"otherData":{}}'
        )
        trace = readers.read(written(tmp_path / "results.json", text))
        assert totals(trace) == (0, 0)
        assert "did no work" in trace.problems[0].message

    def test_a_record_without_times_is_counted(self, tmp_path: Path) -> None:
        events = newer()
        del events[5]["args"]["BeginNs"]  # type: ignore[attr-defined]  # a dict in this test
        trace = rocprof_json.read(
            written(tmp_path / "results.json", json.dumps({"traceEvents": events}))
        )
        assert totals(trace) == (0, 0)
        assert any("no readable begin" in p.message and p.count == 1 for p in trace.problems)

    def test_a_cut_file_gives_what_is_before_the_cut(self, tmp_path: Path) -> None:
        text = json.dumps({"traceEvents": newer()})
        trace = rocprof_json.read(written(tmp_path / "results.json", text[: text.index("barrier")]))
        assert totals(trace) == (1, 95_012)
        assert any(p.severity == "error" for p in trace.problems)


class TestDatabase:
    def test_kernels_of_the_table_that_results_csv_is_made_from(self, tmp_path: Path) -> None:
        path = tmp_path / "results.db"
        row = next(csv.reader(io.StringIO(TIMED.splitlines()[1])))
        with sqlite3.connect(path) as made:
            columns = [name.strip('"') for name in TIMED.splitlines()[0].split(",")]
            typed = ", ".join(
                f'"{name}" {"TEXT" if name == "KernelName" else "INTEGER"}' for name in columns
            )
            made.execute(f"CREATE TABLE KERN ({typed})")
            made.execute(
                f"INSERT INTO KERN VALUES ({','.join('?' * len(row))})",
                [*row[:1], f'"{row[1]}"', *row[2:]],
            )
        made.close()
        trace = readers.read(path)
        assert trace.sources[0].format == "rocprof-db"
        assert totals(trace) == (1, 250)
        assert trace.strings.decode(trace.kernels.name) == ["void k<a, b>(int) [clone .kd]"]
        assert trace.kernels.workgroups.tolist() == [4]

    def test_another_database_is_not_taken(self, tmp_path: Path) -> None:
        path = tmp_path / "other.db"
        with sqlite3.connect(path) as made:
            made.execute("CREATE TABLE notes (text TEXT)")
        made.close()
        assert not rocprof_db.sniff(path.read_bytes(), path.name)

    def test_a_damaged_database_is_refused(self, tmp_path: Path) -> None:
        path = tmp_path / "results.db"
        path.write_bytes(b'SQLite format 3\0 "BeginNs" INTEGER')
        with pytest.raises(InputError, match="no readable database"):
            readers.read(path)


class TestGeometryOfTracedKernels:
    """results.json and results.db beside results.csv of the same execution."""

    ROWS = ((0, "k", 100, 350, 1000), (1, "q", 400, 500, 256), (2, "k", 600, 640, 512))

    def table(self, counters: str = "") -> str:
        head = (
            HEADER
            + (',"SQ_WAVES"' if counters else "")
            + ',"DispatchNs","BeginNs","EndNs","CompleteNs","DurationNs"\n'
        )
        return head + "".join(
            f'{n},"{name}.kd",4,1,0,77,78,{grid},256,512,16,24,4,32,64,"0x0","0x7f"{counters},'
            f"{begin - 9},{begin},{end},{end + 9},{end - begin}\n"
            for n, name, begin, end, grid in self.ROWS
        )

    def traced(self, tmp_path: Path, *, moved: int = 0, names: str = "kqk") -> Path:
        events: list[dict[str, object]] = [
            {},
            {
                "args": {"name": "GPU0"},
                "ph": "M",
                "pid": 6,
                "name": "process_name",
                "sort_index": 2,
            },
        ]
        # the file's order is not that of the starts
        for (_, _, begin, end, _), name in reversed(list(zip(self.ROWS, names, strict=True))):
            events.append(
                {
                    "ph": "X",
                    "name": name,
                    "pid": 6,
                    "tid": 0,
                    "ts": "0",
                    "dur": "0",
                    "args": {
                        "BeginNs": str(begin + moved),
                        "EndNs": str(end + moved),
                        "dev-id": "4",
                        "queue-id": "0",
                        "pid": "77",
                        "tid": "78",
                    },
                }
            )
        return written(tmp_path / "results.json", json.dumps({"traceEvents": events}))

    def test_geometry_and_counters_are_joined_and_nothing_counts_twice(
        self, tmp_path: Path
    ) -> None:
        written(tmp_path / "results.csv", self.table(",16"))
        trace = readers.read(self.traced(tmp_path))
        k = trace.kernels
        assert totals(trace) == (3, 390)
        assert sorted(
            zip(
                k.start_ns.tolist(),
                k.workgroups.tolist(),
                k.vgpr.tolist(),
                k.lds_bytes.tolist(),
                strict=True,
            )
        ) == [(100, 4, 24, 512), (400, 1, 24, 512), (600, 2, 24, 512)]
        assert sorted(trace.counters.kernel.tolist()) == [0, 1, 2]
        assert set(trace.strings.decode(trace.counters.name)) == {"SQ_WAVES"}
        assert [(p.severity, p.count) for p in trace.problems] == [("info", 3)]

    def test_a_name_that_is_not_equally_often_there_is_left_out(self, tmp_path: Path) -> None:
        written(tmp_path / "results.csv", self.table())
        trace = readers.read(self.traced(tmp_path, names="kkk"))
        assert set(trace.kernels.workgroups.tolist()) == {NULL}
        assert trace.problems == ()

    def test_dispatches_of_another_time_or_no_table(self, tmp_path: Path) -> None:
        written(tmp_path / "results.csv", self.table())
        assert set(
            readers.read(self.traced(tmp_path, moved=10**9)).kernels.workgroups.tolist()
        ) == {NULL}
        written(tmp_path / "results.csv", "Name,Other\n1,2\n")
        assert set(readers.read(self.traced(tmp_path)).kernels.workgroups.tolist()) == {NULL}

    def test_a_database_has_both(self, tmp_path: Path) -> None:
        path = tmp_path / "results.db"
        rows = list(csv.reader(io.StringIO(self.table())))
        with sqlite3.connect(path) as made:
            typed = ", ".join(
                f'"{name}" {"TEXT" if name == "KernelName" else "INTEGER"}' for name in rows[0]
            )
            made.execute(f"CREATE TABLE KERN ({typed})")
            made.executemany(f"INSERT INTO KERN VALUES ({','.join('?' * len(rows[0]))})", rows[1:])
            made.execute(
                'CREATE TABLE OPS ("BeginNs" INTEGER, "EndNs" INTEGER, "dev-id" INTEGER, '
                '"queue-id" INTEGER, "stream-id" INTEGER,'
                ' "Name" TEXT, "pid" INTEGER, "tid" INTEGER, "Index" INTEGER)'
            )
            made.executemany(
                "INSERT INTO OPS VALUES (?, ?, 4, 0, 0, ?, 77, 78, ?)",
                [(b, e, name, n) for n, name, b, e, _ in self.ROWS],
            )
        made.close()
        trace = readers.read(path)
        assert totals(trace) == (3, 390)
        assert trace.kernels.workgroups.tolist() == [4, 1, 2]


class TestRecorded:
    """Files of three real runs; the figures are those of the files' own records and statistics."""

    @pytest.mark.parametrize(
        ("file", "kernels", "total"),
        [
            ("fd_laplacian_2023/results.csv", 1004, 2610787312),
            ("fd_laplacian_2023/results.db.gz", 1004, 2610787312),
            ("kokkos_2021/results.json", 14, 1649757),
            ("kokkos_2021/results.db", 14, 1649757),
            ("mi300a_vecadd/results.json", 1, 3431611),
            ("mi300a_vecadd/results.db", 1, 3431611),
            ("mi300a_vecadd/output_vec_add_gpu.csv", 1, 0),
        ],
    )
    def test_kernels(self, shared: Path, file: str, kernels: int, total: int) -> None:
        assert totals(readers.read(shared / V1 / file)) == (kernels, total)

    @pytest.mark.parametrize(
        "file",
        [
            "fd_laplacian_2023/results.csv",
            "fd_laplacian_2023/results.db.gz",
            "kokkos_2021/results.json",
            "kokkos_2021/results.db",
            "mi300a_vecadd/results.json",
            "mi300a_vecadd/results.db",
        ],
    )
    def test_hotspots_are_the_vendors_statistics(self, shared: Path, file: str) -> None:
        path = shared / V1 / file
        stats = path.with_name("results.stats.csv")
        own = by_name(hotspots.by_kernel(readers.read(path)))
        assert own == printed(stats) == by_name(hotspots.default(readers.read(stats)))

    @pytest.mark.parametrize("run", ["kokkos_2021", "mi300a_vecadd"])
    @pytest.mark.parametrize("form", ["results.json", "results.db"])
    def test_calls_and_copies_are_the_vendors_statistics(
        self, shared: Path, run: str, form: str
    ) -> None:
        trace = readers.read(shared / V1 / run / form)
        for table, file in (
            (trace.api, "results.hip_stats.csv"),
            (trace.copies, "results.copy_stats.csv"),
        ):
            summed: dict[str, list[int]] = {}
            for name, dur in zip(
                trace.strings.decode(table.name), table.dur_ns.tolist(), strict=True
            ):
                summed.setdefault(name, []).append(dur)
            assert sorted((name, len(durs), sum(durs)) for name, durs in summed.items()) == printed(
                shared / V1 / run / file
            )

    def test_both_forms_of_a_run_are_the_same_records(self, shared: Path) -> None:
        for run in ("kokkos_2021", "mi300a_vecadd"):
            one, other = (
                readers.read(shared / V1 / run / form) for form in ("results.json", "results.db")
            )
            for table in ("kernels", "copies", "api", "marks"):
                left, right = getattr(one, table), getattr(other, table)
                order, mirror = (np.lexsort((part.dur_ns, part.start_ns)) for part in (left, right))
                assert left.start_ns[order].tolist() == right.start_ns[mirror].tolist()
                assert left.dur_ns[order].tolist() == right.dur_ns[mirror].tolist()
                assert left.pid[order].tolist() == right.pid[mirror].tolist()
            assert one.devices == other.devices
            assert one.strings.decode(one.marks.name) == other.strings.decode(other.marks.name)

    def test_each_kernels_call_is_the_same_in_both_forms(self, shared: Path) -> None:
        def launched(trace: Trace) -> list[tuple[int, str, int]]:
            calls = {
                int(number): row
                for row, number in enumerate(trace.api.correlation)
                if number != NULL
            }
            rows = [calls[int(number)] for number in trace.kernels.correlation]
            return sorted(
                zip(
                    trace.kernels.start_ns.tolist(),
                    trace.strings.decode(trace.api.name[rows]),
                    trace.api.start_ns[rows].tolist(),
                    strict=True,
                )
            )

        for run in ("kokkos_2021", "mi300a_vecadd"):
            one, other = (
                launched(readers.read(shared / V1 / run / form))
                for form in ("results.json", "results.db")
            )
            assert one == other
            assert one

    def test_devices_of_three_nodes(self, shared: Path) -> None:
        def device(file: str) -> tuple[str, str, int | None]:
            found = readers.read(shared / V1 / file).devices[0]
            return found.index, found.name, found.compute_units

        assert device("mi300a_vecadd/results.json") == ("4", "AMD Instinct MI300A", 228)
        assert device("fd_laplacian_2023/results.csv") == ("8", "AMD Instinct MI250X/MI250", 104)
        assert device("kokkos_2021/results.db") == ("0", "Vega 20", 64)
        assert len(readers.read(shared / V1 / "kokkos_2021/results.sysinfo.txt").devices) == 4

    def test_the_invalid_file(self, shared: Path) -> None:
        with pytest.raises(InputError, match=r"results\.json holds no list of events"):
            readers.read(shared / V1 / "fd_laplacian_2023/results.json")

    def test_the_counters(self, shared: Path) -> None:
        trace = readers.read(shared / V1 / "mi300a_vecadd/output_vec_add_gpu.csv")
        assert dict(
            zip(
                trace.strings.decode(trace.counters.name),
                trace.counters.value.tolist(),
                strict=True,
            )
        ) == {"GPUBusy": 100.0, "Wavefronts": 15625000.0}
        assert trace.kernels.workgroups.tolist() == [3906250]
