"""The run directory of a plan: made, and held from the first file to the last one."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType

from profharness.errors import OutputExists
from profharness.measure.claims import jobs
from profharness.measure.meeting import joining
from profharness.measure.meeting.board import Board
from profharness.measure.plan import RunPlan
from profharness.rundir.claims import holder, new_folders
from profharness.rundir.claims.holder import Claim, Claimant
from profharness.rundir.outputs import unwritable
from profharness.rundir.paths import RunDir

_ENDING = (signal.SIGTERM, signal.SIGHUP)


@contextmanager
def held(run_plan: RunPlan, *, again: bool = False, take_over: bool = False) -> Iterator[RunPlan]:
    """Make the directory (`again`: it is there) and hold it within the block.

    The plan that comes back has the directory's name: a name that was chosen by the time may be
    taken meanwhile, and a step of a job may hold several runs. Of several ranks the first one makes
    and holds the directory for all, and the others join it.

    Raises OutputExists for a place that is taken, UsageError where another process holds it or
    nothing can be written, InputError (`again`) for what is no run.
    """
    with _word_of_leader(run_plan):
        if not run_plan.rank.leads:
            joined = joining.join(run_plan)
            if not joined.rank.apart:
                yield joined
                return
            run_plan = joined
        with _led(run_plan, again=again, take_over=take_over) as placed:
            yield placed


@contextmanager
def _word_of_leader(run_plan: RunPlan) -> Iterator[None]:
    """While it lives, the leader of a node tells the other ranks of the node what it knows."""
    if run_plan.rank.world == 1 or not run_plan.rank.leads_node:
        yield
        return
    board = Board.of(run_plan)
    board.say()
    try:
        yield
    finally:
        board.remove()


@contextmanager
def _led(run_plan: RunPlan, *, again: bool, take_over: bool) -> Iterator[RunPlan]:
    placed = _opened(run_plan) if again else _placed(run_plan)
    claim = holder.claim(placed.root, _claimant(take_over=take_over))
    try:
        if not again and new_folders.is_taken(placed.root):
            # by a run that began and ended between our look and our claim
            raise OutputExists(
                f"{placed.root} exists and is not an empty folder", "name another with --output"
            )
        with _released_by_signals(claim):
            yield placed
    finally:
        claim.release()


def _opened(run_plan: RunPlan) -> RunPlan:
    RunDir.open(run_plan.root)
    return run_plan


def _placed(run_plan: RunPlan) -> RunPlan:
    """The plan with a directory that was made for it."""
    request = run_plan.request
    if request.output and not run_plan.rank.apart:  # the name is the user's
        RunDir.create(run_plan.root, shared=request.share)
        return run_plan
    return run_plan.at(next_of(run_plan.root, shared=request.share))


def next_of(first: Path, *, shared: bool) -> Path:
    """Make the folder of the name `first`, or the next one that is free: of several starts at once
    each gets its own. Raises UsageError.
    """
    try:
        return new_folders.make_next(first, shared=shared)
    except OSError as error:
        raise unwritable(first, error, "name another place with --output") from error


def _claimant(*, take_over: bool) -> Claimant:
    own = jobs.own_job(os.environ)
    return Claimant(
        holder.identify(*own), lambda other: jobs.is_over(other, own), take_over=take_over
    )


@contextmanager
def _released_by_signals(claim: Claim) -> Iterator[None]:
    """A signal that ends this process between two others' (while one runs, it is passed on to
    that) gives the directory back first. The process ends by it all the same.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def end(number: int, _frame: FrameType | None) -> None:
        claim.release()
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    ours = [number for number in _ENDING if signal.getsignal(number) is signal.SIG_DFL]
    for number in ours:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)
