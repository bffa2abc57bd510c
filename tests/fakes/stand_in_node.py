"""A node with the stand-in tools of one ROCm release, on which profharness is started as a user
would.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from profharness.analysis.run import kernel_pass as passes
from profharness.rundir.manifest import Manifest, decode
from profharness.trace.model import Trace
from profharness.understand import report_run as understand
from tests import started
from tests.fakes.stand_in_tools import install

PROGRAM = Path(__file__).parent / "stand_in_gpu_program.py"


class Node:
    """A node with the tools of one release, where runs are started as a user would."""

    def __init__(self, folder: Path, release: str, *, roctx: bool = False) -> None:
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.bin = install(folder, release, roctx=roctx)
        self.run_dir = folder / "run"

    def profharness(self, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
        clean = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PROFHARNESS", "STAND_IN", "SLURM", "ROCM"))
        }
        return started.run(
            *words,
            cwd=self.folder,
            env={**clean, "PATH": f"{self.bin}:{os.environ['PATH']}", **variables},
        )

    def run(
        self, *flags: str, program: tuple[str, ...] = (), **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return self.profharness(
            "run",
            "--telemetry",
            "off",
            "--output",
            str(self.run_dir),
            *flags,
            "--",
            sys.executable,
            str(PROGRAM),
            *program,
            **variables,
        )

    @property
    def manifest(self) -> Manifest:
        return decode((self.run_dir / "manifest.json").read_bytes(), "manifest")

    @property
    def findings(self) -> list[str]:
        return [found.id for found in self.manifest.findings]

    @property
    def trace(self) -> Trace:
        """All records of the run, on its clock."""
        return understand.load([self.run_dir]).trace

    def kernels(self) -> tuple[str | None, int, int]:
        """The pass that speaks for kernels, how many it holds, and the sum of their durations."""
        chosen, trace = passes.choose(understand.load([self.run_dir]).trace)
        return chosen, len(trace.kernels), int(trace.kernels.dur_ns.sum())
