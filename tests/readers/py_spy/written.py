"""Writes what py-spy writes of given samples, as its `--format chrometrace` does: what changed of
a thread's stack, by pthread number.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

Stack = tuple[tuple[str, int, str], ...]
"""File, line and function of each frame, the outermost first."""


class Sample(NamedTuple):
    """What one thread was in at one time, in whole µs."""

    at_us: int
    pid: int
    tid: int
    stack: Stack
    pthread: int = 1


def labelled(sample: Sample) -> Stack:
    """The stack below the frames that name its process and thread."""
    process = ("", 0, f'process {sample.pid}:"python train.py"')
    return (process, ("", 0, f"thread ({sample.tid}): T{sample.tid}"), *sample.stack)


def events(samples: Sequence[Sample], end_us: int) -> list[dict[str, Any]]:
    """The events of these samples, which are in the order of their times."""
    written: list[dict[str, Any]] = []
    before: dict[int, tuple[int, Stack]] = {}
    for sample in samples:
        stack = labelled(sample)
        old = before.get(sample.pthread, (0, ()))[1]
        common = 0
        while common < min(len(old), len(stack)) and old[common] == stack[common]:
            common += 1
        written += [_event("E", sample, frame, sample.at_us) for frame in reversed(old[common:])]
        written += [_event("B", sample, frame, sample.at_us) for frame in stack[common:]]
        before[sample.pthread] = (sample.pid, stack)
    for pthread, (pid, stack) in before.items():
        last = Sample(end_us, pid, 0, (), pthread)
        written += [_event("E", last, frame, end_us) for frame in reversed(stack)]
    return written


def _event(phase: str, sample: Sample, frame: tuple[str, int, str], at_us: int) -> dict[str, Any]:
    file, line, function = frame
    return {
        "args": {"filename": file, "line": line},
        "cat": "py-spy",
        "name": function,
        "ph": phase,
        "pid": sample.pid,
        "tid": sample.pthread,
        "ts": at_us,
    }


def write(path: Path, samples: Sequence[Sample], end_us: int, **beside: Any) -> Path:
    """The file, and with facts `beside` it the record of our wrapper."""
    path.write_text(json.dumps(events(samples, end_us)) + "\n")
    if beside:
        path.with_name(path.name + ".profharness.json").write_text(json.dumps({"v": 1, **beside}))
    return path
