"""Whether two traces are of the same work: only then does the one's time over the other's say which
of them is faster.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from profharness.analysis.compare.operators.content import Amount, Content
from profharness.analysis.compare.operators.records import OtherWork

_ALIKE = math.log(1.1)  # operations of a step: more than their scatter over lengths of sequences
_IN_COMMON = 0.2


def other_work(a: Content, b: Content) -> OtherWork | None:
    """Why they are not of the same work; None where they are, as far as they tell.

    The operations of matrix products in a step decide where both tell nearly all of them, whatever
    operators and kernels do them: alike as far as they are known, or apart whatever the others do.
    Elsewhere it takes operators of which hardly any is on both sides.
    """
    in_a, in_b = (_common(side.operators, other.operators) for side, other in ((a, b), (b, a)))
    apart = max(in_a, in_b) < _IN_COMMON
    if a.flops and b.flops:
        fewer, more = sorted((a, b), key=lambda side: side.flops or 0.0)
        known = math.log((more.flops or 0.0) / (fewer.flops or 1.0))
        if known <= _ALIKE:
            apart = False
        elif known > _ALIKE + math.log1p(fewer.unknown_flops / (fewer.flops or 1.0)):
            apart = True
    if not apart:
        return None
    return OtherWork(of="operators", common_a=in_a, common_b=in_b, flops_a=a.flops, flops_b=b.flops)


def _common(own: Mapping[str, Amount], other: Mapping[str, Amount]) -> float:
    """The share of the time of all operators that is in operators of both; 1 without any time."""
    whole = sum(amount.ns for amount in own.values())
    held = sum(amount.ns for name, amount in own.items() if name in other and other[name].ns)
    return held / whole if whole else 1.0
