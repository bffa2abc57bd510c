"""The table of ragged batching: who batched requests of different lengths, and how full."""

from __future__ import annotations

from profharness.analysis.load.ragged_records import RaggedWay
from profharness.analysis.records import Summary
from profharness.report.table import Cell, Column, Table
from profharness.report.text.figures import interval_text, quantity_text
from profharness.report.text.labels import item_unit

COLUMNS = (
    Column("p50", "right", spare=5),
    Column(
        "requests per batch",
        "right",
        "requests in an execution, by the server's statistics over the window",
        spare=8,
    ),
    Column(
        "lengths",
        "right",
        "different lengths in an execution, in the mean and at most; by the model's own records",
        spare=7,
    ),
    Column("runs", "right", "how often the model ran for an execution", spare=3),
    Column(
        "padding",
        "right",
        "share of zeros that the client put into requests, or that the model's process added to "
        "make one batch of them",
        spare=6,
    ),
    Column(
        "answers",
        meaning="requests that were answered alike alone and beside others, of those compared",
        spare=4,
    ),
)


def ragged_table(summary: Summary) -> Table | None:
    """One row per level and way; the ways of one level follow each other."""
    if not summary.ragged:
        return None
    order = list(dict.fromkeys(map(_level, summary.ragged)))
    ways = sorted(summary.ragged, key=lambda way: order.index(_level(way)))
    rows, last = [], ""
    for way in ways:
        level = _named(way)
        rows.append(_row(way, "" if level == last else level))
        last = level
    columns = (
        Column("level"),
        Column("batched by", meaning="--ragged: padded and grouped are the client's"),
        Column(item_unit(summary), "right"),
        *COLUMNS,
    )
    return Table("Ragged batches", columns, tuple(rows))


def _level(way: RaggedWay) -> tuple[str, int | None, int | None, float | None]:
    return way.target, way.batch_size, way.concurrency, way.rate


def _named(way: RaggedWay) -> str:
    load = f"{way.rate:g}/s" if way.concurrency is None else f"concurrency {way.concurrency}"
    return f"{way.target}, batch {way.batch_size}, {load}"


def _row(way: RaggedWay, level: str) -> tuple[Cell, ...]:
    rate, answers = way.throughput, way.answers
    lengths = way.lengths_per_execution
    padding = [share for share in (way.padded_share, way.filled_share) if share is not None]
    return (
        Cell(level),
        Cell(way.way),
        Cell("" if rate.value is None else interval_text(rate.value, rate.low, rate.high)),
        Cell("" if way.latency_ms is None else quantity_text(way.latency_ms, "ms")),
        Cell(_two(way.requests_per_execution)),
        Cell("" if lengths is None else f"{lengths:.2f}, ≤ {way.most_lengths}"),
        Cell(_two(way.calls_per_execution)),
        Cell(f"{max(padding):.0%}" if padding else ""),
        Cell(
            "" if answers is None else f"{answers.compared - answers.differ} of {answers.compared}"
        ),
    )


def _two(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}"
