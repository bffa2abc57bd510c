"""What the logs of the HIP runtime and of MIOpen say, for readers: a sentence, lines of text and
tables.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.kernels.mangled import readable
from profharness.analysis.run.runtime_logs import LoggedCall, RuntimeLog
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text.folding import distinct_names, fold_kernel_name
from profharness.report.text.listing import listing
from profharness.units import format_ns, format_number

NOTE = (
    "Host times of a program that logging slowed down: a log holds no device times, and the time "
    "of one call holds that of the calls inside it."
)
_SHOWN = 5
_ON_PAGE = 50
_NAME = 48
_WIDTH = 100


def log_lines(log: RuntimeLog, width: int) -> Iterator[tuple[str, list[str]]]:
    """Labels and lines of the terminal's summary; what the log does not hold has none."""
    names = max(min(width - 34, _NAME), 16)
    yield "runtime log", [_overview(log)]
    if log.kernels:
        shown = distinct_names([row.name for row in log.kernels[:_SHOWN]], names)
        rows = [
            (name, f"{format_number(row.launches)} x", _shape(row.shape, row.shapes))
            for name, row in zip(shown, log.kernels, strict=False)
        ]
        yield "launches", _aligned(rows, len(log.kernels))
    if log.calls:
        rows = [
            (
                _call(row),
                f"{format_number(row.calls)} x {_mean(row)}",
                f"{_ns(row.total_ns)} in all",
            )
            for row in log.calls[:_SHOWN]
        ]
        yield "calls", _aligned(rows, len(log.calls))
    if library := _library(log):
        yield "MIOpen", [library]
    slow = [row for row in log.calls if row.slow_at_first]
    if slow:
        yield "slow at first", [_slow(row) for row in slow[:_SHOWN]]


def section(log: RuntimeLog | None) -> Iterator[str]:
    """The section of `metrics`; nothing without a log."""
    for label, lines in () if log is None else log_lines(log, _WIDTH):
        yield f"{label}:"
        yield from (f"  {line}" for line in lines)


def answer_of(log: RuntimeLog) -> str:
    """What the log says, in one or two sentences."""
    text = f"The log holds {_overview(log)}."
    if log.calls:
        longest = log.calls[0]
        text += (
            f" Of its calls, {longest.name} takes most of the host's time: "
            f"{_ns(longest.total_ns)} in {_count(longest.calls, 'call')}."
        )
    return text


def next_of(log: RuntimeLog) -> str:
    """What to do with a log: what it warns of, and what gives the times that it has not."""
    warning = ""
    if log.built and log.built_until_ns is not None:
        warning = (
            f"MIOpen compiled or tuned kernels, last {_after_begin(log.built_until_ns)}: leave "
            "these iterations out of what you measure. "
        )
    elif log.built:
        warning = "MIOpen compiled or tuned kernels: the first iterations are no steady state. "
    return (
        f"{warning}`profharness hotspots RUN` lists every kernel and call; a log holds no device "
        "times: add --profile rocprofv3 --hip-trace for them."
    )


def tables(log: RuntimeLog | None) -> tuple[Table, ...]:
    """Launches by kernel, calls by duration and MIOpen's commands; those that hold a row."""
    if log is None:
        return ()
    every = (_launch_table(log), _call_table(log), _command_table(log))
    return tuple(table for table in every if table.rows)


def note(log: RuntimeLog | None) -> str:
    """What holds of the log as a whole; empty without one."""
    if log is None:
        return ""
    library = _library(log)
    return " ".join(
        part
        for part in (f"{_overview(log)}.", f"MIOpen: {library}." if library else "", NOTE)
        if part
    )


def _overview(log: RuntimeLog) -> str:
    """`12 launches of 2 kernels, 18 calls of the HIP runtime, 6 commands of MIOpen`."""
    calls = sum(row.calls for row in log.calls)
    commands = sum(row.count for row in log.commands)
    parts = [
        f"{_count(log.launches, 'launch', 'launches')} of {_count(len(log.kernels), 'kernel')}"
        if log.kernels
        else "",
        f"{_count(calls, 'call')} of the HIP runtime" if calls else "",
        f"{_count(commands, 'command')} of MIOpen" if commands else "",
    ]
    text = ", ".join(part for part in parts if part) or "no launch and no call"
    return f"{text} in {log.processes} processes" if log.processes > 1 else text


