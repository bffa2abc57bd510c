"""The rows of several executions as one table, in which a dispatch that many of them recorded is
one call.

rocprof-compute starts the program once per set of counters. Until 3.5 it joined these executions
itself; from 3.6 on it leaves a table for each (`results_pmc_perf_0.csv`, ...), and its analysis
writes them one after the other into pmc_perf.csv. A call is told by its process, its device and its
Dispatch_ID, which begins at 0 or 1. Processes of one execution have an identifier (GUID) each, new
in every execution, and are matched in the order in which they first used the device.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from profharness.readers.bytes.csv_columns import Table, integers
from profharness.readers.rocprof_v1.dispatch_table import NAMES, is_counter
from profharness.trace.columns.keys import first_rows
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64

LONG = {"counter_name", "counter_value"}
JOINED = re.compile(r"pmc_perf\.csv(?:\.gz)?\Z")
"""The table of all executions; it speaks for those of single ones beside it."""
REPLAY = re.compile(r"(?:results_.*|pmc_perf_.*)\.csv(?:\.gz)?\Z")
_OF_ALL = re.compile(rf"{JOINED.pattern}|\.db\Z")
_PROCESS = "guid"


@dataclass(frozen=True, eq=False)
class Replays:
    """Rows of one counter value each. Per row: its `call` (positions from 0 in the order of first
    appearance), and whether it `counts`: rows of another kernel under the same call, and
    values that an earlier execution has too, do not.

    `first` is the row per call that gives its times, `executions` how many recorded anything,
    `differing` how many records name another kernel than the first execution did, and `shared`
    whether the launches of one execution carry different counters.
    """

    table: Table
    call: I64
    first: I64
    counts: np.ndarray[tuple[int], np.dtype[np.bool_]]
    executions: int
    differing: int
    shared: bool


def is_long(table: Table) -> bool:
    """Whether it has one row per counter value."""
    return {name.lower() for name in table.columns} >= LONG


def replays_of(tables: Sequence[Table]) -> Replays:
    """The rows of all tables, in their order, with the call of each."""
    rows = [table if is_long(table) else _melted(table) for table in tables]
    processes, executions, shared = [], 0, False
    for table in rows:
        told = _processes(table)
        processes.append(told.ordinal)
        executions += told.executions
        shared = shared or told.shared
    table = concatenated(rows)
    places = [
        integers(table.first(*names), table.rows).values
        for names in (NAMES["device"], NAMES["dispatch"])
    ]
    first, call = first_rows(_packed([np.concatenate([*processes]), *places]))
    order = np.argsort(first, kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    first, call = first[order], rank[call]
    execution = _executions(rows)
    same = _same_kernel(table, first, call)
    differing = len(np.unique(_packed([execution[~same], call[~same]])))
    counts = same & _earliest(table, call, execution, same)
    return Replays(table, call, first, counts, executions, differing, shared)


@dataclass(frozen=True, eq=False)
class _Processes:
    ordinal: I64
    executions: int
    shared: bool


def _processes(table: Table) -> _Processes:
    """Which process of its execution each row is of, from 0.

    In rows of all executions, processes that counted the same counters are those of one execution;
    where the launches of one process carry different counters, there is one execution.
    """
    texts = table.first(_PROCESS)
    if texts is None or not table.rows:
        return _Processes(np.zeros(table.rows, np.int64), int(table.rows > 0), shared=False)
    names: dict[str, int] = {}
    code = np.array([names.setdefault(text, len(names)) for text in texts], np.int64)
    start = integers(table.first(*NAMES["begin"]), table.rows).values
    began = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(began, code, start)
    counted, shared = _counted(table, code, len(names))
    of_one_execution = shared or not _OF_ALL.search(table.path.name)
    ordinal_of = np.zeros(len(names), np.int64)
    sizes: dict[frozenset[str], int] = {}
    for process in np.argsort(began, kind="stable").tolist():
        group = frozenset() if of_one_execution else counted[process]
        ordinal_of[process] = sizes.setdefault(group, 0)
        sizes[group] += 1
    return _Processes(ordinal_of[code], len(sizes), shared)


def _counted(table: Table, code: I64, processes: int) -> tuple[list[frozenset[str]], bool]:
    """The counters of each process, and whether the launches of one carry different ones."""
    names = table.first("Counter_Name") or []
    dispatch = integers(table.first(*NAMES["dispatch"]), table.rows).values
    of_process: list[set[str]] = [set() for _ in range(processes)]
    of_launch: dict[tuple[int, int], set[str]] = {}
    for name, process, launch in zip(names, code.tolist(), dispatch.tolist(), strict=True):
        if name:
            of_process[process].add(name)
            of_launch.setdefault((process, launch), set()).add(name)
    shared = any(names != of_process[process] for (process, _), names in of_launch.items())
    return [frozenset(names) for names in of_process], shared


def _executions(tables: Sequence[Table]) -> I64:
    """Which execution of a process each row is of: its identifier, else its begin, within a
    table.
    """
    codes: dict[tuple[int, str], int] = {}
    found = []
    for place, table in enumerate(tables):
        texts = table.first(_PROCESS) or table.first(*NAMES["begin"]) or [""] * table.rows
        found += [codes.setdefault((place, text), len(codes)) for text in texts]
    return np.array(found, np.int64)


def _same_kernel(table: Table, first: I64, call: I64) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows whose kernel is that of the call's first row."""
    names: dict[str, int] = {}
    texts = table.first(*NAMES["name"]) or [""] * table.rows
    code = np.array([names.setdefault(text, len(names)) for text in texts], np.int64)
    return np.asarray(code == code[first][call], np.bool_)


