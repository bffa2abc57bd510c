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
SITE = Path(__file__).parent / "stand_in_site"
TORCH = Path(__file__).parent / "stand_in_torch"
OPERATORS = 60  # of the model that the stand-in torch has
SCAN = (
    *("--device", "cpu", "--batch-sizes", "1", "--trials", "2", "--min-seconds", "0"),
    *("--warmup", "0", "--profile-trials", "1", "--telemetry", "off", "--quiet"),
)


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

    def scan(
        self, *flags: str, torch: bool = False, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        """A scan of one short point; its workers have the real torch, or the stand-in for it."""
        model = ("particlenet",) if torch else self._stand_in_model()
        return self.profharness(
            "run",
            *model,
            *SCAN,
            "--output",
            str(self.run_dir),
            *flags,
            OMP_NUM_THREADS="1",
            **variables,
        )

    def _stand_in_model(self) -> tuple[str, ...]:
        """The words for it, with a Python that has the stand-in torch and, as the stand-in tools
        give it to theirs, what records it.
        """
        model, python = self.folder / "model.pt", self.folder / "python"
        model.touch()
        python.write_text(
            f'#!/bin/sh\nSTAND_IN_OPERATORS={OPERATORS} PYTHONPATH="{TORCH}:{SITE}${{PYTHONPATH:+:$PYTHONPATH}}" '
            f'exec {sys.executable} "$@"\n'
        )
        python.chmod(0o755)
        return (
            *("--model", str(model), "--shape", "x:4", "--flops-per-item", "1"),
            *("--python", str(python)),
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
