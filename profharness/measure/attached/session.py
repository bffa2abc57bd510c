"""One attachment from start to end: start the tool, let the time pass, make it let go, wait for the
files.

Only the tool is ever told to end, and in its own way first: by a line on its stdin or by SIGINT.
One that does not answer gets a signal that it does not wait for, at last SIGKILL, but never while
it holds the process by ptrace: what it was doing there would be left half done, and the process
might crash.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from profharness.errors import Unavailable
from profharness.launchers import Outcome
from profharness.launchers.process_tree import tree
from profharness.layers.contract import Attachment
from profharness.measure.attached.target import Target, goes_on, mapped, tracer_of

POLL_S = 0.02
_GRACE_S = 5.0  # between one way of ending the tool and the next
_ATTACH_S = 20.0  # to wait for the tool's word that it has attached
_ATTACHING_S = 2.0  # in which SIGINT might end the tool before it has learnt to let go
_QUIET_S = 2.0  # that files must not change, where the process writes them behind the tool's end
_FIRST_FILE_S = 30.0  # it may have to make them of what it cached
_SIGNALS = {
    "interrupt": signal.SIGINT,
    "terminate": signal.SIGTERM,
    "kill": signal.SIGKILL,
}
_ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass(frozen=True)
class Order:
    """What to do: to which process, for how long, and where the tool's files and words go.

    The tool counts as hung when it is to end and has written nothing for `limit_s`. Without
    `attachment` time passes and nothing is started.
    """

    target: Target
    for_ns: int
    attachment: Attachment | None
    folder: Path
    log: Path
    limit_s: float = 300.0


@dataclass(frozen=True)
class Ended:
    """How it went. `outcome` is the tool's, with begin and end of the recording as its times
    (CLOCK_BOOTTIME).

    `lasted_ns` lies between them: from the start, or the tool's word that it has attached, to the
    moment at which it was told to let go or ended. `hung`: it had to be ended by a signal other
    than its own. `left` is the tool's process where it was left alone, holding the target.
    """

    outcome: Outcome
    lasted_ns: int
    target_goes_on: bool
    hung: bool = False
    left: int = 0


@dataclass
class _State:
    """What is known while it runs; times are CLOCK_MONOTONIC in seconds."""

    began: float
    since: float | None = None
    told: float | None = None
    lasted_s: float | None = None
    steps: list[str] = field(default_factory=list)
    signals: list[int] = field(default_factory=list)
    answered: int = 0
    size: int = -1
    active: float = 0.0
    hung: bool = False


def run(order: Order, poll: Callable[[], None]) -> Ended:
    """Attach, wait, let go. `poll` is called about every 20 ms.

    Raises Unavailable where the tool cannot be started.
    """
    start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    state = _State(began=time.monotonic())
    with _noting_signals(state.signals):
        if order.attachment is None:
            process = None
            state.since = state.began
            _let_pass(order, state, poll)
        else:
            process = _start(order)
            try:
                _watch(order, state, process, poll)
            except BaseException:  # whatever failed here, the process is let go of
                _let_go(order, state, process)
                raise
            if process.returncode == 0:
                _wait_for_files(order, state, poll)
    since = state.began if state.since is None else state.since
    lasted_s = time.monotonic() - since if state.lasted_s is None else state.lasted_s
    lasted_ns = round(lasted_s * 1e9)
    began_ns = start + round((since - state.began) * 1e9)
    code = 0 if process is None else process.returncode
    left = process.pid if process is not None and code is None else 0
    outcome = Outcome(
        0 if code is None else code if code >= 0 else 128 - code,
        0 if process is None else process.pid,
        began_ns,
        began_ns + lasted_ns,
        tuple(state.signals),
        overdue=state.hung,
        by_signal=code is not None and code < 0,
    )
    return Ended(outcome, lasted_ns, goes_on(order.target), state.hung, left)


def _let_pass(order: Order, state: _State, poll: Callable[[], None]) -> None:
    """The time, or what is left of the process's."""
    until = state.began + order.for_ns / 1e9
    while time.monotonic() < until and not state.signals and goes_on(order.target):
        poll()
        time.sleep(max(min(POLL_S, until - time.monotonic()), 0))


def _start(order: Order) -> subprocess.Popen[bytes]:
    assert order.attachment is not None
    command = order.attachment.command
    order.folder.mkdir(parents=True, exist_ok=True)
    order.log.parent.mkdir(parents=True, exist_ok=True)
    try:
        with order.log.open("ab") as log:
            # a group of its own: the terminal's Ctrl-C is ours to pass on
            return subprocess.Popen(
                command.argv,
                env=command.environment(os.environ),
                stdin=subprocess.DEVNULL if order.attachment.timed else subprocess.PIPE,
                stdout=log,
                stderr=log,
                process_group=0,
            )
    except OSError as error:
        raise Unavailable(
            f"{command.argv[0]}: cannot be started ({error.strerror})",
            "check that it is an executable of this machine",
        ) from error


