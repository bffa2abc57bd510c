"""Joins within one Kineto file: device records to the calls that launched them, to launch geometry
and to operators.

Geometry has two units in ROCm files. The `hip*LaunchKernel` calls of the programming model take a
grid in workgroups; `hipExtModuleLaunchKernel` (used by Tensile and MIOpen) and its older form take
it in work-items, as the HIP headers document. The record repeats the call's figures, so without the
call the unit is unknown.

Builds of torch with an early form of Kineto over rocprofiler-sdk (pytorch/kineto pull request
1050, never merged) wrote the workgroup's size as `grid` and all work-items as `block`. Such a file
is told by a kernel whose `block` is larger than any workgroup can be, and then holds for all of its
records.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.kineto.records import Triple
from profharness.trace import nesting
from profharness.trace.columns.build import per_text
from profharness.trace.columns.column import repeated
from profharness.trace.columns.table import NULL
from profharness.trace.launches import matched
from profharness.trace.model import I64, Ops, Strings

_WORK_ITEMS = frozenset({"hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"})
_WORKGROUPS = frozenset(
    {
        "hipLaunchKernel",
        "hipExtLaunchKernel",
        "hipModuleLaunchKernel",
        "hipLaunchCooperativeKernel",
        "hipLaunchByPtr",
        "hipModuleLaunchCooperativeKernel",
        "hipLaunchKernelExC",
        "hipDrvLaunchKernelEx",
    }
)


_UNKNOWN, _IN_GROUPS, _IN_ITEMS = range(3)

_EARLY_NS = 10_000  # by so much two clocks of a process may put a call before its own operator


@dataclass(frozen=True, eq=False)
class Calls:
    """The columns of the host calls that joins need. `grid` and `block` are rows of the file's
    table of triples.
    """

    start: I64
    dur: I64
    name: I64
    pid: I64
    tid: I64
    correlation: I64
    grid: I64
    block: I64


@dataclass(frozen=True, eq=False)
class Rocm:
    """What a ROCm file's geometry depends on: the texts of call names, and the most work-items that
    a workgroup can have.
    """

    names: Strings
    most_threads: int


@dataclass(frozen=True, eq=False)
class Geometry:
    """Per kernel, (n, 3): workgroups and work-items per workgroup along x, y, z; NULL where not
    known. `swapped` is how many kernels of a file state their size as `grid` and all work-items as
    `block`; 0 in files in the usual order.
    """

    count: I64
    size: I64
    swapped: int = 0

    @property
    def workgroups(self) -> I64:
        """Workgroups per kernel: the product over the three axes, NULL where one of them is not
        known.
        """
        if self.count.strides == (0, 0):  # of none it is known
            return repeated(NULL, np.int64, len(self.count))
        known = (self.count != NULL).all(axis=1)
        return np.where(known, np.prod(self.count, axis=1), NULL)


def launching_calls(calls: Calls, strings: Strings, correlation: I64) -> I64:
    """The row of the call with the same correlation, NULL for none; of several the launch, then the
    first and longest.
    """
    other = per_text(strings, calls.name, lambda name: "Launch" not in name)
    return matched(
        (calls.correlation, calls.correlation != NULL),
        (correlation, correlation != NULL),
        (-calls.dur, calls.start, other),
    )


def parse_triples(geometry: Sequence[bytes | Triple]) -> I64:
    """(n + 1, 3) of grids and blocks as recorded, decoded or not; NULL where they are no list of
    one to three numbers, and in the last row.
    """
    triples = np.full((len(geometry) + 1, 3), NULL, np.int64)
    for row, recorded in enumerate(geometry):
        if numbers := _numbers(recorded):
            triples[row] = [*numbers, 1, 1][:3]
    return triples


def is_unknown(recorded: bytes | Triple) -> bool:
    """Whether a grid or block is recorded and is no list of one to three numbers above zero."""
    return recorded not in (None, b"", b"null") and not _numbers(recorded)


def _numbers(recorded: bytes | Triple) -> Sequence[int]:
    try:
        numbers = (
            msgspec.json.decode(recorded, type=list[int])
            if isinstance(recorded, bytes)
            else recorded or ()
        )
    except NOT_JSON:
        return ()
    return numbers if 1 <= len(numbers) <= 3 and all(0 < n < 2**31 for n in numbers) else ()


def geometry(
    geometry_rows: tuple[I64, I64],
    calls: Calls,
    launch: I64,
    triples: I64,
    rocm: Rocm | None,
) -> Geometry:
    """Geometry from the record's own grid and block rows, else the call's. `rocm` is given for
    ROCm files only.
    """
    if len(triples) == 1:  # nothing was recorded, or was to be read: a second's work for a million
        unknown = np.broadcast_to(np.int64(NULL), (len(launch), 3))
        return Geometry(unknown, unknown)
    grid, block = triples[geometry_rows[0]], triples[geometry_rows[1]]
    swapped = rocm is not None and _exceeds(triples, geometry_rows[1], rocm.most_threads)
    linked = launch != NULL
    for column, of_call in ((grid, calls.grid), (block, calls.block)):
        missing = linked & (column[:, 0] == NULL)
        column[missing] = triples[of_call[launch[missing]]]
    if rocm is None:
        return Geometry(grid, block)
    if swapped:
        return _exchanged(grid, block)
    unit = np.full(len(launch), _UNKNOWN, np.int64)
    unit[linked] = per_text(rocm.names, calls.name, _grid_unit)[launch[linked]]
    divisible = (unit == _IN_ITEMS) & (grid[:, 0] != NULL) & (block[:, 0] != NULL)
    grid[divisible] = -(-grid[divisible] // block[divisible])
    grid[(unit == _UNKNOWN) | ((unit == _IN_ITEMS) & ~divisible)] = NULL
    return Geometry(grid, block)


def _exceeds(triples: I64, rows: I64, most_threads: int) -> bool:
    """Whether one of these rows of the table has more work-items than a workgroup can have."""
    too_large = np.prod(triples.astype(np.float64), axis=1) > most_threads  # no overflow
    return bool(too_large.any() and too_large[rows].any())


def _exchanged(size: I64, items: I64) -> Geometry:
    """Geometry from workgroup sizes and all work-items, both (n, 3)."""
    known = (size[:, 0] != NULL) & (items[:, 0] != NULL)
    count = np.full(items.shape, NULL, np.int64)
    count[known] = -(-items[known] // size[known])
    return Geometry(count, size, int(known.sum()))


def _grid_unit(call: str) -> int:
    call = call.removesuffix("_spt")
    return _IN_ITEMS if call in _WORK_ITEMS else _IN_GROUPS if call in _WORKGROUPS else _UNKNOWN


def operators(
    ops: Ops, nested: nesting.Nesting, calls: Calls, launch: I64, ids: tuple[I64, I64]
) -> I64:
    """The row in `ops` of the innermost operator that is open at the start of the call that
    launched each record; `ids` are its external and correlation ids.

    The external id names it too, but older files, and records without an operator in newer ones,
    repeat the correlation id there: an id that does is no operator's. Other ids count where no call
    is in the file, and where the operator that they name holds the call, or the call lies in no
    operator and begins at most `_EARLY_NS` before that one.
    """
    external, correlation = ids
    launchers = np.full(len(launch), NULL, np.int64)
    if not len(ops) or not len(launch):
        return launchers
    linked = np.flatnonzero(launch != NULL)
    call = launch[linked]
    thread = nesting.threads(
        np.concatenate((ops.pid, calls.pid[call])), np.concatenate((ops.tid, calls.tid[call]))
    )
    op_thread, call_thread = thread[: len(ops)], thread[len(ops) :]
    launchers[linked] = nesting.innermost(
        ops.start_ns,
        ops.dur_ns,
        op_thread,
        nested,
        (calls.start[call], call_thread),
        with_end=False,
    )
    named = np.where(external == correlation, NULL, _rows_by_id(ops.external, external))
    holds = (named != NULL) & (launch == NULL)
    held = named[linked]
    begins, starts = calls.start[call], ops.start_ns[held]
    inside = (starts <= begins) & (begins < starts + ops.dur_ns[held])
    early = (launchers[linked] == NULL) & (begins < starts) & (starts <= begins + _EARLY_NS)
    holds[linked] = (held != NULL) & (inside | early) & (op_thread[held] == call_thread)
    return np.where(holds, named, launchers)


def _rows_by_id(ids: I64, wanted: I64) -> I64:
    order = np.argsort(ids, kind="stable")
    at = np.minimum(np.searchsorted(ids[order], wanted), len(ids) - 1)
    rows = order[at]
    return np.where((ids[rows] == wanted) & (wanted > 0), rows, NULL)
