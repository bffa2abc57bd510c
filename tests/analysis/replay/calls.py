"""Kineto files with a few operators, as small as a test needs them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

Event = dict[str, Any]


def operator(name: str, start_us: float, dur_us: float, **args: object) -> Event:
    """One record of an operator on the host."""
    return {
        "ph": "X",
        "cat": "cpu_op",
        "name": name,
        "pid": 1,
        "tid": 1,
        "ts": start_us,
        "dur": dur_us,
        "args": args,
    }


def recorded(
    dims: list[Any], types: list[str], values: list[str] | None = None, strides: object = None
) -> dict[str, object]:
    """The arguments of a record by which its inputs are known."""
    args: dict[str, object] = {"Input Dims": dims, "Input type": types}
    if values is not None:
        args["Concrete Inputs"] = values
    if strides is not None:
        args["Input Strides"] = strides
    return args


def relu(start_us: float, dur_us: float, extent: int = 64) -> Event:
    """A call that every torch knows."""
    args = recorded([[extent]], ["float"], [""], [[1]])
    return operator("aten::relu", start_us, dur_us, **args)


def written(path: Path, *events: Event, **header: object) -> Path:
    """The file of these records."""
    path.write_text(json.dumps({"schemaVersion": 1, **header, "traceEvents": list(events)}))
    return path
