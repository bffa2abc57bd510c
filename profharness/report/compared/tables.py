"""Tables of where the time of two traces differs, one row per operator, module, shape or
category.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from profharness.analysis.compare.operators.records import StepChange, WorkRow, WorkTable
from profharness.analysis.compare.records import Comparison
from profharness.analysis.kernels.mangled import readable
from profharness.report.compared.branches import DEPTH, tree_table
from profharness.report.compared.words import ratio_text, signed_ns, table_note, table_title
from profharness.report.table import Cell, Column, Table
from profharness.units import format_ns

ROWS = 8
ALONE = 4
"""Rows that a terminal shows of what both have, and of what one has alone."""
_FIRST_SHAPES = 3
_LONGEST, _HEAD = 80, 24
"""Letters of a name, and those from its beginning: of a path the end tells most."""

_COLUMNS = (
    Column("A", "right", "time of one step in A", key="a_ns"),
    Column("B", "right", "time of one step in B", key="b_ns"),
    Column("B - A", "right", "difference of one step", key="difference_ns"),
    Column("B over A", "right", "how much longer it takes in B", key="ratio"),
    Column("part", "right", "part of the whole difference", key="share"),
    Column("calls in A", "right", "in the whole window", key="calls_a"),
    Column("calls in B", "right", "in the whole window", key="calls_b"),
)


def work_table(step: StepChange, table: WorkTable, rows: int = ROWS, alone: int = ALONE) -> Table:
    """The rows of a table of work whose time differs: of those of both and the rest the first
    `rows`, of what one side has alone the first `alone`.
    """
    both = [row for row in table.rows if row.side in ("both", "rest") and row.difference_ns]
    single = [row for row in table.rows if row.side not in ("both", "rest")]
    shown = [*both[:rows], *single[:alone]]
    reasons = any(row.reason for row in shown)
    columns = (*_COLUMNS, Column("name", key="name"), Column("why", key="reason"))
    return Table(
        table_title(table),
        columns if reasons else columns[:-1],
        tuple(_row(step, row)[: None if reasons else -1] for row in shown),
        note=table_note(step, table),
        left_out=len(both) + len(single) - len(shown),
    )


def _row(step: StepChange, row: WorkRow) -> tuple[Cell, ...]:
    name = _name(row)
    shown = name if len(name) <= _LONGEST else f"{name[:_HEAD]}…{name[_HEAD + 1 - _LONGEST :]}"
    return (
        _time(row.a_ns, step.parts[0]),
        _time(row.b_ns, step.parts[1]),
        Cell(signed_ns(row.difference_ns), value=row.difference_ns),
        Cell(ratio_text(row.ratio), value=row.ratio),
        Cell("" if row.share is None else f"{100 * row.share:.0f} %", value=row.share),
        _count(row.calls_a),
        _count(row.calls_b),
        Cell(shown, full="" if shown == name else name, value=row.name),
        Cell(row.reason, value=row.reason),
    )


def _time(ns: int | None, parts: int) -> Cell:
    return Cell("-") if ns is None else Cell(format_ns(ns / parts), value=ns)


def _count(calls: int | None) -> Cell:
    return Cell("-") if calls is None else Cell(str(calls), value=calls)


def _name(row: WorkRow) -> str:
    shapes = shapes_text(row.shapes)
    name = readable(row.name)
    return f"{name} {shapes}" if shapes else name


def shapes_text(shapes: str | None) -> str:
    """`8944x1024, 1024x2816` of the first inputs that are tensors; empty without any."""
    try:
        listed = msgspec.json.decode(shapes or "[]")
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return ""
    if not isinstance(listed, list):
        return ""
    texts = [text for extents in listed if (text := _extents(extents))]
    more = len(texts) - _FIRST_SHAPES
    return ", ".join(texts[:_FIRST_SHAPES]) + (f" and {more} more" if more > 0 else "")


def _extents(extents: object) -> str:
    if not isinstance(extents, list) or not extents:
        return ""
    if all(isinstance(one, int) for one in extents):
        return "x".join(map(str, extents))
    inner = [text for one in extents if (text := _extents(one))]
    return f"[{', '.join(inner[:_FIRST_SHAPES])}{', …' if len(inner) > _FIRST_SHAPES else ''}]"


def work_tables(comparison: Comparison, depth: int = DEPTH, rows: int = ROWS) -> list[Table]:
    """All tables of work, and the tree; none where no operators were compared. The note of the
    first holds for all.
    """
    step = comparison.step
    if step is None:
        return []
    tables = [work_table(step, one, rows) for one in comparison.work]
    tables = [replace(table, note="") if at else table for at, table in enumerate(tables)]
    if comparison.tree is not None:
        tables.append(tree_table(step, comparison.tree, depth))
    return [table for table in tables if table.rows]


def work_values(table: WorkTable) -> Table:
    """Every row of a table for programs, with the fields of its record."""
    fields = WorkRow.__struct_fields__
    rows = tuple(tuple(Cell(value=getattr(row, key)) for key in fields) for row in table.rows)
    return Table(table_title(table), tuple(Column(key=key) for key in fields), rows)
