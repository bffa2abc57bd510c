"""What `profharness replay` prints: a sentence that answers, a row per call, what was chosen, and
what was not run.
"""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.replay.records import Reading, ReplayRow, Replays
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.tables.counters import lines as counter_lines
from profharness.report.tables.hotspot_names import with_inputs
from profharness.report.text.figures import finite, interval_text
from profharness.report.text.listing import listing
from profharness.rundir.shown.screen import lines_text
from profharness.stats.estimate import Estimate
from profharness.trace.calls.plan import ThreadsBy
from profharness.units import format_ns, format_number, format_share

_LITTLE = 0.05  # of the time, below which surroundings are no subject
_WORDS: dict[Reading, str] = {
    "own": "its own",
    "cold-caches": "cold caches",
    "surroundings": "surroundings",
    "doubtful": "doubtful",
}
_COLUMNS = (
    Column("row", "right"),
    Column("share", "right"),
    Column("calls", "right"),
    Column("in trace", "right"),
    Column("profiled", "right"),
    Column("alone", "right"),
    Column("cold", "right"),
    Column("in trace/profiled", "right"),
    Column("reading"),
    Column("name"),
)
_KEY = (
    "mean times of one call: in trace; alone under the same profiler (profiled); alone and warm",
    "(alone); alone with its arguments out of the caches (cold). share is of the self time of all",
    "operators. its own: the trace took what the call takes alone; cold caches: they can explain",
    "the rest; surroundings: beyond that, contention for cores or memory, or the allocator;",
    "doubtful: alone it took longer than in the trace, so the two did not do the same work",
)


def replay_text(found: Replays) -> str:
    """The whole answer, names in one line each."""
    return lines_text(_lines(found))


def _lines(found: Replays) -> Iterator[str]:
    yield answer(found)
    yield ""
    yield heading(found)
    rows = [_cells(number, row) for number, row in enumerate(found.rows, 1)]
    if rows:
        yield from listing(Table("replay", _COLUMNS, tuple(rows)), heads=True)
        yield from _KEY
    chosen = [(number, row) for number, row in enumerate(found.rows, 1) if row.chosen]
    if chosen:
        yield "chosen, since no trace holds it (values of other numbers lie between 0.5 and 1):"
        for number, row in chosen:
            yield f"  row {number}: {'; '.join(row.chosen)}"
    for number, row in enumerate(found.rows, 1):
        if row.counters:
            yield f"row {number}, {row.name}:"
            yield from counter_lines(row.counters)
    if found.not_replayed:
        yield "not replayed:"
        columns = (Column(align="right"), Column(), Column())
        left = tuple(
            row_of(
                format_share(one.share), with_inputs(one.name, one.shapes, one.dtypes), one.reason
            )
            for one in found.not_replayed
        )
        yield from listing(Table("not replayed", columns, left), indent=2)


def heading(found: Replays) -> str:
    """Where it was run: `alone on cpu, 2 threads as recorded, torch 2.13.0, pass torch of RUN`."""
    threads = f", {format_number(found.threads)} thread{'s' * (found.threads != 1)}"
    threads += _FOLLOWS[found.threads_by]
    parts = f"alone on {found.device_name or found.device}{threads if found.threads else ''}"
    of = f"pass {found.pass_name} of {found.source}" if found.pass_name else found.source
    return f"{parts}, torch {found.torch}; {of}"


_FOLLOWS: dict[ThreadsBy, str] = {
    "": "",
    "asked": "",
    "trace": " as recorded",
    "run": " as the run set",
}
_LONGER = (
    "took longer alone than in the trace: run them with the threads, on the machine and under the "
    "load of the trace (--threads)."
)


def answer(found: Replays) -> str:
    """The sentence that answers first."""
    rows = found.rows
    if not rows:
        return "None of the hottest calls could be replayed."
    total, doubtful = found.in_trace_ns, sum(row.reading == "doubtful" for row in rows)
    if doubtful == len(rows):
        return f"What is the calls' own cannot be told: all of them {_LONGER}"
    hottest = f"the {len(rows)} hottest calls" if len(rows) > 1 else "the hottest call"
    calls = f"{len(rows) - doubtful} of {hottest}" if doubtful else hottest
    parts = found.sum
    first = (
        f"Of {format_ns(total)} that {calls} took in the trace, "
        f"{_share(parts.own_ns, total)} is their own: alone and warm they take "
        f"{format_ns(parts.own_ns)}."
    )
    texts = [first]
    if total - parts.own_ns > _LITTLE * total:
        texts.append(
            f"Their surroundings cost {_share(parts.cold_ns + parts.rest_ns, total)}, of which "
            f"cold caches explain {_share(parts.cold_ns, total)} at most; the profiler costs "
            f"{_share(parts.profiler_ns, total)}."
        )
    if doubtful:
        one = "The other one" if doubtful == 1 else f"The other {format_number(doubtful)}"
        texts.append(f"{one} {_LONGER}")
    waited = max(row.waited for row in rows)
    if waited > _LITTLE:
        texts.append(
            f"Other programs ran here: alone, calls waited up to {format_share(waited)} of the "
            "time for a core, which is taken off."
        )
    return " ".join(texts)


def _share(ns: float, total_ns: float) -> str:
    return format_share(ns / total_ns) if total_ns else format_share(0.0)


def _cells(number: int, row: ReplayRow) -> tuple[Cell, ...]:
    return row_of(
        str(number),
        format_share(row.share),
        format_number(row.calls),
        _time(row.in_trace),
        _time(row.profiled),
        _time(row.alone),
        _time(row.cold),
        _ratio(row.ratio),
        _WORDS[row.reading],
        with_inputs(row.name, row.shapes, row.dtypes),
    )


def _time(value: Estimate) -> str:
    """`1.70 ms ± 2 %`; the interval as a share, since columns of times have many scales."""
    known = finite(value.value)
    if known is None:
        return "-"
    if value.low is None or value.high is None or not known:
        return format_ns(known)
    return f"{format_ns(known)} ± {100 * (value.high - value.low) / 2 / known:.0f} %"


def _ratio(value: Estimate) -> str:
    known = finite(value.value)
    return "-" if known is None else interval_text(known, value.low, value.high)
