"""How many of the first steps of a program are left out: those that are slower than the rest
(docs/metrics.md#axes). Pure.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

_MADS = 4.0
_SLOWER = 1.05
"""A step within 5 % of the later ones is none of the slow ones, however little these vary."""
_MAD_TO_SIGMA = 1.4826
FEWEST = 4


def slow_steps(durations_ns: Sequence[int]) -> int:
    """How many steps at the beginning are slower than the second half of them: longer than its
    median by more than four robust standard deviations and 5 %. At most half of the steps; 0 of
    fewer than 4 steps, whose rest says too little.
    """
    steps = np.asarray(durations_ns, np.float64)
    if len(steps) < FEWEST:
        return 0
    half = len(steps) // 2
    later = steps[half:]
    middle = float(np.median(later))
    spread = _MAD_TO_SIGMA * float(np.median(np.abs(later - middle)))
    limit = max(middle + _MADS * spread, _SLOWER * middle)
    fast = np.flatnonzero(steps[:half] <= limit)
    return half if not len(fast) else int(fast[0])
