"""Was a compile or tuning cache cold for this point? Known from whether the point left new files in it.

The folders come from the variables by which the libraries themselves are told (set per run by the harness).
"""

from __future__ import annotations

import os
from typing import FrozenSet, List, Mapping, Optional, Tuple

VARIABLES = (
    "MIOPEN_USER_DB_PATH",
    "MIOPEN_CUSTOM_CACHE_DIR",
    "TORCHINDUCTOR_CACHE_DIR",
    "TRITON_CACHE_DIR",
    "PYTORCH_KERNEL_CACHE_PATH",
    "PYTORCH_TUNABLEOP_FILENAME",
    "ORT_MIGRAPHX_MODEL_CACHE_PATH",
    "ORT_MIGRAPHX_CACHE_PATH",
    "CUDA_CACHE_PATH",
)

Snapshot = Optional[FrozenSet[Tuple[str, int]]]


def snapshot(environ: Mapping[str, str]) -> Snapshot:
    """Name and size of every file in the caches that the environment names; None when it names none."""
    places = [environ[name] for name in VARIABLES if environ.get(name)]
    if not places:
        return None
    found: List[Tuple[str, int]] = []
    for place in places:
        found += _files(place)
    return frozenset(found)


def _files(place: str) -> List[Tuple[str, int]]:
    paths = [place] if os.path.isfile(place) else []
    for folder, _, names in os.walk(place):
        paths += [os.path.join(folder, name) for name in names]
    found = []
    for path in paths:
        try:
            found.append((path, os.stat(path).st_size))
        except OSError:
            continue  # a lock or temporary file that is gone again
    return found


def was_cold(before: Snapshot, after: Snapshot) -> Optional[bool]:
    """True when files were added or grew between the two; None when no cache is known."""
    if before is None or after is None:
        return None
    return bool(after - before)
