"""The fitted curve in the plot of throughput, and in the table of fits."""

from __future__ import annotations

import json

import msgspec

from profharness.analysis.records import Summary
from profharness.findings import finding
from profharness.report.page import html
from profharness.report.plots.curves import throughput_plot
from profharness.report.tables.fits import fit_table
from tests.report import samples


def _names(summary: Summary) -> list[str]:
    plot = throughput_plot(summary)
    assert plot is not None
    return [one["name"] for one in json.loads(plot.json)["series"]]


def test_a_fit_that_does_not_hold_is_neither_drawn_nor_told() -> None:
    good = samples.gpu_scan()
    misses = finding("poor-fit", "the curve T(b) misses the measured throughput by 73 % at 16")
    poor = msgspec.structs.replace(
        good,
        series=tuple(
            msgspec.structs.replace(series, findings=(*series.findings, misses))
            for series in good.series
        ),
    )
    assert "fit" in _names(good)
    assert "fit" not in _names(poor)
    table = fit_table(good)
    assert table is not None
    assert "T max" in {row[1].text for row in table.rows}
    left = fit_table(poor)
    assert "T max" not in {row[1].text for row in (left.rows if left else ())}
    assert "T max" in html.render(good)
    assert "T max" not in html.render(poor)
