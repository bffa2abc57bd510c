"""Start `wrappers/profharness_workloads/replay/replay_torch.py`, and read its answers.

A call that crashes or never ends takes its process with it: it is named, and another process goes
on with the calls behind it. The harness itself never imports torch.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from subprocess import CalledProcessError

import msgspec

from profharness.errors import Unavailable
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.launchers.wrappers import wrappers_dir
from profharness.rundir.private.folders import private_folder
from profharness.trace.calls.plan import (
    CallTask,
    ProfilerOptions,
    ReplayLine,
    ReplayPlan,
    ThreadsBy,
)

START_S = 120.0  # to import torch on a busy machine
LEAST_S = 60.0  # for one call and its repetitions
NO_GPU = "sees no GPU"  # the script's words
_LINE = msgspec.json.Decoder(ReplayLine)


@dataclass(frozen=True)
class Asked:
    """How calls are to be run; the fields are those of `ReplayPlan`. `python` is the workload's,
    and `threads_by` what the number of threads follows.
    """

    device: str = "auto"
    python: str = ""
    threads: int | None = None
    threads_by: ThreadsBy = ""
    min_seconds: float = 0.5
    seed: int = 0
    memory_limit: int = 0
    profiler: ProfilerOptions = field(default_factory=ProfilerOptions)

    @property
    def limit_s(self) -> float:
        """How long one call with its repetitions may take."""
        return LEAST_S + 20 * self.min_seconds


@dataclass
class Answers:
    """What came back: who answered, the results, and why a call was not run, by its number."""

    hello: ReplayLine = field(default_factory=lambda: ReplayLine("hello"))
    results: dict[int, ReplayLine] = field(default_factory=dict)
    refused: dict[int, str] = field(default_factory=dict)

    def answered(self, number: int) -> bool:
        """Whether it is known what became of a call."""
        return number in self.results or number in self.refused


def replay(tasks: Sequence[CallTask], asked: Asked) -> Answers:
    """Run all calls. Raises Unavailable without torch or the device, and where no process can
    begin.
    """
    answers = Answers()
    with private_folder() as folder:
        left = tuple(tasks)
        while left:
            results = folder / f"results-{len(left)}.jsonl"
            path = write_plan(left, asked, results)
            ended = _ended(path, asked, len(left))
            begun = take(results, answers)
            if ended is not None:
                _blame(begun, ended, asked, answers)
            left = tuple(task for task in left if not answers.answered(task.id))
            if left and ended is None:
                break
    return answers


def write_plan(tasks: tuple[CallTask, ...], asked: Asked, results: Path, count: int = 0) -> Path:
    """The plan of one process as a file beside that of its results."""
    plan = ReplayPlan(
        device=asked.device,
        threads=asked.threads or 0,
        seed=asked.seed,
        min_seconds=asked.min_seconds,
        memory_limit=asked.memory_limit,
        limit_s=asked.limit_s,
        results=str(results),
        profiler=asked.profiler,
        calls=tasks,
        count=count,
    )
    path = results.with_suffix(".plan.json")
    path.write_bytes(msgspec.json.encode(plan))
    return path


def worker_words(asked: Asked, plan: Path) -> tuple[str, ...]:
    """The line that starts one process."""
    script = wrappers_dir() / "profharness_workloads" / "replay" / "replay_torch.py"
    return (asked.python or sys.executable, str(script), "--plan", str(plan))


def _ended(plan: Path, asked: Asked, count: int) -> Unavailable | None:
    """Run one process to its end; what went wrong, None for nothing."""
    try:
        LocalLauncher().capture(Command(worker_words(asked, plan)), START_S + count * asked.limit_s)
    except Unavailable as error:
        return error
    return None


def take(results: Path, answers: Answers) -> int | None:
    """Add the answers of one process; the number of the call that it began last without an
    answer.
    """
    begun = None
    for line in _lines(results):
        if line.kind == "hello":
            answers.hello = line
        elif line.kind == "begin":
            begun = line.id
        elif line.kind == "result":
            answers.results[line.id], begun = line, None
        elif line.kind == "refused":
            answers.refused[line.id], begun = line.error, None
    return begun


def _lines(results: Path) -> list[ReplayLine]:
    """The complete lines; one that a dying process cut off is left out."""
    try:
        data = results.read_bytes()
    except FileNotFoundError:
        return []
    found = []
    for raw in data[: data.rfind(b"\n") + 1].splitlines():
        try:
            found.append(_LINE.decode(raw))
        except (msgspec.DecodeError, msgspec.ValidationError):
            break
    return found


def _blame(begun: int | None, ended: Unavailable, asked: Asked, answers: Answers) -> None:
    """Name the call that ended a process. Raises Unavailable where it was none of them."""
    if begun is None:
        if NO_GPU in ended.message:
            raise Unavailable(
                ended.message.rpartition(" failed: ")[2],
                "run it where the trace was recorded; look at CUDA_VISIBLE_DEVICES and "
                "HIP_VISIBLE_DEVICES",
            ) from ended
        if "torch cannot be imported" in ended.message:
            raise Unavailable(
                ended.message.rpartition(" failed: ")[2],
                "install torch for it, or name the workload's python with --python",
            ) from ended
        raise ended
    answers.refused[begun] = _how(ended, asked)


def _how(ended: Unavailable, asked: Asked) -> str:
    """How a call ended its process, in words."""
    cause = ended.__cause__
    status = cause.returncode if isinstance(cause, CalledProcessError) else None
    number = None if status is None else -status if status < 0 else status - 128
    if status is None or number == signal.SIGALRM:
        return f"it was stopped after {asked.limit_s:.0f} s"
    if number in set(signal.Signals):
        return f"it ended its process by {signal.Signals(number).name}"
    return f"it ended its process with status {status}"
