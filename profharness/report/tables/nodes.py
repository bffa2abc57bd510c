"""Tables of a run of several nodes: node by node and summed, and how like units differ."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from profharness.analysis.power.records import ModulePlace, Nodes, NodeUnit
from profharness.analysis.records import Figure
from profharness.report.table import Cell, Column, Table
from profharness.report.text import names
from profharness.report.text.figures import quantity_text
from profharness.units import format_number

MOST_UNITS = 40
"""Units that are shown: those that stand apart first, then those furthest from the median."""
_FIGURES = (
    "energy",
    "power_w",
    "energy_node",
    "power_node",
    "cores_used",
    "gpu_percent",
    "clock_gpu",
    "network_received",
    "network_sent",
    "rdma_received",
    "rdma_sent",
    "slingshot_received",
    "slingshot_sent",
    "slingshot_received_least",
    "slingshot_sent_least",
    "slingshot_link_retries",
    "slingshot_pauses",
    "slingshot_timeouts",
)


def node_tables(nodes: Nodes | None, modules: Sequence[ModulePlace] = ()) -> tuple[Table, ...]:
    """The nodes with their sum, the units by how far they stand from the median of their kind, and
    the modules of the nodes' own meters with their packages.
    """
    of_nodes = () if nodes is None else (_table(nodes), _units(nodes))
    return tuple(filter(None, (*of_nodes, _modules(modules))))


def _modules(modules: Sequence[ModulePlace]) -> Table | None:
    rows = tuple(
        (
            Cell(f"{one.host}/{one.module}" if one.host else one.module),
            Cell(one.package or "unknown", emphasis="" if one.package else "muted"),
            Cell(
                one.why
                if one.correlation is None
                else f"{one.why}, correlation {one.correlation:.2f}"
            ),
        )
        for one in modules
    )
    columns = (Column("module"), Column("package"), Column("how it is known", wraps=True))
    return Table("Modules of the node's own meter", columns, rows) if rows else None


def _table(nodes: Nodes) -> Table:
    shown = [name for name in _FIGURES if any(name in row.figures for row in nodes.rows)]
    columns = (
        Column("node"),
        *(Column(names.title_of(name), "right", names.meaning_of(name)) for name in shown),
    )
    rows = [
        (Cell(row.host), *(_cell(row.figures.get(name)) for name in shown)) for row in nodes.rows
    ]
    rows.append((Cell("all nodes"), *(_cell(nodes.total.get(name)) for name in shown)))
    lost = f"; without samples: {', '.join(nodes.missing)}" if nodes.missing else ""
    return Table("Nodes", columns, tuple(rows), f"over the whole job{lost}")


def _cell(figure: Figure | None) -> Cell:
    if figure is None:
        return Cell("")
    if figure.value is None:
        return Cell("not measured", f"needs {figure.needs}", "muted")
    return Cell(
        quantity_text(float(figure.value), figure.unit), figure.note, value=float(figure.value)
    )


def _units(nodes: Nodes) -> Table | None:
    judged = [one for one in nodes.units if one.ratio.value is not None]
    if not judged:
        return None
    judged.sort(key=lambda one: (not one.apart, -abs(float(one.ratio.value or 1) - 1)))
    kept = judged[:MOST_UNITS]
    columns = (
        Column("unit"),
        Column("metric"),
        Column("mean", "right"),
        Column("over the median", "right", "of the others of its kind, with the 95 % interval"),
        Column(""),
    )
    return Table(
        "Nodes and devices against the others of their kind",
        columns,
        tuple(tuple(_unit_cells(one)) for one in kept),
        marked=frozenset(place for place, one in enumerate(kept) if one.apart),
        left_out=len(judged) - len(kept),
    )


def _unit_cells(one: NodeUnit) -> Iterator[Cell]:
    ratio = one.ratio
    yield Cell(f"{one.kind} {one.unit}")
    yield Cell(names.title_of(one.metric))
    yield Cell(quantity_text(float(one.mean.value or 0), one.mean.unit))
    yield Cell(
        f"{format_number(float(ratio.value or 0), 3)} "
        f"({format_number(float(ratio.low or 0), 3)} to {format_number(float(ratio.high or 0), 3)})"
    )
    yield Cell("stands apart" if one.apart else "", emphasis="warning" if one.apart else "")
