"""Lines and instructions of kernels: a listing for terminals, and values for programs."""

from __future__ import annotations

from collections.abc import Sequence

from profharness.analysis.code.records import CodeHotspots, CodeRow
from profharness.report.table import Align, Cell, Column, Table, row_of
from profharness.report.text.folding import distinct_names
from profharness.report.text.listing import listing
from profharness.units import format_number, format_share, format_share_interval

_REASONS = 2
_NO_SOURCE = "(no source line)"
_NO_CODE = "(not decoded)"
_NO_KERNEL = "(unknown kernel)"
_NARROWEST_NAME = 24
_PATH = 40  # characters of a source line in a terminal
_COLUMNS = (
    ("kernel", ""),
    ("source", ""),
    ("instruction", ""),
    ("decoded", ""),
    ("share", ""),
    ("share_low", ""),
    ("share_high", ""),
    ("samples", ""),
    ("lanes", ""),
    ("issued", ""),
    ("stalled", ""),
    ("stall_reasons", ""),
    ("hits", ""),
    ("latency_cycles", ""),
    ("stall_cycles", ""),
    ("idle_cycles", ""),
)
_METHODS = {
    "host_trap": "samples of the program counter (host trap)",
    "stochastic": "samples of the program counter (stochastic)",
    "thread_trace": "cycles of latency in thread traces",
}


def code_text(table: CodeHotspots, top: int, width: int | None) -> str:
    """The first `top` rows as aligned lines, the kernel last, which is folded so that a line has
    `width` characters; None leaves it whole. Above stands what was counted, below what holds of
    all rows.
    """
    rows = table.rows[:top]
    sampled = table.method != "thread_trace"
    heads, lines = _sample_lines(table, rows) if sampled else _cycle_lines(rows)
    heads = [*heads, ("source", "left")]
    sources = _sources(rows, width)
    lines = [[*line, source] for line, source in zip(lines, sources, strict=True)]
    if table.by == "instruction":
        heads = [*heads, ("instruction", "left")]
        lines = [[*line, row.instruction or "-"] for line, row in zip(lines, rows, strict=True)]
    lead = sum(max(len(line[at]) for line in ([head[0] for head in heads], *lines)) + 2
               for at in range(len(heads)))  # fmt: skip
    names = _kernels(rows, None if width is None else max(width - lead, _NARROWEST_NAME))
    shown = Table(
        f"by {table.by}",
        (*(Column(title, align) for title, align in heads), Column("kernel")),
        tuple(row_of(*line, name) for line, name in zip(lines, names, strict=True)),
    )
    text = [_heading(table), *listing(shown, heads=True)] if rows else [_heading(table)]
    if left := len(table.rows) - len(rows):
        text.append(f"and {format_number(left)} more rows (--top)")
    return "\n".join([*text, *_notes(table)]) + "\n"


def _sources(rows: Sequence[CodeRow], width: int | None) -> list[str]:
    """The source lines; in a terminal the ends of long paths, unless two lines would look alike."""
    texts = [row.source or (_NO_SOURCE if row.decoded else _NO_CODE) for row in rows]
    if width is None:
        return texts
    short = [one if len(one) <= _PATH else f"…{one[1 - _PATH :]}" for one in texts]
    return short if len(set(short)) == len(set(texts)) else texts


def code_values(table: CodeHotspots) -> Table:
    """One row per line or instruction for programs; shares between 0 and 1, times in cycles,
    reasons as `waitcnt:12 barrier_wait:3` in samples.
    """
    return Table(
        f"by {table.by}",
        tuple(Column(key=key, unit=unit) for key, unit in _COLUMNS),
        tuple(tuple(Cell(value=_value(row, key)) for key, _ in _COLUMNS) for row in table.rows),
    )


def _value(row: CodeRow, key: str) -> object:
    if key == "stall_reasons":
        return " ".join(f"{one.reason}:{one.samples}" for one in row.stall_reasons)
    return getattr(row, key)


def _heading(table: CodeHotspots) -> str:
    pass_name = f", pass {table.pass_name}" if table.pass_name else ""
    if table.method is None:
        return f"by {table.by}, nothing recorded{pass_name}"
    count = table.samples if table.samples is not None else table.latency_cycles or 0
    return f"by {table.by}, {format_number(count)} {_METHODS[table.method]}{pass_name}"


def _notes(table: CodeHotspots) -> list[str]:
    whole = table.samples or table.latency_cycles
    notes = []
    if table.samples:
        notes.append("share: of all samples, with its 95 % sampling error")
    if whole and table.without_source:
        share = format_share(table.without_source / whole)
        notes.append(f"{share} has no source line: that code was built without -g")
    if whole and table.undecoded:
        share = format_share(table.undecoded / whole)
        notes.append(f"{share} in code that rocprofv3 could not decode (copies of the runtime)")
    return notes


_Head = tuple[str, Align]


def _sample_lines(
    table: CodeHotspots, rows: Sequence[CodeRow]
) -> tuple[list[_Head], list[list[str]]]:
    heads: list[_Head] = [("share", "right"), ("samples", "right"), ("lanes", "right")]
    lines = [
        [
            format_share_interval(row.share, row.share_low, row.share_high),
            format_number(row.samples or 0),
            "-" if row.lanes is None else format_number(row.lanes, 1),
        ]
        for row in rows
    ]
    if table.method == "stochastic":
        heads += [("stalled", "right"), ("why", "left")]
        lines = [
            [
                *line,
                "-" if row.stalled is None else format_share(row.stalled / (row.samples or 1), 0),
                ", ".join(
                    f"{one.reason} {format_share(one.share, 0)}"
                    for one in row.stall_reasons[:_REASONS]
                )
                or "-",
            ]
            for line, row in zip(lines, rows, strict=True)
        ]
    return heads, lines


def _cycle_lines(rows: Sequence[CodeRow]) -> tuple[list[_Head], list[list[str]]]:
    heads: list[_Head] = [
        ("share", "right"),
        ("latency", "right"),
        ("stall", "right"),
        ("idle", "right"),
        ("hits", "right"),
        ("per hit", "right"),
    ]
    return heads, [
        [
            format_share(row.share),
            *(
                format_number(value or 0)
                for value in (row.latency_cycles, row.stall_cycles, row.idle_cycles, row.hits)
            ),
            format_number((row.latency_cycles or 0) / row.hits, 1) if row.hits else "-",
        ]
        for row in rows
    ]


def _kernels(rows: Sequence[CodeRow], width: int | None) -> list[str]:
    names = list(dict.fromkeys(row.kernel or _NO_KERNEL for row in rows))
    short = names if width is None else [one.rstrip() for one in distinct_names(names, width)]
    by_name = dict(zip(names, short, strict=True))
    return [by_name[row.kernel or _NO_KERNEL] for row in rows]
