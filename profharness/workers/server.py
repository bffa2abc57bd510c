"""The server of a served pass: started under the layers, waited for until it can serve, stopped so
that tools write their files.

It runs beside the load generator, in a process group of its own. Our own server is asked to stop
through its control folder; a foreign server (one that a user's command starts) gets SIGINT, as from
Ctrl-C.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.errors import ProfharnessError, Unavailable
from profharness.launchers import Job, Launcher, Outcome, describe_exit
from profharness.launchers.command import Command
from profharness.rundir.paths import write_atomic
from profharness.serving.ready import Ready
from profharness.workers import protocol as control
from profharness.workers.pool import REFUSALS, last_line

READY = "server-ready.json"
LEVELS = "levels.jsonl"
WINDOWS = "windows.jsonl"
READY_S = 600.0  # a compiled model may take minutes to load
LOOK_S = 0.02
MODELS_S = 120.0
STOP_S, TERM_S = 30.0, 10.0  # a tool around the server writes its files after the server's end


@dataclass(frozen=True)
class ServerSetup:
    """How one target's server is started. `plain` is its own command, `wrapped` the same under the
    layers.

    `managed`: it reads the control folder, where `prepare` leaves its settings. `find` asks a
    foreign server whether it is ready, and gives the contents of its ready file. `before` and
    `overdue` are the tool's, as for other workers.
    """

    folder: Path
    label: str
    plain: Command
    wrapped: Command
    managed: bool
    prepare: Callable[[], None] = lambda: None
    find: Callable[[], bytes | None] = lambda: None
    before: Callable[[Command], None] = lambda _: None
    overdue: Callable[[], bool] | None = None


class Server:
    """One target's server over a pass. It is started when it is first needed, and again after it
    died.
    """

    def __init__(
        self,
        setup: ServerSetup,
        launcher: Launcher,
        started: Callable[[int], None],
        poll: Callable[[], None],
    ) -> None:
        self._setup = setup
        self._launcher = launcher
        self._started = started
        self._poll = poll
        self._pid: int | None = None
        self._thread: threading.Thread | None = None
        self._error: Exception | None = None
        self._stopping = False
        self._since = 0.0
        self.outcomes: list[Outcome] = []

    def ensure(self, _client: Command) -> None:
        """Have it ready to serve. Raises what it said when it refuses, and Unavailable when it
        cannot be had.
        """
        if self._thread is not None and self._thread.is_alive():
            return
        for name in (READY, LEVELS, WINDOWS):
            (self._setup.folder / name).unlink(missing_ok=True)
        tail = control.ResultsTail(self._setup.folder)
        tail.skip_existing()
        self._setup.prepare()
        self._setup.before(self._setup.plain)
        self._thread = threading.Thread(
            target=self._run, name=f"server {self._setup.label}", daemon=True
        )
        self._thread.start()
        self._wait(tail)

    @property
    def log(self) -> Path:
        """What this execution printed."""
        return self._setup.folder / f"server-{len(self.outcomes) + 1}.log"

    def died(self) -> bool:
        """Whether it ended though nobody asked it to."""
        return self._thread is not None and not self._thread.is_alive() and not self._stopping

    def reason(self) -> str:
        """How it died, in words; empty while it runs."""
        if not self.died() or not self.outcomes:
            return ""
        words = last_line(self._setup.folder / f"server-{len(self.outcomes)}.log")
        return f"the server {describe_exit(self.outcomes[-1].exit_status)}" + (
            f": {words}" if words else ""
        )

    def stop(self) -> None:
        """End it: by request or SIGINT, by SIGTERM, by SIGKILL, whichever helps first. One that is
        not ready yet hears no request.
        """
        if self._thread is None or not self._thread.is_alive():
            return
        self._stopping = True
        try:
            self._stop()
        except BaseException:  # a second signal: nothing that was started may stay
            self._tell(signal.SIGKILL)
            raise

    def _stop(self) -> None:
        assert self._thread is not None
        if self._setup.managed and self._asked_to_stop():
            self._thread.join(STOP_S)
        # a program in Python that SIGTERM ends writes nothing; after SIGINT what records it still
        # does
        first = () if self._setup.managed else (signal.SIGINT,)
        for number in (*first, signal.SIGTERM, signal.SIGKILL):
            self._tell(number)
            self._thread.join(TERM_S)

    def _asked_to_stop(self) -> bool:
        """Whether it hears the request; a folder that takes no more is no reason to leave it."""
        if not (self._setup.folder / READY).exists():
            return False
        try:
            with (self._setup.folder / LEVELS).open("ab") as file:
                file.write(msgspec.json.encode({"v": control.VERSION, "kind": "stop"}) + b"\n")
        except OSError:
            return False
        return True

    def _tell(self, number: int) -> None:
        """Send a signal to its whole group, if it runs."""
        if self._thread is not None and self._thread.is_alive() and self._pid is not None:
            try:
                os.killpg(self._pid, number)
            except ProcessLookupError:
                pass  # it ended in the meantime

    def _run(self) -> None:
        """In a thread of its own: the launcher waits for the process."""
        setup, log = self._setup, self.log

        def started(pid: int) -> None:
            self._pid = pid
            self._started(pid)

        try:
            self.outcomes.append(
                self._launcher.run(
                    Job(setup.wrapped, log=log, grace_s=TERM_S, overdue=setup.overdue),
                    started,
                    lambda: None,
                )
            )
        except Exception as error:  # noqa: BLE001  whatever it is, the main thread raises it
            self._error = error

    def _wait(self, tail: control.ResultsTail) -> None:
        assert self._thread is not None
        deadline = time.monotonic() + READY_S
        ready, refusal = self._setup.folder / READY, None
        while not ready.exists():
            self._poll()
            alive = self._thread.is_alive()
            refusal = next((line for line in tail.poll() if line.kind == "error"), refusal)
            if not alive:
                raise self._refused(refusal)
            if not self._setup.managed and (found := self._found()) is not None:
                write_atomic(ready, self._with_pid(found))
            if time.monotonic() > deadline:
                raise Unavailable(
                    f"the server was not ready after {READY_S:.0f} s",
                    f"what it printed is in {self.log}",
                )
            time.sleep(LOOK_S if self._setup.managed else 10 * LOOK_S)

    def _found(self) -> bytes | None:
        """The ready file of a foreign server, which may answer before its models are loaded."""
        try:
            return self._setup.find()
        except Unavailable:
            self._since = self._since or time.monotonic()
            if time.monotonic() - self._since > MODELS_S:
                raise
            return None

    def _with_pid(self, found: bytes) -> bytes:
        """The ready file of a foreign server with the pid of the process that we started.

        The load generator reads the CPU time of that process.
        """
        described = msgspec.json.decode(found, type=Ready)
        return msgspec.json.encode(msgspec.structs.replace(described, pid=self._pid))

    def _refused(self, said: control.Line | None) -> Exception:
        """Why it ended before it could serve."""
        if self._error is not None:
            return self._error
        outcome, log = self.outcomes[-1], self._setup.folder / f"server-{len(self.outcomes)}.log"
        if said is not None:
            kind: type[ProfharnessError] = REFUSALS.get(
                outcome.exit_status if said.exit_status is None else said.exit_status, Unavailable
            )
            return kind(said.error, said.hint or f"the server's own words are in {log}")
        words = last_line(log)
        return Unavailable(
            f"the server {describe_exit(outcome.exit_status)} before it was ready"
            + (f": {words}" if words else ""),
            f"what it printed is in {log}",
        )
