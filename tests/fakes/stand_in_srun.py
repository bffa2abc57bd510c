"""A stand-in for Slurm's srun: starts the command once per task on this machine, with the variables
that tasks read; ends with the worst status.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path


def install(folder: Path) -> Path:
    """The folder, with the program in it, for PATH."""
    folder.mkdir(exist_ok=True)
    program = folder / "srun"
    program.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -S -E "{Path(__file__).resolve()}" "$@"\n'
    )
    program.chmod(0o755)
    return folder


def main(words: list[str]) -> int:
    tasks = 1
    while words and words[0].startswith("-"):
        option, _, value = words.pop(0).partition("=")
        if option == "--ntasks":
            tasks = int(value)
        elif option not in ("--gpus-per-task", "--cpus-per-task"):
            print(f"srun: unrecognized option '{option}'", file=sys.stderr)
            return 1
    common = {
        "SLURM_JOB_ID": "77",
        "SLURM_STEP_ID": "3",
        "SLURM_NTASKS": str(tasks),
        "SLURM_STEP_NUM_TASKS": str(tasks),
        "SLURMD_NODENAME": "n1",
    }
    started = [
        subprocess.Popen(
            words,
            env={**os.environ, **common, "SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank)},
        )
        for rank in range(tasks)
    ]
    statuses = [process.wait() for process in started]
    return max(status if status >= 0 else 128 - status for status in statuses)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
