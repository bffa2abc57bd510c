"""Kineto files of captures and replays made by hand: operators with launches, in order."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profharness import readers
from profharness.trace.graphs.captures import Capture, captured_graphs
from profharness.trace.model import Trace
from profharness.trace.wanted import Wanted
from tests.readers.kineto.kineto_files import MAIN, document, event, kernel, launch, op, write

STEP = 10


@dataclass(frozen=True)
class Run:
    """An operator with what it calls: kernels by their names, and operators."""

    name: str
    inside: Sequence[str | Run] = ()
    dims: Sequence[Sequence[int]] = ()
    more: dict[str, Any] = field(default_factory=dict)


def mm(m: int, n: int, k: int, name: str = "gemm", **more: Any) -> Run:
    return Run("aten::mm", [name], [[m, k], [k, n]], more)


def linear(m: int, n: int, k: int, name: str = "gemm") -> Run:
    """Two levels with a formula, of which the inner one launches."""
    return Run("aten::linear", [Run("aten::matmul", [mm(m, n, k, name)])], [[m, k], [n, k]])


class Recording:
    """Events of one process as its calls are made, one every few microseconds."""

    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []
        self.now = 100
        self.calls = 0

    def call(self, name: str, *, tid: int = MAIN, dur: int = 2, **args: Any) -> int:
        self.calls += 1
        self.now += STEP
        self.events.append(launch(name, self.now, dur, self.calls, tid=tid, **args))
        return self.calls

    def run(self, what: Run | str, tid: int = MAIN, *, named: bool = True) -> None:
        if isinstance(what, str):
            self.call("hipLaunchKernel", tid=tid, **({"kernel": what} if named else {}))
            return
        self.now += STEP
        start = self.now
        for inner in what.inside:
            self.run(inner, tid, named=named)
        self.now += STEP
        args = {
            "Input_Dims": list(what.dims),
            "Input_type": ["float"] * len(what.dims),
            **what.more,
        }
        self.events.append(op(what.name, start, self.now - start, self.now, tid=tid, **args))

    def capture(self, runs: Sequence[Run | str], *, named: bool = True) -> None:
        self.call("hipStreamBeginCapture")
        for run in runs:
            self.run(run, named=named)
        self.call("hipStreamEndCapture")

    def replay(self, kernels: Sequence[str | tuple[str, int]], dur: int = 7) -> None:
        """A graph launch and its kernels, with the number of their stream where it is not 7."""
        number = self.call("hipGraphLaunch")
        at = self.now
        for item in kernels:
            name, stream = (item, 7) if isinstance(item, str) else item
            at += STEP
            self.events.append(kernel(name, at, dur, stream=stream, correlation=number))
        self.now = at

    def mark(self, name: str, start: int, end: int, tid: int = MAIN) -> None:
        self.events.append(event("user_annotation", name, start, end - start, tid=tid))

    def read(self, path: Path) -> Trace:
        write(path, document(self.events, baseTimeNanoseconds=10**18))
        return readers.read(path, wanted=Wanted.LAUNCHED)


def captures_of(
    folder: Path, *graphs: Sequence[Run | str], named: bool = True
) -> tuple[Capture, ...]:
    recording = Recording()
    for runs in graphs:
        recording.capture(runs, named=named)
    return captured_graphs(recording.read(folder / "capture.json"))


def replays_of(folder: Path, *replays: Sequence[str | tuple[str, int]]) -> Trace:
    """The file has its events in no order, as a profiler writes them."""
    recording = Recording()
    for kernels in replays:
        recording.replay(kernels)
    random.Random(len(recording.events)).shuffle(recording.events)
    return recording.read(folder / "replays.json")
