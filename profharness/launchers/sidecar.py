"""A helper process beside the run (the telemetry sampler): start it, know that it is ready, stop
it, notice its death.
"""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

from profharness.launchers.command import Command

READY_S = 10.0
STOP_S = 5.0
LOOK_S = 0.25  # most helpers are ready, and end, before the first look


class Sidecar:
    """One running helper. It has its own process group, so that Ctrl-C on the terminal does not end
    it first.
    """

    def __init__(self, command: Command, log: Path) -> None:
        self._log_path = log
        with log.open("ab") as file:
            self._process = subprocess.Popen(
                command.argv,
                env=command.environment(os.environ),
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=file,
                process_group=0,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_ready(self, marker: Path) -> bool:
        """Whether `marker` appeared before the helper died, or did nothing for ten seconds.

        On a crowded machine it may wait long for a core: the seconds count only while it sleeps,
        not while it works or would if it could.
        """
        patience = _Patience(self.pid, READY_S)
        while not marker.exists():
            if self._process.poll() is not None or patience.is_over():
                return False
            time.sleep(0.005)
        return True

    def alive(self) -> bool:
        return self._process.poll() is None

    def status(self) -> int | None:
        """Its exit status as Popen has it; None while it runs."""
        return self._process.poll()

    def last_words(self) -> str:
        """The last line that it printed, for a finding."""
        try:
            lines = self._log_path.read_text(errors="replace").strip().splitlines()
        except OSError as error:
            return f"its log cannot be read ({error.strerror})"
        return lines[-1] if lines else "it said nothing"

    def stop(self) -> int:
        """End it by SIGTERM, or SIGKILL where it then does nothing for five seconds; its exit
        status.
        """
        if self.alive():
            self._process.send_signal(signal.SIGTERM)
        patience = _Patience(self.pid, STOP_S)
        while True:
            try:
                return self._process.wait(0.1)
            except subprocess.TimeoutExpired:
                if patience.is_over():
                    break
        self._process.kill()
        return self._process.wait()


class _Patience:
    """Seconds that a process may do nothing in a row, and ten times as many in all. What it does
    between two looks shows in its CPU time.
    """

    def __init__(self, pid: int, seconds: float) -> None:
        self._pid = pid
        self._seconds = seconds
        self._since = time.monotonic()
        self._look = self._since + LOOK_S
        self._end = self._since + 10 * seconds
        self._used = 0.0

    def is_over(self) -> bool:
        now = time.monotonic()
        if now < self._look:
            return False
        self._look = now + LOOK_S
        if self._busy():
            self._since = now
        return now - self._since > self._seconds or now > self._end

    def _busy(self) -> bool:
        """Whether it runs, waits for a core or for a disk, or has used the CPU since the last
        look.
        """
        import psutil

        try:
            process = psutil.Process(self._pid)
            with process.oneshot():
                state, times = process.status(), process.cpu_times()
        except psutil.Error:
            return False
        before, self._used = self._used, times.user + times.system
        return state in (psutil.STATUS_RUNNING, psutil.STATUS_DISK_SLEEP) or self._used != before
