"""Telemetry beside the rows of a hotspot table, as text."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.records import HotspotRow, SampledRow
from profharness.report.text import names
from profharness.report.text.figures import quantity_text


def sampled_metrics(rows: Sequence[HotspotRow]) -> tuple[str, ...]:
    """The metrics that the rows carry; none in a table without telemetry."""
    return next((tuple(row.samples) for row in rows if isinstance(row, SampledRow)), ())


def sample_text(row: HotspotRow, metric: str) -> str:
    """The mean with its unit; `-` where samples do not cover the row."""
    figure = row.samples.get(metric) if isinstance(row, SampledRow) else None
    return (
        "-" if figure is None or figure.value is None else quantity_text(figure.value, figure.unit)
    )


def sample_notes(rows: Sequence[HotspotRow]) -> Iterator[str]:
    """What to know of each column: that values hold longer than the records, and that some rows
    have none.
    """
    for metric in sampled_metrics(rows):
        title = names.title_of(metric)
        samples = [row.samples[metric] for row in rows if isinstance(row, SampledRow)]
        for note in dict.fromkeys(figure.note for figure in samples if figure.note):
            yield f"{title}: {note}"
        missing = [figure for figure in samples if figure.value is None]
        if missing:
            yield f"{title}: not measured where it says -: needs {missing[0].needs}"
