from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from profharness.cli.running.consent import require_consent
from profharness.errors import UsageError
from profharness.options.request import Request


class Terminal(io.StringIO):
    """A stand-in for a terminal on which somebody types."""

    def isatty(self) -> bool:
        return True


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Request:
    def started(*words: object, **_: object) -> None:
        raise AssertionError(f"{words} was started to show what would be started")

    monkeypatch.setattr(subprocess, "Popen", started)
    return Request(
        python="/theirs/python", batch_sizes=(1, 2), profile=("torch",), output=str(tmp_path / "r")
    )


def ask(
    recorded: Request, typed: str | None, monkeypatch: pytest.MonkeyPatch, *, agreed: bool = False
) -> str:
    said = Terminal()
    monkeypatch.setattr(sys, "stderr", said)
    monkeypatch.setattr(sys, "stdin", io.StringIO() if typed is None else Terminal(typed))
    try:
        require_consent(recorded, Path(recorded.output), agreed=agreed)
    except UsageError as error:
        return f"{said.getvalue()}\n{error.message}"
    return said.getvalue() + "\nagreed"


@pytest.mark.parametrize("typed", ["y\n", "YES\n", " y \n"])
def test_what_is_started_is_shown_and_agreed_to(
    recorded: Request, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    said = ask(recorded, typed, monkeypatch)
    assert said.endswith("agreed")
    assert "has no seal of yours" in said
    assert "argv    /theirs/python" in said
    assert "env     PROFHARNESS_" in said
    assert said.count("Start this? [y/N]") == 1


@pytest.mark.parametrize("typed", ["n\n", "\n", "", "yeah no\n"])
def test_nothing_else_is_an_agreement(
    recorded: Request, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    assert "nothing was started" in ask(recorded, typed, monkeypatch)


def test_what_stands_in_no_command_line_is_shown_too(
    recorded: Request, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    model = tmp_path / "theirs\x1b[2K.pt"
    model.touch()
    theirs = msgspec.structs.replace(recorded, model=str(model), shape={"x": (4,)})
    shown = [line for line in ask(theirs, "n\n", monkeypatch).splitlines() if "  with " in line]
    assert f"  with    --model {tmp_path}/theirs\\x1b[2K.pt" in shown
    assert "  with    --batch-sizes 1,2" in shown
    assert not any("--output" in line or "--trials" in line for line in shown), shown


def test_where_nobody_can_be_asked_the_line_must_say_so(
    recorded: Request, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "nobody can be asked" in ask(recorded, None, monkeypatch)
    said = ask(recorded, None, monkeypatch, agreed=True)
    assert said.endswith("agreed")
    assert "argv    /theirs/python" in said, "it is shown all the same"


def test_the_model_and_the_inputs_are_shown_which_no_command_line_names(
    recorded: Request, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, inputs = tmp_path / "theirs\u202e.pt", tmp_path / "theirs.npz"
    for path in (model, inputs):
        path.touch()
    asked = msgspec.structs.replace(
        recorded, model=str(model), inputs=str(inputs), shape={"x": (16,)}
    )
    said = ask(asked, None, monkeypatch)
    assert f"--model {tmp_path}/theirs\\u202e.pt\n" in said
    assert f"--inputs {inputs}\n" in said
    assert "--telemetry-hz" not in said, "what is as it always is says nothing"


def test_the_name_of_the_folder_begins_no_line_of_what_is_agreed_to(
    recorded: Request, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    here = tmp_path / "h\nargv    forged"
    here.mkdir()
    monkeypatch.chdir(here)
    named = msgspec.structs.replace(recorded, output=str(here / "r\nargv    forged"))
    assert "\nargv    forged" not in ask(named, None, monkeypatch, agreed=True)
