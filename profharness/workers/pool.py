"""Serving the points of one pass: one worker process per backend, restarted after a death
(docs/run-directory.md#workers-protocol).

A worker that dies costs the point that it was on; the rest goes on in a new process. With `isolate`
each point has a process of its own.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from profharness.errors import InputError, ProfharnessError, Unavailable, UsageError
from profharness.launchers import Job, Launcher, Outcome, describe_exit
from profharness.launchers.command import Command
from profharness.rundir.paths import RunDir
from profharness.scans.contract import Point, PointOutput, WorkloadSpec
from profharness.workers import protocol as control

GRACE_S = 10.0
# exit statuses by which a worker says that it cannot serve any point: a wrong setting, a missing
# device or library, a bad file
REFUSALS: dict[int, type[ProfharnessError]] = {2: UsageError, 3: Unavailable, 4: InputError}


@dataclass(frozen=True)
class WorkerSetup:
    """All that is fixed for the workers of one backend in one pass.

    `wrap` puts the pass's layers around a command, `before` makes ready what they rely on, and
    `overdue` says when a tool outlived its workload for too long. `ended(pid)` is called when a
    worker has reported its end. `hopeless` is asked after an execution that ended early: whether
    any other would end the same way, so that the pass is given up. `subfolder` of the pass's
    control folder is the workers' own, and `role` the name of their settings. `blame` says what
    else ended the worker, such as the death of its server.
    """

    run: RunDir
    pass_name: str
    python: str
    wrappers: Path
    workload: WorkloadSpec
    backend: str
    cache_dir: Path
    wrap: Callable[[Command], Command]
    isolate: bool = False
    before: Callable[[Command], None] = lambda _: None
    overdue: Callable[[], bool] | None = None
    ended: Callable[[int], None] = lambda _: None
    hopeless: Callable[[], bool] = lambda: False
    subfolder: str = ""
    role: str = "spec"
    blame: Callable[[], str] = lambda: ""

    @property
    def folder(self) -> Path:
        """The control folder; made."""
        self.control.mkdir(parents=True, exist_ok=True)
        return self.control

    @property
    def control(self) -> Path:
        """The control folder, whether it is there or not."""
        return self.run.root / "control" / self.pass_name / self.subfolder

    @property
    def spec_path(self) -> Path:
        return self.control / f"{self.role}-{self.backend}.json"

    def write_spec(self) -> None:
        """The worker's static settings."""
        self.folder.mkdir(parents=True, exist_ok=True)
        control.write_spec(
            self.spec_path, {**self.workload.settings, "cache_dir": str(self.cache_dir)}
        )

    def command(self, first: Point | None = None, only: Point | None = None) -> Command:
        """The worker's command line under the pass's layers."""
        return self.wrap(self.plain(first, only))

    def plain(self, first: Point | None = None, only: Point | None = None) -> Command:
        """The worker's own command line."""
        return Command(
            (self.python, str(self.wrappers / self.workload.script)),
            {
                "PROFHARNESS_RUN_DIR": str(self.run.root),
                "PROFHARNESS_PASS": self.pass_name,
                "PROFHARNESS_CONTROL_DIR": str(self.control),
                "PROFHARNESS_SPEC": str(self.spec_path),
                "PROFHARNESS_ARTIFACTS": str(self.run.root / "artifacts"),
                "PROFHARNESS_PARENT_PID": str(os.getpid()),
                "PROFHARNESS_LAYERS": "",
                "PROFHARNESS_FIRST_POINT": first.key if first else None,
                "PROFHARNESS_ONLY_POINT": only.key if only else None,
            },
        )


@dataclass(frozen=True)
class Events:
    """What the engine wants to hear: a process started, time passed, a point has its output."""

    started: Callable[[int], None]
    poll: Callable[[], None]
    output: Callable[[Point, PointOutput], None]
    ended: Callable[[int], None] = lambda _: None


def serve(
    setup: WorkerSetup,
    points: Sequence[Point],
    launcher: Launcher,
    events: Events,
    more: More | None = None,
) -> list[Outcome]:
    """Have every point measured or marked failed; `events.output` is called once per point, in
    order.

    With `more` the list is not complete: each time that all points are measured it is asked for
    another one. Raises UsageError, Unavailable or InputError when the worker refuses before its
    first point, as it would for every point. A signal to the harness ends the pass after the
    running process, as does a hopeless execution; the points left are not reported.
    """
    setup.write_spec()
    feed = None if more is None else Feed(setup.folder / "points.jsonl", more)
    tail = control.ResultsTail(setup.folder)
    tail.skip_existing()
    outcomes: list[Outcome] = []
    left = list(points)
    while left:
        only = left[0] if setup.isolate else None
        first = left[0] if not setup.isolate and len(left) < len(points) else None
        log = setup.folder / f"worker-{setup.backend}-{len(outcomes) + 1}.log"
        book = _Book(
            left if only is None else left[:1], tail, replace(events, ended=setup.ended), feed
        )
        setup.before(setup.plain(first, only))
        outcome = launcher.run(
            Job(setup.command(first, only), log=log, grace_s=GRACE_S, overdue=setup.overdue),
            events.started,
            book.poll,
        )
        book.poll()
        outcomes.append(outcome)
        if outcome.interrupted or (outcome.exit_status != 0 and setup.hopeless()):
            break
        left = [*left, *book.added][len(book.finished) :]
        if (
            left
            and (outcome.exit_status != 0 or not book.finished)
            and not (setup.isolate and book.finished)
        ):
            left = _after_death(left, book, outcome, log, setup, events)
        if not left and feed is not None and (point := feed.take()) is not None:
            left = [point]
    return outcomes


