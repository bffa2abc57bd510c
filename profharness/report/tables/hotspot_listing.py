"""A table of hotspots as a listing for terminals: which columns rows of its kind have, and their
names.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from profharness.analysis.records import HotspotRow, Hotspots
from profharness.report.table import Align, Column, Table, row_of
from profharness.report.tables.hotspot_names import fitted, is_long, whole
from profharness.report.tables.hotspots import time_text
from profharness.report.text import names as titles
from profharness.report.text.figures import si_text
from profharness.report.text.folding import distinct_names, whole_names
from profharness.report.text.samples import sample_text, sampled_metrics
from profharness.units import format_number, format_share

_NARROWEST_NAME = 24


@dataclass(frozen=True)
class _Figure:
    title: str
    text: Callable[[HotspotRow], str]
    align: Align = "right"


def hotspot_listing(table: Hotspots, top: int, width: int | None) -> Table:
    """The first `top` rows with the name last, which is folded so that a line has `width`
    characters; None leaves it whole. A name that stands on a line of its own (`is_long`) may take
    the whole width. The last row is the device time that belongs to no row of the table.
    """
    rows = table.rows[:top]
    figures = _figures(table, rows)
    texts = [tuple(figure.text(row) for figure in figures) for row in rows]
    heads = tuple(figure.title for figure in figures)
    outside = _outside(table, heads)
    lines = (heads, *texts, *outside)
    lead = sum(max(len(line[at]) for line in lines) + 2 for at in range(len(heads)))
    columns = (*(Column(figure.title, figure.align) for figure in figures), Column("name"))
    names = _names(table, rows, lead, width)
    if outside:
        texts, names = [*texts, *outside], [*names, "outside"]
    return Table(
        f"by {table.by}",
        columns,
        tuple(row_of(*line, name) for line, name in zip(texts, names, strict=True)),
        left_out=max(len(table.rows) - top, 0),
    )


def _outside(table: Hotspots, heads: Sequence[str]) -> list[tuple[str, ...]]:
    """The figures of the device time that belongs to no row, under these heads; nothing where there
    is none.
    """
    if not table.device_ns_outside:
        return []
    whole_ns = sum(row.device_ns or 0 for row in table.rows) + table.device_ns_outside
    known = {
        "device": _short(table.device_ns_outside),
        "share": _share(table.device_ns_outside / whole_ns),
    }
    return [tuple(known.get(head, "-") for head in heads)]


def _names(table: Hotspots, rows: Sequence[HotspotRow], lead: int, width: int | None) -> list[str]:
    names = [whole(row, table.by) for row in rows]
    if width is None:
        return whole_names(names)
    if is_long(table.by):
        return fitted(names, table.by, width)
    return [name.rstrip() for name in distinct_names(names, max(width - lead, _NARROWEST_NAME))]


def _figures(table: Hotspots, rows: Sequence[HotspotRow]) -> tuple[_Figure, ...]:
    """Device time first where rows have it; the work of kernels in place of their extremes where it
    is known.
    """
    samples = tuple(
        _Figure(titles.title_of(metric), partial(sample_text, metric=metric))
        for metric in sampled_metrics(table.rows)
    )
    if shows_work(table, rows):
        first = _OF_TIME if table.device_ns_outside is None else _OF_DEVICE
        return (*first, *_OF_WORK, *samples)
    category = () if is_long(table.by) or table.by == "range" else (_CATEGORY,)
    return (*_OF_TIME, *_EXTREMES, *samples, *category)


def shows_work(table: Hotspots, rows: Sequence[HotspotRow]) -> bool:
    """Whether these rows of a table have columns of work: those with device time always, kernels
    where a rate is known, with ceilings or without.
    """
    if table.device_ns_outside is not None:
        return True
    return table.by == "kernel" and any(
        value is not None
        for row in rows
        for value in (row.flops_per_s, row.bytes_per_s, row.peak_share)
    )


def _short(ns: float | None) -> str:
    """Three digits of a time: the columns of a row have to fit beside each other."""
    return time_text(ns, significant=3)


def _share(share: float | None) -> str:
    return "-" if share is None else format_share(share)


def _rate(row: HotspotRow) -> str:
    """Operations per second, or bytes where there are none."""
    if row.flops_per_s is not None:
        return si_text(row.flops_per_s, "FLOP/s", 2)
    return "-" if row.bytes_per_s is None else si_text(row.bytes_per_s, "B/s", 2)


def _peak(row: HotspotRow) -> str:
    if row.peak_share is None:
        return "-"
    return "< 1 %" if 0 < row.peak_share < 0.01 else format_share(row.peak_share, 0)


def _limiter(row: HotspotRow) -> str:
    return "-" if row.limiter in (None, "undetermined") else row.limiter


_CALLS = _Figure("calls", lambda row: format_number(row.calls))
_CATEGORY = _Figure("category", lambda row: row.category, "left")
_OF_TIME = (
    _Figure("share", lambda row: _share(row.share)),
    _Figure("total", lambda row: time_text(row.total_ns)),
    _CALLS,
    _Figure("mean", lambda row: time_text(row.mean_ns)),
)
_EXTREMES = (
    _Figure("min", lambda row: time_text(row.min_ns)),
    _Figure("max", lambda row: time_text(row.max_ns)),
)
_OF_DEVICE = (
    _Figure("device", lambda row: _short(row.device_ns)),
    _Figure("share", lambda row: _share(row.device_share)),
    _Figure("host", lambda row: _short(row.total_ns)),
    _CALLS,
)
_OF_WORK = (
    _Figure("rate", _rate),
    _Figure("peak", _peak),
    _Figure("limiter", _limiter, "left"),
    _Figure("excess", lambda row: _short(row.excess_ns)),
)
