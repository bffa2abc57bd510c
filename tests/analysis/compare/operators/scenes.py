"""Small traces of nested operators with kernels, made from a drawn outline."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from profharness.trace.model import Trace
from tests.analysis.scene import Scene

NAMES = ("aten::mm", "aten::mul", "aten::add", "custom::op")
OUTLINE = st.recursive(
    st.lists(st.integers(1, 9), max_size=3),  # kernels, by their length
    lambda inner: st.lists(st.tuples(st.sampled_from(NAMES), inner), max_size=3),
    max_leaves=10,
)
STEPS = st.lists(OUTLINE, min_size=1, max_size=3)


class Drawn:
    """Steps of operators one after the other; kernels run side by side on a device of one stream
    for each second one, after a pause.
    """

    def __init__(self, *, marked: bool = True, device: bool = True) -> None:
        self.scene, self.now, self.busy_until = Scene(), 10, 10
        self.marked, self.device = marked, device

    def step(self, outline: Any) -> None:
        start = self.now
        self.walk(outline)
        if isinstance(outline, list) and not outline:
            self.scene.op("aten::nothing", self.now, self.now + 1)
        self.now += 3
        if self.marked:
            self.scene.mark("step", start, self.now, "ProfilerStep#1")

    def walk(self, outline: Any) -> None:
        for item in outline:
            if isinstance(item, int):
                self.kernel(item)
                continue
            name, inner = item
            start, row = self.now, len(self.scene.rows["ops"])
            self.scene.op(name, start, start + 1)
            self.now += 1
            self.walk(inner)
            self.now += 1
            kept = self.scene.rows["ops"][row]
            kept["dur_ns"] = self.now - start

    def kernel(self, length: int) -> None:
        if not self.device:
            self.now += length
            return
        by = self.scene.launch(self.now, self.now + 1)
        start = max(self.now + 1, self.busy_until - 2)
        self.scene.kernel(start, start + length, by, op=self._around(), name=f"k{length}")
        self.busy_until = start + length
        self.now += 2

    def _around(self) -> int:
        """The innermost operator that is open now; the last one whose end is not set yet."""
        rows = self.scene.rows["ops"]
        is_open = [at for at, row in enumerate(rows) if row["dur_ns"] == 1]
        inside = [at for at in is_open if rows[at]["start_ns"] < self.now]
        return inside[-1] if inside else -1


def drawn(steps: list[Any], *, marked: bool = True, device: bool = True) -> Trace:
    """The trace of these outlines."""
    made = Drawn(marked=marked, device=device)
    for outline in steps:
        made.step(outline)
    return made.scene.build()
