"""With how many threads torch computes on the CPU, and the variables of its libraries of threads
that are set: what a replay of the same operators needs to be like the recording.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_DYNAMIC",
    "OMP_PLACES",
    "OMP_PROC_BIND",
    "OMP_WAIT_POLICY",
    "GOMP_CPU_AFFINITY",
    "KMP_AFFINITY",
    "KMP_BLOCKTIME",
    "MKL_NUM_THREADS",
    "MKL_DYNAMIC",
    "OPENBLAS_NUM_THREADS",
)
_LONGEST = 200


def known() -> dict[str, Any] | None:
    """`{"intra_op": 4, "variables": {"OMP_NUM_THREADS": "4"}}`, of the calling thread; None where
    torch is not loaded or does not tell.
    """
    torch = sys.modules.get("torch")
    try:
        count = int(torch.get_num_threads())  # type: ignore[union-attr]
    except Exception:  # a stand-in, or a torch that is being loaded
        return None
    texts = ((name, os.environ.get(name, "")) for name in VARIABLES)
    return {
        "intra_op": count,
        "variables": {name: text for name, text in texts if text and len(text) <= _LONGEST},
    }
