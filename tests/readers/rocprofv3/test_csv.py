"""rocprofv3's CSV files as they are found in the wild: other headers, other tools' edits, cut and
damaged files.
"""

from __future__ import annotations

import csv
import gzip
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from profharness import readers
from profharness.analysis.kernels import hotspots
from profharness.analysis.time.linking import link_kernels
from profharness.errors import InputError
from profharness.readers.bytes.arrow_csv import CsvColumns
from profharness.readers.rocprofv3 import csv_reader as rocprofv3_csv
from profharness.trace.columns.table import NULL
from profharness.trace.model import Strings, Trace
from tests.fakes.rocprofv3_files import write_csv
from tests.fakes.rocprofv3_program import GpuAgent, Program, program
from tests.readers.rocprofv3.tables_spelled import spelled, totals

HEAD = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Name",'
    '"Correlation_Id","Start_Timestamp","End_Timestamp"'
)
ROW = '"KERNEL_DISPATCH","Agent 2",1,0,7,{n},"k{n}",{n},{start},{end}'


def kernel_file(path: Path, rows: list[str], head: str = HEAD, newline: str = "\n") -> Path:
    path.write_text(newline.join([head, *rows, ""]), newline="")
    return path


def rows(count: int, first: int = 1000) -> list[str]:
    return [
        ROW.format(n=n, start=first + 100 * n, end=first + 100 * n + n) for n in range(1, count + 1)
    ]


def said(trace: Trace, words: str) -> int:
    return next(problem.count for problem in trace.problems if words in problem.message)


def kernel_and_agents(folder: Path, given: Program) -> list[Path]:
    return [
        path
        for path in write_csv(folder, given)
        if "kernel_trace" in path.name or "agent_info" in path.name
    ]


def test_of_columns_of_one_name_the_first_counts(tmp_path: Path) -> None:
    path = kernel_file(
        tmp_path / "a_kernel_trace.csv",
        ["k,10,30,99,Agent 1,Agent 7,1"],
        "Kernel_Name,Start_Timestamp,End_Timestamp,END_TIMESTAMP,Agent_Id,Agent_Id,Correlation_Id",
    )
    trace = readers.read(path)
    assert trace.kernels.dur_ns.tolist() == [20]
    assert [device.index for device in trace.devices] == ["1"]


def test_columns_count_by_name_not_by_place_or_case(tmp_path: Path) -> None:
    path = kernel_file(
        tmp_path / "a_kernel_trace.csv",
        ['5,30,"k, with ""quotes""",20,GPU 1,99'],
        "CORRELATION_ID,end_timestamp,kernel_name,Start_timestamp,agent_id,Something_New",
    )
    trace = readers.read(path)
    assert totals(trace) == {'k, with "quotes"': (1, 10)}
    assert trace.devices[0].index == "1"
    k = trace.kernels
    assert (k.correlation[0], k.workgroups[0], k.vgpr[0], k.stream[0], k.tid[0], k.dispatch[0]) == (
        5,
        NULL,
        NULL,
        NULL,
        NULL,
        NULL,
    )


def test_what_spreadsheets_add_changes_nothing(tmp_path: Path) -> None:
    plain = readers.read(kernel_file(tmp_path / "a_kernel_trace.csv", rows(5)))
    quoted = tmp_path / "b_kernel_trace.csv"
    quoted.write_bytes(
        b"\xef\xbb\xbf"
        + "\r\n".join(
            [
                HEAD,
                *(
                    ",".join(f'"{cell}"' for cell in row.replace('"', "").split(","))
                    for row in rows(5)
                ),
                "",
                "",
            ]
        ).encode()
    )
    assert spelled(readers.read(quoted)) == spelled(plain)
    assert readers.read(quoted).problems == ()


def test_times_that_a_spreadsheet_cut_are_refused(tmp_path: Path) -> None:
    cut = [row.replace("1100", "8.1097E+14") for row in rows(1)]
    with pytest.raises(InputError, match=r"8\.1097E\+14"):
        readers.read(kernel_file(tmp_path / "a_kernel_trace.csv", cut))
    trace = readers.read(kernel_file(tmp_path / "b_kernel_trace.csv", [*cut, *rows(9)[1:]]))
    assert (len(trace.kernels), said(trace, "no whole numbers")) == (8, 1)
    assert next(p for p in trace.problems if "whole numbers" in p.message).severity == "error"


