"""Communication for readers: device by device, collective by collective, rank by rank; lines of
text and rows of tables.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from profharness.analysis.communication.records import (
    CollectiveRow,
    Communication,
    CommunicationTime,
    Exchange,
    RankGroup,
    Skew,
)
from profharness.report.table import Cell, Column, Table, row_of
from profharness.report.text.figures import quantity_text
from profharness.report.text.listing import listing
from profharness.report.text.measured import rank_groups
from profharness.units import format_bytes, format_ns, format_number, format_share

SHOWN = 8
_OF_MANY = 4
"""Devices or ranks that are listed where there are more than `SHOWN`."""


def lines(communication: Communication) -> Iterator[str]:
    """The section of `metrics`: times per device, the collectives that take longest, and who is
    late.
    """
    yield "communication:"
    yield from (f"  {line}" for line in rank_groups.lines(communication.groups))
    yield from _device_lines([row for row in communication.devices if _works(row)])
    shown = communication.collectives[:SHOWN]
    yield from listing(_collective_listing(shown), indent=2)
    if len(communication.collectives) > SHOWN:
        yield f"  and {len(communication.collectives) - SHOWN} more"
    if communication.exchange is not None:
        yield f"  {exchange_text(communication.exchange)}"
    if communication.skew is not None:
        yield from (f"  {line}" for line in _skew_lines(communication.skew))
    elif communication.collectives:
        yield f"  late ranks: not measured: needs {communication.needs}"


def exchange_text(exchange: Exchange) -> str:
    """How uneven exchanges of all with all are."""
    return (
        f"all_to_all with split sizes, {format_number(exchange.calls)} calls of {exchange.ranks} "
        f"ranks: the rank with most receives {exchange.imbalance:.2f} times the mean "
        f"(at worst {exchange.worst:.2f} times); {exchange.most} receives most in "
        f"{format_number(exchange.most_calls)}"
    )


def _works(row: CommunicationTime) -> bool:
    return bool(row.total_ns or row.peer_copies)


def _exposed(row: CommunicationTime) -> float:
    return row.exposed_ns / max(row.window_ns, 1)


def _device_lines(rows: Sequence[CommunicationTime]) -> Iterator[str]:
    """All devices, or, of many, those that lie furthest from the middle one."""
    shown: Sequence[CommunicationTime] = rows
    if len(rows) > SHOWN:
        middle = sorted(map(_exposed, rows))[len(rows) // 2]
        shown = sorted(rows, key=lambda row: -abs(_exposed(row) - middle))[:_OF_MANY]
    for row in shown:
        yield f"  {'rank' if row.on_host else 'device'} {row.device}: {_device_text(row)}"
    rest = [_exposed(row) for row in rows if row not in shown]
    if rest:
        between = f"{format_share(min(rest))} to {format_share(max(rest))}"
        yield f"  and {len(rest)} more: {between} exposed"


def _collective_listing(rows: Iterable[CollectiveRow]) -> Table:
    columns = (
        Column("collective"),
        Column("calls", "right", width=6),
        Column("mean", gap=" x ", width=0),
        Column("bandwidth", gap="   "),
    )
    return Table(
        "Collectives",
        columns,
        tuple(
            row_of(_title(row), str(row.calls), format_ns(row.mean_ns), _speed(row)) for row in rows
        ),
    )


def _device_text(row: CommunicationTime) -> str:
    window = max(row.window_ns, 1)
    parts = []
    if row.total_ns:
        parts.append(
            f"{format_share(row.exposed_ns / window)} exposed, "
            f"{format_share(row.overlapped_ns / window)} overlapped by "
            f"{'operators' if row.on_host else 'compute'} "
            f"({format_ns(row.exposed_ns)} and {format_ns(row.overlapped_ns)})"
        )
    if row.peer_copies:
        size = "" if row.peer_copy_bytes is None else f", {format_bytes(row.peer_copy_bytes)}"
        parts.append(
            f"{format_number(row.peer_copies)} copies between devices in "
            f"{format_ns(row.peer_copy_ns)}{size}"
        )
    return "; ".join(parts)


def _title(row: CollectiveRow) -> str:
    size = "" if row.bytes is None else f" {format_bytes(row.bytes)}"
    return f"{row.kind}{size}" + (f" over {row.group_size}" if row.group_size else "")


def _speed(row: CollectiveRow) -> str:
    """Algorithm and bus bandwidth; `at least` where one rank alone was seen, whose waiting is
    inside.
    """
    if row.algorithm_bandwidth is None:
        return ""
    bus = "" if row.bus_bandwidth is None else f", bus {quantity_text(row.bus_bandwidth, 'B/s')}"
    least = "at least " if row.ranks == 1 and (row.group_size or 2) > 1 else ""
    return f"{least}{quantity_text(row.algorithm_bandwidth, 'B/s')}{bus}"


def _skew_lines(skew: Skew) -> Iterator[str]:
    yield (
        f"arrival at {format_number(skew.matched)} collectives of {skew.ranks} ranks: "
        f"{format_ns(skew.median_ns)} apart (median), "
        f"p95 {format_ns(skew.p95_ns)}, at most {format_ns(skew.max_ns)}; "
        f"ranks wait {format_share(skew.wait_share)} of their time; "
        f"clocks put together {skew.aligned}"
    )
    if skew.unmatched:
        yield f"{format_number(skew.unmatched)} collectives without a partner are left out"
    for row in sorted(skew.rows, key=lambda rank: -rank.last)[: _most(len(skew.rows))]:
        yield (
            f"{row.rank}: last in {format_number(row.last)} of "
            f"{format_number(skew.noticeable)}, waits "
            f"{format_ns(row.wait_ns / max(row.calls, 1))} per collective"
        )


def _most(rows: int) -> int:
    """How many of them are listed: all of few, the first of many."""
    return rows if rows <= SHOWN else _OF_MANY


def tables(communication: Communication | None) -> tuple[Table, ...]:
    """The tables of the page; none without communication."""
    if communication is None:
        return ()
    made = [
        _group_table(communication.groups),
        _device_table(communication.devices),
        _collective_table(communication.collectives),
    ]
    if communication.skew is not None:
        made.append(_rank_table(communication.skew))
    return tuple(table for table in made if table.rows)


def _group_table(groups: Sequence[RankGroup]) -> Table:
    """Nothing where no rank stands out."""
    columns = (
        Column("ranks"),
        Column("how many", "right"),
        Column(
            "what stands out",
            meaning="by more than a tenth of the median, and more than 2 % of the window or "
            "20 µs; of the largest group its own figures",
        ),
    )
    return Table(
        "Groups of ranks",
        columns,
        tuple(
            row_of(
                rank_groups.names(group.ranks),
                str(len(group.ranks)),
                rank_groups.differences(group)
                if group is not groups[-1]
                else rank_groups.figures(group),
            )
            for group in groups
            if len(groups) > 1
        ),
    )


def _device_table(rows: Iterable[CommunicationTime]) -> Table:
    columns = (
        Column("device"),
        Column(
            "exposed",
            "right",
            "share of the window in which a collective runs and no other kernel (on the CPU: "
            "no operator of the rank)",
        ),
        Column(
            "overlapped",
            "right",
            "share of the window in which a collective runs beside other kernels",
        ),
        Column("copies between devices", "right"),
    )
    return Table(
        "Communication by device",
        columns,
        tuple(
            (
                Cell(row.device),
                Cell(
                    format_share(row.exposed_ns / max(row.window_ns, 1)),
                    provenance=format_ns(row.exposed_ns),
                ),
                Cell(
                    format_share(row.overlapped_ns / max(row.window_ns, 1)),
                    provenance=format_ns(row.overlapped_ns),
                ),
                Cell(
                    f"{format_number(row.peer_copies)} in {format_ns(row.peer_copy_ns)}"
                    if row.peer_copies
                    else ""
                ),
            )
            for row in rows
            if row.total_ns or row.peer_copies
        ),
    )


def _collective_table(rows: Iterable[CollectiveRow]) -> Table:
    columns = (
        Column("collective"),
        Column("type"),
        Column("calls", "right"),
        Column(
            "mean",
            "right",
            "of the kernels (on the CPU from call to completion), waiting for late ranks included",
        ),
        Column("transfer", "right", "median over calls of the shortest time among the ranks seen"),
        Column(
            "algorithm bandwidth",
            "right",
            "size over transfer time, by nccl-tests' definition; "
            "at least that where one rank alone was seen",
        ),
        Column("bus bandwidth", "right", "the same times what each rank must send at least"),
    )
    return Table(
        "Collectives",
        columns,
        tuple(
            (
                Cell(_title(row)),
                Cell(row.dtype),
                Cell(format_number(row.calls)),
                Cell(format_ns(row.mean_ns)),
                Cell(format_ns(row.transfer_ns)),
                Cell(
                    ""
                    if row.algorithm_bandwidth is None
                    else quantity_text(row.algorithm_bandwidth, "B/s")
                ),
                Cell("" if row.bus_bandwidth is None else quantity_text(row.bus_bandwidth, "B/s")),
            )
            for row in rows
        ),
    )


def _rank_table(skew: Skew) -> Table:
    columns = (
        Column("rank"),
        Column("collectives", "right"),
        Column(
            "last",
            "right",
            f"how often it came last of {skew.noticeable} with a noticeable difference",
        ),
        Column("waits", "right", "mean time per collective that it waited for the last rank"),
        Column("behind", "right", "mean time after the first rank"),
    )
    return Table(
        "Arrival of ranks",
        columns,
        tuple(
            (
                Cell(row.rank),
                Cell(format_number(row.calls)),
                Cell(format_number(row.last)),
                Cell(format_ns(row.wait_ns / max(row.calls, 1))),
                Cell(format_ns(row.mean_behind_ns)),
            )
            for row in sorted(skew.rows, key=lambda rank: (-rank.last, -rank.mean_behind_ns))
        ),
    )


def note(communication: Communication | None) -> str:
    """How arrivals were compared, or what is missing for that."""
    if communication is None or not communication.collectives:
        return ""
    if communication.skew is None:
        return f"Late ranks: not measured: needs {communication.needs}."
    uneven = (
        "" if communication.exchange is None else f" In {exchange_text(communication.exchange)}."
    )
    return (
        f"Ranks arrive {format_ns(communication.skew.median_ns)} apart (median of "
        f"{format_number(communication.skew.matched)} collectives); "
        f"clocks put together {communication.skew.aligned}.{uneven}"
    )
