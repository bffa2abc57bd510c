"""The table of the curves that were fitted to each series of a scan."""

from __future__ import annotations

from collections.abc import Iterable

from profharness.analysis.curves.records import Series
from profharness.analysis.records import Summary
from profharness.report.table import Cell, Column, Table
from profharness.report.text.figures import estimate_text, number_text
from profharness.report.text.labels import series_name
from profharness.report.text.measured.curves import fit_holds, still_rising
from profharness.units import format_number


def fit_table(summary: Summary) -> Table | None:
    """Fitted parameters of each series with their intervals; ends that the data do not bound are
    said.
    """
    rows = [row for series in summary.series for row in _fit_rows(series)]
    if not rows:
        return None
    return Table(
        "Fitted curves",
        (
            Column("curve"),
            Column("quantity"),
            Column("value (95 % interval)", "right"),
            Column("what it says", wide=True),
        ),
        tuple(rows),
    )


def _fit_rows(series: Series) -> Iterable[tuple[Cell, ...]]:
    name = series_name(series) or "all points"
    holds = fit_holds(series)
    if series.batch is not None and holds:
        for label, value, meaning in (
            ("T max", series.batch.t_max, f"throughput that the curve tends to, {series.unit}"),
            ("b half", series.batch.b_half, "batch size of the curve's bend"),
            ("p", series.batch.p, "sharpness of the bend (1 is a plain hyperbola)"),
            (
                "b90",
                series.batch.b90,
                "batch size that reaches 90 % of the best, from the measured points",
            ),
        ):
            yield (
                Cell(name),
                Cell(label),
                Cell(estimate_text(value)),
                Cell(meaning, emphasis="muted"),
            )
    if series.usl is not None and holds:
        for label, value, meaning in (
            ("λ", series.usl.lambda_, f"throughput of one client, {series.unit}"),
            ("σ", series.usl.sigma, "share that cannot run in parallel"),
            ("κ", series.usl.kappa, "cost of keeping the clients consistent"),
            ("N peak", series.usl.n_peak, "concurrency of the highest throughput"),
        ):
            yield (
                Cell(name),
                Cell(label),
                Cell(estimate_text(value)),
                Cell(meaning, emphasis="muted"),
            )
    told = holds and (series.batch is not None or series.usl is not None)
    if series.fitted_note and told:
        yield Cell(name), Cell("levels"), Cell(""), Cell(series.fitted_note, emphasis="muted")
    yield from _knee_rows(name, series)


def _knee_rows(name: str, series: Series) -> Iterable[tuple[Cell, ...]]:
    # over the batch size the knee is the bend of the curve, over the clients it needs none
    if series.knee is not None and (series.axis != "batch_size" or fit_holds(series)):
        ends = [
            number_text(round(end, 1))
            for end in (series.knee.low, series.knee.high)
            if end is not None
        ]
        value = (
            "not reached in this scan"
            if series.knee.n is None
            else f"{_least(series)}{number_text(round(series.knee.n, 1))}"
        )
        between = f" ({' to '.join(ends)})" if len(ends) == 2 else ""
        yield (
            Cell(name),
            Cell("knee"),
            Cell(f"{value}{between}"),
            Cell("concurrency where the asymptotes meet", emphasis="muted"),
        )
    if series.jobs_per_device is not None:
        yield (
            Cell(name),
            Cell("jobs per device"),
            Cell(f"{_least(series)}{format_number(series.jobs_per_device)}"),
            Cell("the knee less its margin", emphasis="muted"),
        )
    if series.no_plan:
        yield (
            Cell(name),
            Cell("jobs per device"),
            Cell("not told"),
            Cell(series.no_plan, emphasis="muted"),
        )
    if series.step is not None:
        yield (
            Cell(name),
            Cell("jump"),
            Cell(f"{series.step.ratio:.2f} times at {format_number(series.step.at)}"),
            Cell("throughput against the trend, most often a kernel switch", emphasis="muted"),
        )


def _least(series: Series) -> str:
    """A curve that still rises bounds its knee from below only."""
    return "at least " if still_rising(series) else ""
