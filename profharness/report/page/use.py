"""What the page says of how well the device was used: the parts of the time, the operators that
would give most back, and their counters.
"""

from __future__ import annotations

from dataclasses import dataclass

from profharness.analysis.records import Summary
from profharness.report.page.tidy import filled
from profharness.report.plots.partition import PARTS, part_ns
from profharness.report.table import Table
from profharness.report.tables.use import (
    ceilings_text,
    files_text,
    known_work_text,
    operator_counter_table,
    operator_table,
    outside_text,
)
from profharness.units import format_share


@dataclass(frozen=True)
class UseSection:
    """Sentences and tables of one section; empty and None where there is nothing to say."""

    parts: str
    files: str
    known: str
    outside: str
    needs: str
    ceilings: str
    operators: Table | None
    counters: Table | None

    @property
    def with_excess(self) -> bool:
        """Whether any operator's excess is known."""
        columns = () if self.operators is None else self.operators.columns
        return any(column.key == "excess_ns" for column in columns)

    @property
    def shown(self) -> bool:
        """Whether the page has the section: only with something of the device's work in it."""
        return bool(self.operators or self.known or self.needs)


def use_section(summary: Summary) -> UseSection:
    """The section of a whole window."""
    use = summary.use
    return UseSection(
        parts=_parts(summary),
        files=files_text(use),
        known=known_work_text(use),
        outside=outside_text(use),
        needs="" if use is None else use.needs,
        ceilings=ceilings_text(use),
        operators=filled(operator_table(use)),
        counters=filled(operator_counter_table(use)),
    )


def _parts(summary: Summary) -> str:
    """The parts of the window in one line, the largest first; those under 0.1 % are left out."""
    partition = summary.partition
    if partition is None or partition.window_ns <= 0:
        return ""
    shares = [(part_ns(partition, part) / partition.window_ns, part.label) for part in PARTS]
    shown = sorted((pair for pair in shares if pair[0] >= 1e-3), reverse=True)
    return " · ".join(f"{label} {format_share(share)}" for share, label in shown)
