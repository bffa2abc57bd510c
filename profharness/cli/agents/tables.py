"""Hotspots of runs and trace files for agents, as `profharness hotspots` lists them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from profharness.analysis.records import HotspotRow, Hotspots
from profharness.cli.agents.records import HotspotTable, ListedRow
from profharness.cli.agents.roots import Roots
from profharness.errors import UsageError
from profharness.findings import problem_text

if TYPE_CHECKING:
    from profharness.analysis.kernels.tally import Grouping
    from profharness.trace.model import Problem

_NOTES = 10


def hotspots(
    roots: Roots, path: str, by: Grouping | None = None, top: int = 20, pass_name: str = ""
) -> HotspotTable:
    """The `top` rows of a run's pass or of a trace file. Raises UsageError for a pass that is not
    there, InputError for what cannot be read.
    """
    place = roots.find(path)
    if place.is_dir():
        table, notes = _of_run(place, by, pass_name)
    elif pass_name:
        raise UsageError("a trace file has no passes", "leave pass_name out")
    else:
        table, notes = _of_file(place, by)
    return HotspotTable(
        path=str(place),
        by=table.by,
        pass_name=table.pass_name,
        total_ns=table.total_ns,
        busy_ns=table.busy_ns,
        busy_any_ns=table.busy_any_ns,
        device_span_ns=table.device_span_ns,
        device_ns_outside=table.device_ns_outside,
        rows=tuple(map(_listed, table.rows[:top])),
        rows_left_out=max(len(table.rows) - top, 0),
        notes=notes[:_NOTES],
    )


def _of_run(root: Path, by: Grouping | None, pass_name: str) -> tuple[Hotspots, tuple[str, ...]]:
    from profharness.understand.hotspots import hotspots_of, load_for

    loaded = load_for([root], by)
    return hotspots_of(loaded, by, pass_name or None), _notes(loaded.trace.problems)


def _of_file(path: Path, by: Grouping | None) -> tuple[Hotspots, tuple[str, ...]]:
    from profharness.understand.many.tables import hotspots_of_files

    found = hotspots_of_files([path], by)
    said = tuple(f"{item.severity}: {item.message}" for item in found.findings)
    return found.table, (*_notes(found.problems), *said)


def _notes(problems: Sequence[Problem]) -> tuple[str, ...]:
    """What the readers lost or repaired."""
    return tuple(
        f"{one.severity}: {problem_text(one.source, one.count, one.message)}"
        for one in sorted(problems, key=lambda one: one.severity)
        if one.severity != "info"
    )


def _listed(row: HotspotRow) -> ListedRow:
    return ListedRow(**{name: getattr(row, name) for name in HotspotRow.__struct_fields__})
