from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from profharness.errors import Unavailable, UsageError
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.serving import ready
from profharness.workers import server as server_process
from profharness.workers.server import Server, ServerSetup

READY = (
    "import os, pathlib, sys, time\nhere = pathlib.Path(os.environ['HERE'])\n"
    "(here / 'server-ready.json').write_text('{}')\n"
)
OBEDIENT = (
    READY + "while not (here / 'levels.jsonl').exists(): time.sleep(0.01)\nprint('stopped')\n"
)
DEAF = READY + "print('up', flush=True)\ntime.sleep(100)\n"
STUBBORN = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + DEAF


def server(
    folder: Path,
    program: str,
    *,
    managed: bool = True,
    find: Callable[[], bytes | None] = lambda: None,
) -> tuple[Server, list[int]]:
    pids: list[int] = []
    command = Command((sys.executable, "-c", program), {"HERE": str(folder)})
    setup = ServerSetup(
        folder=folder, label="t", plain=command, wrapped=command, managed=managed, find=find
    )
    return Server(setup, LocalLauncher(), pids.append, lambda: None), pids


def test_a_server_that_is_not_ready_yet_is_not_asked_but_told(tmp_path: Path) -> None:
    """It reads requests only once it serves: waiting for its answer would keep Ctrl-C waiting."""
    slow = (
        "import pathlib, os, time\n(pathlib.Path(os.environ['HERE']) / 'begun').touch()\n"
        "time.sleep(60)\n"
    )

    def interrupt() -> None:
        if (tmp_path / "begun").exists():
            raise KeyboardInterrupt

    command = Command((sys.executable, "-c", slow), {"HERE": str(tmp_path)})
    setup = ServerSetup(
        folder=tmp_path, label="t", plain=command, wrapped=command, managed=True, find=lambda: None
    )
    one = Server(setup, LocalLauncher(), lambda _: None, interrupt)
    with pytest.raises(KeyboardInterrupt):
        one.ensure(command)
    begun = time.monotonic()
    one.stop()
    assert time.monotonic() - begun < server_process.STOP_S / 2
    assert not (tmp_path / "levels.jsonl").exists()


def test_a_server_of_ours_ends_by_itself_when_asked(tmp_path: Path) -> None:
    one, pids = server(tmp_path, OBEDIENT)
    one.ensure(Command(()))
    one.ensure(Command(()))
    assert len(pids) == 1, "a server that runs is not started again"
    assert not one.died()
    one.stop()
    assert [outcome.exit_status for outcome in one.outcomes] == [0]
    assert not one.died(), "it was asked to end"
    assert "stopped" in (tmp_path / "server-1.log").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(("program", "status"), [(DEAF, 143), (STUBBORN, 137)])
def test_what_does_not_listen_is_ended_by_signals(
    tmp_path: Path, program: str, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_process, "STOP_S", 0.2)
    monkeypatch.setattr(server_process, "TERM_S", 1.0)
    one, _ = server(tmp_path, program)
    one.ensure(Command(()))
    while "up" not in (tmp_path / "server-1.log").read_text():
        time.sleep(0.01)
    one.stop()
    assert [outcome.exit_status for outcome in one.outcomes] == [status]


def test_a_server_that_ends_before_it_is_ready_says_why(tmp_path: Path) -> None:
    one, _ = server(
        tmp_path, "import sys; print('bind: address already in use', file=sys.stderr); sys.exit(1)"
    )
    with pytest.raises(
        Unavailable, match="the server exited 1 before it was ready: bind: address already in use"
    ):
        one.ensure(Command(()))


def test_a_server_that_refuses_says_so_in_its_words(tmp_path: Path) -> None:
    refusing = (
        "import os, pathlib, sys\n(pathlib.Path(os.environ['HERE']) / "
        '\'results-0-0.jsonl\').write_text(\'{"v":1,"kind":"error","error":"no model '
        'x","exit_status":2}\\n\')\nsys.exit(2)'
    )
    one, _ = server(tmp_path, refusing)
    with pytest.raises(UsageError, match="no model x"):
        one.ensure(Command(()))


def test_a_program_that_is_not_there_is_told_by_name(tmp_path: Path) -> None:
    setup = ServerSetup(
        folder=tmp_path,
        label="t",
        plain=Command(("no-such-server",)),
        wrapped=Command(("no-such-server",)),
        managed=False,
    )
    with pytest.raises(Unavailable, match="no-such-server: no such program"):
        Server(setup, LocalLauncher(), lambda _: None, lambda: None).ensure(Command(()))


def test_a_server_of_anothers_is_ready_when_it_answers(tmp_path: Path) -> None:
    """It answers once it runs: until a new process runs its own program, a Ctrl-C is lost."""
    up = tmp_path / "up"

    def find() -> bytes | None:
        return b'{"v":1,"http":"127.0.0.1:1"}' if up.exists() else None

    program = "import os, pathlib, time\n(pathlib.Path(os.environ['HERE']) / 'up').touch()\n"
    one, pids = server(tmp_path, program + "time.sleep(100)\n", managed=False, find=find)
    one.ensure(Command(()))
    described = ready.read(tmp_path / "server-ready.json")
    assert described.http == "127.0.0.1:1"
    assert [described.pid] == pids, "so that the load generator finds its CPU time"
    one.stop()
    assert [outcome.exit_status for outcome in one.outcomes] == [130], (
        "Ctrl-C, after which Python still writes what recorded it"
    )


def test_a_dead_server_is_noticed_and_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_process, "STOP_S", 0.2)
    one, pids = server(
        tmp_path,
        READY
        + (
            "print('illegal instruction', flush=True)\nos.kill(os.getpid(), "
            "4) if not (here / 'again').exists() else time.sleep(100)\n"
        ),
    )
    one.ensure(Command(()))
    while not one.died():
        time.sleep(0.01)
    assert one.reason() == "the server was killed by SIGILL: illegal instruction"
    (tmp_path / "again").touch()
    one.ensure(Command(()))
    assert len(pids) == 2
    assert not one.died()
    one.stop()
