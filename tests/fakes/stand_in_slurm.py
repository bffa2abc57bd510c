"""A stand-in for Slurm: sbatch, squeue and scancel that run job scripts as processes of this
machine, each in a session of its own.

`install` makes the three programs in a folder. They keep one file per job, `job-<id>`, with the
process group of the script, and the script itself beside it. sbatch accepts only the directives
that are listed here, as the real one refuses unknown ones.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

KNOWN = ("-J", "-e", "-o", "-p", "-A", "-n", "-t", "--cpus-per-task", "--mem")


def install(folder: Path) -> Path:
    """The folder, with the programs in it, for PATH."""
    folder.mkdir(exist_ok=True)
    for name in ("sbatch", "squeue", "scancel"):
        program = folder / name
        program.write_text(
            f'#!/bin/sh\nexec "{sys.executable}" "{Path(__file__).resolve()}" {name} "{folder}" '
            '"$@"\n'
        )
        program.chmod(0o755)
    return folder


def jobs(folder: Path) -> dict[int, int]:
    """Process groups of the jobs that were submitted, by id."""
    return {
        int(path.name.partition("-")[2]): int(path.read_text())
        for path in sorted(folder.glob("job-*"))
        if path.suffix == ""
    }


def running(folder: Path) -> list[int]:
    """Ids of jobs of which a process lives."""
    return [number for number, group in jobs(folder).items() if _lives(group)]


def kill(folder: Path, number: int) -> None:
    """End a job as a failing node does."""
    os.killpg(jobs(folder)[number], signal.SIGKILL)


def _lives(group: int) -> bool:
    """Whether the group has a process that is no zombie."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[2]) == group and fields[0] != "Z":
            return True
    return False


def _submit(folder: Path, script: str) -> int:
    text = Path(script).read_text()
    for line in text.splitlines():
        if (
            line.startswith("#SBATCH ")
            and (option := line.split()[1].partition("=")[0]) not in KNOWN
        ):
            print(f"sbatch: unrecognized option '{option}'", file=sys.stderr)
            return 1
    number = 101
    while True:  # several are submitted at once
        kept = folder / f"job-{number}.sh"
        try:
            with kept.open("x") as file:
                file.write(text)
            break
        except FileExistsError:
            number += 1
    with (folder / f"job-{number}.log").open("wb") as log:
        process = subprocess.Popen(
            ["/bin/sh", str(kept)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            env={**os.environ, "SLURM_JOB_ID": str(number)},
        )
    written = folder / f"new-{number}"
    written.write_text(str(process.pid))
    written.rename(folder / f"job-{number}")
    print(f"Submitted batch job {number}")
    return 0


def _cancel(folder: Path, numbers: list[str]) -> int:
    status = 0
    for number in numbers:
        try:
            os.killpg(jobs(folder)[int(number)], signal.SIGTERM)
        except (KeyError, ProcessLookupError):
            print(
                f"scancel: error: Kill job error on job id {number}: Invalid job id specified",
                file=sys.stderr,
            )
            status = 1
    return status


def main(name: str, folder: Path, words: list[str]) -> int:
    if name == "sbatch":
        return _submit(folder, words[-1])
    if name == "scancel":
        return _cancel(folder, words)
    print("JOBID ST")
    for number in running(folder):
        print(f"{number} R")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3:]))
