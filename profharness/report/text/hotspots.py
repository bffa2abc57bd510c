"""A hotspot table as `profharness hotspots` prints it."""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.records import Hotspots
from profharness.report.table import Table
from profharness.report.tables.counters import lines as counter_lines
from profharness.report.tables.hotspot_listing import hotspot_listing, shows_work
from profharness.report.tables.hotspot_names import is_long
from profharness.report.tables.hotspots import total_text
from profharness.report.text.listing import listing
from profharness.report.text.samples import sample_notes
from profharness.rundir.shown.screen import lines_text
from profharness.trace import log_names
from profharness.units import format_ns, format_number, format_share

_INDENT = 4
_INSIDE = {
    "op": "inside of an operator",
    "shape": "inside of an operator",
    "range": "inside of a range",
    "module": "by a module",
    "stack": "inside of a Python function",
}
_OF_WORK = (
    "rate, peak, excess: FLOP/s (else bytes/s) of the work that is known, its share of the nearer",
    "ceiling, and the time above the least that the ceilings allow",
)


def plain_table(table: Hotspots, top: int, width: int | None) -> str:
    """Aligned columns, the name last; names are folded to `width` characters per line, or left
    whole for None. Long names (`is_long`) stand below their figures where a width is given.

    Below the rows stand what was left out, what holds of all rows, and the hardware counters of the
    shown kernels.
    """
    rows = table.rows[:top]
    own_lines = width is not None and is_long(table.by)
    shown = hotspot_listing(
        table, top, width if width is None or not own_lines else width - _INDENT
    )
    lines = [
        *_heading(table, width),
        *(_in_pairs(shown) if own_lines else listing(shown, heads=True)),
    ]
    if shown.left_out:
        lines.append(f"and {format_number(shown.left_out)} more rows (--top N lists as many)")
    if shows_work(table, rows):
        lines += _OF_WORK
    if (
        any(row.category not in (log_names.SUBMISSIONS, log_names.LINES) for row in rows)
        and table.by == "call"
    ):
        lines.append("host calls: the time of one holds that of the calls inside it")
    lines += sample_notes(rows)
    if table.counters:
        lines += counter_lines(table.counters, {row.name for row in rows})
    return lines_text(lines)


def _in_pairs(table: Table) -> Iterator[str]:
    """Each row as the line of its figures, and below it the name."""
    figures = Table(table.title, table.columns[:-1], tuple(row[:-1] for row in table.rows))
    head, *lines = listing(figures, heads=True)
    yield head
    for line, row in zip(lines, table.rows, strict=True):
        yield line
        yield f"{' ' * _INDENT}{row[-1].text}"


def _heading(table: Hotspots, width: int | None) -> list[str]:
    calls = format_number(sum(row.calls for row in table.rows))
    pass_name = f", pass {table.pass_name}" if table.pass_name else ""
    total = total_text(table, f"in {calls} calls")
    if table.device_ns_outside is None:
        return _with_busy(f"by {table.by}, {total}{pass_name}", table, width)
    if any(row.total_ns is None for row in table.rows):
        total += ", those of graph replays included"
    return [
        f"by {table.by}, {_device_text(table, table.device_ns_outside)}{pass_name}",
        *_with_busy(f"on the host {total}", table, width),
    ]


def _with_busy(text: str, table: Hotspots, width: int | None) -> list[str]:
    """A line, and how much of the time kernels ran: on the same line where both fit."""
    busy = _busy(table)
    if not busy:
        return [text]
    joined = f"{text}; {busy}"
    return [joined] if width is None or len(joined) <= width else [text, busy]


def _device_text(table: Hotspots, outside_ns: int) -> str:
    """How much of all device time the rows have, and how much belongs to none."""
    inside_ns = sum(row.device_ns or 0 for row in table.rows)
    whole_ns = inside_ns + outside_ns
    if not outside_ns:
        return f"{format_ns(whole_ns)} of device time, all of it launched {_INSIDE[table.by]}"
    return (
        f"{format_ns(whole_ns)} of device time: {format_share(inside_ns / whole_ns)} "
        f"launched {_INSIDE[table.by]}, {format_share(outside_ns / whole_ns)} outside"
    )


def _busy(table: Hotspots) -> str:
    """The share of the devices' time in which kernels ran. That time is summed over devices, and a
    table does not say how many there are: the words hold for one and for several.
    """
    if not table.device_span_ns or table.busy_ns is None:
        return ""
    share = format_share(table.busy_ns / table.device_span_ns)
    return (
        f"kernels ran {share} of the devices' {format_ns(table.device_span_ns)} "
        "between first and last record"
    )
