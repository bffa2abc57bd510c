"""Stand-ins for vendors' tools, made once from the tests of the old checkout, for both sides."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from answers.sides import Side

RELEASES = ("5.7", "6.1", "6.2", "6.3", "6.4", "7.0")
MAKE = """
import pathlib, sys
from tests.fakes import stand_in_apptainer, stand_in_srun, stand_in_tools
root = pathlib.Path(sys.argv[1])
for release in sys.argv[2:]:
    (root / release).mkdir()
    stand_in_tools.install(root / release, release)
stand_in_srun.install(root / "srun")
stand_in_apptainer.install(root / "apptainer")
stand_in_apptainer.image(root / "image.sif")
"""


class StandIns:
    """A folder with the tools of every ROCm release, srun, and apptainer with an image."""

    def __init__(self, folder: Path, old: Side) -> None:
        self.folder = folder
        self.nodes = folder / "nodes"
        if not (folder / "ready").is_file():
            self._make(old)

    def _make(self, old: Side) -> None:
        """The tests' own files alone are copied: tools never see the harness of a checkout."""
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(
            old.checkout / "tests" / "fakes",
            self.folder / "tests" / "fakes",
            ignore=shutil.ignore_patterns("__pycache__"),
        )
        (self.folder / "tests" / "__init__.py").touch()
        self.nodes.mkdir()
        words = [str(old.python), "-c", MAKE, str(self.nodes), *RELEASES]
        subprocess.run(words, cwd=self.folder, check=True)
        (self.folder / "ready").touch()

    @property
    def program(self) -> str:
        """A small program that launches kernels of the stand-in runtime."""
        return str(self.folder / "tests" / "fakes" / "stand_in_gpu_program.py")

    @property
    def image(self) -> str:
        return str(self.nodes / "image.sif")

    def node(self, release: str) -> tuple[tuple[str, str], ...]:
        """The variables of a node with the tools of that release."""
        return (("PATH", f"{self.nodes / release / f'rocm-{release}.1' / 'bin'}:{{PATH}}"),)

    def programs(self, *names: str) -> tuple[tuple[str, str], ...]:
        """The variables of a node with srun or apptainer."""
        return (("PATH", ":".join([*(str(self.nodes / name) for name in names), "{PATH}"])),)
