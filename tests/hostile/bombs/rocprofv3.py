"""Files of rocprofv3 in its three forms: databases, JSON and CSV."""

from __future__ import annotations

import json
import random
import sqlite3
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from tests.fakes.rocpd_files import write_rocpd
from tests.fakes.rocprofv3_files import document
from tests.fakes.rocprofv3_program import Kernel, Program, Symbol, program
from tests.hostile.bombs.bomb import Bomb, lines, pack, pack_file, plain, scaled

_START = 63_857_982_592_000


def _kernel(number: int, counters: tuple[tuple[str, tuple[float, ...]], ...] = ()) -> Kernel:
    at = _START + 1000 * number
    return Kernel(
        10, at, at + 500, 2, number + 1, number + 1, (256, 1, 1), (64, 1, 1), counters=counters
    )


def database_of_counters(folder: Path, scale: float, *, values: int, counters: int) -> Path:
    """A database with so many values of so many counters, few of each kernel."""
    values = scaled(values, scale)
    of_each = 10
    kernels = tuple(
        _kernel(
            number,
            tuple((f"C{(number * of_each + n) % counters}", (1.0,)) for n in range(of_each)),
        )
        for number in range(max(1, values // of_each))
    )
    path = write_rocpd(
        folder / "7_results.db", Program(symbols=(Symbol(10, "k"),), kernels=kernels)
    )
    return pack_file(path)


def database_of_processes(folder: Path, scale: float, *, count: int) -> Path:
    """A database whose one table of processes has so many, with a call of each."""
    count = scaled(count, scale)
    path = write_rocpd(folder / "7_results.db", program(1, 8))
    connection = sqlite3.connect(path)
    guid = connection.execute("SELECT guid FROM rocpd_info_process").fetchone()[0]
    suffix = "_" + guid.replace("-", "_")
    for table, own in (("info_process", ("id", "pid")), ("info_thread", ("id", "pid"))):
        name = f'"rocpd_{table}{suffix}"'
        columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
        first = connection.execute(f"SELECT * FROM {name} LIMIT 1").fetchone()
        marks = ", ".join("?" * len(columns))
        rows = (
            tuple(
                10_000 + n if column in own else value
                for column, value in zip(columns, first, strict=True)
            )
            for n in range(count)
        )
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", rows)
    connection.commit()
    connection.close()
    return pack_file(path)


def database_of_calls(folder: Path, scale: float, *, count: int) -> Path:
    """A database with so many calls that all overlap."""
    count = scaled(count, scale)
    path = write_rocpd(folder / "7_results.db", program(1, 8))
    connection = sqlite3.connect(path)
    guid = connection.execute("SELECT guid FROM rocpd_info_process").fetchone()[0]
    name = f'"rocpd_region_{guid.replace("-", "_")}"'
    first = connection.execute(f"SELECT * FROM {name} LIMIT 1").fetchone()
    columns = [row[1] for row in connection.execute(f"PRAGMA table_info({name})")]
    marks = ", ".join("?" * len(columns))
    connection.executemany(
        f"INSERT INTO {name} VALUES ({marks})",
        (
            tuple(
                {"id": 10**6 + n, "start": _START + n, "end": _START + count + n}.get(column, value)
                for column, value in zip(columns, first, strict=True)
            )
            for n in range(count)
        ),
    )
    connection.commit()
    connection.close()
    return pack_file(path)


def _json_with(place: str, parts: Iterator[str]) -> Iterator[str]:
    """The JSON of a small program in which the text `place` stands for what `parts` make."""
    whole = document(program(1, 8))
    process = whole["rocprofiler-sdk-tool"][0]
    group, name = place.split(".")
    process[group][name] = "@@"
    before, _, after = json.dumps(whole, separators=(",", ":")).partition('"@@"')
    yield f"{before}["
    for number, part in enumerate(parts):
        yield f",{part}" if number else part
    yield f"]{after}"


def json_of_threads(folder: Path, scale: float, *, count: int) -> Path:
    """A call of each of so many threads."""
    count = scaled(count, scale)
    kind = document(program(1, 8))["rocprofiler-sdk-tool"][0]["buffer_records"]["hip_api"][0]

    def parts() -> Iterator[str]:
        for n in range(count):
            yield (
                f'{{"kind":{kind["kind"]},"operation":{kind["operation"]},"thread_id":{n + 9},'
                f'"correlation_id":{{"internal":{n + 99},"external":0}},'
                f'"start_timestamp":{_START + n},"end_timestamp":{_START + n + 5}}}'
            )

    return pack(folder / "7_results.json.gz", _json_with("buffer_records.hip_api", parts()))


def json_of_markers(folder: Path, scale: float, *, count: int) -> Path:
    """Texts of so many markers, which no record names."""
    count = scaled(count, scale)
    parts = (f'{{"key":{n},"value":"m{n}"}}' for n in range(count))
    return pack(folder / "7_results.json.gz", _json_with("strings.marker_api", parts))


def json_of_ranges(folder: Path, scale: float, *, count: int) -> Path:
    """So many ranges of the program, each of another name, that all overlap."""
    count = scaled(count, scale)
    process = document(program(1, 8))["rocprofiler-sdk-tool"][0]
    kind = process["buffer_records"]["marker_api"][0]
    process["strings"]["marker_api"] = [{"key": n + 99, "value": f"r{n}"} for n in range(count)]
    process["buffer_records"]["marker_api"] = [
        {
            **kind,
            "correlation_id": {"internal": n + 99, "external": 0},
            "start_timestamp": _START + n,
            "end_timestamp": _START + count + n,
        }
        for n in range(count)
    ]
    text = json.dumps({"rocprofiler-sdk-tool": [process]}, separators=(",", ":"))
    return pack(folder / "7_results.json.gz", [text])


def json_of_counters(folder: Path, scale: float, *, count: int) -> Path:
    """So many values of counters of few kernels."""
    each = 9_000
    kernels = tuple(
        _kernel(number, tuple((f"C{n}", (1.0,)) for n in range(each)))
        for number in range(max(1, scaled(count, scale) // each))
    )
    given = Program(symbols=(Symbol(10, "k"),), kernels=kernels)
    text = json.dumps(document(given), separators=(",", ":"))
    return pack(folder / "7_results.json.gz", [text])


_TRACE = (
    '"Kind","Agent_Id","Queue_Id","Stream_Id","Thread_Id","Dispatch_Id","Kernel_Id","Kernel_Name",'
    '"Correlation_Id","Start_Timestamp","End_Timestamp","LDS_Block_Size","Scratch_Size",'
    '"VGPR_Count","Accum_VGPR_Count","SGPR_Count","Workgroup_Size_X","Workgroup_Size_Y",'
    '"Workgroup_Size_Z","Grid_Size_X","Grid_Size_Y","Grid_Size_Z"'
)


def _trace(count: int, name: str, more: str = "", cells: str = "") -> Iterator[str]:
    yield f"{_TRACE}{more}\n"
    for n in range(count):
        at = _START + 100 * n
        yield (
            f'"KERNEL_DISPATCH","Agent 2",1,0,7,{n + 1},1,"{name.format(n)}",{n + 1},'
            f"{at},{at + 50},0,0,8,0,16,64,1,1,256,1,1{cells}\n"
        )


def csv_of_kernels(folder: Path, scale: float, *, count: int, length: int, packed: bool) -> Path:
    """A table of kernels, each with a name of its own of so many characters."""
    rows = _trace(scaled(count, scale), f"k{{}}{'<a>' * (length // 3)}")
    if packed:
        return pack(folder / "7_kernel_trace.csv.gz", rows)
    return plain(folder / "7_kernel_trace.csv", rows)


def csv_of_counters(folder: Path, scale: float, *, count: int, counters: int) -> Path:
    """Rows of a counter each, of so many counters."""
    count = scaled(count, scale)

    def rows() -> Iterator[str]:
        yield (
            '"Correlation_Id","Dispatch_Id","Agent_Id","Queue_Id","Process_Id","Thread_Id",'
            '"Grid_Size","Kernel_Id","Kernel_Name","Workgroup_Size","LDS_Block_Size",'
            '"Scratch_Size","VGPR_Count","Accum_VGPR_Count","SGPR_Count","Counter_Name",'
            '"Counter_Value",'
            '"Start_Timestamp","End_Timestamp"\n'
        )
        for n in range(count):
            dispatch = n // 4
            at = _START + 100 * dispatch
            yield (
                f'{dispatch},{dispatch},"Agent 2",1,7,7,256,1,"k{dispatch % 99}",64,0,0,8,0,16,'
                f'"C{n % counters}",1,{at},{at + 50}\n'
            )

    return pack(folder / "7_counter_collection.csv.gz", rows())


def csv_wide(folder: Path, scale: float, *, count: int, columns: int) -> Path:
    """A table of kernels with thousands of columns that nobody knows."""
    count = scaled(count, scale)
    more = "".join(f',"X{n}"' for n in range(columns))
    return pack(folder / "7_kernel_trace.csv.gz", _trace(count, "k", more, ",1" * columns))


def csv_in_any_order(folder: Path, scale: float, *, count: int) -> Path:
    """Kernels in no order, of many queues, which all overlap."""
    count = scaled(count, scale)
    rng = random.Random(5)

    def rows() -> Iterator[str]:
        yield f"{_TRACE}\n"
        for n in range(count):
            at = _START + rng.randrange(count)
            yield (
                f'"KERNEL_DISPATCH","Agent {n % 400}",{n % 9_000},{n % 9_000},{n % 999},{n + 1},1,'
                f'"k{n % 9}",{n + 1},{at},{at + count},0,0,8,0,16,64,1,1,256,1,1\n'
            )

    return pack(folder / "7_kernel_trace.csv.gz", rows())


_OFTEN = ("metrics", "hotspots", "merge {} -o m.pftrace")
BOMBS = (
    Bomb(
        "rocpd 200,000 values of counters",
        partial(database_of_counters, values=200_000, counters=9_900),
        lines(*_OFTEN, "scrub"),
    ),
    Bomb("rocpd 20,000 processes", partial(database_of_processes, count=20_000), lines(*_OFTEN)),
    Bomb("rocpd 150,000 calls", partial(database_of_calls, count=150_000), lines(*_OFTEN)),
    Bomb("rocprofv3 JSON 300,000 threads", partial(json_of_threads, count=300_000), lines(*_OFTEN)),
    Bomb("rocprofv3 JSON 1.5 M markers", partial(json_of_markers, count=1_500_000), lines(*_OFTEN)),
    Bomb(
        "rocprofv3 JSON 150,000 ranges",
        partial(json_of_ranges, count=150_000),
        lines(*_OFTEN, "hotspots --by range"),
    ),
    Bomb("rocprofv3 JSON 450,000 values", partial(json_of_counters, count=450_000), lines(*_OFTEN)),
    Bomb(
        "rocprofv3 CSV long names",
        partial(csv_of_kernels, count=6_000, length=1_000, packed=False),
        lines(*_OFTEN),
    ),
    Bomb(
        "rocprofv3 CSV 20,000 names",
        partial(csv_of_kernels, count=20_000, length=800, packed=True),
        lines(*_OFTEN),
    ),
    Bomb(
        "rocprofv3 CSV 400,000 x 10,000",
        partial(csv_of_counters, count=400_000, counters=10_000),
        lines(*_OFTEN),
    ),
    Bomb(
        "rocprofv3 CSV 9,900 columns", partial(csv_wide, count=6_000, columns=9_900), lines(*_OFTEN)
    ),
    Bomb("rocprofv3 CSV 250,000 kernels", partial(csv_in_any_order, count=250_000), lines(*_OFTEN)),
)
