"""Waiting for the tasks of a job array, as `waiting` does for a job: by the files that they leave,
and rarely by asking the scheduler.
"""

from __future__ import annotations

import os
import time
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from profharness.errors import InputError
from profharness.measure.batch import scheduler, waiting
from profharness.measure.batch.waiting import Tell, Watch
from profharness.rundir.jobs.records import JobEnd, Submitted, read_end


@dataclass
class ArrayWatch:
    """An array whose end is awaited. `tell` gets a line where more tasks have ended."""

    job: Submitted
    tell: Tell
    ends: dict[int, JobEnd] = field(default_factory=dict)
    told: int = -1

    @property
    def folder(self) -> Path:
        """Where the tasks say how they ended."""
        return Path(self.job.log).parent

    def wait(self) -> dict[int, JobEnd]:
        """How each task ended, once all have. Of those that could not say so the scheduler is
        asked.
        """
        look_s, asked_s, over_s = waiting.LOOK_S[0], -waiting.ASK_S, 0.0
        began_s = time.monotonic()
        while not self.ended():
            now_s = time.monotonic() - began_s
            if over_s and now_s - over_s > waiting.LATE_S:
                self._ask_for_the_others()
                break
            if now_s - asked_s >= waiting.ASK_S and not over_s:
                asked_s = now_s
                is_over = all(state.is_over for state in scheduler.states(self.job.job))
                over_s = now_s if is_over else 0.0
            time.sleep(look_s)
            look_s = min(look_s * 1.3, waiting.LOOK_S[1])
        return self.ends

    def ended(self) -> bool:
        """Whether all tasks have said how they ended; `ends` are those that have."""
        try:
            names = set(os.listdir(self.folder))  # noqa: PTH208  names
        except OSError:
            return False
        for task in self.job.tasks:
            name = f"{self.job.job}_{task}.end"
            if task not in self.ends and name in names:
                try:
                    end = read_end(self.folder / name)
                except InputError:
                    continue
                if end is not None:
                    self.ends[task] = end
        if len(self.ends) != self.told:
            self.told = len(self.ends)
            self.tell(f"job {self.job.job}: {self.told} of {len(self.job.tasks)} tasks have ended")
        return self.told == len(self.job.tasks)

    def _ask_for_the_others(self) -> None:
        for task in self.job.tasks:
            if task not in self.ends:
                self.ends[task] = Watch(self._of_task(task), self.tell).without_word()

    def _of_task(self, task: int) -> Submitted:
        """The task as a job of its own, which has a number for itself once it has begun."""
        name = f"{self.job.job}_{task}"
        number = scheduler.facts(name).get("JobId", "0")
        return msgspec.structs.replace(
            self.job,
            job=name,
            run=str(Path(self.job.run) / f"{task:04d}-{number}"),
            log=str(self.folder / f"{name}.log"),
            tasks=(),
        )
