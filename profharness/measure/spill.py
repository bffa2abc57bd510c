"""Where a tool puts the records that do not fit into its memory, when the working directory will
not do.

rocprofv3 maps temporary files in the working directory: it crashes where that is `/`
(ROCm/rocm-systems #3505) or cannot be written. Its variable ROCPROF_TMPDIR names another place.
"""

from __future__ import annotations

import os
from pathlib import Path


def folder(run_root: Path, cwd: Path) -> Path | None:
    """A folder inside the run for such files; None where the working directory serves."""
    fit = cwd != Path("/") and os.access(cwd, os.W_OK | os.X_OK)
    return None if fit else run_root / "control" / "spill"