More = Callable[[], Point | None]


class Feed:
    """Hands out the points of a list that results decide; each is written for the worker as it is
    taken, and the end is too.
    """

    def __init__(self, path: Path, more: More) -> None:
        self._path = path
        self._more = more
        self._ended = False

    def take(self) -> Point | None:
        """The next point; None once there are no more."""
        point = None if self._ended else self._more()
        if not self._ended:
            self._ended = point is None
            control.write_points(
                self._path,
                [] if point is None else [(point.key, point.params)],
                complete=self._ended,
            )
        return point


class _Book:
    """Follows one execution: which point it is on and which it has finished."""

    def __init__(
        self,
        points: Sequence[Point],
        tail: control.ResultsTail,
        events: Events,
        feed: Feed | None = None,
    ) -> None:
        self._points = {point.key: point for point in points}
        self._feed = feed
        self.added: list[Point] = []
        self._tail = tail
        self._events = events
        self._pid: int | None = None
        self._host = ""
        self._begun: dict[str, int | None] = {}
        self.finished: list[str] = []
        self.refusal: control.Line | None = None

    def poll(self) -> None:
        self._events.poll()
        for line in self._tail.poll():
            self._take(line)

    def current(self) -> str | None:
        """The point that was begun and not finished."""
        return next((key for key in self._begun if key not in self.finished), None)

    def _take(self, line: control.Line) -> None:
        if line.kind == "hello":
            self._pid, self._host = line.pid, line.host
        elif line.kind == "error":
            self.refusal = line
        elif line.kind == "bye" and not line.reason and self._pid is not None:
            self._events.ended(self._pid)
        elif line.kind == "begin":
            self._begun[line.id] = line.monotonic_ns
        elif line.kind == "result" and line.id in self._points and line.id not in self.finished:
            self.finished.append(line.id)
            self._events.output(self._points[line.id], self._output(line))
            if (
                self._feed is not None
                and len(self.finished) == len(self._points)
                and (point := self._feed.take()) is not None
            ):
                self._points[point.key] = point
                self.added.append(point)

    def _output(self, line: control.Line) -> PointOutput:
        notes = dict(line.notes)
        if line.flops_per_item is not None:
            notes["flops_per_item"] = repr(line.flops_per_item)
        return PointOutput(
            ok=line.ok,
            error=line.error,
            trials_ns=line.trials_ns,
            starts_ns=line.starts_ns,
            items=line.items,
            warmup_ns=line.warmup_ns,
            warmup_starts_ns=line.warmup_starts_ns,
            compile_ns=line.compile_ns,
            cold_cache=line.cold_cache,
            begin_ns=self._begun.get(line.id),
            end_ns=line.end_monotonic_ns,
            pid=self._pid,
            host=self._host,
            device=line.device,
            notes=notes,
            level=line.level,
            streams=line.streams,
        )


def _after_death(
    left: list[Point], book: _Book, outcome: Outcome, log: Path, setup: WorkerSetup, events: Events
) -> list[Point]:
    """What remains to be done after a worker ended early: the point that it was on is failed, with
    the reason.
    """
    ended = describe_exit(outcome.exit_status)
    blamed = setup.blame()
    culprit = book.current()
    if not book.finished and book.refusal is not None:
        _refuse(book.refusal, outcome, log)
    reason = book.refusal.error if book.refusal is not None else last_line(log)
    if culprit is None and blamed and book.finished:
        return left  # what ended it came between two points: a new one may go on
    if culprit is None:
        # it never began a point: a new process would end the same way
        for point in left:
            events.output(
                point,
                PointOutput(
                    ok=False,
                    begun=False,
                    error=blamed or f"the worker {ended} before its first point: {reason or log}",
                ),
            )
        return []
    at = next(number for number, point in enumerate(left) if point.key == culprit)
    words = last_line(setup.run.point_path(setup.pass_name, culprit) / "stderr.log")
    error = blamed or f"the worker {ended}" + (f": {words}" if words else "")
    events.output(left[at], PointOutput(ok=False, error=error))
    return left[at + 1 :]


def _refuse(said: control.Line, outcome: Outcome, log: Path) -> None:
    """Raise what the worker said, with the code that it gave (a tool around it may have changed the
    process's own).
    """
    kind = REFUSALS.get(outcome.exit_status if said.exit_status is None else said.exit_status)
    if kind is not None:
        raise kind(said.error, said.hint or f"the worker's own words are in {log}")


def last_line(path: Path) -> str:
    """The last line of a log that says something; empty when there is none."""
    try:
        lines = [
            line.strip() for line in path.read_text(errors="replace").splitlines() if line.strip()
        ]
    except OSError:
        return ""
    return lines[-1][:300] if lines else ""
