"""Lines and functions of Python by samples, for readers: a sentence, lines of text, tables, and
values for programs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.host.line_records import LineRow, LineTable, LineThread
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text.folding import cut_middle
from profharness.report.text.listing import listing
from profharness.rundir.shown.screen import visible
from profharness.units import format_number, format_share, format_share_interval

_SHOWN = 5
_ON_PAGE = 50
_LEAD, _NARROWEST = 34, 24  # characters before a place, and of it at least
_KEYS = (
    ("file", ""),
    ("line", ""),
    ("function", ""),
    ("rank", ""),
    ("pid", ""),
    ("tid", ""),
    ("self_ns", ""),
    ("inclusive_ns", ""),
    ("share", ""),
    ("share_low", ""),
    ("share_high", ""),
    ("inclusive_share", ""),
    ("samples", ""),
)


def answer_of(table: LineTable) -> str:
    """`71 % of the samples of the main thread are in train.py:31 tokenise.`, of the program's
    thread.
    """
    thread, row = table.threads[0], table.rows[0]
    share = format_share(row.share, 0)
    return f"{share} of the samples of {_thread_name(table, thread)} are in {_place(row)}."


def next_of(table: LineTable) -> str:
    """What to look at, and by which command."""
    row = table.rows[0]
    return (
        f"Look at {_place(row)} first: without it that thread would need "
        f"{format_share(1 - row.share, 0)} of the time at best. "
        "`profharness hotspots --by line` and `--by function` list the others."
    )


def answering(table: LineTable | None) -> LineTable | None:
    """The table where it can answer: its first thread is one that does not only wait."""
    return table if table is not None and table.rows and not table.threads[0].waits else None


def host_text(table: LineTable, top: int, width: int | None) -> str:
    """The first `top` rows as aligned lines, the place last, cut to `width` characters; None leaves
    it whole. Above stands what was sampled, below what holds of all rows.
    """
    every = table.shown
    rows = every[:top]
    text = [_heading(table)]
    if rows:
        text += listing(_listed(table, rows, width), heads=True)
    if left := len(every) - len(rows):
        text.append(f"and {format_number(left)} more rows (--top)")
    if hidden := len(table.threads) - len({(row.pid, row.tid) for row in every}):
        text.append(f"{_count(hidden, 'thread')} that mostly wait left out (--json has them)")
    return "\n".join([*text, *_notes(table)]) + "\n"


def host_values(table: LineTable) -> Table:
    """One row per line or function and thread, for programs; shares between 0 and 1."""
    return Table(
        f"by {table.by}",
        tuple(Column(key=key, unit=unit) for key, unit in _KEYS),
        tuple(tuple(Cell(value=getattr(row, key)) for key, _ in _KEYS) for row in table.rows),
    )


def summary_lines(table: LineTable | None, width: int) -> Iterator[tuple[str, list[str]]]:
    """Label and lines of the terminal's summary: the hottest lines."""
    if table is not None and table.shown:
        shown = _listed(table, table.shown[:_SHOWN], width)
        yield "top Python lines", list(listing(shown))


def section(table: LineTable | None) -> Iterator[str]:
    """The section of `metrics`; nothing without samples."""
    if table is not None and table.rows:
        yield f"Python lines, {_heading(table)}:"
        yield from (f"  {line}" for _, lines in summary_lines(table, 100) for line in lines)


def page_tables(table: LineTable | None) -> tuple[Table, ...]:
    """The table of the report; none without samples."""
    if table is None or not table.shown:
        return ()
    return (_listed(table, table.shown[:_ON_PAGE], None),)


def note(table: LineTable | None) -> str:
    """What holds of the samples as a whole; empty without them."""
    if table is None or not table.rows:
        return ""
    heading = _heading(table)
    notes = " ".join(f"{one[0].upper()}{one[1:]}." for one in (heading, *_notes(table)))
    return f"{answer_of(table)} {notes}"


def _listed(table: LineTable, rows: Sequence[LineRow], width: int | None) -> Table:
    several = len({(row.pid, row.tid) for row in table.shown}) > 1
    threads = {(one.pid, one.tid): one for one in table.threads}
    columns = [
        Column("share", "right", "of the thread's samples, in which it was innermost"),
        Column("inclusive", "right", "of the thread's samples, in which it stood in the stack"),
        Column("samples", "right"),
        *([Column("thread")] if several else []),
        Column(table.by),
    ]
    lines = []
    for row in rows:
        place = _place(row)
        thread = [_short(threads[row.pid, row.tid])] if several else []
        cells = row_of(
            format_share_interval(row.share, row.share_low, row.share_high),
            format_share(row.inclusive_share),
            "-" if row.samples is None else format_number(row.samples),
            *thread,
        )
        lead = _LEAD + (len(thread[0]) + 2 if thread else 0)
        shown = place if width is None else cut_middle(place, max(width - lead, _NARROWEST))
        lines.append((*cells, Cell(shown, full=place)))
    return Table(f"Python by {table.by}", tuple(columns), tuple(lines))


def _place(row: LineRow) -> str:
    return visible(row.place)


def _heading(table: LineTable) -> str:
    """`by line, 1 473 samples of 1 thread at 100 Hz in the steps, pass py-spy`."""
    known = [one.samples for one in table.threads if one.samples is not None]
    count = _count(sum(known), "sample") if len(known) == len(table.threads) else "samples"
    rate = f" at {format_number(table.rate_hz)} Hz" if table.rate_hz else ""
    steps = " in the steps" if any(one.from_steps for one in table.threads) else ""
    of = f"by {table.by}, {count} of {_count(len(table.threads), 'thread')}{rate}{steps}"
    return f"{of}, pass {table.pass_name}" if table.pass_name else of


def _notes(table: LineTable) -> list[str]:
    notes = (
        ["share: of a thread's samples, with its 95 % sampling error"]
        if table.rate_hz
        else ["share: of a thread's time; the file does not say how often it was sampled"]
    )
    ours = sum(one.hooks_ns for one in table.threads)
    if ours:
        every = ours + sum(one.ns for one in table.threads)
        share = format_share(ours / every)
        notes.append(f"left out: {share} of the time, which profharness's own hooks took")
    return notes


def _thread_name(table: LineTable, thread: LineThread) -> str:
    """`the main thread`, with its process where there are several, and in the steps where it had
    any.
    """
    name = "the main thread" if thread.is_main else f"thread {visible(thread.thread) or thread.tid}"
    if len({one.pid for one in table.threads}) > 1:
        of = f"rank {thread.rank}" if thread.rank is not None else f"process {thread.pid}"
        name += f" of {of}"
    return f"{name} in the steps" if thread.from_steps else name


def _short(thread: LineThread) -> str:
    process = f"rank {thread.rank}" if thread.rank is not None else str(thread.pid)
    own = "main" if thread.is_main else visible(thread.thread) or str(thread.tid)
    return cut_middle(f"{process} {own}", 28)


def _count(number: int, noun: str) -> str:
    return f"{format_number(number)} {noun}{'' if number == 1 else 's'}"
