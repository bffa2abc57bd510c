"""Kernels and hardware counters from a table with one row per dispatch: rocprof v1's results.csv
and rocprof-compute's pmc_perf.csv, under the column names of all their releases.

Grid and workgroup sizes are products over the axes, in work-items. Every column whose name is not
known is a counter, unless most of its fields are no numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation

import numpy as np

from profharness.readers.bytes.csv_columns import (
    Integers,
    Mask,
    Table,
    empty_fields,
    figures,
    integers,
    unreadable,
)
from profharness.readers.bytes.zero_times import times_of_zero
from profharness.readers.rocprofv3.places import Places, places
from profharness.trace.columns.build import Pool
from profharness.trace.columns.table import NULL, concat
from profharness.trace.model import I64, Counters, Kernels, Strings

NAMES = {
    "name": ("KernelName", "Kernel_Name"),
    "device": ("gpu-id", "GPU_ID"),
    "queue": ("queue-id", "Queue_ID"),
    "pid": ("pid",),
    "tid": ("tid",),
    "dispatch": ("Index", "Dispatch_ID"),
    "grid": ("grd", "Grid_Size"),
    "group": ("wgr", "Workgroup_Size"),
    "lds_bytes": ("lds", "LDS_Per_Workgroup", "LDS_Block_Size"),
    "scratch_bytes": ("scr", "Scratch_Per_Workitem", "Scratch_Size"),
    "vgpr": ("arch_vgpr", "vgpr", "VGPR_Count"),
    "accum_vgpr": ("accum_vgpr", "Accum_VGPR_Count"),
    "sgpr": ("sgpr", "SGPR_Count"),
    "begin": ("BeginNs", "Start_Timestamp"),
    "end": ("EndNs", "End_Timestamp"),
}
_PLAIN = (
    "queue",
    "pid",
    "tid",
    "dispatch",
    "lds_bytes",
    "scratch_bytes",
    "vgpr",
    "accum_vgpr",
    "sgpr",
)
_OTHERS = frozenset(
    {
        "queue-index",
        "fbar",
        "wave_size",
        "sig",
        "obj",
        "dispatchns",
        "completens",
        "durationns",
        "correlation_id",
        "kernel_id",
        "xcc_index",
        "counter_name",
        "counter_value",
        "guid",
    }
)
_KNOWN = _OTHERS | {name.lower() for names in NAMES.values() for name in names}
_REPEATED = re.compile(
    r"_\d+\Z"
)  # rocprof-compute joins its passes, whose common columns then end in a number
_LARGEST = Decimal(2**63 - 1)


@dataclass(frozen=True, eq=False)
class Times:
    """Begin and duration per row, in ns; `timed` says where both are known (else NULL and 0),
    `zero` where both are stated as 0, which is no time either. `scientific` counts rows whose times
    a spreadsheet has shortened, `fractions` those whose times have digits below a nanosecond,
    `negative` those that end before they begin (their duration is zero).
    """

    start: I64
    dur: I64
    timed: Mask
    zero: Mask
    stated: bool
    scientific: int = 0
    fractions: int = 0
    negative: int = 0


@dataclass(frozen=True, eq=False)
class Dispatches:
    """The dispatches of one file. `kernels` has one row per row of the file that `kept` names;
    where no row is timed, all are kept, without a start and with a duration of 0, as are those with
    times of 0 and 0 in any file. `unknown` are
    columns that are neither known nor numbers, `unreadable` counts fields that are no numbers among
    others that are, `empty` those that are empty among others that are not.
    """

    kernels: Kernels
    counters: Counters
    places: Places
    times: Times
    kept: I64
    unknown: tuple[str, ...]
    unreadable: int = 0
    empty: Mapping[str, int] = field(default_factory=dict)

    @property
    def untimed(self) -> int:
        """Rows that are left out because only others have times."""
        return len(self.times.timed) - len(self.kept)


def dispatches(table: Table, strings: Strings) -> Dispatches:
    """All rows of a table. Counter values stand in order of their column, then row."""
    times = read_times(table)
    kept = np.flatnonzero(times.timed | times.zero) if times.timed.any() else np.arange(table.rows)
    read = {
        role: integers(table.first(*NAMES[role]), table.rows)
        for role in (*_PLAIN, "device", "grid", "group")
    }
    kernels, placed = _kernels(table, strings, times, kept, read)
    counters, unknown, lost = _counters(table, strings, kept)
    lost += sum(unreadable(table.first(*NAMES[role]), column) for role, column in read.items())
    empty = {role: empty_fields(table.first(*NAMES[role])) for role in ("name", *read)}
    return Dispatches(kernels, counters, placed, times, kept, unknown, lost, empty)


def read_times(table: Table) -> Times:
    """Times of all rows."""
    first, last = table.first(*NAMES["begin"]), table.first(*NAMES["end"])
    begin, end = integers(first, table.rows), integers(last, table.rows)
    zero = times_of_zero(begin.values, end.values)
    timed = (begin.values >= 0) & (end.values >= 0) & ~zero
    dur = np.where(timed, end.values - begin.values, 0)
    if first is not None and last is not None and (begin.fractions or end.fractions):
        for row in np.flatnonzero(timed).tolist():
            dur[row] = _rounded_difference(first[row], last[row])
    return Times(
        np.where(timed, begin.values, NULL),
        np.maximum(dur, 0),
        timed,
        zero,
        first is not None and last is not None,
        max(begin.scientific, end.scientific),
        max(begin.fractions, end.fractions),
        int((dur < 0).sum()),
    )


def _rounded_difference(begin: str, end: str) -> int:
    """Nanoseconds between two decimal numbers, half to even; 0 where that is beyond any clock."""
    try:
        difference = (Decimal(end.strip()) - Decimal(begin.strip())).to_integral_value(
            ROUND_HALF_EVEN
        )
    except InvalidOperation:
        return 0
    return int(difference) if abs(difference) <= _LARGEST else 0


def _kernels(
    table: Table, strings: Strings, times: Times, kept: I64, read: Mapping[str, Integers]
) -> tuple[Kernels, Places]:
    column = {role: np.maximum(parsed.values[kept], NULL) for role, parsed in read.items()}
    names = table.first(*NAMES["name"]) or [""] * table.rows
    code = Pool(strings.code).codes(names)[kept]
    placed = places([column["device"]], [column["queue"]])
    has_geometry = (column["grid"] > 0) & (column["group"] > 0)
    groups = np.where(
        has_geometry, -(-column["grid"] // np.where(has_geometry, column["group"], 1)), NULL
    )
    kernels = Kernels.build(
        start_ns=times.start[kept],
        dur_ns=times.dur[kept],
        name=code,
        device=placed.device[0],
        stream=placed.stream[0],
        workgroups=groups,
        source=0,
    )
    return kernels.with_columns(**{role: _small(column[role]) for role in _PLAIN}), placed


def _small(values: I64) -> I64:
    """Figures that fit their columns; a number beyond int32 is an address or damage, and not
    known.
    """
    return np.where((values >= 0) & (values < 2**31), values, NULL)


def _counters(table: Table, strings: Strings, kept: I64) -> tuple[Counters, tuple[str, ...], int]:
    """The counters, names of columns that are none, and how many values of the others are no
    numbers.
    """
    counters, unknown = [], []
    lost = 0
    for name, texts in table.columns.items():
        if _is_known(name):
            continue
        parsed = figures(texts)
        if not parsed.are_most:
            unknown.append(name)
            continue
        values = parsed.values
        lost += int(parsed.unreadable.sum())
        rows = np.flatnonzero(~np.isnan(values[kept]))
        counters.append(
            Counters.build(
                len(rows), kernel=rows, name=strings.code(name), value=values[kept][rows], source=0
            )
        )
    return concat(counters) if counters else Counters.empty(), tuple(unknown), lost


def is_counter(name: str) -> bool:
    """Whether a column of this name holds values of a counter."""
    return not _is_known(name)


def _is_known(name: str) -> bool:
    low = name.lower()
    return not low or low in _KNOWN or _REPEATED.sub("", low) in _KNOWN


def long_counters(table: Table, strings: Strings, kernel: I64) -> tuple[Counters, int]:
    """Counters of a table with one row per counter value; `kernel` is the row in kernels per row of
    the table (NULL: none).

    Also how many values are no number or have no kernel.
    """
    names, texts = table.first("Counter_Name") or [], table.first("Counter_Value") or []
    values = figures(texts).values
    good = np.flatnonzero(~np.isnan(values) & (kernel != NULL))
    code = Pool(strings.code).codes(names)
    counters = Counters.build(
        len(good), kernel=kernel[good], name=code[good], value=values[good], source=0
    )
    return counters, table.rows - len(good)


def listed(names: Sequence[str], most: int = 5) -> str:
    """The first names, and how many more there are."""
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