def _library(log: RuntimeLog) -> str:
    """`6 commands (2 different), 3 lines of searches, 2 of compiled or tuned kernels`."""
    commands = sum(row.count for row in log.commands)
    last = log.built_until_ns
    until = "" if last is None else f", the last {_after_begin(last)}"
    parts = [
        f"{_count(commands, 'command')} ({format_number(len(log.commands))} different)"
        if commands
        else "",
        f"{_count(log.lookups, 'line')} of searches for solutions and records"
        if log.lookups
        else "",
        f"{_count(log.built, 'line')} of kernels compiled or tuned{until}" if log.built else "",
    ]
    return ", ".join(part for part in parts if part)


def _launch_table(log: RuntimeLog) -> Table:
    columns = (
        Column("kernel", key="name"),
        Column("launches", "right"),
        Column("most common geometry", key="shape"),
        Column("geometries", "right", key="shapes"),
        Column("submitting", "right", "host time from the name to the dispatch"),
    )
    rows = tuple(
        (
            Cell(fold_kernel_name(row.name, _NAME), full=row.name),
            *row_of(
                format_number(row.launches),
                row.shape or "-",
                format_number(row.shapes),
                _ns(row.submitting_ns),
            ),
        )
        for row in log.kernels[:_ON_PAGE]
    )
    return Table("Launches", columns, rows, left_out=max(len(log.kernels) - _ON_PAGE, 0))


def _call_table(log: RuntimeLog) -> Table:
    columns = (
        Column("call", key="name"),
        Column("calls", "right"),
        Column("total", "right"),
        Column("mean", "right"),
        Column("longest", "right"),
        Column("first", "right"),
        Column("later", "right", "median of the calls after the first"),
    )
    rows = tuple(
        row_of(
            _call(row),
            format_number(row.calls),
            _ns(row.total_ns),
            _mean(row),
            _ns(row.longest_ns),
            _ns(row.first_ns),
            "-" if row.later_ns is None else _ns(row.later_ns),
        )
        for row in log.calls[:_ON_PAGE]
    )
    slow = frozenset(place for place, row in enumerate(log.calls[:_ON_PAGE]) if row.slow_at_first)
    return Table("Calls", columns, rows, marked=slow, left_out=max(len(log.calls) - _ON_PAGE, 0))


def _command_table(log: RuntimeLog) -> Table:
    columns = (Column("times", "right", key="count"), Column("command"))
    rows = tuple(row_of(format_number(row.count), row.command) for row in log.commands[:_ON_PAGE])
    return Table("MIOpen commands", columns, rows, left_out=max(len(log.commands) - _ON_PAGE, 0))


def _aligned(rows: Sequence[tuple[str, ...]], every: int) -> list[str]:
    columns = (Column("name"), *(Column(gap="   "),) * (len(rows[0]) - 1))
    lines = list(listing(Table("log", columns, tuple(row_of(*row) for row in rows))))
    return [*lines, f"and {format_number(every - len(rows))} more"] if every > len(rows) else lines


def _shape(shape: str, shapes: int) -> str:
    more = f", and {_count(shapes - 1, 'other shape')}" if shapes > 1 else ""
    return f"{shape}{more}" if shape else "geometry not in the log"


def _call(row: LoggedCall) -> str:
    """A call with the kernel that it names readable: `submission of NAME`."""
    return " ".join(map(readable, row.name.split(" ")))


def _slow(row: LoggedCall) -> str:
    return (
        f"{_call(row)}: {_ns(row.first_ns)} the first time, {_ns(row.later_ns or 0)} later (median)"
    )


def _after_begin(ns: int) -> str:
    return f"{_ns(ns)} after the log's begin" if ns else "at the log's begin"


def _mean(row: LoggedCall) -> str:
    return _ns(row.total_ns / row.calls)


def _ns(ns: float) -> str:
    return format_ns(ns, 3)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{format_number(number)} {one if number == 1 else many or one + 's'}"
