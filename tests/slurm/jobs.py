"""Starting runs in jobs of the cluster, and what they left."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from profharness.rundir.jobs.records import JobEnd, read_end
from profharness.rundir.manifest import Manifest, decode
from tests.slurm.cluster import Cluster

_LIMIT_S = 400.0  # beside all other tests on few cores
NAME = Path(sys.executable).name
BOTH = ("--launcher", "slurm", "--ranks", "2", "--nodes", "2", "--telemetry", "off")


def words(*options: str, program: str) -> tuple[str, ...]:
    line = (sys.executable, "-m", "profharness", "run", *BOTH, *options)
    return (*line, "--", sys.executable, "-c", program)


def start(cluster: Cluster, folder: Path, line: tuple[str, ...]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        line,
        cwd=folder,
        env={**cluster.variables, "PROFHARNESS_OUTPUT": str(folder / "traces")},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def done(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Status, stdout, stderr."""
    try:
        out, err = process.communicate(timeout=_LIMIT_S)
    finally:
        process.kill()
    return process.returncode, out, err


def awaited(found: Callable[[], bool]) -> None:
    """Fails where it does not come to be."""
    until = time.monotonic() + _LIMIT_S
    while not found():
        assert time.monotonic() < until
        time.sleep(0.1)


def only_job(folder: Path) -> str:
    """The number of the one job that was submitted."""
    (script,) = (folder / "traces/slurm").glob("*.sh")
    return script.stem


def ending(folder: Path, job: str) -> JobEnd:
    """How it ended, once it has."""
    path = folder / f"traces/slurm/{job}.end"
    awaited(path.exists)
    found = read_end(path)
    assert found is not None
    return found


def manifest(folder: Path, name: str) -> Manifest:
    return decode((folder / "traces" / name / "manifest.json").read_bytes(), "manifest")


SLEEPS = "import time\nprint('begun', flush=True)\ntime.sleep(600)"


def begun(folder: Path) -> str:
    """The number of the job, once its ranks are at work."""
    awaited(lambda: len(list((folder / "traces/slurm").glob("*.json"))) == 1)
    job = only_job(folder)
    log = folder / f"traces/slurm/{job}.log"
    awaited(lambda: log.exists() and log.read_text().count("begun") == 2)
    return job


def findings(folder: Path, job: str) -> set[str]:
    """Those of the run's summary, which the waiting process wrote."""
    summary = json.loads((folder / f"traces/slurm-{job}-{NAME}/summary.json").read_text())
    return {found["id"] for found in summary["findings"]}


def submitted(cluster: Cluster, folder: Path, *words: str) -> str:
    """The number of a job that sbatch was given these words for."""
    line = ("sbatch", "--parsable", *words)
    status, out, err = done(start(cluster, folder, line))
    assert status == 0, err
    return out.strip()


def exit_status(cluster: Cluster, job: str) -> int:
    """With which code its script ended, once it has. `sbatch --wait` asks ever more rarely."""
    facts: dict[str, str] = {}

    def over() -> bool:
        said = cluster.client("scontrol", "show", "job", "-o", job)
        facts.update(re.findall(r"(\w+)=(\S+)", said))
        return facts["JobState"] in ("COMPLETED", "FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL")

    awaited(over)
    return int(facts["ExitCode"].partition(":")[0])
