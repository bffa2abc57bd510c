"""A row of the table of `make soak`, and the memory of a process that works."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self


@dataclass(frozen=True)
class Row:
    """What one part took. `early_mib` is memory after a tenth of the time, `late_mib` at the end."""

    what: str
    amount: str
    seconds: float
    early_mib: float
    late_mib: float
    lost: int
    faults: tuple[str, ...] = ()

    def line(self) -> str:
        """As a line of the table."""
        memory = f"{self.early_mib:8.1f}  {self.late_mib:8.1f}"
        return f"{self.what:28}  {self.amount:>26}  {self.seconds:8.1f}  {memory}  {self.lost:6}"


HEAD = f"{'part':28}  {'amount':>26}  {'seconds':>8}  {'MiB 10 %':>8}  {'MiB end':>8}  {'lost':>6}"


@dataclass
class Memory:
    """Resident memory of a process tree's process whose command line holds `words`, in time."""

    words: tuple[str, ...]
    every_s: float = 0.1
    at: list[float] = field(default_factory=list)
    mib: list[float] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._over.set()
        if self._thread is not None:
            self._thread.join()

    @property
    def early(self) -> float:
        """After a tenth of the time, 0 where the process was never seen."""
        return self.mib[len(self.mib) // 10] if self.mib else 0.0

    @property
    def late(self) -> float:
        """The most in the last tenth of the time."""
        return max(self.mib[-(1 + len(self.mib) // 10) :], default=0.0)

    def by(self, moment_s: float) -> float:
        """The last before an instant of CLOCK_MONOTONIC."""
        held = [mib for at, mib in zip(self.at, self.mib, strict=True) if at <= moment_s]
        return held[-1] if held else 0.0

    def _watch(self) -> None:
        pid = None
        while not self._over.wait(self.every_s):
            pid = pid or self._find()
            held = _resident_mib(pid) if pid else None
            if held:
                self.at.append(time.monotonic())
                self.mib.append(held)

    def _find(self) -> int | None:
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                line = path.read_bytes().decode(errors="replace").split("\0")
            except OSError:
                continue
            text = " ".join(line)
            if all(word in text for word in self.words):
                return int(path.parent.name)
        return None


def _resident_mib(pid: int) -> float | None:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * 4096 / 2**20
    except (OSError, IndexError):
        return None
