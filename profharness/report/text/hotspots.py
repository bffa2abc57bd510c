"""A hotspot table as `profharness hotspots` prints it."""

from __future__ import annotations

from profharness.analysis.records import Hotspots
from profharness.report.tables.counters import lines as counter_lines
from profharness.report.tables.hotspots import hotspot_listing, total_text
from profharness.report.text.listing import listing
from profharness.report.text.samples import sample_notes
from profharness.trace import log_names
from profharness.units import format_ns, format_number, format_share


def plain_table(table: Hotspots, top: int, width: int | None) -> str:
    """Aligned columns, the name last; names are folded to `width` characters per line, or left
    whole for None.

    Below the rows stand what was left out, what holds of all rows, and the hardware counters of the
    shown kernels.
    """
    rows = table.rows[:top]
    shown = hotspot_listing(table, top, width)
    lines = [_heading(table), *listing(shown, heads=True)]
    if shown.left_out:
        lines.append(f"and {format_number(shown.left_out)} more rows (--top)")
    if (
        any(row.category not in (log_names.SUBMISSIONS, log_names.LINES) for row in rows)
        and table.by == "call"
    ):
        lines.append("host calls: the time of one holds that of the calls inside it")
    lines += sample_notes(rows)
    if table.counters:
        lines += counter_lines(table.counters, {row.name for row in rows})
    return "\n".join(lines) + "\n"


def _heading(table: Hotspots) -> str:
    calls = format_number(sum(row.calls for row in table.rows))
    pass_name = f", pass {table.pass_name}" if table.pass_name else ""
    total = total_text(table, f"in {calls} calls")
    return f"by {table.by}, {total}{pass_name}{_busy(table)}"


def _busy(table: Hotspots) -> str:
    if not table.device_span_ns or table.busy_ns is None:
        return ""
    share = format_share(table.busy_ns / table.device_span_ns)
    return f"; kernels ran {share} of {format_ns(table.device_span_ns)} of device time"