def test_floats_without_fraction_count_as_far_as_a_float_is_exact(tmp_path: Path) -> None:
    float_row = (
        '"KERNEL_DISPATCH","Agent 2",1.0,0.0,7.0,1.0,"k",1.0,8819330200067564.0,8819330200067570.0'
    )
    beyond = float_row.replace("8819330200067570.0", "18819330200067570.0")
    trace = readers.read(kernel_file(tmp_path / "a_kernel_trace.csv", [float_row, beyond]))
    assert (
        trace.kernels.start_ns.tolist(),
        trace.kernels.dur_ns.tolist(),
        trace.kernels.queue.tolist(),
    ) == ([8819330200067564], [6], [1])
    assert said(trace, "no whole numbers") == 1


def test_damaged_values_of_other_columns_are_not_recorded(tmp_path: Path) -> None:
    trace = readers.read(
        kernel_file(
            tmp_path / "a_kernel_trace.csv",
            [rows(1)[0].replace('"Agent 2",1,', '"Agent 2",oops,'), *rows(3)[1:]],
        )
    )
    assert (
        len(trace.kernels),
        trace.kernels.queue.tolist(),
        said(trace, "taken as not recorded"),
    ) == (3, [NULL, 1, 1], 1)


@settings(max_examples=60)
@given(st.integers(1, 900))
def test_a_file_cut_anywhere_keeps_whole_rows_and_their_times(
    tmp_path_factory: pytest.TempPathFactory, lost: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    whole = kernel_file(folder / "a_kernel_trace.csv", rows(12, 10**15))
    data = whole.read_bytes()
    cut = folder / "b_kernel_trace.csv"
    cut.write_bytes(data[: max(len(data) - lost, len(HEAD) + 1)])
    try:
        trace = readers.read(cut)
    except InputError:
        assert lost > len(data) - len(HEAD) - len(rows(1, 10**15)[0]) - 1
        return
    kept = len(trace.kernels)
    assert kept <= 12
    wanted = readers.read(whole)
    assert trace.kernels.start_ns.tolist() == wanted.kernels.start_ns.tolist()[:kept]
    # only the number that the cut went through may differ: it lost digits, which makes it end
    # before its start
    assert trace.kernels.dur_ns.tolist()[:-1] == wanted.kernels.dur_ns.tolist()[:kept][:-1]
    assert not kept or trace.kernels.dur_ns[-1] in (0, wanted.kernels.dur_ns[kept - 1])


def test_a_cut_gzip_says_so(tmp_path: Path) -> None:
    path = tmp_path / "a_kernel_trace.csv.gz"
    path.write_bytes(gzip.compress("\n".join([HEAD, *rows(3000)]).encode())[:-900])
    trace = readers.read(path)
    assert 0 < len(trace.kernels) < 3000
    assert said(trace, "cut or damaged") == 1


def test_rows_of_another_length_are_counted(tmp_path: Path) -> None:
    trace = readers.read(kernel_file(tmp_path / "a_kernel_trace.csv", [*rows(4), "1,2,3", "a,b"]))
    assert (len(trace.kernels), said(trace, "more or fewer fields")) == (4, 2)


def test_a_file_without_rows_is_an_empty_trace(tmp_path: Path) -> None:
    trace = readers.read(kernel_file(tmp_path / "a_kernel_trace.csv", []))
    assert (len(trace.kernels), trace.problems) == (0, ())


@pytest.mark.parametrize(
    "head",
    [
        "a,b,c",
        '"Name","Calls","TotalDurationNs","AverageNs","Percentage"',
        '"Index","KernelName","gpu-id","queue-id"',
    ],
)
def test_other_tools_files_are_not_taken(tmp_path: Path, head: str) -> None:
    assert not rocprofv3_csv.sniff(f"{head}\n1,2,3\n".encode(), "x_kernel_trace.csv")
    with pytest.raises(InputError, match=r"none of rocprofv3's CSV files"):
        rocprofv3_csv.read(kernel_file(tmp_path / "x.csv", ["1,2,3"], head))


def test_binary_and_broken_heads_are_no_csv() -> None:
    assert not rocprofv3_csv.sniff(b"SQLite format 3\0" + bytes(range(256)) * 40, "x.db")
    assert not rocprofv3_csv.sniff(b'"never closed ' * 5000, "x.csv")
    assert not rocprofv3_csv.sniff(b"", "x.csv")


def test_agents_are_found_in_each_way_of_numbering(tmp_path: Path) -> None:
    hidden = (GpuAgent(4, 1, location=0x1100), GpuAgent(7, 2, location=0x2200))
    for style, number, address in (
        ("Agent {}", 7, "0000:22:00.0"),
        ("{}", 4, "0000:11:00.0"),
        ("GPU {}", 1, "0000:22:00.0"),
        ("GPU {}", 0, "0000:11:00.0"),
    ):
        folder = tmp_path / style.format(number).replace(" ", "-")
        files = kernel_and_agents(
            folder, Program(agents=hidden, symbols=program().symbols, kernels=program().kernels[:1])
        )
        trace_file = next(path for path in files if "kernel" in path.name)
        kernel_file(trace_file, [rows(1)[0].replace('"Agent 2"', style.format(number))])
        device = readers.read(trace_file).devices[0]
        assert (device.index, device.identity) == (str(number), address)


def test_partitions_of_one_card_stay_apart(tmp_path: Path) -> None:
    agents = (GpuAgent(2, 1, dies=1, compute_units=38), GpuAgent(3, 2, dies=1, compute_units=38))
    given = Program(agents=agents, symbols=program().symbols, kernels=program().kernels)
    trace = rocprofv3_csv.read_set(kernel_and_agents(tmp_path, given))
    assert {device.identity for device in trace.devices} == {"0000:75:00.0/0", "0000:75:00.0/1"}


def test_the_process_is_taken_from_rows_or_from_a_name_that_a_thread_bears_out(
    tmp_path: Path,
) -> None:
    assert readers.read(kernel_file(tmp_path / "7_kernel_trace.csv", rows(2))).sources[0].pid == 7
    assert (
        readers.read(kernel_file(tmp_path / "node1_7_kernel_trace.csv", rows(2))).sources[0].pid
        == 7
    )
    assert (
        readers.read(kernel_file(tmp_path / "run_10_kernel_trace.csv", rows(2))).sources[0].pid
        is None
    )
    assert readers.read(kernel_file(tmp_path / "kernel_trace.csv", rows(2))).sources[0].pid is None
    given = program(pid=99)
    assert (
        rocprofv3_csv.read_set(write_csv(tmp_path / "set", given, prefix="any_")).sources[0].pid
        == 99
    )


def test_files_are_grouped_by_process(tmp_path: Path) -> None:
    first = write_csv(tmp_path, program(1, pid=11))
    second = write_csv(tmp_path, program(2, pid=12))
    groups = readers.group_files([*second, *first])
    assert sorted(sorted(group) for group in groups) == [sorted(first), sorted(second)]
    for group, pid in zip(sorted(groups), (11, 12), strict=True):
        trace = readers.read_group(group)
        assert (trace.sources[0].pid, len(trace.sources)) == (pid, 1)
        assert link_kernels(trace).linked.all()
        assert trace.sources[0].path.endswith(f"{pid}_kernel_trace.csv")


def test_counters_beside_a_kernel_trace_add_no_kernels_but_those_it_lacks(tmp_path: Path) -> None:
    given = program(4, 30)
    files = write_csv(tmp_path / "a", given)
    whole = rocprofv3_csv.read_set(files)
    assert len(whole.kernels) == 30
    trace_file = next(path for path in files if "kernel_trace" in path.name)
    lines = trace_file.read_text().splitlines()
    trace_file.write_text("\n".join(lines[:11]) + "\n")
    part = rocprofv3_csv.read_set(files)
    counted = [kernel for kernel in given.kernels if kernel.counters]
    assert len(part.kernels) == 10 + sum(kernel.dispatch > 10 for kernel in counted)
    assert len(part.counters) == len(whole.counters)
    assert totals(part) != totals(whole)


def test_two_processes_in_one_converted_file_stay_apart(tmp_path: Path) -> None:
    one, two = program(1, 8, pid=50), program(2, 8, pid=50)
    folders = [
        write_csv(tmp_path / name, given, "convert") for name, given in (("one", one), ("two", two))
    ]
    joined = []
    for first, second in zip(*folders, strict=True):
        other = (
            second.read_text().replace("00003fdc-92cb", "0000aaaa-92cb").splitlines()[1:]
            if "agent_info" not in second.name
            else []
        )
        path = tmp_path / first.name
        path.write_text(first.read_text() + "".join(f"{line}\n" for line in other))
        joined.append(path)
    trace = rocprofv3_csv.read_set(joined)
    assert len(trace.kernels) == 16
    assert link_kernels(trace).linked.all()
    starts = trace.api.start_ns[link_kernels(trace).api]
    launched = (
        {call.correlation: call.start for call in one.calls},
        {call.correlation: call.start for call in two.calls},
    )
    wanted = [launched[0][k.correlation] for k in one.kernels] + [
        launched[1][k.correlation] for k in two.kernels
    ]
    assert starts.tolist() == wanted
    assert len(trace.counters) == sum(
        len(k.counters) for given in (one, two) for k in given.kernels
    )


def test_samples_of_the_program_counter_are_counted_not_read(tmp_path: Path) -> None:
    samples = kernel_file(
        tmp_path / "pc_sampling_host_trap.csv",
        ['9,1,1,"v_add","",1'] * 2,
        '"Sample_Timestamp","Exec_Mask","Dispatch_Id","Instruction","Instruction_Comment",'
        '"Correlation_Id"',
    )
    assert said(readers.read(samples), "not analysed") == 2


def test_negative_durations_count_as_zero_and_are_said(tmp_path: Path) -> None:
    trace = readers.read(
        kernel_file(
            tmp_path / "a_kernel_trace.csv", [ROW.format(n=1, start=500, end=400), *rows(2)]
        )
    )
    assert (trace.kernels.dur_ns.tolist(), said(trace, "end before they start")) == ([0, 1, 2], 1)


@pytest.mark.parametrize(
    ("name", "rows_", "by"),
    [
        (
            "9_kernel_stats.csv",
            ['"a<1, 2>",2,30,15.0,60.0,10,20,5.0', '"b",1,20,20.0,40.0,20,20,0.00000000e+00'],
            "kernel",
        ),
        ("9_hip_api_stats.csv", ['"hipMalloc",2,50,25.0,100.0,10,40,15.0'], "op"),
        (
            "9_memory_copy_stats.csv",
            ['"MEMORY_COPY_HOST_TO_DEVICE",2,50,25.0,100.0,10,40,15.0'],
            "op",
        ),
        (
            "9_domain_stats.csv",
            ['"HIP_API",2,50,25.0,50.0,10,40,15.0', '"KERNEL_DISPATCH",2,50,25.0,50.0,10,40,15.0'],
            "op",
        ),
        (
            "renamed.csv",
            ['"hipMalloc",2,50,25.0,50.0,10,40,15.0', '"hsa_init",2,50,25.0,50.0,10,40,15.0'],
            "op",
        ),
        ("renamed.csv", ['"gemm",2,50,25.0,100.0,10,40,15.0'], "kernel"),
    ],
)
def test_statistics_give_their_rows(tmp_path: Path, name: str, rows_: list[str], by: str) -> None:
    path = kernel_file(
        tmp_path / name,
        rows_,
        '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"',
    )
    trace = readers.read(path)
    table = hotspots.default(trace)
    assert (table.by, len(table.rows), sum(row.calls for row in table.rows)) == (
        by,
        len(rows_),
        sum(int(r.rsplit(",", 7)[1]) for r in rows_),
    )
    assert table.total_ns == sum(int(r.rsplit(",", 7)[2]) for r in rows_)
    assert (table.rows[0].min_ns, table.rows[0].median_ns) == (10, None)


def test_quoted_statistics_and_a_row_of_totals(tmp_path: Path) -> None:
    head = '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"'
    rows_ = ['"a<1, 2>","2","30","15.0","60.0","10","20","5.0"', '"TOTAL","2","30","","","","",""']
    trace = readers.read(kernel_file(tmp_path / "9_kernel_stats.csv", rows_, head))
    assert [(row.name, row.calls, row.total_ns) for row in trace.statistics] == [("a<1, 2>", 2, 30)]
    assert not trace.problems


@pytest.mark.parametrize(
    "order", [("total", "k", "Total"), ("k", "total", "Total"), ("k", "total")]
)
def test_a_kernel_may_be_called_total(tmp_path: Path, order: tuple[str, ...]) -> None:
    """Only the last row, if it is the sum of the others, is the tool's own."""
    lines = {"total": "total,3,40,13,40.0", "k": "k,2,60,30,60.0", "Total": "Total,5,100,20,100.0"}
    own = [(name, int(lines[name].split(",")[2])) for name in order if name != "Total"]
    for name, head, rest in (
        ("results.stats.csv", "Name,Calls,TotalDurationNs,AverageNs,Percentage", ""),
        ("9_kernel_stats.csv", "Name,Calls,TotalDurationNs,AverageNs,Percentage,MinNs,MaxNs", ",,"),
    ):
        path = kernel_file(tmp_path / name, [lines[name] + rest for name in order], head)
        trace = readers.read(path)
        assert [(row.name, row.total_ns) for row in trace.statistics] == own
        assert not trace.problems


def test_a_quoted_copy_of_a_trace_says_the_same(tmp_path: Path) -> None:
    plain = kernel_file(tmp_path / "1_kernel_trace.csv", rows(3))
    with plain.open(newline="") as file:
        cells = list(csv.reader(file))
    quoted = tmp_path / "2_kernel_trace.csv"
    with quoted.open("w", newline="") as file:
        csv.writer(file, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(cells)
    assert '"100' in quoted.read_text() or '"1"' in quoted.read_text()
    one, other = readers.read(plain), readers.read(quoted)
    for column in ("start_ns", "dur_ns", "correlation", "workgroups", "vgpr"):
        assert getattr(one.kernels, column).tolist() == getattr(other.kernels, column).tolist()
    assert one.strings.decode(one.kernels.name) == other.strings.decode(other.kernels.name)
    assert not other.problems


def test_damaged_statistics_are_counted_or_refused(tmp_path: Path) -> None:
    head = '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"'
    good, bad = '"a",2,30,15.0,60.0,10,20,5.0', '"b",2,5.4E+08,15.0,60.0,10,20,5.0'
    trace = readers.read(kernel_file(tmp_path / "9_kernel_stats.csv", [good, bad], head))
    assert ([row.name for row in trace.statistics], said(trace, "no whole number")) == (["a"], 1)
    with pytest.raises(InputError, match="no row has whole numbers"):
        readers.read(kernel_file(tmp_path / "8_kernel_stats.csv", [bad], head))


@pytest.mark.parametrize(
    ("row", "extremes"),
    [
        ('"a",2,30,15.0,60.0,10,20,5.0', (10, 20)),
        ('"a",2,30,15.0,60.0,15,15,0.0', (15, 15)),
        ('"a",2,30,15.0,60.0,16,20,5.0', (None, None)),
        ('"a",2,30,15.0,60.0,10,14,5.0', (None, None)),
        ('"a",2,30,15.0,60.0,,20,5.0', (None, 20)),
    ],
)
def test_extremes_that_the_total_contradicts_are_not_shown(
    tmp_path: Path, row: str, extremes: tuple[int | None, int | None]
) -> None:
    head = '"Name","Calls","TotalDurationNs","AverageNs","Percentage","MinNs","MaxNs","StdDev"'
    trace = readers.read(kernel_file(tmp_path / "9_kernel_stats.csv", [row], head))
    (read,) = trace.statistics
    assert (read.min_ns, read.max_ns) == extremes
    told = any("their total contradicts" in problem.message for problem in trace.problems)
    assert told == (extremes == (None, None))


@settings(max_examples=20)
@given(st.integers(200, 4000), st.integers(1, 80))
def test_blocks_of_any_size_give_the_same_columns(
    tmp_path_factory: pytest.TempPathFactory, block: int, count: int
) -> None:
    path = kernel_file(tmp_path_factory.mktemp("blocks") / "k.csv", rows(count))
    strings = Strings()
    reader = CsvColumns(path, {"start_timestamp": "time", "kernel_name": "text"}, strings, block)
    blocks = reader.blocks()
    assert [value for part in blocks for value in part.integers["start_timestamp"].tolist()] == [
        1000 + 100 * n for n in range(1, count + 1)
    ]
    assert [strings[code] for part in blocks for code in part.integers["kernel_name"].tolist()] == [
        f"k{n}" for n in range(1, count + 1)
    ]


def test_a_row_that_does_not_end_leaves_no_thread_that_aborts_the_process(tmp_path: Path) -> None:
    """Arrow's thread read on while the interpreter ended: exit code 134 behind the sentence."""
    path = tmp_path / "r_kernel_trace.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(f'{HEAD}\n"'.encode() + b"a" * (60 << 20))
    for _ in range(3):
        ended = subprocess.run(
            [sys.executable, "-m", "profharness", "metrics", str(path)],
            capture_output=True,
            text=True,
            check=False,
        )
        assert ended.returncode == 4, ended.stderr
        assert "is no readable CSV file" in ended.stderr
        assert "Fatal" not in ended.stderr


def test_uneven_rows_beyond_what_a_files_size_explains_end_the_reading(tmp_path: Path) -> None:
    path = tmp_path / "r_kernel_trace.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(f"{HEAD}\n".encode() + b"1\n" * 1_000_000)
    columns = CsvColumns(path, {"kernel_name": "text"}, Strings())
    with pytest.raises(InputError, match="is no readable CSV file"):
        columns.blocks()
    assert columns.uneven < 200_000


def test_rows_beyond_what_a_files_size_explains_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / "r_kernel_trace.csv.gz"
    with gzip.open(path, "wb", compresslevel=1) as file:
        file.write(f"{HEAD}\n".encode() + f"{rows(1)[0]}\n".encode() * 1_500_000)
    columns = CsvColumns(path, {"kernel_name": "text"}, Strings())
    columns.blocks()
    assert 500_000 < columns.rows < 1_200_000
    assert "more rows than a file of its size can" in columns.damage