def _watch(
    order: Order, state: _State, process: subprocess.Popen[bytes], poll: Callable[[], None]
) -> None:
    """Until the tool has ended, or must be left alone."""
    assert order.attachment is not None
    timed = order.attachment.timed
    ways = (
        ["wait", "interrupt", "terminate", "kill"]
        if timed
        else ["line", "interrupt", "terminate", "kill"]
    )
    while process.poll() is None:
        poll()
        now = time.monotonic()
        if state.since is None:
            state.since = _attached_at(order, state, now)
        if len(state.signals) > state.answered:
            state.answered = len(state.signals)
            if ways[:1] == ["wait"]:
                ways.pop(0)  # it is not waited for: the user wants the end now
            state.told = None
        elif state.told is None and not state.signals and not _is_over(order, state, now):
            time.sleep(POLL_S)
            continue
        if _is_due(order, state, now):
            if not ways:
                return
            if not _end(ways.pop(0), process, order, state):
                return
        time.sleep(POLL_S)
    if state.lasted_s is None:
        lasted_s = time.monotonic() - (state.since or state.began)
        state.lasted_s = min(lasted_s, order.for_ns / 1e9) if timed else lasted_s


def _attached_at(order: Order, state: _State, now: float) -> float | None:
    """When the recording began, as far as it can be told from outside."""
    assert order.attachment is not None
    if not order.attachment.attached:
        return state.began
    if re.search(order.attachment.attached, _said(order.log)):
        return now
    library = order.attachment.library
    if library and any(name.startswith(library) for name in mapped(order.target.pid)):
        return now
    return now if now - state.began > _ATTACH_S else None


def _is_over(order: Order, state: _State, now: float) -> bool:
    if not goes_on(order.target):
        return True
    return state.since is not None and now - state.since >= order.for_ns / 1e9


def _is_due(order: Order, state: _State, now: float) -> bool:
    """Whether the tool is to be told (once more) to end: at once, and then where it wrote nothing
    for some time.
    """
    assert order.attachment is not None
    if state.told is None:
        attaching = order.attachment.timed and now - state.began < _ATTACHING_S
        return not (state.signals and attaching)
    size = _size(order.folder)
    if size != state.size:
        state.size, state.active = size, now
    limit = order.limit_s if len(state.steps) == 1 else min(_GRACE_S, order.limit_s)
    return now - max(state.told, state.active) > limit


def _end(way: str, process: subprocess.Popen[bytes], order: Order, state: _State) -> bool:
    """End the tool in this way; False where that would harm the process it holds."""
    now = time.monotonic()
    if state.lasted_s is None:
        state.lasted_s = now - (state.since or now)
    if way == "line":
        with suppress(OSError):  # it ended in the meantime
            assert process.stdin is not None
            process.stdin.write(b"\n")
            process.stdin.close()
    elif way == "interrupt" and order.attachment is not None and order.attachment.timed:
        _signal(process, signal.SIGINT)
    elif way in _SIGNALS:
        state.hung = True
        if tracer_of(order.target.pid) in {one.pid for one in tree(process.pid)}:
            return False
        _signal(process, _SIGNALS[way])
    state.told = now
    state.size, state.active = _size(order.folder), now
    state.steps.append(way)
    return True


def _let_go(order: Order, state: _State, process: subprocess.Popen[bytes]) -> None:
    """Tell the tool to let go, and give it a moment for that."""
    assert order.attachment is not None
    _end("interrupt" if order.attachment.timed else "line", process, order, state)
    with suppress(subprocess.TimeoutExpired):
        process.wait(_GRACE_S)


def _signal(process: subprocess.Popen[bytes], number: int) -> None:
    """To the tool's own group, which we made; the target is in another one."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def _wait_for_files(order: Order, state: _State, poll: Callable[[], None]) -> None:
    """Until files that the process itself writes have come to rest."""
    assert order.attachment is not None
    if not order.attachment.late:
        return
    began = changed = time.monotonic()
    size, asked = _size(order.folder), len(state.signals)
    while goes_on(order.target) and len(state.signals) == asked:
        now = time.monotonic()
        if (grown := _size(order.folder)) != size:
            size, changed = grown, now
        if _has_journal(order.folder):
            changed = now
        quiet = now - changed
        if quiet > (_QUIET_S if size else _FIRST_FILE_S) or now - began > order.limit_s:
            return
        poll()
        time.sleep(POLL_S)


def _size(folder: Path) -> int:
    total = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # a file may vanish between two looks
            total += path.stat().st_size if path.is_file() else 0
    return total


def _has_journal(folder: Path) -> bool:
    """Whether a database is in the midst of a transaction."""
    return any(path.name.endswith(("-journal", "-wal")) for path in folder.rglob("*"))


def _said(log: Path) -> str:
    try:
        return log.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


@contextmanager
def _noting_signals(seen: list[int]) -> Iterator[None]:
    """Signals end the attachment and nothing else: they are noted, and reach neither the tool nor
    the process by themselves.
    """

    def note(number: int, _frame: FrameType | None) -> None:
        seen.append(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, note) for number in _ENDING}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
