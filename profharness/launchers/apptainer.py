"""Apptainer (formerly Singularity): a command inside of an image, where another Python and other
vendor tools may live. Pure.

The container is the outermost of what stands around a workload: the tools of the layers are those
of the image, and the hooks load inside. What the two sides share is bound at its own path, and
processes keep their numbers, so that nothing has to be translated. Clocks are the host's (facts
that the sampler outside relies on).
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from profharness.launchers.command import Command

# Joined to what the image sets, rather than put in its place.
_JOINED = frozenset({"PYTHONPATH"})
_CANNOT_BEGIN = "profharness: --container-init failed in the container"
NOT_BEGUN = 126  # a shell's status for a command that cannot be executed


@dataclass(frozen=True)
class Apptainer:
    """`program` is apptainer or singularity; `prelude` shell text that runs in the container first;
    `options` go to `verb`, exec or run.

    `inherited` is the host's PYTHONPATH, which the container has anyway. `folders` are bound at
    their own path, `binds` as they say, and `variables` are set inside unless the command sets
    them.
    """

    image: str
    program: str = "apptainer"
    prelude: str = ""
    options: tuple[str, ...] = ()
    folders: tuple[Path, ...] = ()
    inherited: str = ""
    cwd: Path | None = None
    binds: tuple[str, ...] = ()
    variables: Mapping[str, str] = field(default_factory=dict)
    verb: str = "exec"

    def around(self, command: Command) -> Command:
        """The command inside of the image, for this host to start."""
        handed = {
            name: value
            for name, value in {**self.variables, **command.env}.items()
            if value is not None and name not in _JOINED
        }
        prefix = "SINGULARITYENV_" if Path(self.program).name == "singularity" else "APPTAINERENV_"
        cwd = command.cwd or self.cwd
        folders = dict.fromkeys((*map(str, self.folders), *self.binds))
        binds = [word for bind in folders for word in ("--bind", bind)]
        argv = (
            self.program,
            self.verb,
            *self.options,
            *binds,
            *(("--pwd", str(cwd)) if cwd else ()),
            self.image,
            *self._inside(command),
        )
        return Command(argv, {f"{prefix}{name}": value for name, value in handed.items()}, cwd)

    def renamed(self, old: Path, new: Path) -> Apptainer:
        """The same, with the folder `new` bound in place of `old`."""
        bound = tuple(new if folder == old else folder for folder in self.folders)
        return replace(self, folders=bound)

    def _inside(self, command: Command) -> tuple[str, ...]:
        """The command, through a shell where there are lines to run first. Activating an
        environment takes bash more often than not.
        """
        lines = [f"unset {name}" for name, value in command.env.items() if value is None]
        for name in sorted(_JOINED & command.env.keys()):
            if (value := command.env[name]) is not None:
                own = value.removesuffix(f":{self.inherited}") if self.inherited else value
                lines.append(f"export {name}={shlex.quote(own)}${{{name}:+:${name}}}")
        if self.prelude:
            lines.insert(
                0,
                f"{{\n{self.prelude}\n}} || {{ echo {shlex.quote(_CANNOT_BEGIN)} >&2; "
                f"exit {NOT_BEGUN}; }}",
            )
        if not lines:
            return command.argv
        shell = "bash" if self.prelude else "sh"
        return (shell, "-c", "\n".join([*lines, 'exec "$@"']), shell, *command.argv)
