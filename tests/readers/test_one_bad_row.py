"""One bad row, event or record loses that one, and is told; the others are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from profharness import readers
from profharness.readers.bytes.csv_columns import parse_table
from profharness.readers.bytes.limits import LARGEST, count_of, cut, whole
from profharness.readers.logs.rocprof_sys_text import Row, own_ns
from profharness.trace.model import Kernels, Trace

ROWS = 20
HUGE = 10**30
_TRACE = (
    '"Kind","Agent_Id","Queue_Id","Kernel_Id","Kernel_Name","Correlation_Id",'
    '"Start_Timestamp","End_Timestamp","Private_Segment_Size","Group_Segment_Size",'
    '"Workgroup_Size_X","Workgroup_Size_Y","Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y",'
    '"Grid_Size_Z"'
)


def kernel_row(at: int, name: str = "gemm", start: str = "") -> str:
    return (
        f'"KERNEL_DISPATCH",1,1,5,"{name}",{at},{start or 1000 * at},{1000 * at + 500},'
        "0,0,64,1,1,6400,1,1"
    )


def read_csv(folder: Path, row: bytes) -> Trace:
    """The trace of ROWS good rows of kernels with this one in their middle."""
    path = folder / "1_kernel_trace.csv"
    rows = [kernel_row(at).encode() for at in range(1, ROWS + 1)]
    path.write_bytes(b"\n".join([_TRACE.encode(), *rows[:10], row, *rows[10:]]) + b"\n")
    return readers.read(path)


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        (b'"KERNEL\xff_DISPATCH",1,1,5', 0),
        (kernel_row(50).encode() + b",\xff", 0),
        (kernel_row(50, name="a\x00b").encode(), 1),
        (kernel_row(50, start=str(HUGE)).encode(), 0),
        (kernel_row(50, start="9" * 5000).encode(), 0),
        (kernel_row(50, start="nan").encode(), 0),
    ],
    ids=["short with a bad byte", "long with one", "a zero byte", "time", "digits", "nan"],
)
def test_a_bad_row_of_kernels_loses_itself(tmp_path: Path, row: bytes, kept: int) -> None:
    trace = read_csv(tmp_path, row)
    assert len(trace.kernels) == ROWS + kept
    assert int(trace.kernels.dur_ns[:ROWS].max()) == 500
    assert kept or sum(problem.count for problem in trace.problems) == 1


def test_an_open_quote_does_not_take_the_rows_behind_it() -> None:
    rows = "".join(f'"k{at}",{at},7\n' for at in range(8))
    table = parse_table(
        Path("pmc.csv"), 'Name,Id,Value\n0,"1,2\n' + rows.replace('"', "") + "x,1,2\n"
    )
    assert table.rows == 9
    assert table.uneven == 1


def test_several_lines_in_a_closed_quote_stay_one_row() -> None:
    table = parse_table(Path("pmc.csv"), 'Name,Id\n"a\nb",1\n"c\nd",2,3\n')
    assert (table.columns["Name"], table.uneven) == (["a\nb"], 1)


def dispatch(at: int, **changed: Any) -> dict[str, Any]:
    info = {
        "agent_id": {"handle": 7},
        "queue_id": {"handle": 1},
        "kernel_id": 5,
        "dispatch_id": at,
        "workgroup_size": {"x": 64, "y": 1, "z": 1},
        "grid_size": {"x": 6400, "y": 1, "z": 1},
    }
    record = {
        "start_timestamp": 1000 * at,
        "end_timestamp": 1000 * at + 500,
        "thread_id": 1,
        "correlation_id": {"internal": at},
        "dispatch_info": {**info, **{k: v for k, v in changed.items() if k in info}},
    }
    return {**record, **{k: v for k, v in changed.items() if k not in info}}


def read_json(folder: Path, *bad: dict[str, Any], names: Any = None) -> Trace:
    process = {
        "metadata": {"pid": 1, "node": {"hostname": "n"}},
        "agents": [{"id": {"handle": 7}, "type": 2, "node_id": 1, "logical_node_id": 1}],
        "strings": names or {"buffer_records": [{"kind": "HIP", "operations": ["hipMalloc"]}]},
        "kernel_symbols": [{"kernel_id": 5, "formatted_kernel_name": "gemm"}],
        "buffer_records": {"kernel_dispatch": [*bad, *(dispatch(at) for at in range(1, ROWS + 1))]},
    }
    path = folder / "1_results.json"
    path.write_text(json.dumps({"rocprofiler-sdk-tool": [process]}))
    return readers.read(path)


@pytest.mark.parametrize(
    "changed",
    [
        {"start_timestamp": HUGE},
        {"end_timestamp": 2**63 - 1},
        {"start_timestamp": -(2**63)},
        {"thread_id": 2**63},
        {"kernel_id": 2**64 - 1},
        {"grid_size": {"x": 2**40, "y": 1, "z": 1}},
        {"correlation_id": []},
    ],
)
def test_a_bad_record_of_rocprofv3_json_loses_itself(
    tmp_path: Path, changed: dict[str, Any]
) -> None:
    trace = read_json(tmp_path, dispatch(50, **changed))
    assert len(trace.kernels) == ROWS
    assert [problem.count for problem in trace.problems if "left out" in problem.message] == [1]


def test_a_bad_table_of_names_loses_names(tmp_path: Path) -> None:
    trace = read_json(tmp_path, names={"buffer_records": [{"kind": [], "operations": 3}]})
    assert len(trace.kernels) == ROWS
    assert sum(problem.count for problem in trace.problems) == 1


def request(at: int) -> dict[str, Any]:
    return {"timestamp": 10**18 + at, "response_timestamps": [10**18 + at + 5]}


@pytest.mark.parametrize(
    "bad",
    [b'{"timestamp": [], "response_timestamps": []}', b'{"timestamp": 1e400}', b'{"a": \xff}'],
)
def test_a_bad_request_of_a_profile_export_loses_itself(tmp_path: Path, bad: bytes) -> None:
    requests = ", ".join(json.dumps(request(at)) for at in range(ROWS)).encode()
    path = tmp_path / "export.json"
    path.write_bytes(
        b'{"experiments": [{"experiment": {"mode": "concurrency", "value": 4}, "requests": ['
        + bad
        + b", "
        + requests
        + b'], "window_boundaries": [1, 2]}], "version": "2.51.0"}'
    )
    trace = readers.read(path)
    assert len(trace.requests) == ROWS
    assert sum(problem.count for problem in trace.problems) == 1


def test_a_bad_byte_before_the_events_keeps_them(tmp_path: Path) -> None:
    event = {"ph": "X", "cat": "kernel", "name": "k", "pid": 0, "tid": 7, "ts": 5.0, "dur": 2.0}
    path = tmp_path / "trace.json"
    path.write_bytes(
        b'{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "A\xff100"}], "traceEvents": ['
        + json.dumps(event).encode()
        + b"]}"
    )
    assert len(readers.read(path).kernels) == 1


def test_totals_that_no_column_holds_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "results.stats.csv"
    path.write_text(
        '"Name","Calls","TotalDurationNs","AverageNs","Percentage"\n"a",1,5,5,50\n'
        f'"b",1,{"9" * 5000},5,50\n"c",{HUGE},5,5,0\n"d",\u0661,5,5,0\n'
    )
    trace = readers.read(path)
    assert [row.name for row in trace.statistics] == ["a"]
    assert trace.problems[0].count == 3


def test_numbers_too_wide_for_a_column_are_not_recorded() -> None:
    kernels = Kernels.build(start_ns=np.arange(2), vgpr=np.array([32, 2**32 + 5]))
    assert kernels.vgpr.tolist() == [32, -1]


def test_whole_numbers_fit_int64() -> None:
    assert [whole(text) for text in (" +7 ", "-0012", str(LARGEST), str(-LARGEST))] == [
        7,
        -12,
        LARGEST,
        -LARGEST,
    ]
    for text in ("", "+", "1.5", "1e3", "\u0661", str(LARGEST + 1), "9" * 10_000, "- 1"):
        assert whole(text) is None
    with pytest.raises(ValueError, match="-1"):
        count_of("-1")


@pytest.mark.parametrize("text", ["1e999999", "-1", "NaN", "Infinity", "1e19"])
def test_decimals_without_end_are_refused_at_once(text: str) -> None:
    from decimal import Decimal

    with pytest.raises(OverflowError):
        cut(Decimal(text))


def test_a_depth_without_end_costs_nothing() -> None:
    def row(depth: int, ns: int) -> Row:
        return Row("f", None, None, 1, depth, ns, 0.0)

    deep = 10**12
    rows = [row(0, 100), row(1, 40), row(deep, 10), row(deep, 5), row(1, 20), row(2, 20)]
    # the second of two deep rows lies below the first, as it stands at every depth up to its own
    assert own_ns(rows) == [40, 40, 5, 5, 0, 20]
