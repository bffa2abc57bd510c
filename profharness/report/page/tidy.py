"""Tables without what tells a reader nothing: columns that are empty or the same in each row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import replace

from profharness.report.table import Table

INFLATED = "inflated by the profiler"
_EMPTY = "covers 100 % of "
"""How a remark begins that tells nothing: the figure rests on all that it is about."""
_OTHERS = ", unless the remarks name another source"
_FEW, _MOSTLY = 2, 0.6


def filled(table: Table | None) -> Table | None:
    """The table without the columns in which no row has a text or a bar."""
    if table is None:
        return None
    kept = {
        at
        for at in range(len(table.columns))
        if any(row[at].text or row[at].bar is not None for row in table.rows)
    }
    return _with_columns(table, kept) if kept else table


def figures_told_once(table: Table | None) -> tuple[Table | None, str]:
    """A table of figures, and what holds of its rows as a sentence: where most of them come from
    (the remarks of the others name their source), and what a short remark means.
    """
    if table is None or len(table.rows) < _FEW:
        return table, ""
    titles = [column.title for column in table.columns]
    source_at, remarks_at = titles.index("from"), titles.index("remarks")
    (source, count), *_ = Counter(row[source_at].text for row in table.rows).most_common()
    once = bool(source) and count >= _MOSTLY * len(table.rows)
    rows, said, inflated = [], "", False
    for row in table.rows:
        own = row[source_at].text
        named = [f"from {own}"] if once and own not in ("", source) else []
        remarks = [part for part in row[remarks_at].text.split("; ") if not part.startswith(_EMPTY)]
        inflated = inflated or INFLATED in remarks
        short = ["inflated" if part == INFLATED else part for part in remarks]
        text = "; ".join(part for part in (*named, *short) if part)
        rows.append(
            (*row[:remarks_at], replace(row[remarks_at], text=text), *row[remarks_at + 1 :])
        )
    if once:
        said = f"From {source}{'' if count == len(rows) else _OTHERS}. "
    if inflated:
        said += "Inflated: the profiler's own cost is in the figure."
    kept = {at for at in range(len(titles)) if at != source_at or not once}
    return filled(_with_columns(replace(table, rows=tuple(rows)), kept)), said.strip()


def _with_columns(table: Table, kept: Container[int]) -> Table:
    return replace(
        table,
        columns=tuple(column for at, column in enumerate(table.columns) if at in kept),
        rows=tuple(tuple(cell for at, cell in enumerate(row) if at in kept) for row in table.rows),
    )
