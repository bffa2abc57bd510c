"""Tables as CSV text: hotspots, and the results of a scan. Units stand in the column names.

A text that a spreadsheet would take for a formula has an apostrophe before it, unless the text is
asked for `raw` (docs/command-line.md#foreign-names).
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from profharness.analysis.code.records import CodeHotspots
from profharness.analysis.host.line_records import LineTable
from profharness.analysis.records import Hotspots, Summary
from profharness.report.table import Table
from profharness.report.tables.code_spots import code_values
from profharness.report.tables.hotspots import hotspot_values
from profharness.report.tables.results import published_results
from profharness.report.text.measured.python_lines import host_values
from profharness.rundir.shown.screen import as_cell, one_line


def csv_text(table: Table, *, raw: bool = False) -> str:
    """The values below the columns' keys, with the unit in brackets where a key does not hold it;
    no value is empty.
    """

    def cell(value: object) -> object:
        if not isinstance(value, str):
            return value
        text = one_line(value, len(value))
        return text if raw else as_cell(text)

    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        cell(f"{column.key} ({column.unit})" if column.unit else column.key)
        for column in table.columns
    )
    writer.writerows([cell(each.value) for each in row] for row in table.rows)
    return out.getvalue()


def hotspots_csv(table: Hotspots, *, raw: bool = False) -> str:
    """`hotspots.csv`: one row per group, as `report.tables.hotspots.hotspot_values` lists them."""
    return csv_text(hotspot_values(table), raw=raw)


def code_csv(table: CodeHotspots, *, raw: bool = False) -> str:
    """One row per line or instruction, as `report.tables.code_spots.code_values` lists them."""
    return csv_text(code_values(table), raw=raw)


def host_csv(table: LineTable, *, raw: bool = False) -> str:
    """One row per line or function of Python, as `host_values` of
    `report.text.measured.python_lines` lists them.
    """
    return csv_text(host_values(table), raw=raw)


def results_csv(
    summary: Summary, model: str, via: str, devices: Mapping[str, str], *, raw: bool = False
) -> str:
    """`results.csv`: one row per measured point, as `report.tables.results.published_results` lists
    them.
    """
    return csv_text(published_results(summary, model, via, devices), raw=raw)
