"""A host whose wall clock is set and that sleeps, when a test says so: see `stand_in_clock.c`."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).with_name("stand_in_clock.c")


@dataclass(frozen=True)
class Clock:
    """The clocks of every process that has `env`."""

    folder: Path

    @property
    def env(self) -> Mapping[str, str]:
        """The variables of the processes that live by these clocks."""
        if not self._shifts.exists():
            self._shifts.write_bytes(bytes(16))
        return {"LD_PRELOAD": str(self._library()), "CLOCK_SHIFTS": str(self._shifts)}

    def set_wall(self, seconds: float) -> None:
        """Set the wall clock forward, or back."""
        self._move(round(seconds * 1e9), 0)

    def sleep(self, seconds: float) -> None:
        """The host slept for so long: MONOTONIC stood still meanwhile."""
        self._move(round(seconds * 1e9), round(seconds * 1e9))

    @property
    def _shifts(self) -> Path:
        return self.folder / "shifts"

    def _move(self, *by_ns: int) -> None:
        with self._shifts.open("r+b") as file:
            moved = (
                one + more
                for one, more in zip(struct.unpack("<qq", file.read(16)), by_ns, strict=True)
            )
            file.seek(0)
            file.write(struct.pack("<qq", *moved))

    def _library(self) -> Path:
        made = self.folder / "clock.so"
        if not made.exists():
            partial = self.folder / f"clock.so.{os.getpid()}"
            subprocess.run(["gcc", "-O1", "-shared", "-fPIC", "-o", partial, _SOURCE], check=True)
            partial.rename(made)
        return made
