"""The helper beside a run: how long it is waited for on a machine that has no core for it."""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path

import pytest

from profharness.launchers import sidecar
from profharness.launchers.command import Command
from profharness.launchers.sidecar import Sidecar


def started(tmp_path: Path, script: str) -> Sidecar:
    return Sidecar(Command((sys.executable, "-S", "-E", "-c", script)), tmp_path / "log")


@pytest.mark.slow
def test_one_that_works_is_waited_for_and_one_that_sleeps_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sidecar, "READY_S", 1.0)
    marker = tmp_path / "ready"
    busy = started(
        tmp_path,
        "import time\nend = time.process_time() + 1.3\nwhile time.process_time() < end: pass\n"
        f"open({str(marker)!r}, 'w').close()\ntime.sleep(60)",
    )
    assert busy.wait_ready(marker)
    assert busy.stop() == -signal.SIGTERM
    idle = started(tmp_path, "import time; time.sleep(60)")
    before = time.monotonic()
    assert not idle.wait_ready(tmp_path / "never")
    assert time.monotonic() - before < 30  # of 60
    assert idle.stop() == -signal.SIGTERM


def test_one_that_will_not_end_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sidecar, "STOP_S", 0.2)
    marker = tmp_path / "ready"
    deaf = started(
        tmp_path,
        "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        f"open({str(marker)!r}, 'w').close()\ntime.sleep(60)",
    )
    assert deaf.wait_ready(marker)
    assert deaf.stop() == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(deaf.pid, 0)


def test_one_that_dies_is_known_at_once(tmp_path: Path) -> None:
    dead = started(tmp_path, "import sys; sys.exit('no such device')")
    assert not dead.wait_ready(tmp_path / "never")
    assert dead.last_words() == "no such device"
    assert dead.stop() == 1
