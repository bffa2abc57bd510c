"""Was a compile or tuning cache cold for this point? Known from whether the point left new files in
it.

The folders come from the variables by which the libraries themselves are told (set per run by the
harness).
"""

from __future__ import annotations

import getpass
import os
import tempfile
from typing import FrozenSet, List, Mapping, Optional, Sequence, Tuple

LIBRARIES = (
    "MIOPEN_USER_DB_PATH",
    "MIOPEN_CUSTOM_CACHE_DIR",
    "PYTORCH_KERNEL_CACHE_PATH",
    "PYTORCH_TUNABLEOP_FILENAME",
    "ORT_MIGRAPHX_MODEL_CACHE_PATH",
    "ORT_MIGRAPHX_CACHE_PATH",
    "ORT_MIGRAPHX_SAVE_COMPILE_PATH",
    "ORT_TENSORRT_CACHE_PATH",
    "CUDA_CACHE_PATH",
)
COMPILERS = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR")

Snapshot = Optional[FrozenSet[Tuple[str, int]]]


def places(environ: Mapping[str, str], compiled: bool = False) -> Tuple[str, ...]:
    """Cache folders and files that count for this worker. Ask before torch is used: it sets
    variables of its own.

    With torch.compile the default folder of inductor counts where the environment names none.
    """
    folders = [environ[name] for name in LIBRARIES if environ.get(name)]
    if compiled:
        named = [environ[name] for name in COMPILERS if environ.get(name)]
        folders += named or [
            os.path.join(tempfile.gettempdir(), "torchinductor_" + getpass.getuser())
        ]
    return tuple(folders)


def snapshot(where: Sequence[str]) -> Snapshot:
    """Name and size of every file in these caches; None when there are none to look at."""
    if not where:
        return None
    return frozenset(entry for place in where for entry in _files(place))


def _files(place: str) -> List[Tuple[str, int]]:
    paths = [place] if os.path.isfile(place) else []
    for folder, _, names in os.walk(place):
        paths += [os.path.join(folder, name) for name in names]
    sizes = []
    for path in paths:
        try:
            sizes.append((path, os.stat(path).st_size))
        except OSError:
            continue  # a lock or temporary file that is gone again
    return sizes


def was_cold(before: Snapshot, after: Snapshot) -> Optional[bool]:
    """True when files were added or grew between the two; None when no cache is known."""
    if before is None or after is None:
        return None
    return bool(after - before)
