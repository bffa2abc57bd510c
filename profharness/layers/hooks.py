"""What all layers inside the process share: the hooks' environment, `--hook exec`, and finding
their files.
"""

from __future__ import annotations

import os
import re
from pathlib import Path

import msgspec

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import Where
from profharness.rundir.manifest import Artifact

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


def through_exec_hook(command: Command, where: Where) -> Command:
    """`python [options] script ...` becomes `python [options] exec_hook.py script ...` for `--hook
    exec`.

    Raises UsageError when the command does not start with a Python interpreter.
    """
    if not command.argv or not _PYTHON.search(Path(command.argv[0]).name):
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


class _Sidecar(msgspec.Struct):
    pid: int | None = None
    rank: int | None = None
    point: str = ""
    host: str = ""
    role: str = "trace"


def collect_files(
    where: Where, layer: str, suffixes: tuple[str, ...], file_format: str, known: frozenset[str]
) -> tuple[Artifact, ...]:
    """Every file of the layer with one of the suffixes, described by its sidecar where it has
    one.
    """
    root = where.artifacts / layer
    found: list[Artifact] = []
    for path in sorted(root.rglob("*")):
        relative = str(path.relative_to(where.run_root))
        if (
            not path.is_file()
            or relative in known
            or not path.name.endswith(suffixes)
            or path.name.endswith(".profharness.json")
        ):
            continue
        sidecar = _read_sidecar(path.with_name(path.name + ".profharness.json"))
        found.append(
            Artifact(
                path=relative,
                layer=layer,
                format=file_format if sidecar.role == "trace" else f"{file_format}-marker",
                pass_name=where.pass_name,
                host=sidecar.host or path.relative_to(root).parts[0],
                pid=sidecar.pid,
                rank=sidecar.rank,
                point=sidecar.point,
                size_bytes=path.stat().st_size,
            )
        )
    return tuple(found)


def _read_sidecar(path: Path) -> _Sidecar:
    """What the hook wrote beside its file; a missing or cut sidecar is an empty one (the reader
    reports it).
    """
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Sidecar)
    except (OSError, msgspec.DecodeError, msgspec.ValidationError):
        return _Sidecar()
