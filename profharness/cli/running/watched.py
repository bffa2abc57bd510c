"""A job that is waited for: its progress on stderr, its answer on stdout, its end as exit code."""

from __future__ import annotations

import shlex
import time
from collections import deque
from pathlib import Path

from profharness.cli.running.answers import near
from profharness.cli.running.steps import tell
from profharness.cli.running.task_answers import report_array
from profharness.errors import ProfharnessError
from profharness.measure.batch import scheduler
from profharness.measure.batch.array_waiting import ArrayWatch
from profharness.measure.batch.waiting import Tell, Watch
from profharness.rundir.jobs.records import JobEnd, Submitted
from profharness.rundir.paths import MANIFEST
from profharness.rundir.shown.screen import mention

_LINES = 20
_CANCEL_S = 15.0


def watch(job: Submitted, *, as_json: bool, quiet: bool, cancels: bool) -> int:
    """Wait for the end of the job and show what its run says; the exit code of
    docs/how-to/slurm.md. With `cancels`, Ctrl-C cancels the job; otherwise it goes on.
    """

    def said(line: str) -> None:
        if not quiet:
            mention(f"profharness: {line}")

    if job.tasks:
        return _watch_array(job, said, quiet=quiet, cancels=cancels, as_json=as_json)
    watched = Watch(job, said)
    try:
        end = watched.wait()
    except KeyboardInterrupt:
        if cancels:
            _cancel(watched)
        else:
            mention(f"profharness: job {job.job} goes on; `scancel {job.job}` ends it")
        raise
    _answer(job, end, as_json=as_json, quiet=quiet)
    return end.exit_status


def _watch_array(job: Submitted, said: Tell, *, quiet: bool, cancels: bool, as_json: bool) -> int:
    """The same of an array: the exit code is that of the first task that failed."""
    try:
        ends = ArrayWatch(job, said).wait()
    except KeyboardInterrupt:
        why = scheduler.cancel(job.job) if cancels else ""
        what = "goes on" if not cancels else why or "is cancelled"
        mention(
            f"profharness: job {job.job}: {what}; `profharness report {near(Path(job.run))}` shows "
            "the tasks so far"
        )
        raise
    for task, end in sorted(ends.items()):
        if end.cause:
            mention(f"profharness: job {job.job}_{task} {end.in_words}")
    report_array(Path(job.run), as_json=as_json, quiet=quiet)
    return next((end.exit_status for _, end in sorted(ends.items()) if end.exit_status), 0)


def _cancel(watched: Watch) -> None:
    """Cancel the job, and say what is left of it."""
    job = watched.job
    if why := scheduler.cancel(job.job):
        mention(f"profharness: job {job.job} could not be cancelled: {why}")
        return
    until = time.monotonic() + _CANCEL_S
    while watched.ended() is None and time.monotonic() < until:
        time.sleep(0.2)
    run = Path(job.run)
    kept = f"; `profharness report {shlex.quote(near(run))}` shows what was recorded"
    mention(
        f"profharness: job {job.job} is cancelled" + (kept if (run / MANIFEST).is_file() else "")
    )


def _answer(job: Submitted, end: JobEnd, *, as_json: bool, quiet: bool) -> None:
    """The figures of the run; of a job that made none, the last that it printed."""
    if end.cause:
        mention(f"profharness: job {job.job} {end.in_words}")
    run, log = Path(job.run), Path(job.log)
    if (run / MANIFEST).is_file():
        try:
            tell(run, as_json=as_json, quiet=quiet, strict=False)
        except ProfharnessError as error:
            mention(
                f"profharness: the run is kept in {near(run)}, but it could not be analysed: "
                f"{error.message}"
            )
        return
    mention(f"profharness: job {job.job} made no run; all that it printed is in {near(log)}")
    try:
        with log.open(encoding="utf-8", errors="replace") as file:
            last = deque(file, _LINES)
    except OSError:
        return
    for line in last:
        mention(f"  {line.rstrip()}")
