"""Real operators on small CPU tensors as the profiler records them: rows with their nesting, and the
work that counts once over a nest.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profharness.analysis.operators.engine import own_engine
from profharness.analysis.operators.records import Work

ATTENTION = "attention"


@dataclass
class Row:
    """One recorded operator and those nested in it."""

    name: str
    texts: tuple[str, str, str, str]
    start: float
    end: float
    inside: list[Row] = field(default_factory=list)

    @property
    def work(self) -> Work:
        return own_engine().work(self.name, *self.texts)

    def all(self) -> list[Row]:
        return [self, *(row for child in self.inside for row in child.all())]

    def counted(self) -> float | None:
        """Operations that count once: the innermost formula, save where an outer one wins."""
        work, parts = self.work, [row.counted() for row in self.inside]
        known = [part for part in parts if part is not None]
        products = any(
            row.work.flops is not None and ATTENTION not in row.name for row in self.all()[1:]
        )
        if work.flops is not None and (
            work.nest == "wins" or (work.nest == "wins-attention" and not products) or not known
        ):
            return work.flops
        return sum(known) if known else None


def record(cases: Sequence[Callable[[], Any]]) -> list[Row]:
    """Each case as one row that holds what it ran."""
    import torch

    with torch.profiler.profile(
        activities=[torch.profiler.ProfilerActivity.CPU], record_shapes=True, acc_events=False
    ) as profiler:
        for number, case in enumerate(cases):
            with torch.profiler.record_function(f"case {number}"):
                case()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        profiler.export_chrome_trace(str(path))
        events = json.loads(path.read_text())["traceEvents"]
    rows = [_row(event) for event in events if event.get("cat") in ("cpu_op", "user_annotation")]
    return _nested(sorted(rows, key=lambda row: (row.start, -row.end)))


def _row(event: dict[str, Any]) -> Row:
    args = event.get("args", {})
    keys = ("Input Dims", "Input type", "Concrete Inputs", "Input Strides")
    shapes, types, concrete, strides = (
        json.dumps(args[key]) if key in args else "" for key in keys
    )
    start = float(event["ts"])
    return Row(
        event["name"], (shapes, types, concrete, strides), start, start + float(event["dur"])
    )


def _nested(rows: list[Row]) -> list[Row]:
    cases, open_rows = [], []
    for row in rows:
        while open_rows and open_rows[-1].end <= row.start:
            open_rows.pop()
        if open_rows:
            open_rows[-1].inside.append(row)
        elif row.name.startswith("case "):
            cases.append(row)
        if open_rows or row.name.startswith("case "):
            open_rows.append(row)
    return sorted(cases, key=lambda row: int(row.name.split()[1]))


def of_name(case: Row, name: str) -> list[Work]:
    """The work of all rows of one operator in a case."""
    return [row.work for row in case.all() if row.name == name]
