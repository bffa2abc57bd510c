from __future__ import annotations

from pathlib import Path

import pytest

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import named
from profharness.layers.contract import Where
from profharness.layers.hooks import through_exec_hook, with_hooks

WHERE = Where(
    run_root=Path("/run"), pass_name="torch", wrappers=Path("/w"), host="n1", capture="steps=2:3"
)


def test_wrapping_returns_new_commands_and_keeps_the_old() -> None:
    plain = Command(("python", "train.py"), {"A": "1"})
    wrapped = plain.with_prefix(("tool", "--")).with_env({"A": None, "B": "2"})
    assert plain.argv == ("python", "train.py")
    assert wrapped.shell() == "tool -- python train.py"
    assert wrapped.environment({"A": "0", "C": "3"}) == {"B": "2", "C": "3"}


def test_path_entries_go_first_and_keep_what_was_there() -> None:
    assert Command(("x",)).with_path_entry("PYTHONPATH", "/h", "/u").env["PYTHONPATH"] == "/h:/u"
    assert (
        Command(("x",), {"PYTHONPATH": "/mine"})
        .with_path_entry("PYTHONPATH", "/h", "/u")
        .env["PYTHONPATH"]
        == "/h:/mine"
    )
    assert Command(("x",)).with_path_entry("PYTHONPATH", "/h", None).env["PYTHONPATH"] == "/h"


def test_two_hook_layers_share_one_set_of_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/user")
    command = with_hooks(Command(("python", "t.py")), WHERE)
    for layer in named(("torch", "onnxruntime")):
        command = layer.prepare(command, WHERE)
    assert command.env["PROFHARNESS_LAYERS"] == "torch,onnxruntime"
    assert command.env["PYTHONPATH"] == "/w/hooks:/w:/user"
    assert command.env["PROFHARNESS_CAPTURE"] == "steps=2:3"
    assert command.argv == ("python", "t.py")


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (
            ("python3.12", "-u", "t.py", "-x"),
            ("python3.12", "-u", "/w/hooks/exec_hook.py", "t.py", "-x"),
        ),
        (
            ("/env/bin/python", "-X", "dev", "-m", "pkg.train", "a"),
            ("/env/bin/python", "-X", "dev", "/w/hooks/exec_hook.py", "-m", "pkg.train", "a"),
        ),
        (("python", "-c", "print(1)"), ("python", "/w/hooks/exec_hook.py", "-c", "print(1)")),
    ],
)
def test_exec_hook_stands_before_the_script(
    argv: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    assert through_exec_hook(Command(argv), WHERE).argv == expected


def test_exec_hook_needs_a_python_command() -> None:
    with pytest.raises(UsageError, match="starts with python"):
        through_exec_hook(Command(("bash", "job.sh")), WHERE)
