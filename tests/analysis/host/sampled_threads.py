"""A made thread whose lines are known to the ns, and the samples that a sampler takes of it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from profharness.trace.columns.stacks import Frame, text_of
from profharness.trace.model import HostSamples, Trace
from tests.analysis.scene import Scene

MS = 1_000_000


class SampledThread:
    """Grows by lines of Python and operators, one after the other; `now` is its end in ns."""

    def __init__(self, seed: int) -> None:
        self.now = 0
        self._scene = Scene()
        self._random = np.random.default_rng(seed)
        self._ends: list[int] = []
        self._places: list[tuple[str, int]] = []

    def line(self, file: str, line: int, dur_ns: int) -> None:
        """The thread stands at a line outside of any function."""
        self.now += dur_ns
        self._ends.append(self.now)
        self._places.append((file, line))

    def operator(self, name: str, dur_ns: int) -> None:
        """An operator that the line before called."""
        self._scene.op(name, self.now, self.now + dur_ns)
        self.line(*self._places[-1], dur_ns)

    def trace(self, *, every_ns: int) -> Trace:
        """With samples at distances from half to one and a half of `every_ns`."""
        at = np.cumsum(self._random.uniform(0.5, 1.5, self.now // every_ns * 2) * every_ns).astype(
            np.int64
        )
        at = at[at < self.now]
        seen = [self._places[place] for place in np.searchsorted(self._ends, at, "right")]
        texts = [text_of([Frame(f"/home/u/{file}", line, "<module>")]) for file, line in seen]
        table = HostSamples.build(
            at_ns=at.tolist(),
            stack=[self._scene.strings.code(text) for text in texts],
            cpu_ns=at.tolist(),
            delay_ns=0,
            pid=7,
            tid=1,
            source=0,
        )
        return replace(self._scene.build(), host_samples=table)
