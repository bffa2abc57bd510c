from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from profharness.errors import InputError, OutputExists, UsageError
from profharness.launchers.apptainer import Apptainer
from profharness.launchers.command import Command
from profharness.launchers.local import LocalLauncher
from profharness.measure.claims.holding import held
from profharness.measure.plan import RunPlan
from profharness.measure.planning import plan_run
from profharness.options.request import Request

HOLDS = """
import signal, sys, time
from pathlib import Path
from profharness.measure.claims.holding import held
from profharness.measure.planning import plan_run
from profharness.options.request import Request
with held(plan_run(Request(command=("true",), output=sys.argv[1]), dry=True, starts=False)):
    print("held", flush=True)
    time.sleep(60)
"""


def plan(output: str = "", *, share: bool = False) -> RunPlan:
    request = Request(command=("true",), output=output, share=share)
    return plan_run(request, dry=True, starts=False)


def test_names_by_the_time_are_made_in_one_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROFHARNESS_OUTPUT", str(tmp_path / "traces"))
    planned = plan()
    with held(planned) as first, held(planned) as second, held(planned) as third:
        assert [one.root.name for one in (first, second, third)] == [
            planned.root.name,
            f"{planned.root.name}-2",
            f"{planned.root.name}-3",
        ]
        assert all((one.root / "holder.json").is_file() for one in (first, second, third))
    assert not any((one.root / "holder.json").exists() for one in (first, second, third))


def test_a_container_sees_the_folder_that_was_made(tmp_path: Path) -> None:
    bound = Apptainer("image.sif", folders=(tmp_path, tmp_path / "run"))
    launcher = LocalLauncher(bound).renamed(tmp_path / "run", tmp_path / "run-2")
    argv = launcher.composed(Command(("true",))).argv
    assert f"--bind {tmp_path} --bind {tmp_path / 'run-2'} " in " ".join(argv)


def test_an_error_gives_the_directory_back(tmp_path: Path) -> None:
    def fail() -> None:
        with held(plan(str(tmp_path / "run"))) as placed:
            (placed.root / "manifest.json").touch()
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert [path.name for path in (tmp_path / "run").iterdir()] == ["manifest.json"]


def test_a_name_of_the_users_is_taken_once(tmp_path: Path) -> None:
    same = plan(str(tmp_path / "run"))
    with held(same) as placed:
        assert placed.root == tmp_path / "run"
        with pytest.raises(UsageError, match="this run has not ended"), held(same):
            raise AssertionError("two held it")
        (placed.root / "manifest.json").touch()
    with pytest.raises(OutputExists, match="not an empty folder"), held(same):
        raise AssertionError("it was written over")
    with held(same, again=True) as placed:
        assert (placed.root / "holder.json").is_file()
    absent = plan(str(tmp_path / "none"))
    with pytest.raises(InputError, match="no such run directory"), held(absent, again=True):
        raise AssertionError("there is no run")
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_between_two_programs_gives_the_directory_back(
    tmp_path: Path, number: signal.Signals
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDS, str(tmp_path / "run")], stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert os.listdir(tmp_path / "run") == ["holder.json"]  # noqa: PTH208  names alone
        process.send_signal(number)
        assert process.wait(30) == -number
    assert list((tmp_path / "run").iterdir()) == []
