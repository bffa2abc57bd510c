"""Waiting for a job, also for one that another process submitted: by the files that it leaves, and
rarely by asking the scheduler, which has many to answer.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.measure.batch import scheduler
from profharness.measure.batch.scheduler import JobState
from profharness.rundir.jobs.records import END, Cause, JobEnd, Submitted, read_end
from profharness.rundir.paths import write_atomic

ASK_S = 30.0
"""At most so often the scheduler is asked for a job."""
LOOK_S = (0.2, 2.0)
"""Seconds from one look at the folder to the next: at first, and at last."""
LATE_S = 10.0
"""How long the files of a job that is over may need to be seen here: a network file system shows
them late."""

_CAUSES: dict[str, Cause] = {
    "CANCELLED": "cancelled",
    "PREEMPTED": "cancelled",
    "TIMEOUT": "time-limit",
    "DEADLINE": "time-limit",
    "NODE_FAIL": "node-lost",
    "BOOT_FAIL": "node-lost",
}
STATUSES: dict[Cause, int] = {"time-limit": 143, "cancelled": 143, "node-lost": 1}
_EXIT = re.compile(r"(\d+):(\d+)")
Tell = Callable[[str], None]


@dataclass
class Watch:
    """A job whose end is awaited. `tell` gets a line where its state has changed."""

    job: Submitted
    tell: Tell
    state: JobState = field(default_factory=lambda: JobState(scheduler.UNKNOWN))

    @property
    def end_path(self) -> Path:
        """Where the job says how it ended."""
        return Path(self.job.log).with_suffix(".end")

    def wait(self) -> JobEnd:
        """How the job ended, once it has. Where it could not say so itself (its node is gone, or it
        was killed) the scheduler is asked, and what that knows is left in the job's place.
        """
        look_s, asked_s, over_s = LOOK_S[0], -ASK_S, 0.0
        began_s = time.monotonic()
        while (end := self.ended()) is None:
            now_s = time.monotonic() - began_s
            if over_s and now_s - over_s > LATE_S:
                return self.without_word()
            if now_s - asked_s >= ASK_S and not over_s:
                asked_s = now_s
                over_s = now_s if self._ask() else 0.0
            time.sleep(look_s)
            look_s = min(look_s * 1.3, LOOK_S[1])
        return end

    def ended(self) -> JobEnd | None:
        """What the job says of its end; None before. The folder is listed, since a network file
        system may remember for a minute that a file was not there.
        """
        try:
            if self.end_path.name not in os.listdir(self.end_path.parent):  # noqa: PTH208  names
                return None
        except OSError:
            return None
        try:
            return read_end(self.end_path)
        except InputError:
            return None

    def _ask(self) -> bool:
        """Whether the scheduler says that it is over."""
        state = scheduler.state(self.job.job)
        if state != self.state:
            self.tell(_in_words(self.job.job, state))
        self.state = state
        return state.is_over

    def without_word(self) -> JobEnd:
        """What the scheduler says of the end; it is left in the job's place."""
        facts = scheduler.facts(self.job.job)
        cause = _CAUSES.get(facts.get("JobState", self.state.word), "")
        codes = _EXIT.fullmatch(facts.get("ExitCode", ""))
        status = (int(codes[1]) or (128 + int(codes[2]) if codes[2] != "0" else 0)) if codes else 1
        nodes = facts.get("NodeList", self.state.nodes)
        nodes = "" if nodes == "(null)" else nodes
        end = JobEnd(
            job=self.job.job,
            cause=cause,
            exit_status=STATUSES.get(cause, status),
            nodes=nodes,
            lost=scheduler.lost(nodes) if cause == "node-lost" else "",
        )
        kept = _kept_in(Path(self.job.run))
        if kept is not None and kept.cause and not end.cause:
            end = msgspec.structs.replace(
                end, cause=kept.cause, exit_status=STATUSES.get(kept.cause, status)
            )
        leave(end, self.end_path, Path(self.job.run))
        return end


def _kept_in(run: Path) -> JobEnd | None:
    """What the job said in its run before it was killed."""
    try:
        return read_end(run / END)
    except InputError:
        return None


def leave(end: JobEnd, path: Path, run: Path) -> None:
    """Write how a job ended to where it would have done so itself; a folder that takes nothing is
    passed over.
    """
    data = msgspec.json.encode(end)
    for place in (path, run / END):
        if place.parent.is_dir():
            try:
                write_atomic(place, data)
            except OSError:
                continue


def _in_words(job: str, state: JobState) -> str:
    """`job 7 waits (Priority)`, `job 7 runs on n[1-2]`."""
    if state.word in ("PENDING", "CONFIGURING", "REQUEUED"):
        return f"job {job} waits" + (f" ({state.reason})" if state.reason else "")
    if state.word == "RUNNING":
        return f"job {job} runs on {state.nodes}"
    if state.word == scheduler.GONE:
        return f"job {job} has ended"
    if state.word == scheduler.UNKNOWN:
        return f"Slurm does not answer for job {job}; its files are watched"
    return f"job {job}: {state.word.lower()}"
