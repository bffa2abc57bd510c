"""Counter passes that the tool refuses: their counters are halved until each half fits, or one
alone is refused. Pure.

What a device can count at once is known for each block (wrappers/counters), but not for every
combination; the tool itself has the last word, and says so once the workload launches its first
kernel.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from profharness.findings import Finding, finding
from profharness.measure.schedule import PassPlan


class Passes:
    """The passes still to be run, in order. `spare`: how many more executions the user allows; None
    for any number.
    """

    def __init__(self, planned: Sequence[PassPlan], spare: int | None) -> None:
        self._left = deque(planned)
        self._spare = spare

    def take(self) -> PassPlan | None:
        """The next pass; None at the end."""
        return self._left.popleft() if self._left else None

    def split(self, plan: PassPlan) -> tuple[PassPlan, ...]:
        """The halves of a refused pass, which come next; none where it has one counter or no
        execution is left.
        """
        halves = halved(plan)
        if self._spare is not None:
            # the halves are two executions in the place of the one that came to nothing
            if self._spare < len(halves) - 1:
                return ()
            self._spare -= max(len(halves) - 1, 0)
        self._left.extendleft(reversed(halves))
        return halves


def halved(plan: PassPlan) -> tuple[PassPlan, ...]:
    """Two passes with half of the counters each, named after the whole: rocprofv3-pmc1 gives
    rocprofv3-pmc1a and -pmc1b.
    """
    counters = plan.counters
    if len(counters) < 2:
        return ()
    middle = (len(counters) + 1) // 2
    return (
        replace(plan, name=f"{plan.name}a", counters=counters[:middle]),
        replace(plan, name=f"{plan.name}b", counters=counters[middle:]),
    )


def told(plan: PassPlan, parts: Sequence[PassPlan], line: str) -> Finding:
    """What became of a refused pass; `line` is the tool's own sentence."""
    layer = plan.layers[0].name
    names = " ".join(plan.counters)
    words = f" ({line})" if line else ""
    if parts:
        return finding(
            "counters-split",
            f"{layer} refused {names} in one pass{words}: they are counted in {len(parts)} "
            "passes instead, "
            f"{' and '.join(part.name for part in parts)}",
            counters=len(plan.counters),
        )
    if len(plan.counters) == 1:
        return finding(
            "counters-refused",
            f"{layer}: this device cannot count {names}, not even alone{words}",
            counters=1,
        )
    return finding(
        "counters-refused",
        f"{layer} refused {names} in one pass{words}; halved they would need one more execution "
        "than was allowed "
        "(--passes, or --yes for as many as it takes)",
        counters=len(plan.counters),
    )
