"""The figures of a run directory, as one flat table: what must stay as it is in later versions."""

from __future__ import annotations

import io
import json
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any

from profharness.cli import run_cli

_HOTSPOTS = 5  # rows of a sample that are kept


def figures_of(run: Path) -> dict[str, float]:
    """Every number that `metrics` has for the run, its points, and the first rows of `hotspots`."""
    asked = _answer("metrics", run)
    figures = {
        f"trace.{name}": float(value) for name, value in asked["trace"].items() if _is(value)
    }
    figures |= _values("run", asked["metrics"])
    for point in asked["points"]:
        figures |= _values(point["point"], point["metrics"])
    for row in _answer("hotspots", run, may_fail=True).get("rows", ())[:_HOTSPOTS]:
        for name in ("calls", "total_ns", "share"):
            if row.get(name) is not None:
                figures[f"hotspots.{row['name']}.{name}"] = float(row[name])
    return figures


def _values(owner: str, metrics: dict[str, Any]) -> dict[str, float]:
    return {
        f"{owner}.{name}": float(figure["value"])
        for name, figure in metrics.items()
        if _is(figure["value"])
    }


def _is(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _answer(command: str, run: Path, *, may_fail: bool = False) -> dict[str, Any]:
    said = io.StringIO()
    with redirect_stdout(said):
        status = run_cli([command, str(run), "--json"])
    if may_fail and status:
        return {}
    assert status == 0, said.getvalue()
    found: dict[str, Any] = json.loads(said.getvalue())
    return found
