"""Many `profharness run` at once in one folder: each start has a directory of its own, and of those
that name the same directory one runs.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from random import Random

from profharness.rundir.manifest import Manifest
from profharness.rundir.paths import RunDir
from tests import started
from tests.faults.outcome import Outcome

FEWEST, MOST = 3, 8
SAME = 2
_WITHIN_S = 120.0
_TAKEN = 2  # the exit code of a usage error


def attempt(folder: Path, random: Random) -> Outcome:
    """Three to eight starts without --output, and two with the same one."""
    statuses = random.sample(range(3, 60), random.randint(FEWEST, MOST))
    wanted = [*((status, ()) for status in statuses), *((90 + n, ("-o", "same")) for n in (0, 1))]
    random.shuffle(wanted)
    processes = [(status, words, _start(folder, status, words)) for status, words in wanted]
    ended = [(status, words, *_ended(process)) for status, words, process in processes]
    faults = [
        f"a run ended with {found} in place of {status}: {said[-300:]}"
        for status, words, found, said in ended
        if not words and found != status
    ]
    same = [(status, found) for status, words, found, _ in ended if words]
    won = [status for status, found in same if found == status]
    if len(won) != 1 or sorted(found for _, found in same) != sorted([*won, _TAKEN]):
        faults.append(f"of two with the same --output: {same}")
    made = sorted((folder / "traces").iterdir())
    faults += _of_runs(made, statuses) + _of_runs([folder / "same"], won)
    ran = (folder / "ran").read_text().split()
    if sorted(ran) != sorted(map(str, [*statuses, *won])):
        faults.append(f"these workloads ran: {ran}")
    # two began within one second, and both with the same --output were alive at once
    return Outcome(hit=any(path.name.endswith("-2") for path in made), faults=tuple(faults))


def _start(folder: Path, status: int, words: tuple[str, ...]) -> subprocess.Popen[str]:
    argv = ["run", "--quiet", "--telemetry", "off", *words]
    workload = ["sh", "-c", f"echo {status} >> ran; exit {status}"]
    environment = {key: os.environ[key] for key in os.environ if key != "PROFHARNESS_OUTPUT"}
    return started.python(
        [sys.executable, "-m", "profharness", *argv, "--", *workload],
        started.COMMAND_LINE,
        cwd=folder,
        env=environment,
    )


def _ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    try:
        _, said = process.communicate(timeout=_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        _, said = process.communicate()
    return process.returncode, said


def _of_runs(folders: list[Path], statuses: list[int]) -> list[str]:
    """What is wrong with the runs that were made."""
    manifests = [RunDir.open(folder).read_manifest() for folder in folders]
    faults = [
        f"{folder.name}/{path.name} is left"
        for folder in folders
        for path in folder.iterdir()
        if "holder" in path.name
    ]
    found = sorted(_status(one) for one in manifests)
    if found != sorted(statuses):
        faults.append(f"the manifests name the statuses {found}, not {sorted(statuses)}")
    return faults


def _status(manifest: Manifest) -> int:
    """That of a run that is done; -1 for one that is not."""
    done = manifest.state == "done" and manifest.exit_status is not None
    return manifest.exit_status if done and manifest.exit_status is not None else -1
