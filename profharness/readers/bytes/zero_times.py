"""Times of 0 and 0, which tools write where they have none: nothing that ran on a device began and
ended with its clock.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

I64 = npt.NDArray[np.int64]


def times_of_zero(start: I64, end: I64) -> npt.NDArray[np.bool_]:
    """For each record whether its start and its end are both 0, in whatever unit."""
    lost: npt.NDArray[np.bool_] = (start == 0) & (end == 0)
    return lost
