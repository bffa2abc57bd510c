"""The table of what the host did: while the devices were idle, or over the steps of a CPU run."""

from __future__ import annotations

from profharness.analysis.host.kinds import LABELS, Kind
from profharness.analysis.host.records import HostPart, HostTime
from profharness.report.table import Cell, Column, Table
from profharness.report.text.folding import fold_kernel_name
from profharness.report.text.measured.host_time import name_of
from profharness.units import format_ns, format_number, format_share, format_share_interval

_LABELS = {kind.key: LABELS[kind] for kind in Kind}
_SEEN = 0.0005  # smaller shares would print as 0.0 %
_NOT_HELD_UP = "the host did not hold it up"


def host_table(host: HostTime | None) -> Table | None:
    """One row per part, the largest first, and a row per call that gaps follow; None without any
    time.
    """
    if host is None or not host.total_ns:
        return None
    idle = host.of == "idle"
    seen = [part for part in host.parts if part.share >= _SEEN]
    rows = [_row(part, host, idle=idle) for part in seen]
    rows += [
        (
            *((Cell("of which after a wait"),) if idle else ()),
            Cell(
                "1 gap" if wait.gaps == 1 else f"{format_number(wait.gaps)} gaps", emphasis="muted"
            ),
            Cell(f"after {fold_kernel_name(wait.name, 60)}", full=wait.name, emphasis="muted"),
            Cell(format_share(wait.share), emphasis="muted"),
            Cell(format_ns(wait.ns), emphasis="muted"),
        )
        for wait in host.after_waits
        if wait.share >= 0.001
    ]
    return Table(
        "What the host did while the device was idle" if idle else "What the host did",
        (
            *((Column("cause of the idle time"),) if idle else ()),
            Column("the host was in"),
            Column("name", wraps=True),
            Column("share", "right"),
            Column("time", "right"),
        ),
        tuple(rows),
        note="Shares are of the window"
        + (", summed over devices." if idle else ", of the thread that runs the steps."),
    )


def _row(part: HostPart, host: HostTime, *, idle: bool) -> tuple[Cell, ...]:
    name = f"{format_number(part.others)} smaller parts" if part.others else name_of(part, 60)
    share = (
        format_share(part.share)
        if part.low is None
        else format_share_interval(part.share, part.low, part.high)
    )
    return (
        *((Cell(part.cause.replace("_", " ")),) if idle else ()),
        Cell(_LABELS.get(part.kind, _NOT_HELD_UP)),
        Cell(name, full=part.name, emphasis="muted" if part.others else ""),
        Cell(share, bar=100 * part.ns / max(host.parts[0].ns, 1)),
        Cell(format_ns(part.ns)),
    )
