"""Blocks of measured figures: each with its title, its value and what it says.

What many figures share is said once: the source in the line above a block, a remark in a numbered
note below all of them, and what a figure means where it stands first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from profharness.analysis.records import Figure
from profharness.report.table import Column, Table, row_of
from profharness.report.text import names
from profharness.report.text.figures import coverage_text, figure_text, is_known
from profharness.report.text.listing import listing

_OFTEN = 3  # a remark on as many figures is a note
_VALUE = 26  # characters: longer values push their own line only


@dataclass(frozen=True)
class Block:
    """The figures of one window: `title` stands above them."""

    title: str
    figures: Mapping[str, Figure]

    @property
    def measured(self) -> dict[str, Figure]:
        """Those that have a value or known ends, by their names in JSON."""
        return {name: figure for name, figure in self.figures.items() if is_known(figure)}


@dataclass
class _Told:
    """What was said already: the meanings, and the notes with their numbers."""

    notes: dict[str, int]
    meanings: set[str] = field(default_factory=set)


def block_lines(
    blocks: Sequence[Block], *, keys: bool = False, width: int | None = None
) -> Iterator[str]:
    """Each block below its title, then the notes that their figures refer to by number.

    `keys` adds each figure's name in JSON; `width` breaks long remarks at that column.
    """
    told = _Told(_common_remarks(blocks))
    widths = _widths(blocks)
    for block in blocks:
        if not block.figures:
            continue
        source = _main_source(block.measured.values())
        several = len({figure.source for figure in block.measured.values()}) > 1
        unless = ", unless a line says otherwise" if several else ""
        yield f"{block.title}:" + (f"  from {source}{unless}" if source else "")
        table = _table(block, source, told, widths, keys=keys)
        yield from listing(table, indent=2, width=width)
    if told.notes:
        yield "notes:"
        rows = tuple(row_of(f"[{number}]", note) for note, number in told.notes.items())
        yield from listing(
            Table("Notes", (Column(), Column(wraps=True)), rows), indent=2, width=width
        )


def _table(block: Block, source: str, told: _Told, widths: Sequence[int], *, keys: bool) -> Table:
    rows = []
    for name, figure in block.measured.items():
        cells = [names.title_of(name), figure_text(figure), _said(name, figure, source, told)]
        rows.append(row_of(*cells[:1], *([name] if keys else []), *cells[1:]))
    columns = [Column("figure", width=widths[0])]
    if keys:
        columns.append(Column("key", width=widths[1]))
    columns += [Column("value", width=widths[2]), Column("what it says", wraps=True)]
    return Table(block.title, tuple(columns), tuple(rows))


def _said(name: str, figure: Figure, source: str, told: _Told) -> str:
    """What the figure means, where that was not said yet; then what is its own, and its notes."""
    first = name not in told.meanings
    told.meanings.add(name)
    remarks = _remarks(figure)
    parts = [
        names.meaning_of(name) if first else "",
        f"from {figure.source}" if figure.source and figure.source != source else "",
        *(remark for remark in remarks if remark not in told.notes),
    ]
    text = "; ".join(part for part in parts if part)
    numbers = sorted(told.notes[remark] for remark in remarks if remark in told.notes)
    return f"{text} {''.join(f'[{number}]' for number in numbers)}".strip()


def _remarks(figure: Figure) -> list[str]:
    """The parts of a figure's note, and how much of the time it covers."""
    parts = [*figure.note.split("; "), coverage_text(figure)]
    return list(dict.fromkeys(part for part in parts if part))


def _common_remarks(blocks: Sequence[Block]) -> dict[str, int]:
    """The remarks that many figures share, numbered in the order in which they first stand."""
    counts = Counter(
        remark
        for block in blocks
        for figure in block.measured.values()
        for remark in _remarks(figure)
    )
    often = [remark for remark, count in counts.items() if count >= _OFTEN]
    return {remark: number for number, remark in enumerate(often, 1)}


def _main_source(figures: Iterable[Figure]) -> str:
    """The source of most of the figures; empty where most name none."""
    counts = Counter(figure.source for figure in figures)
    return counts.most_common(1)[0][0] if counts else ""


def _widths(blocks: Sequence[Block]) -> tuple[int, int, int]:
    """Of titles, keys and values, so that all blocks are aligned with one another."""
    shown = [item for block in blocks for item in block.measured.items()]
    return (
        max((len(names.title_of(name)) for name, _ in shown), default=0),
        max((len(name) for name, _ in shown), default=0),
        min(max((len(figure_text(figure)) for _, figure in shown), default=0), _VALUE),
    )
