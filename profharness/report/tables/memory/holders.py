"""What allocators held, for readers: lines of text and rows of tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from profharness.analysis.memory.records import AllocatorCall, Memory, MemoryRow, MemoryUse
from profharness.report.table import Cell, Column, Table, first_rows
from profharness.report.tables.memory import batches
from profharness.report.text.listing import listing
from profharness.units import format_bytes, format_ns, format_number, format_share

SHOWN = 6
"""Rows of owners in `metrics`."""
LISTED = 20
"""Rows of owners on the page."""
_OWN = "profharness."
_BRIEF = 2
"""Peaks that a paragraph tells of."""
_NOTABLE = 1 << 20
"""Bytes: the peak of a process and place below it is told in one line, without its owners."""


def lines(memory: Memory | None) -> Iterator[str]:
    """The section of `metrics`: the peak of each place, who held it, what grew, what calls of the
    driver took.
    """
    if memory is None:
        return
    yield "memory:"
    shown = told_with_owners(memory.uses)
    for row in batches.notable(memory.by_batch):
        for number, said in enumerate(batches.sentences(row)):
            yield f"  {'  ' if number else f'{batches.name(row)}, by batch size: '}{said}"
    for use in _told(memory):
        for number, said in enumerate(use_sentences(use)):
            yield f"  {'  ' if number else f'{place(use)}: '}{said}"
        if use in shown:
            for table in owner_tables(use, SHOWN):
                yield from listing(table, indent=4, heads=True)
                if table.left_out:
                    yield f"    and {table.left_out} more rows"
    for call in memory.calls:
        yield f"  {_call_text(call, memory.window_ns)}"


def place(use: MemoryUse) -> str:
    """`host`, `device 2`, and before it the file where there are several, or the point."""
    name = "host" if use.device is None else f"device {use.device}"
    return ": ".join(filter(None, (use.file, use.point, name)))


def told_with_owners(uses: Sequence[MemoryUse]) -> list[MemoryUse]:
    """Those whose owners are listed: with a notable peak, and of the points of a run the one with
    the highest of each place.
    """
    highest: dict[str | None, int] = {}
    for use in uses:
        highest[use.device] = max(use.peak_bytes, highest.get(use.device, 0))
    return [
        use
        for use in uses
        if use.peak_bytes >= _NOTABLE and (not use.point or use.peak_bytes == highest[use.device])
    ]


def _told(memory: Memory) -> list[MemoryUse]:
    """Those that are told of: of points whose peaks stand in the table over batch sizes only the
    one whose owners are listed.
    """
    shown = told_with_owners(memory.uses)
    over = batches.batch_table(memory.by_batch) is not None
    return [use for use in memory.uses if use in shown or not (over and use.point)]


def use_sentences(use: MemoryUse) -> Iterator[str]:
    """What one process held at one place, in sentences."""
    yield _peak_text(use)
    yield _churn_text(use)
    if use.growth_bytes is not None:
        yield _growth_text(use)
    if use.needs:
        yield f"holders not known: needs {use.needs}"


def _peak_text(use: MemoryUse) -> str:
    when = f"{format_ns(use.peak_ns)} into the window"
    if use.step:
        step = _step_name(use.step)
        when = f"in {step}" if use.point else f"{when}, in {step}"  # a run has a window per point
    of = (
        f" ({format_share(use.peak_bytes / use.capacity_bytes)} of the device's "
        f"{format_bytes(use.capacity_bytes)})"
        if use.capacity_bytes
        else ""
    )
    made = " of what was made during the recording" if use.device is None else ""
    text = f"peak {format_bytes(use.peak_bytes)}{made}{of}, {when}"
    if use.reserved_bytes is None:
        return text
    unused = use.reserved_bytes - use.peak_bytes
    return (
        f"{text}; the allocator had reserved {format_bytes(use.reserved_bytes)}, of which "
        f"{format_bytes(unused)} ({format_share(unused / max(use.reserved_bytes, 1))}) lay unused"
    )


def _step_name(label: str) -> str:
    """`trial 3` of our own mark `profharness.trial:POINT:3`, `step 3` of `profharness.step:3:64`;
    others as they are.
    """
    kind, _, rest = label.removeprefix(_OWN).partition(":")
    if not label.startswith(_OWN) or not rest:
        return label
    return f"{kind} {rest.partition(':')[0] if kind == 'step' else rest.rpartition(':')[2]}"


def _churn_text(use: MemoryUse) -> str:
    per = "" if not use.steps else f", {format_number(use.allocations / use.steps)} per step"
    taken, freed = _count(use.allocations, "allocation"), _count(use.releases, "release")
    return f"{taken} of {format_bytes(use.allocated_bytes)} and {freed} in the window{per}"


def _count(number: int, what: str) -> str:
    return f"{format_number(number)} {what}{'s' * (number != 1)}"


def grows(use: MemoryUse) -> bool:
    """Whether growth from step to step is proven: its interval lies above zero."""
    growth = use.growth_bytes
    return growth is not None and growth.low is not None and growth.low > 0


def _growth_text(use: MemoryUse) -> str:
    growth = use.growth_bytes
    if growth is None or growth.value is None or growth.low is None or growth.high is None:
        return ""
    low, high = format_bytes(growth.low), format_bytes(growth.high)
    interval = f"95 % interval {low} to {high}"
    if grows(use):
        said = "" if low == high else f" ({interval})"
        return f"grows by {format_bytes(growth.value)} per step{said}: something keeps it"
    return f"no growth from step to step is proven ({interval} per step)"


def _call_text(call: AllocatorCall, window_ns: int) -> str:
    times = "call" if call.calls == 1 else "calls"
    return (
        f"{call.name}: {format_number(call.calls)} {times}, {format_ns(call.total_ns)} "
        f"({format_share(call.total_ns / max(window_ns, 1))} of the window)"
    )


def owner_tables(use: MemoryUse, most: int) -> tuple[Table, ...]:
    """Who held the peak and took memory, by operator and by module where they are known."""
    return tuple(
        first_rows(owner_table(f"By {kind}, {place(use)}", kind, rows, use.peak_bytes), most)
        for kind, rows in (("operator", use.operators), ("module", use.modules))
        if rows
    )


def owner_table(title: str, kind: str, rows: Sequence[MemoryRow], peak_bytes: int) -> Table:
    """One row per owner."""
    columns = (
        Column(kind, key="name"),
        Column("at the peak", "right", "alive at the peak", key="kept_bytes", unit="B"),
        Column("share", "right", "of the peak", key="kept_share", wide=True),
        Column("pieces", "right", "allocations alive at the peak", key="kept", wide=True),
        Column("taken", "right", "taken in the window", key="bytes", unit="B"),
        Column("allocations", "right", "in the window", key="allocations", wide=True),
    )
    return Table(title, columns, tuple(_owner_cells(row, peak_bytes) for row in rows))


def _owner_cells(row: MemoryRow, peak_bytes: int) -> tuple[Cell, ...]:
    share = row.kept_bytes / peak_bytes if peak_bytes else None
    return (
        Cell(row.name, value=row.name),
        Cell(format_bytes(row.kept_bytes) if row.kept_bytes else "", value=row.kept_bytes),
        Cell(format_share(share) if share else "", value=share),
        Cell(format_number(row.kept) if row.kept else "", value=row.kept),
        Cell(format_bytes(row.bytes) if row.bytes else "", value=row.bytes),
        Cell(format_number(row.allocations) if row.allocations else "", value=row.allocations),
    )


def page_notes(memory: Memory | None) -> tuple[tuple[str, str], ...]:
    """Facts for the page: a place or a call, and what is said of it."""
    if memory is None:
        return ()
    return (
        *(
            (f"{batches.name(row)}, by batch size", f"{'; '.join(batches.sentences(row))}.")
            for row in batches.notable(memory.by_batch)
        ),
        *((place(use), f"{'; '.join(use_sentences(use))}.") for use in _told(memory)),
        *_call_facts(memory.calls, memory.window_ns),
    )


def _call_facts(calls: Iterable[AllocatorCall], window_ns: int) -> Iterator[tuple[str, str]]:
    for call in calls:
        name, _, said = _call_text(call, window_ns).partition(": ")
        yield name, f"{said}."


def brief(memory: Memory | None) -> str:
    """A paragraph: what is said of batch sizes, else of the highest peak of each place."""
    if memory is None:
        return ""
    over = [
        f"{batches.name(row)}, by batch size: {'; '.join(batches.sentences(row))}."
        for row in batches.notable(memory.by_batch)
    ]
    return " ".join(
        over
        or [f"{place(use)}: {_peak_text(use)}." for use in told_with_owners(memory.uses)[:_BRIEF]]
    )


def page_tables(memory: Memory | None) -> tuple[Table, ...]:
    """Memory over batch sizes, and the owners of what is worth a table."""
    if memory is None:
        return ()
    over = batches.batch_table(memory.by_batch)
    owners = [table for use in told_with_owners(memory.uses) for table in owner_tables(use, LISTED)]
    return (*(() if over is None else (over,)), *owners)
