"""The hook for torch: step marks from optimizers, and a torch.profiler window where the torch layer
is asked for.

`Window` and `span` are for the workers of scans, which need nothing else of this file.
"""

from __future__ import annotations

from profharness_hooks.windows import Window, recording, span

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from profharness_hooks.process import Process


__all__ = ["Window", "arm", "recording", "span"]


def arm(process: Process, torch: Any) -> bool:
    """Attach to a torch that has just been imported. Returns False in the workers of scans, which
    open their own windows.
    """
    if process.settings.is_worker:
        return False
    from profharness_hooks.controller import attach

    attach(process, torch)
    return True
