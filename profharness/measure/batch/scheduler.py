"""Slurm's clients: submit a job, ask for its state, cancel it. Each is asked with a time limit."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence

import msgspec

from profharness.errors import Unavailable

_CLIENT_S = 60.0
_NUMBER = re.compile(r"(\d+)(?:;\S*)?")
_FIELD = re.compile(r"(\w+)=(\S*)")
GONE = "GONE"
"""The state of a job that the controller has forgotten, some minutes after its end."""
UNKNOWN = "UNKNOWN"
"""The state of a job while its controller does not answer."""


class JobState(msgspec.Struct, frozen=True):
    """What the scheduler says: its word for the state, why the job waits, and its nodes."""

    word: str
    reason: str = ""
    nodes: str = ""

    @property
    def is_over(self) -> bool:
        """Whether no process of the job lives any more, or will."""
        return self.word == GONE or self.word in _OVER


_OVER = frozenset(
    {
        *("BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL"),
        *("OUT_OF_MEMORY", "PREEMPTED", "TIMEOUT", "REVOKED"),
    }
)


def require() -> None:
    """Raises Unavailable without Slurm."""
    missing = [name for name in ("sbatch", "squeue", "scancel") if shutil.which(name) is None]
    if missing:
        raise Unavailable(
            f"--launcher slurm: there is no {missing[0]} here",
            "start this where jobs are submitted, or leave it out for this node alone",
        )


def submit(script: str) -> str:
    """Hand a script to sbatch; the number of the job. Raises Unavailable where it is refused."""
    done = _client(("sbatch", "--parsable"), script)
    number = _NUMBER.fullmatch(done.stdout.strip())
    if done.returncode or number is None:
        raise Unavailable(
            f"sbatch refused the job: {_words(done)}",
            "see --account, --partition, --time-limit and the other options of "
            "`profharness run --help batch`",
        )
    return number[1]


def state(job: str) -> JobState:
    """What squeue says of a job."""
    return states(job)[0]


def states(job: str) -> tuple[JobState, ...]:
    """What squeue says of the tasks of an array, those that wait together in one; at least one."""
    try:
        done = _client(("squeue", "-h", "--states=all", "--format=%T|%r|%N", f"--jobs={job}"))
    except Unavailable:
        return (JobState(UNKNOWN),)
    if done.returncode:
        return (JobState(GONE if "Invalid job id" in done.stderr else UNKNOWN),)
    return tuple(map(_state, done.stdout.splitlines())) or (JobState(GONE),)


def _state(line: str) -> JobState:
    word, reason, nodes = (*line.split("|", 2), "", "")[:3]
    return JobState(word, "" if reason == "None" else reason, nodes)


def cancel(job: str) -> str:
    """Cancel a job; what spoke against it, empty where nothing did."""
    try:
        done = _client(("scancel", job))
    except Unavailable as error:
        return error.message
    return _words(done) if done.returncode else ""


def facts(job: str) -> dict[str, str]:
    """What scontrol knows of a job, by its names; nothing where it has forgotten it."""
    try:
        done = _client(("scontrol", "show", "job", "-o", job))
    except Unavailable:
        return {}
    return {} if done.returncode else dict(_FIELD.findall(done.stdout))


def lost(nodes: str) -> str:
    """Those of the nodes (a list as Slurm writes it) that are down, with commas between."""
    if not nodes:
        return ""
    try:
        done = _client(("sinfo", "-h", "-N", "--states=down", "--format=%N", f"--nodes={nodes}"))
    except Unavailable:
        return ""
    return "" if done.returncode else ",".join(sorted(set(done.stdout.split())))


def _client(words: Sequence[str], text: str = "") -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words, input=text, capture_output=True, text=True, timeout=_CLIENT_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise Unavailable(
            f"{words[0]} does not answer ({type(error).__name__})",
            "look whether Slurm's controller is up: scontrol ping",
        ) from error


def _words(done: subprocess.CompletedProcess[str]) -> str:
    """What a client complained of, in one line."""
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    words = [re.sub(r"^\w+: (error: )?", "", line) for line in lines]
    return "; ".join(words)[:400] or f"it ended with {done.returncode}"