def _earliest(
    table: Table, call: I64, execution: I64, of_call: np.ndarray[tuple[int], np.dtype[np.bool_]]
) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Rows of the first execution that has a value of their counter for their call. Several values
    of one execution are of several instances, and all count.
    """
    names: dict[str, int] = {}
    texts = table.first("Counter_Name") or []
    counter = np.array([names.setdefault(text, len(names)) for text in texts], np.int64)
    earliest = np.zeros(table.rows, np.bool_)
    rows = np.flatnonzero(of_call)
    first, group = first_rows(_packed([call[rows], counter[rows]]))
    earliest[rows] = execution[rows] == execution[rows][first][group]
    return earliest


def _packed(columns: Sequence[I64]) -> I64:
    """One number per row for these columns."""
    packed = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        _, code = np.unique(column, return_inverse=True)
        code = code.reshape(-1)
        packed = packed * (int(code.max(initial=0)) + 1) + code
    return packed


def compact(table: Table) -> Table:
    """The same with each text held once: a long table repeats a dispatch for each counter."""
    held: dict[str, str] = {}
    columns = {
        name: [held.setdefault(text, text) for text in column]
        for name, column in table.columns.items()
    }
    return replace(table, columns=columns)


def _melted(table: Table) -> Table:
    """A table with one column per counter, as rows of one value each. A dispatch without values
    keeps one row, whose counter has no name.
    """
    counters = [name for name in table.columns if is_counter(name)]
    chosen: list[tuple[int, str, str]] = []
    for row in range(table.rows):
        values = [
            (row, name, table.columns[name][row]) for name in counters if table.columns[name][row]
        ]
        chosen += values or [(row, "", "")]
    columns = {
        name: [column[row] for row, _, _ in chosen]
        for name, column in table.columns.items()
        if name not in counters
    }
    columns["Counter_Name"] = [name for _, name, _ in chosen]
    columns["Counter_Value"] = [value for _, _, value in chosen]
    return Table(
        table.path, columns, len(chosen), table.uneven, table.damage, table.is_open, table.repeated
    )


def concatenated(tables: Sequence[Table]) -> Table:
    """One table under the names of the first; a column that another lacks is empty there."""
    whole = tables[0]
    if len(tables) == 1:
        return whole
    columns = {
        name: [
            text
            for table in tables
            for text in (table.first(*_spellings(name)) or [""] * table.rows)
        ]
        for name in whole.columns
    }
    return Table(
        whole.path,
        columns,
        sum(table.rows for table in tables),
        sum(table.uneven for table in tables),
        "; ".join(table.damage for table in tables if table.damage),
        any(table.is_open for table in tables),
        tuple(name for table in tables for name in table.repeated),
    )


def _spellings(name: str) -> tuple[str, ...]:
    same = next((names for names in NAMES.values() if name.lower() in map(str.lower, names)), ())
    return (name, *same)


def coverage(replays: Replays) -> tuple[float, int, tuple[str, ...]]:
    """Where launches carry different counters: how many a launch carries on average, how many
    there are, and the kernels that lack some in all of their launches.
    """
    names = replays.table.first("Counter_Name") or []
    kernels = replays.table.first(*NAMES["name"]) or [""] * replays.table.rows
    of_kernel: dict[str, set[str]] = {}
    pairs: set[tuple[int, str]] = set()
    for row in np.flatnonzero(replays.counts).tolist():
        if names[row]:
            of_kernel.setdefault(kernels[row], set()).add(names[row])
            pairs.add((int(replays.call[row]), names[row]))
    every = set().union(*of_kernel.values()) if of_kernel else set()
    lacking = tuple(kernel for kernel, has in of_kernel.items() if has != every)
    calls = len(replays.first)
    return len(pairs) / calls if calls else 0.0, len(every), lacking


def kernel_of_rows(replays: Replays, kept: I64) -> I64:
    """The row in the table of kernels per row; NULL where it does not count. `kept` are the calls
    that became kernels.
    """
    kernel_of_call: I64 = np.full(len(replays.first), NULL, np.int64)
    kernel_of_call[kept] = np.arange(len(kept))
    return np.where(replays.counts, kernel_of_call[replays.call], NULL)
