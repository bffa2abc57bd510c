"""`wrappers/containers`: the definition file is built, and the scripts are run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.launchers.wrappers import wrappers_dir
from tests import real_apptainer

CONTAINERS = wrappers_dir() / "containers"


@pytest.fixture(scope="module")
def program() -> Path:
    return real_apptainer.require()


@pytest.mark.slow
def test_the_image_of_the_definition_file(program: Path, tmp_path: Path) -> None:
    """Its places for binds, its variables, its start script; and an environment packed for it."""
    image = real_apptainer.build(program, tmp_path)
    inside = ("--bind", real_apptainer.BIND, image)
    said = real_apptainer.started(program, "exec", *inside, "sh", "-c", "ls -d /pfs /flash; env")
    assert said.startswith("/flash\n/pfs\n")
    assert "PYTHONNOUSERSITE=1" in said.split("\n")
    assert real_apptainer.started(program, "run", *inside, "echo", "a b") == "a b\n"
    packed = tmp_path / "env.sqsh"
    subprocess.run(
        (CONTAINERS / "extend.sh", image, packed),
        env={**os.environ, "APPTAINER": str(program), "BINDS": "/usr", "TMPDIR": str(tmp_path)},
        check=True,
        capture_output=True,
        timeout=120,
    )
    bound = ("--bind", f"{packed}:/user-software:image-src=/", *inside)
    asked = ". /user-software/bin/activate && python -c 'import sys; print(sys.prefix)'"
    assert real_apptainer.started(program, "exec", *bound, "sh", "-c", asked) == "/user-software\n"


@pytest.mark.slow
def test_an_image_without_python_is_refused(program: Path, tmp_path: Path) -> None:
    """By the definition's own test, which runs last: all before it works without."""
    real_apptainer.build(program, tmp_path)
    root = real_apptainer.base(tmp_path / "bare")
    for name in ("bin", "lib", "lib64"):
        (root / "usr" / name).mkdir()
    for name in ("sh", "bash", "mkdir"):
        shutil.copy(shutil.which(name, path="/usr/bin") or "", root / "usr/bin" / name)
    libraries = ("/usr/lib", "/usr/lib64")
    failed = real_apptainer.build_with(program, root, tmp_path / "bare.sif", libraries)
    assert failed.returncode != 0
    assert "Running testscript" in failed.stderr
    assert "python3: not found" in failed.stderr


def test_the_job_on_lumi_says_what_the_command_line_takes(tmp_path: Path) -> None:
    """As a plan: it needs neither Slurm nor the image."""
    harness = tmp_path / "profharness"
    harness.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m profharness "$@"\n')
    harness.chmod(0o755)
    done = subprocess.run(
        ("bash", CONTAINERS / "lumi.sbatch", "python", "train.py"),
        env={
            **os.environ,
            "PROFHARNESS": str(harness),
            "PYTHONPATH": str(wrappers_dir().parent),
            "SLURM_JOB_ID": "7",
            "SLURM_NTASKS": "8",
            "BINDS": "/usr,/etc",
            "INIT": 'eval "$WITH_CONDA"',
            "OPTIONS": "--dry-run",
        },
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0].startswith("launcher        srun --ntasks=8 --mpi=none ")
    assert "ranks traced    0 of 8; the others run without layers" in lines
    (argv,) = (line for line in lines if line.startswith("  argv    apptainer exec "))
    assert "--bind /usr --bind /etc" in argv
    assert 'eval "$WITH_CONDA"' in done.stdout
    assert "export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID" in done.stdout
