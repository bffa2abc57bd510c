"""The table of what sharing a device costs models: each alone and all together."""

from __future__ import annotations

from profharness.analysis.load.sharing_records import SharedLevel, SharedModel
from profharness.analysis.records import Summary
from profharness.report.table import Cell, Column, Table
from profharness.report.text.figures import interval_text, number_text, quantity_text
from profharness.report.text.labels import item_unit
from profharness.stats.estimate import Estimate

ALL = "all"


def sharing_table(summary: Summary) -> Table | None:
    """One row per shared level and model, and one with the sums."""
    several = len({level.batch_size for level in summary.sharing}) > 1
    compared = len({level.spread for level in summary.sharing}) > 1
    rows = [
        row for level in summary.sharing for row in _rows(level, several=several, compared=compared)
    ]
    if not rows:
        return None
    columns = (
        Column(
            "concurrency" if compared else "each at",
            meaning="requests in flight of each model; all on one device, or one device each"
            if compared
            else "",
        ),
        Column("model"),
        Column(f"{item_unit(summary)} alone", "right", spare=5),
        Column("together", "right", spare=4),
        Column(
            "slowdown",
            "right",
            "throughput alone over that together; its range is that of the two intervals at "
            "their worst",
            spare=3,
        ),
        Column("p50 alone", "right", spare=2),
        Column("together", "right", spare=1),
    )
    return Table("Alone and together", columns, tuple(rows))


def _rows(level: SharedLevel, *, several: bool, compared: bool) -> list[tuple[Cell, ...]]:
    load = f"{level.concurrency}" if compared else f"concurrency {level.concurrency}"
    load += (f", batch {level.batch_size}" if several else "") + (
        (", one each" if level.spread else ", one device") if compared else ""
    )
    rows = [
        (Cell(load if at == 0 else ""), *_cells(model)) for at, model in enumerate(level.models)
    ]
    alone = [model.alone.value for model in level.models]
    measured = [value for value in alone if value is not None]
    total = number_text(sum(measured)) if len(measured) == len(alone) else ""
    rows.append(
        (
            Cell(""),
            Cell(ALL),
            Cell(total, provenance="the sum of what each gives alone"),
            Cell(_rate(level.total)),
            Cell(""),
            Cell(""),
            Cell(""),
        )
    )
    return rows


def _cells(model: SharedModel) -> tuple[Cell, ...]:
    return (
        Cell(model.target),
        Cell(_rate(model.alone)),
        Cell(_rate(model.together)),
        Cell(_slowdown(model.slowdown)),
        Cell(_ms(model.latency_alone_ms)),
        Cell(_ms(model.latency_together_ms)),
    )


def _ms(value: float | None) -> str:
    return "" if value is None else quantity_text(value, "ms")


def _rate(rate: Estimate) -> str:
    return "" if rate.value is None else interval_text(rate.value, rate.low, rate.high)


def _slowdown(slowdown: Estimate) -> str:
    """`1.22 (0.73 to 1.78)`."""
    if slowdown.value is None:
        return ""
    bounded = slowdown.low is not None and slowdown.high is not None
    return f"{slowdown.value:.2f}" + (
        f" ({slowdown.low:.2f} to {slowdown.high:.2f})" if bounded else ""
    )
