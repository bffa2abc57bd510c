"""rocprofv3's `--stats` files: calls and total times by name, for one kind of record each.

The files of all kinds look alike; the name says which it is (`kernel_stats`, `hip_api_stats`,
`memory_copy_stats`, `domain_stats` ...), and where a file was renamed, what its rows are called.
"""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import (
    Integers,
    empty_fields,
    figures,
    integers,
    lacking,
    not_numbers,
    read_table,
    unreadable,
)
from profharness.trace.model import Problem
from profharness.trace.statistics import COPIES, KERNELS, StatRow, ends_in_total

_KIND = re.compile(r"([a-z]+)(?:_api|_copy|_allocation|_memory|_collection)?_stats\.csv(?:\.gz)?$")
_DOMAINS = {"kernel": KERNELS, "counter": KERNELS, "memory_copy": COPIES}
_CALL = re.compile(r"^(?:_*hip[A-Z]|hsa_|roctx|nccl[A-Z]|roc(?:Dec|JPEG|Jpeg))")


def read_statistics(path: Path, problems: list[Problem]) -> list[StatRow]:
    """The rows of one file; those whose calls or total are no whole numbers, or below zero, are
    left out and counted in `problems`.

    Raises InputError when the file cannot be read, and when no row is usable.
    """
    table = read_table(path)
    problems += table.problems()
    calls, total, low, high = (
        integers(table.first(column), table.rows)
        for column in ("Calls", "TotalDurationNs", "MinNs", "MaxNs")
    )
    deviations = figures(table.first("StdDev") or [""] * table.rows)
    lost = int(deviations.unreadable.sum()) + sum(
        unreadable(table.first(column), column_of)
        for column, column_of in (("MinNs", low), ("MaxNs", high))
    )
    problems += not_numbers(path, lost)
    problems += lacking(path, {"Name": empty_fields(table.first("Name"))})
    names = table.first("Name") or []
    held = total.valid & (total.values >= 0)
    count = table.rows - ends_in_total(names, np.where(held, total.values, 0).tolist())
    domain = _domain(path.name, names[:count])
    usable = held & calls.valid & (calls.values >= 0)
    rows = [
        StatRow(
            name=names[row],
            domain=domain,
            calls=int(calls.values[row]),
            total_ns=int(total.values[row]),
            min_ns=_stated(low, row),
            max_ns=_stated(high, row),
            std_ns=float(deviations.values[row]) if deviations.values[row] >= 0 else None,
        )
        for row in range(count)
        if usable[row]
    ]
    rows = _consistent(rows, path, problems)
    if left_out := count - len(rows):
        if not rows:
            raise InputError(
                f"{path}: no row has whole numbers as calls and total time",
                "a spreadsheet may have cut its digits: copy the file again",
            )
        problems.append(
            Problem(
                "error",
                str(path),
                left_out,
                "rows have calls or a total time that is no whole number and were left out",
            )
        )
    return rows


def _consistent(rows: list[StatRow], path: Path, problems: list[Problem]) -> list[StatRow]:
    """The rows without extremes that cannot be, which are counted: all calls last at least as long
    as the shortest and at most as long as the longest.
    """
    kept = [
        row
        if (row.min_ns or 0) * row.calls <= row.total_ns
        and (row.max_ns is None or row.total_ns <= row.max_ns * row.calls)
        else replace(row, min_ns=None, max_ns=None)
        for row in rows
    ]
    contradicted = sum(one is not row for one, row in zip(kept, rows, strict=True))
    if contradicted:
        said = (
            "rows have a shortest or longest call that their total contradicts: both are taken as "
            "not recorded"
        )
        problems.append(Problem("warning", str(path), contradicted, said))
    return kept


def _stated(column: Integers, row: int) -> int | None:
    """A time that the file states, None where it is empty, no number, or below zero."""
    return int(column.values[row]) if column.values[row] >= 0 else None


def _domain(file: str, names: list[str]) -> str:
    match = _KIND.search(file)
    if match is None:
        return "call" if names and all(_CALL.match(name) for name in names) else KERNELS
    whole = match[0].partition("_stats")[0]
    return _DOMAINS.get(whole, _DOMAINS.get(match[1], match[1]))
