"""A table of hotspots as Markdown."""

from __future__ import annotations

from dataclasses import replace

from profharness.analysis.records import Hotspots
from profharness.report.md.tables import heading, markdown
from profharness.report.tables.hotspot_listing import hotspot_listing
from profharness.report.tables.hotspots import total_text
from profharness.units import format_number

_WIDTH = 160  # characters of a row, whose names are folded to what the figures leave


def hotspots_markdown(table: Hotspots, top: int) -> str:
    """The first rows with the name first, below the total of all rows."""
    listed = hotspot_listing(table, top, _WIDTH)
    shown = replace(
        listed,
        columns=(listed.columns[-1], *listed.columns[:-1]),
        rows=tuple((row[-1], *row[:-1]) for row in listed.rows),
    )
    calls = format_number(sum(row.calls for row in table.rows))
    return heading(f"By {table.by}, {total_text(table, f'in {calls} calls')}", 3) + markdown(shown)
