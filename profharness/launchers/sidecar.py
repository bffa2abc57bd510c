"""A helper process beside the run (the telemetry sampler): start it, know that it is ready, stop it, notice its death."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from profharness.command import Command

READY_S = 10.0
STOP_S = 5.0


class Sidecar:
    """One running helper. It has its own process group, so that Ctrl-C on the terminal does not end it first."""

    def __init__(self, command: Command, log: Path) -> None:
        self._log_path = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(command.argv, env=command.environment(os.environ), stdin=subprocess.DEVNULL,
                                             stdout=file, stderr=file, process_group=0)

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, marker: Path) -> bool:
        """Whether `marker` appeared before the helper died or ten seconds passed."""
        deadline = time.monotonic() + READY_S
        while not marker.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.005)
        return True

    def alive(self) -> bool:
        return self._process.poll() is None

    def last_words(self) -> str:
        """The last line that it printed, for a finding."""
        lines = self._log_path.read_text(errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def stop(self) -> int:
        """End it by SIGTERM, or SIGKILL after five seconds; its exit status."""
        if self.alive():
            self._process.send_signal(signal.SIGTERM)
        try:
            return self._process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            return self._process.wait()
