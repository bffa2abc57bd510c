"""wall_clock.txt of rocprof-sys (Omnitrace): a call tree with counts and times in seconds, one row
per label and place.

The title line says what is measured, the header names the columns (older releases have no VAR). A
label begins with the thread, `|03>>>`, under MPI with the rank before it, and `|_` marks a level;
DEPTH says it in numbers. SUM includes what a row calls.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import open_line
from profharness.readers.bytes.limits import count_of, cut, decimal_of, printed_rows_of
from profharness.readers.bytes.text_lines import TextLines
from profharness.trace.model import ClockDomain, Problem, Source, Strings, Trace
from profharness.trace.statistics import StatRow
from profharness.trace.wanted import Wanted

name = "rocprof-sys-text"
DOMAIN = "wall_clock"

_HEADER = re.compile(r"^\|\s*LABEL\s*\|\s*COUNT\s*\|\s*DEPTH\s*\|", re.MULTILINE)
_LABEL = re.compile(r"^\|(?:(\d+)\|)?(\d+)>>> ?( *)(\|_)?(.*)$")
_RULE = re.compile(r"^\|[-|]+\|\s*$")
_NS = {"sec": 10**9, "msec": 10**6, "usec": 10**3, "nsec": 1}


@dataclass(frozen=True, slots=True)
class Row:
    """One row: times in ns as the tool rounded them. `rank` is None without MPI."""

    label: str
    rank: int | None
    thread: int | None
    count: int
    depth: int
    sum_ns: int
    self_percent: float


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """The header line and the metric of its rows."""
    text = head.decode("utf-8", "replace")
    return _HEADER.search(text) is not None and (DOMAIN in text or "REAL-CLOCK TIMER" in text)


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """Statistics by label: calls, and the time of its rows less that of the rows right below them,
    over all threads.

    Raises InputError when no row can be read.
    """
    lines = TextLines(path, printed_rows_of(path))
    rows, unreadable = parse_rows(lines)
    if not rows:
        raise InputError(
            f"{path} holds no row of a wall-clock table",
            "name wall_clock-<pid>.txt as rocprof-sys wrote it",
        )
    problems = [
        Problem(
            "info",
            str(path),
            len(rows),
            "rows are sums over calls, rounded by the tool to its last digit: there is no timeline",
        )
    ]
    if lines.damage:
        problems.append(
            Problem("error", str(path), 1, f"the file is cut or damaged: {lines.damage}")
        )
    problems += open_line(path, is_open=lines.is_open)
    if unreadable:
        problems.append(
            Problem(
                "warning", str(path), unreadable, "rows do not fit the header and were left out"
            )
        )
    source = Source(
        str(path),
        name,
        ClockDomain.UNKNOWN,
        has_host_calls=False,
        details=(("threads", str(len({(row.rank, row.thread) for row in rows}))),),
    )
    return Trace(
        sources=(source,), strings=Strings(), statistics=_statistics(rows), problems=tuple(problems)
    )


def parse_rows(lines: Iterable[str]) -> tuple[list[Row], int]:
    """All rows in order, over repeated headers; and how many lines of a table could not be read."""
    columns: list[str] = []
    rows: list[Row] = []
    unreadable = 0
    for line in lines:
        if _HEADER.match(line):
            columns = [cell.strip() for cell in _inner(line).split("|")]
        elif columns and line.startswith("|") and not _RULE.match(line):
            row = _row(line, columns)
            if row is not None:
                rows.append(row)
            else:
                unreadable += "|" in _inner(line)  # a title is one cell
    return rows, unreadable


def _inner(line: str) -> str:
    return line.strip().removeprefix("|").removesuffix("|")


def _row(line: str, columns: Sequence[str]) -> Row | None:
    cells = _inner(line).rsplit("|", len(columns) - 1)  # labels hold bars
    if len(cells) != len(columns):
        return None
    value = dict(zip(columns, cells, strict=True))
    match = _LABEL.match(value["LABEL"].strip())
    rank, thread, label = (match[1], match[2], match[5]) if match else (None, None, value["LABEL"])
    try:
        return Row(
            label.strip(),
            None if rank is None else count_of(rank),
            None if thread is None else count_of(thread),
            count_of(value["COUNT"]),
            count_of(value["DEPTH"]),
            cut(decimal_of(value["SUM"]) * _NS[value["UNITS"].strip()]),
            float(value.get("% SELF", "nan")),
        )
    except (KeyError, ValueError, ArithmeticError):
        return None


def own_ns(rows: Sequence[Row]) -> list[int]:
    """The time of each row less that of the rows right below it, never negative: work of other
    threads below a row that only started them is more than the row itself.
    """
    times = [row.sum_ns for row in rows]
    for child, parent in _parents(rows):
        times[parent] -= rows[child].sum_ns
    return [max(value, 0) for value in times]


def _parents(rows: Sequence[Row]) -> Iterator[tuple[int, int]]:
    """Pairs of a row and the one right above it. A row that is deeper than its predecessor by more
    than one stands at all depths in between, of which only the first and the last are kept: a
    depth is whatever the file says.
    """
    open_: list[tuple[int, int, int]] = []  # first depth, last depth, row
    for position, row in enumerate(rows):
        while open_ and open_[-1][0] >= row.depth:
            open_.pop()
        if open_ and open_[-1][1] >= row.depth:
            open_[-1] = (open_[-1][0], row.depth - 1, open_[-1][2])
        first = open_[-1][1] + 1 if open_ else 0
        if open_ and first == row.depth:
            yield position, open_[-1][2]
        open_.append((first, row.depth, position))


def _statistics(rows: Sequence[Row]) -> tuple[StatRow, ...]:
    calls: dict[str, int] = {}
    total: dict[str, int] = {}
    for row, time_ns in zip(rows, own_ns(rows), strict=True):
        calls[row.label] = calls.get(row.label, 0) + row.count
        total[row.label] = total.get(row.label, 0) + time_ns
    return tuple(StatRow(label, DOMAIN, calls[label], total[label]) for label in calls)
