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
from profharness.supervise.pass_plan import PassPlan


class PassQueue:
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
    rocprofv3-pmc1a and -pmc1b. One execution that counts several groups stays one, with each group
    in halves; where every group is one counter, each half of the groups gets an execution.
    """
    counters = plan.counters
    groups = tuple(half for group in plan.groups for half in _in_halves(group))
    if len(groups) > len(plan.groups):
        return (replace(plan, name=f"{plan.name}a", groups=groups),)
    if len(counters) < 2:
        return ()
    first, second = _in_halves(counters)
    return (
        replace(plan, name=f"{plan.name}a", counters=first, groups=_alone(first, plan)),
        replace(plan, name=f"{plan.name}b", counters=second, groups=_alone(second, plan)),
    )


def _alone(counters: tuple[str, ...], plan: PassPlan) -> tuple[tuple[str, ...], ...]:
    """A group of each counter where the whole had groups; one counter is no matter of groups."""
    return tuple((name,) for name in counters) if plan.groups and len(counters) > 1 else ()


def _in_halves(names: tuple[str, ...]) -> tuple[tuple[str, ...], ...]:
    """The larger half first; one name alone stays as it is."""
    middle = (len(names) + 1) // 2
    return tuple(half for half in (names[:middle], names[middle:]) if half)


def refusal_finding(plan: PassPlan, parts: Sequence[PassPlan], line: str) -> Finding:
    """What became of a refused pass; `line` is the tool's own sentence."""
    layer = plan.layers[0].name
    names = " ".join(plan.counters)
    words = f" ({line})" if line else ""
    if len(parts) == 1:
        return finding(
            "counters-split",
            f"{layer} refused {names} in {len(plan.groups)} groups{words}: they are counted in "
            f"{len(parts[0].groups)} groups instead, by {parts[0].name}",
            counters=len(plan.counters),
        )
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
