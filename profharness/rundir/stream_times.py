"""The batches of one process of a multi-process point: rows of start and duration, int64
little-endian ns of CLOCK_MONOTONIC.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from profharness.errors import InputError


def read(path: Path, batches: int) -> tuple[list[int], list[int]]:
    """Starts and durations. Raises InputError when the file is missing or does not hold `batches`
    rows.
    """
    try:
        raw = np.fromfile(path, dtype="<i8")
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror})", "the run directory may be incomplete"
        ) from error
    if raw.size != 2 * batches:
        raise InputError(
            f"{path}: it holds {raw.size / 2:g} batches, and {batches} were told",
            "the disk may be full",
        )
    rows = raw.reshape(-1, 2)
    return rows[:, 0].tolist(), rows[:, 1].tolist()
