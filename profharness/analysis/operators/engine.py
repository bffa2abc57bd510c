"""What one recorded operator call has to do at least, by the formulas of a table.

Pure functions of the recorded texts: nothing here knows of kernels, times or nesting.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from profharness.analysis.kernels.categories import op_category
from profharness.analysis.operators import (
    attention,
    convolutions,
    entries,
    products,
    recurrent,
    templates,
    traffic,
)
from profharness.analysis.operators.calls import Call, read_call
from profharness.analysis.operators.entries import AnyEntry
from profharness.analysis.operators.expressions import Names, Unknown
from profharness.analysis.operators.records import (
    ALONE,
    NO_FIT,
    NO_FORMULA,
    NO_SHAPES,
    NOTHING,
    Given,
    Misfit,
    Work,
    unknown,
)
from profharness.analysis.operators.table import Row, Table, TableText, load, read_texts
from profharness.node.devices import Dtype

_MATRIX = frozenset(("gemm", "conv", "attention"))
_KEPT = 1 << 15  # distinct calls: more than a trace has


class Engine:
    """Work by the formulas of one table; each distinct call is worked out once."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self._known: dict[tuple[str, str, str, str, str], Work] = {}

    def work(
        self,
        name: str,
        shapes: str,
        types: str,
        concrete: str = "",
        strides: str = "",
        *,
        given: Given = ALONE,
    ) -> Work:
        """The work of an operator call from its name and its recorded JSON texts, any of which may
        be empty.
        """
        key = (name, shapes, types, concrete, strides)
        known = self._known.get(key) if given is ALONE else None
        if known is not None:
            return known
        rows = self.table.meant_for(name)
        if not rows:
            return unknown(NO_FORMULA) if op_category(name) in _MATRIX else NOTHING
        if isinstance(rows[0].entry, entries.Outer):
            return Work(matrix=rows[0].entry.matrix, nest="outer")
        found = _worked_out(rows, read_call(name, shapes, types, concrete, strides), given)
        if given is ALONE:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[key] = found
        return found

    def product_size(
        self, name: str, shapes: str, types: str, concrete: str = "", strides: str = ""
    ) -> products.ProductSize | None:
        """The extents of a matrix product, from the recorded texts of its call; None where it is
        none, or they are not known.
        """
        rows = self.table.meant_for(name)
        if not any(isinstance(row.entry, entries.Matmul) for row in rows):
            return None
        call = read_call(name, shapes, types, concrete, strides)
        if call is None:
            return None
        row = next((row for row in rows if row.takes(len(call.inputs))), None)
        if row is None or not isinstance(row.entry, entries.Matmul):
            return None
        try:
            return products.product_size(row.entry, call)
        except Misfit:
            return None

    @property
    def knows_kernels(self) -> bool:
        """Whether the table has entries for kernels."""
        return any(row.entry.kernel for row in self.table.rows)

    def kernel_work(self, kernel: str, call: Call | None = None) -> Work:
        """The work of a kernel by entries for kernels, from its name and the call (if any) that
        launched it; nothing where no entry is meant for it.
        """
        for row in self.table.meant_for(kernel, kernel=True):
            if row.entry.since is row.entry.until is None or (
                call is not None and row.takes(len(call.inputs))
            ):
                return _applied(row, kernel, call or Call(kernel, ()), ALONE)
        return NOTHING


@dataclass(frozen=True)
class OperatorInput:
    """What a user gave so that more of the operators' work is known: tables of formulas, and traces
    in which the graphs were captured that the measured trace replays.
    """

    formulas: tuple[TableText, ...] = ()
    captures: tuple[Path, ...] = ()

    @property
    def engine(self) -> Engine:
        """The engine of our table, those of installed packages and the user's; in each process it
        is made once. Raises InputError for a text that is no table of formulas.
        """
        return _engine(self.formulas)


NO_INPUT = OperatorInput()


