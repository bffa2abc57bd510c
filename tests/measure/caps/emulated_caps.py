"""A node of one emulated MI250X (two dies, one cap), and a script that a cap slows down."""

from __future__ import annotations

import os
from pathlib import Path

from tests.telemetry.emulated import FIRST, Tree, mi250x

KEY = FIRST
BEFORE_W = 560
SCRIPT = """
import sys, time
import profharness_mark
cap = int(open(sys.argv[1]).read()) / 1e6
for _ in range(6):
    time.sleep(0.01 if cap >= 300 else 0.02)
    profharness_mark.step(items=10)
"""


class Node:
    """The tree, the file of its cap, where old caps are written down, and the environment of a run
    that sees all of it.
    """

    def __init__(self, folder: Path) -> None:
        self.tree: Tree = mi250x(folder / "sys")
        self.cap_file = next((self.tree.root / "bus/pci/devices" / FIRST / "hwmon").iterdir()) / (
            "power1_cap"
        )
        self.saved = folder / "caps"
        self.file = self.saved / f"{os.uname().nodename}.json"
        self.script = folder / "toy.py"
        self.script.write_text(SCRIPT)
        self.env = {
            **os.environ,
            "PROFHARNESS_SYSFS": str(self.tree.root),
            "PROFHARNESS_POWER_CAPS_DIR": str(self.saved),
        }

    @property
    def watts(self) -> float:
        return int(self.cap_file.read_text()) / 1e6

    def set(self, watts: float) -> None:
        self.cap_file.write_text(f"{round(watts * 1e6)}\n")

    def scan(self, root: Path, caps: str = "200,560", *more: str) -> tuple[str, ...]:
        """The words of a scan over the caps."""
        words = ("-o", str(root), "--scan", f"power-cap={caps}", "--repeats", "2", *more)
        return ("run", *words, "--", "python3", str(self.script), str(self.cap_file))
