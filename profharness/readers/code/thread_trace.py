"""rocprofv3's decoded thread traces (`stats_*.csv`): executions and cycles of each instruction of
one dispatch, on one compute unit per shader engine.

Columns are found by name, whatever their case and order. A row whose instruction begins with `; `
and that was never executed names the kernel that begins there; its source is the demangled name.
Source is `file:line`, empty where the code was built without debug information. The folder
`ui_output_agent_A_dispatch_D` beside it is for AMD's viewer and is not read.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.arrow_csv import header_of
from profharness.readers.bytes.csv_columns import integers, read_table
from profharness.rundir.blocks import read_head
from profharness.trace.code_records import CodeFile, CodeRecord
from profharness.trace.model import ClockDomain, Problem, Source, Strings, Trace
from profharness.trace.wanted import Wanted

name = "rocprofv3-thread-trace"

_COLUMNS = ("Codeobj", "Vaddr", "Instruction", "Hitcount", "Latency", "Stall", "Idle", "Source")
_TELLING = frozenset({"instruction", "hitcount", "latency"})
_NUMBERS = ("Hitcount", "Latency", "Stall", "Idle")
_HEAD_BYTES = 1 << 14
_HEADING = "; "


@dataclass
class _Sum:
    hits: int = 0
    latency: int = 0
    stall: int = 0
    idle: int = 0


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the columns decide
    """A first line with the columns of a thread trace's table."""
    return set(header_of(head)) >= _TELLING


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  nothing to leave out
    """A trace without records, since cycles of instructions have no place in time; a note says how
    to list them. Raises InputError as `read_code` does.
    """
    code = read_code(path)
    note = Problem(
        "info",
        str(path),
        len(code.records),
        "instructions of a thread trace have no place in time: "
        "`profharness hotspots FILE --by line` (or instruction) lists them",
    )
    source = Source(path=str(path), format=name, clock=ClockDomain.UNKNOWN, has_host_calls=False)
    return Trace(sources=(source,), strings=Strings(), problems=(*code.problems, note))


def read_code(path: Path) -> CodeFile:
    """The instructions of one dispatch by kernel, instruction and line. Raises InputError for a
    file without the columns that are needed, which it names, and for one that cannot be read.
    """
    header = header_of(read_head(path, _HEAD_BYTES))
    if missing := [column for column in _COLUMNS if column.lower() not in header]:
        raise InputError(
            f"{path} has no column {', '.join(missing)}: its columns are {', '.join(header[:12])}",
            "name a stats_*.csv file as rocprofv3 wrote it",
        )
    table = read_table(path)
    problems = list(table.problems())
    columns = {column: table.first(column) or [] for column in _COLUMNS}
    figures = {column: integers(columns[column], table.rows) for column in _NUMBERS}
    sums: dict[tuple[str, str, str], _Sum] = {}
    kernel, lost = "", 0
    for row in range(table.rows):
        instruction, source = columns["Instruction"][row], columns["Source"][row]
        hits, latency, stall, idle = (int(figures[column].values[row]) for column in _NUMBERS)
        sound = all(figures[column].valid[row] for column in _NUMBERS)
        if not sound or min(hits, latency, stall, idle) < 0:
            lost += 1
            continue
        if instruction.startswith(_HEADING) and not hits:
            kernel = source or instruction.removeprefix(_HEADING).removesuffix(".kd")
            continue
        one = sums.setdefault((kernel, instruction, source), _Sum())
        one.hits += hits
        one.latency += latency
        one.stall += stall
        one.idle += idle
    if lost:
        problems.append(Problem("error", str(path), lost, "rows have figures that are no counts"))
    return CodeFile(str(path), "thread_trace", _records(sums), tuple(problems))


def _records(sums: dict[tuple[str, str, str], _Sum]) -> tuple[CodeRecord, ...]:
    ordered = sorted(sums.items(), key=lambda item: (-item[1].latency, item[0]))
    return tuple(
        CodeRecord(
            kernel=kernel,
            instruction=instruction,
            source=source,
            hits=one.hits,
            latency=one.latency,
            stall=one.stall,
            idle=one.idle,
        )
        for (kernel, instruction, source), one in ordered
    )
