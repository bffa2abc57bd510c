"""Critical paths and what-ifs as lines of text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from profharness.analysis.critical.classes import HOST_PREFIX, LABELS
from profharness.analysis.critical.records import CriticalPath, Forecast, PathRow, RankPath
from profharness.findings import ways
from profharness.report.tables.critical import (
    batch_table,
    bound_text,
    slowed_by_recording,
)
from profharness.report.text.folding import fold_kernel_name
from profharness.report.text.listing import listing
from profharness.rundir.shown.screen import lines_text, one_line
from profharness.units import format_exact_ns, format_ns, format_number, format_share

ROWS = 10
_NAME = 80
NOT_MATCHED = "their collectives do not agree in kind and order, or they have none"
_SENTENCE = 400
_SEEN = 0.0005
NONE = (
    "critical path  none: no process recorded operators or host calls, and a path needs to know "
    f"what launched the work (record with {ways.CALLS})"
)


def critical_path_text(path: CriticalPath | None, *, overhead_known: bool = False) -> str:
    """The paths of all processes: by class, the largest rows, and what changes are worth. Where
    the overhead of recording is not known, it says what that does to a forecast.
    """
    return lines_text(_lines(path, overhead_known))


def _lines(path: CriticalPath | None, overhead_known: bool) -> Iterator[str]:
    if path is None:
        yield NONE
        return
    for process in path.processes:
        yield from _process_lines(process)
    every = [made for process in path.processes for made in process.what_if]
    slowed = "" if overhead_known else slowed_by_recording(every)
    if slowed:
        yield slowed
    yield from _meeting_lines(path)
    yield from _batch_lines(path)


def _process_lines(path: RankPath) -> Iterator[str]:
    yield one_line(f"critical path  {_title(path)}")
    parts = [
        (format_share(part.ns / path.window_ns), format_ns(part.ns), LABELS[key])
        for key, part in path.segments.items()
        if part.ns >= _SEEN * path.window_ns
    ]
    yield from _columns(parts)
    shown = [row for row in path.rows[:ROWS] if row.share >= _SEEN and row.name]
    if shown:
        yield "  most of it"
        yield from _columns(
            (format_share(row.share), format_ns(row.ns), _row(row)) for row in shown
        )
    if path.what_if:
        yield from _what_if_lines(path.what_if)


def _title(path: RankPath) -> str:
    """What the path is of: its process, its window, and the steps' mean and spread."""
    where = f"{path.process}, {path.point}" if path.point else path.process
    words = f"{where}: {format_ns(path.window_ns)} of {path.window}"
    lengths = [step.window_ns for step in path.steps]
    if len(lengths) > 1:
        mean = sum(lengths) / len(lengths)
        words += (
            f", a step {format_ns(mean)} on average "
            f"({format_ns(min(lengths))} to {format_ns(max(lengths))})"
        )
    if path.places:
        words += "; it lies on " + ", ".join(
            f"{place} {format_share(ns / path.window_ns)}" for place, ns in path.places.items()
        )
    return words


def _row(row: PathRow) -> str:
    on_host = row.kind.startswith(HOST_PREFIX)
    name = one_line(row.name, _NAME) if on_host else fold_kernel_name(row.name, _NAME)
    by = f" of {fold_kernel_name(row.operator, _NAME)}" if row.operator else ""
    times = "once" if row.segments == 1 else f"{format_number(row.segments)} times"
    on = f" on {one_line(row.process, _NAME)}" if row.process else ""
    return f"{LABELS[row.kind]}: {name}{by}{on}, {times}"


def _columns(rows: Iterable[tuple[str, str, str]]) -> Iterator[str]:
    for share, time, words in rows:
        yield one_line(f"  {share:>8}  {time:>10}  {words}")


def _what_if_lines(forecasts: tuple[Forecast, ...]) -> Iterator[str]:
    check = forecasts[0]
    off = format_exact_ns(abs(check.residual_ns))
    yield (
        "  what if  (replayed without a change: "
        f"{format_ns(check.replayed_ns)}, {off} off what was measured)"
    )
    for made in forecasts[1:]:
        yield one_line(f"    {forecast_text(made)}")


def forecast_text(made: Forecast) -> str:
    """`no-sync: step 4.270 ms, at most -40.2 %`."""
    unit = "step" if made.steps else "window"
    words = f"{made.change}: {unit} {format_ns(made.window_ns / max(made.steps, 1))}"
    if not made.touched:
        return f"{words}: nothing on this trace is touched by it"
    by = "" if made.change in ("graphs", "no-sync") else " by its share of the recorded path"
    return f"{words}, {bound_text(made) or 'with no bound on its gain'}{by}"


def _meeting_lines(path: CriticalPath) -> Iterator[str]:
    """Whether paths go on at other ranks, and how exact that is."""
    met = path.meetings
    if met is None:
        if len({process.rank for process in path.processes}) > 1:
            yield f"each path stays on its rank: {NOT_MATCHED}"
        return
    clock = (
        "on the clock of the run"
        if met.shared_clock
        else "on the clock that their common ends give, "
        f"which is right to {format_ns(met.bound_ns)} for 19 of 20 calls"
    )
    yield (
        f"paths go on at the rank that came last to a collective: {format_number(met.calls)} calls "
        f"matched, {clock}"
    )


def _batch_lines(path: CriticalPath) -> Iterator[str]:
    """Batch sizes as the scan's other sizes tell them, and what cannot be forecast."""
    table = batch_table(path.batches)
    if table is not None:
        yield table.title
        yield from listing(table, indent=2, heads=True)
        if table.note:
            yield f"  {table.note}"
    for refused in path.refused:
        yield one_line(f"no forecast of {refused.change}: {refused.why}", _SENTENCE)