def read_input(formulas: Sequence[Path], captures: Sequence[Path] = ()) -> OperatorInput:
    """What these files hold, the formulas checked. Raises InputError for one that cannot be read or
    is no table of formulas.
    """
    found = OperatorInput(read_texts(formulas), tuple(captures))
    if formulas:
        found.engine  # noqa: B018  # a wrong table is told before a large trace is read
    return found


def own_engine() -> Engine:
    """The engine of our table and those of installed packages."""
    return NO_INPUT.engine


@cache
def _engine(formulas: tuple[TableText, ...]) -> Engine:
    return Engine(load(formulas))


def _worked_out(rows: tuple[Row, ...], call: Call | None, given: Given) -> Work:
    """The work by the first of the rows that expects as many arguments."""
    if call is None:
        entry = rows[0].entry
        return Work(matrix=True, reason=NO_SHAPES, nest=entry.nest) if entry.is_matrix else NOTHING
    arguments = len(call.inputs)
    row = next((row for row in rows if row.takes(arguments)), None)
    return _misfit(rows[0]) if row is None else _applied(row, call.name, call, given)


def _misfit(row: Row) -> Work:
    matrix = row.entry.is_matrix
    if row.entry.nest == "outer":  # what is nested in it counts
        return Work(matrix=matrix, nest="outer")
    reason = NO_FIT if matrix else ""
    return Work(matrix=matrix, reason=reason, nest=row.entry.nest, misfit=row.label)


def _applied(row: Row, name: str, call: Call, given: Given) -> Work:
    """The work by one entry; a misfit is no figure, and is named."""
    try:
        work = _evaluated(row, name, call, given)
    except (Misfit, ValueError, IndexError, OverflowError):
        return _misfit(row)
    peak = _peak(row.entry, call) if work.matrix else None
    if peak is None and not row.entry.nest:
        return work
    return replace(work, nest=row.entry.nest, dtype=work.dtype if peak is None else peak)


def _peak(entry: AnyEntry, call: Call) -> Dtype | None:
    """The type that the entry names, or has at the position that it names."""
    if not isinstance(entry.dtype, int):
        return entry.dtype
    tensor = call.tensor(entry.dtype)
    return None if tensor is None or tensor.kind is None else tensor.kind.peak


def _evaluated(row: Row, name: str, call: Call, given: Given) -> Work:
    match row.entry:
        case entries.Matmul() as entry:
            return products.product(entry, call)
        case entries.Traffic() as entry:
            return traffic.moved(entry, call)
        case entries.Arithmetic() as entry:
            return _arithmetic(row, entry, name, call)
        case entries.Conv() | entries.ConvBackward() as entry:
            return convolutions.work(entry, call, given)
        case entries.Attention() | entries.AttentionBackward() as entry:
            return attention.work(entry, call, given)
        case _ as entry:
            return _of_rare_kinds(entry, call)


def _of_rare_kinds(
    entry: entries.Rnn | entries.Template | entries.Outer | entries.Unknown, call: Call
) -> Work:
    match entry:
        case entries.Rnn():
            return recurrent.rnn(entry, call)
        case entries.Template():
            return templates.template(entry, call)
        case entries.Outer():
            return Work(matrix=entry.matrix, nest="outer")
        case entries.Unknown():
            return unknown(entry.reason)


def _arithmetic(row: Row, entry: entries.Arithmetic, name: str, call: Call) -> Work:
    """An entry's own expressions. What the call does not hold is a misfit."""
    found = row.found_in(name)
    groups = tuple(float(text) for text in found.groups("0") if _is_number(text)) if found else ()
    names = Names(call, groups)
    try:
        values = {key: made.value(names) for key, made in row.expressions.items()}
    except Unknown as error:
        raise Misfit from error
    first = next(iter(call.tensors()), None)
    matrix = entry.is_matrix
    peak = first.kind.peak if matrix and first is not None and first.kind is not None else None
    return Work(
        values.get("flops"),
        values.get("bytes"),
        peak,
        flops_full=values.get("flops_full"),
        matrix=matrix,
    )


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).isdigit()
