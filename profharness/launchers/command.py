"""A command line as a value: argv, environment changes and working directory.

Layers, hooks and containers wrap a command by returning a new one. Nothing is started here.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path


@dataclass(frozen=True)
class Command:
    """`env` holds only the differences from the harness's own environment (None unsets a name)."""

    argv: tuple[str, ...]
    env: Mapping[str, str | None] = field(default_factory=dict)
    cwd: Path | None = None

    def with_prefix(self, prefix: Sequence[str]) -> Command:
        """The same command run by another program: `prefix` stands before the argv."""
        return replace(self, argv=(*prefix, *self.argv))

    def with_env(self, changes: Mapping[str, str | None]) -> Command:
        """The same command with further environment differences; later ones win."""
        return replace(self, env={**self.env, **changes})

    def with_path_entry(self, name: str, entry: str, inherited: str | None) -> Command:
        """Put `entry` first in the colon-separated variable `name`; `inherited` is its value so
        far.
        """
        tail = self.env.get(name, inherited)
        return self.with_env({name: f"{entry}:{tail}" if tail else entry})

    def environment(self, base: Mapping[str, str]) -> dict[str, str]:
        """The complete environment for a start from `base`."""
        merged = {**base, **{name: value for name, value in self.env.items() if value is not None}}
        for name, value in self.env.items():
            if value is None:
                merged.pop(name, None)
        return merged

    def shell(self) -> str:
        """The argv as one line that a POSIX shell would read back."""
        return shlex.join(self.argv)
