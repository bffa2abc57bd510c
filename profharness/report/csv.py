"""Tables as CSV text: hotspots, and the results of a scan. Units stand in the column names."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping

from profharness.analysis.code.records import CodeHotspots
from profharness.analysis.records import Hotspots, Summary
from profharness.report.table import Table
from profharness.report.tables.code_spots import code_values
from profharness.report.tables.hotspots import hotspot_values
from profharness.report.tables.results import published_results


def csv_text(table: Table) -> str:
    """The values below the columns' keys, with the unit in brackets where a key does not hold it;
    no value is empty.
    """
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(
        f"{column.key} ({column.unit})" if column.unit else column.key for column in table.columns
    )
    writer.writerows([cell.value for cell in row] for row in table.rows)
    return out.getvalue()


def hotspots_csv(table: Hotspots) -> str:
    """`hotspots.csv`: one row per group, as `report.tables.hotspots.hotspot_values` lists them."""
    return csv_text(hotspot_values(table))


def code_csv(table: CodeHotspots) -> str:
    """One row per line or instruction, as `report.tables.code_spots.code_values` lists them."""
    return csv_text(code_values(table))


def results_csv(summary: Summary, model: str, via: str, devices: Mapping[str, str]) -> str:
    """`results.csv`: one row per measured point, as `report.tables.results.published_results` lists
    them.
    """
    return csv_text(published_results(summary, model, via, devices))
