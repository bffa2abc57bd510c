"""A CSV of scan results: one row per level, with any text columns telling series apart
(docs/formats.md#scan-csv).

Columns: `batch_size`, `concurrency` or `processes`; `throughput` (items/s); optional `latency_ms`,
`throughput_sem`, `latency_sem_ms`, and `unit`, that of the throughput where it is the same in all
rows. Every further column that holds a text splits the rows into series; further numeric columns
are ignored. Plain or gzipped, any delimiter of comma, semicolon or
tab. The apostrophe that keeps a spreadsheet from taking a text for a formula is no part of it.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.border import refuse_utf_16
from profharness.readers.bytes.allocation import keep_freed_memory
from profharness.rundir.blocks import read_head
from profharness.rundir.shown.screen import from_cell
from profharness.trace.model import F64
from profharness.trace.scan_table import AXES, RATE, Axis, ScanTable

CORES = "cores_per_process"
_FIGURES = ("throughput", "throughput_sem", "latency_ms", "latency_sem_ms")
_DELIMITERS = (",", ";", "\t")
_MISSING = ("", "nan", "na", "null", "none", "-")
_LARGEST = 8 << 20
_MOST_ROWS, _MOST_SERIES, _MOST_FITTED, _FITTED_OF_SERIES = 2_000, 40, 500, 64
"""Each series is fitted some hundred times, and each of its rows, up to those among which a jump is
looked for, lengthens every fit. The largest studies known to us have 121 rows.
"""
_VAST = 1e30
"""No program measures numbers beyond this, or beyond one part of it: products of some of them still
are numbers."""
_GZIP = b"\x1f\x8b"
_HEAD = 64 << 10
_REPORT = {"Concurrency", "Inferences/Second"}  # columns of perf_analyzer's own
_SHAPE = "expected batch_size (or concurrency, or processes) and throughput, one row per level"

_OTHER = "name a CSV of scan results, or a run directory; of traces: `profharness metrics FILE`"


@dataclass(frozen=True)
class _Row:
    """One line of the file: its number and the cells by column."""

    line: int
    cells: dict[str, str]


def read_scan_csv(path: Path) -> ScanTable:
    """The table of a results CSV.

    Raises InputError, naming the line, for a file that is missing, empty or binary, lacks a column,
    or holds a cell that is not a number where one is needed; levels and throughput must be positive
    and finite.
    """
    keep_freed_memory()  # fits follow, thousands of them on arrays of a megabyte
    if _header(path) >= _REPORT:
        return _of_report(path)
    columns, rows = _cells(path)
    axis, other_levels = _axis(path, columns, rows)
    units = {row.cells.get("unit", "") for row in rows}
    if len(units) == 1:  # rows of several units are several series
        columns = [name for name in columns if name != "unit"]
    keys = [name for name in columns if name not in (*AXES, *_FIGURES) and _is_text(rows, name)]
    split = [*keys, *other_levels]
    if len({row.cells.get(CORES) for row in rows}) > 1:
        split.append(CORES)  # plans of processes by cores: as many processes are no equal levels
    values = tuple(tuple(row.cells[name] for name in split) for row in rows)
    _check_size(path, split, Counter(values))
    return ScanTable(
        source=str(path),
        axis=axis,
        key_columns=tuple(split),
        keys=values,
        level=_numbers(path, rows, axis, needed=True),
        throughput=_numbers(path, rows, "throughput", needed=True),
        throughput_sem=_numbers(path, rows, "throughput_sem"),
        latency_ms=_numbers(path, rows, "latency_ms"),
        latency_sem_ms=_numbers(path, rows, "latency_sem_ms"),
        unit=(units.pop() if len(units) == 1 else "") or RATE,
    )


def heads_scan(path: Path) -> bool:
    """Whether the first line of a file names the columns of a scan: a level and `throughput`."""
    columns = _header(path)
    return columns >= _REPORT or ("throughput" in columns and not columns.isdisjoint(AXES))


def _header(path: Path) -> set[str]:
    """The columns that the first line names; none where the file cannot be read, which is told by
    whoever reads it.
    """
    try:
        head = read_head(path, _HEAD).decode("utf-8-sig", "replace")
    except InputError:
        return set()
    line = next((line for line in head.splitlines() if line.strip()), "")
    cells = next(csv.reader([line], delimiter=max(_DELIMITERS, key=line.count)), [])
    return {from_cell(cell.strip()) for cell in cells}


def _of_report(path: Path) -> ScanTable:
    """The levels of a report of perf_analyzer."""
    from profharness.readers.logs.perf_analyzer import read_levels

    levels = read_levels(path)
    latency = [level.latency_us for level in levels]
    unknown = np.full(len(levels), np.nan)
    table = ScanTable(
        source=str(path),
        axis="concurrency",
        key_columns=(),
        keys=((),) * len(levels),
        level=np.array([level.value for level in levels]),
        throughput=np.array([level.throughput for level in levels]),
        throughput_sem=unknown,
        latency_ms=np.array([np.nan if one is None else one / 1e3 for one in latency]),
        latency_sem_ms=unknown,
    )
    for column in (table.level, table.throughput):
        if not ((column > 1 / _VAST) & (column < _VAST)).all():
            raise InputError(
                f"{path}: a concurrency or throughput is not positive, or nothing measures it",
                "leave failed levels out",
            )
    return table


def _check_size(path: Path, split: list[str], series: Counter[tuple[str, ...]]) -> None:
    """Refuse a table that would take longer to fit than anyone waits; `series`: rows of each."""
    too_many = ""
    if len(series) > _MOST_SERIES:
        too_many = f"{len(series)} series, more than the {_MOST_SERIES} of one table"
    elif sum(min(rows, _FITTED_OF_SERIES) for rows in series.values()) > _MOST_FITTED:
        too_many = (
            f"{series.total()} rows in {len(series)} series, more than the {_MOST_FITTED} of one "
            f"table (of one series, {_FITTED_OF_SERIES} count)"
        )
    if too_many:
        raise InputError(
            f"{path}: {too_many}",
            f"split the file, or, where these are no series, leave out what tells them apart: "
            f"{', '.join(split)}",
        )


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(_LARGEST + 1)
        if data.startswith(_GZIP):
            with gzip.GzipFile(fileobj=io.BytesIO(data)) as unpacked:
                data = unpacked.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise InputError(
                f"{path}: more than {_LARGEST >> 20} MiB, too many for a CSV of scan results",
                _OTHER,
            )
        refuse_utf_16(path, data)
        text = data.decode("utf-8-sig")
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{path}: cut or damaged gzip file", _OTHER) from error
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})", _OTHER) from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path}: not a text file", _OTHER) from error
    if not text.strip() or "\0" in text:
        raise InputError(f"{path}: {'not a text' if text.strip() else 'an empty'} file", _SHAPE)
    return text


def _cells(path: Path) -> tuple[list[str], list[_Row]]:
    text = _text(path)
    header = text.strip().splitlines()[0]
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=max(_DELIMITERS, key=header.count))
    try:
        lines = [
            (reader.line_num, [from_cell(cell.strip()) for cell in cells])
            for cells in reader
            if any(cell.strip() for cell in cells)
        ]
    except csv.Error as error:
        raise InputError(f"{path}: line {reader.line_num}: not CSV ({error})", _SHAPE) from error
    if not lines:
        raise InputError(f"{path}: an empty table", _SHAPE)
    if len(lines) > 1 + _MOST_ROWS:
        raise InputError(
            f"{path}: more than {_MOST_ROWS} rows, too many for a CSV of scan results", _OTHER
        )
    columns = lines[0][1]
    repeated = {name for name, times in Counter(columns).items() if times > 1}
    if repeated:
        raise InputError(f"{path}: column {min(repeated)!r} stands twice", "name each column once")
    rows = []
    for number, cells in lines[1:]:
        if len(cells) == len(columns) + 1 and not cells[-1]:
            cells.pop()  # a comma ends the row
        if len(cells) != len(columns):
            raise InputError(
                f"{path}: line {number} has {len(cells)} cells, the header has {len(columns)}",
                "the file may be cut",
            )
        rows.append(_Row(number, dict(zip(columns, cells, strict=True))))
    if "throughput" not in columns:
        raise InputError(f"{path}: no column 'throughput' (columns: {', '.join(columns)})", _SHAPE)
    if not rows:
        raise InputError(f"{path}: a header and no rows", _SHAPE)
    return columns, rows


def _axis(path: Path, columns: list[str], rows: list[_Row]) -> tuple[Axis, list[str]]:
    """The level column that varies, and others of its kind that vary too: those split the
    series.
    """
    present = [name for name in AXES if name in columns]
    if not present:
        raise InputError(
            f"{path}: no column 'batch_size', 'concurrency' or 'processes' (columns: "
            f"{', '.join(columns)})",
            _SHAPE,
        )
    varying = [name for name in present if len({row.cells[name] for row in rows}) > 1]
    axis = (varying or present)[0]
    return axis, [name for name in varying if name != axis]


def _is_text(rows: list[_Row], name: str) -> bool:
    cells = [row.cells[name] for row in rows if row.cells[name].lower() not in _MISSING]
    return any(_number(cell) is None for cell in cells)


def _number(cell: str) -> float | None:
    """None for what no program writes as a number, though Python reads `1_000` as one."""
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _numbers(path: Path, rows: list[_Row], name: str, *, needed: bool = False) -> F64:
    """The column as floats, NaN where it is missing. Only standard errors may be zero."""
    values = np.full(len(rows), np.nan)
    if name not in rows[0].cells:
        return values
    for at, row in enumerate(rows):
        cell = row.cells[name]
        if cell.lower() in _MISSING and not needed:
            continue
        value = _number(cell)
        if value is None:
            raise InputError(
                f"{path}: line {row.line}: {name} is {cell!r}, not a number",
                "correct the cell or leave the row out",
            )
        if (
            not math.isfinite(value)
            or value < 0
            or (value == 0 and not name.endswith(("_sem", "_sem_ms")))
        ):
            raise InputError(
                f"{path}: line {row.line}: {name} is {cell}, which cannot be",
                "it must be positive; leave failed levels out",
            )
        if value > _VAST or 0 < value < 1 / _VAST:
            raise InputError(
                f"{path}: line {row.line}: {name} is {cell}, which nothing measures",
                f"it must lie between {1 / _VAST:g} and {_VAST:g}",
            )
        values[at] = value
    return values
