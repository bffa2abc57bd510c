"""What all layers inside the process share: the hooks' environment, and `--hook exec`."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers.contract import Where

_PYTHON = re.compile(r"(python|pypy)[0-9.]*$")
# interpreter options that take a value as the next argument
_WITH_VALUE = frozenset({"-W", "-X", "--check-hash-based-pycs"})


def with_hooks(command: Command, where: Where, layer: str | None = None) -> Command:
    """Let the hooks load in every Python process of the command; `layer` joins those already
    named.
    """
    asked = [name for name in (command.env.get("PROFHARNESS_LAYERS") or "").split(",") if name]
    hooked = command.with_env(
        {
            "PROFHARNESS_RUN_DIR": str(where.run_root),
            "PROFHARNESS_PASS": where.pass_name,
            "PROFHARNESS_HOOKS_DIR": str(where.hooks),
            "PROFHARNESS_ARTIFACTS": str(where.artifacts),
            "PROFHARNESS_CAPTURE": where.capture,
            "PROFHARNESS_WORKER": "1" if where.is_worker else "0",
            "PROFHARNESS_LAYERS": ",".join(
                [*asked, *([layer] if layer and layer not in asked else [])]
            ),
        }
    )
    if "PROFHARNESS_HOOKED" in command.env:
        return hooked
    return hooked.with_env({"PROFHARNESS_HOOKED": "1"}).with_path_entry(
        "PYTHONPATH", f"{where.wrappers / 'hooks'}:{where.wrappers}", os.environ.get("PYTHONPATH")
    )


def starts_python(argv: Sequence[str]) -> bool:
    """Whether a command starts with a Python interpreter, as `--hook exec` needs it."""
    return bool(argv) and _PYTHON.search(Path(argv[0]).name) is not None


def through_exec_hook(command: Command, where: Where) -> Command:
    """`python [options] script ...` becomes `python [options] exec_hook.py script ...` for `--hook
    exec`.

    Raises UsageError when the command does not start with a Python interpreter.
    """
    if not starts_python(command.argv):
        raise UsageError(
            "--hook exec needs a command that starts with python, "
            f"not {command.argv[0] if command.argv else 'nothing'!r}",
            "use the default --hook env, or name the python script itself",
        )
    at = 1
    while (
        at < len(command.argv)
        and command.argv[at].startswith("-")
        and command.argv[at] not in ("-m", "-c", "-")
    ):
        at += 2 if command.argv[at] in _WITH_VALUE else 1
    hook = str(where.wrappers / "hooks" / "exec_hook.py")
    return Command((*command.argv[:at], hook, *command.argv[at:]), command.env, command.cwd)
