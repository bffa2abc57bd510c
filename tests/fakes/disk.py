"""A disk that takes no more from the moment that a test chooses: see `stand_in_disk.c`."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

_SOURCE = Path(__file__).with_name("stand_in_disk.c")


@dataclass(frozen=True)
class Disk:
    """Writes below `below` fail with `number` in every process that has `env`, once it is full."""

    below: Path
    number: int
    folder: Path

    @property
    def switch(self) -> Path:
        """The file whose presence means that the disk takes no more."""
        return self.folder / "full"

    @property
    def env(self) -> Mapping[str, str]:
        """The variables of the processes that meet this disk."""
        return {
            "LD_PRELOAD": str(self._library()),
            "DISK_BELOW": str(self.below),
            "DISK_ERRNO": str(self.number),
            "DISK_SWITCH": str(self.switch),
        }

    def _library(self) -> Path:
        made = self.folder / "disk.so"
        if not made.exists():
            partial = self.folder / f"disk.so.{os.getpid()}"
            subprocess.run(
                ["gcc", "-O1", "-shared", "-fPIC", "-o", partial, _SOURCE, "-ldl"], check=True
            )
            partial.rename(made)
        return made
