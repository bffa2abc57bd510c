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
    attach(process, torch)
    return True


def attach(process: Process, torch: Any) -> None:
    """Log the steps of every optimizer, and record windows where the torch layer is asked for: by
    levels if a load generator names them and this torch records all threads, by the capture plan
    otherwise.
    """
    import atexit

    from profharness_hooks import host_record, optimizers, step_log
    from profharness_hooks.device import note_devices

    steps = step_log.recorder(process)
    optimizers.watch(torch, step_log.guarded(process, steps.optimizer))
    optimizers.watch_backward(
        torch, step_log.guarded(process, steps.backward), lambda: steps.steps_are_unknown
    )
    atexit.register(step_log.guarded(process, lambda: note_devices(process, torch)))
    if "torch" not in process.settings.layers:
        return
    host_record.attach(process, steps)
    if process.settings.levels:
        from profharness_hooks import levels

        if levels.attach(process, torch):
            return
    from profharness_hooks.controller import Controller

    controller = Controller(process, torch, steps)
    steps.listener = controller.on_step
    controller.begin()
