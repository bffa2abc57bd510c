"""The sampler's part: when it ends, or the harness is gone, a process sets the old caps again.

That process has a session of its own and none of our marks in its environment, so that whatever
ends the sampler, or what the harness left, does not end it.
"""

from __future__ import annotations

import _thread
import os
import time

from profharness.telemetry.caps.starting import command

PATIENCE_S = 30.0
_LOOK_S = 0.01
_MARK = "PROFHARNESS_PARENT_PID"


class Leaving:
    """Starts the process that sets the caps again, once; from either thread of the sampler. An
    empty `file` asks for nothing.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._turn = _thread.allocate_lock()
        self._begun = False
        self._child = 0

    def begin(self) -> None:
        """Start it, unless that was done or no cap is to come back."""
        with self._turn:
            if self._begun or not self._file or not os.path.exists(self._file):  # noqa: PTH110
                return
            self._begun = True
            argv = command("restore", self._file)
            environment = {name: text for name, text in os.environ.items() if name != _MARK}
            # its answer goes to the sampler's log, with what else it says
            self._child = os.posix_spawn(argv[0], argv, environment, setsid=True)

    def finish(self) -> None:
        """Wait until the caps are set, though not for ever: the process goes on by itself."""
        self.begin()
        end = time.monotonic() + PATIENCE_S
        while self._child and time.monotonic() < end:
            if os.waitpid(self._child, os.WNOHANG)[0]:
                return
            time.sleep(_LOOK_S)
