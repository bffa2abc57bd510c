"""Members of a family (layers, readers, scans, telemetry sources, findings), by name and loaded on use.

Our own members stand as text in one literal tuple, `"package.module:Attribute"` or `"package.module"`, in their family's
folder. Others come from installed packages by entry points, each family under one group. A member that cannot be loaded
is a warning with its name, once, and `doctor` shows it; it never ends a command. Standard library only: the sampler's
process uses this, too.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import NamedTuple


class Broken(NamedTuple):
    """A member of another package that cannot be used, and why."""

    group: str
    name: str
    why: str


class Foreign(NamedTuple):
    """What other packages add to one family: their members by the entry points' names, and those that failed."""

    members: tuple[tuple[str, object], ...]
    broken: tuple[Broken, ...]


def load(name: str) -> object:
    """The member that `"package.module:Attribute"` or `"package.module"` names. Raises ImportError and AttributeError."""
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute) if attribute else import_module(module)


def foreign(group: str, needs: Sequence[str]) -> tuple[tuple[str, object], ...]:
    """What installed packages add under `group`, by name; each member must have the attributes that it `needs`."""
    return _ask(group, tuple(needs)).members


def broken(group: str, needs: Sequence[str]) -> tuple[Broken, ...]:
    """Those of `foreign` that cannot be used."""
    return _ask(group, tuple(needs)).broken


@cache
def _ask(group: str, needs: tuple[str, ...]) -> Foreign:
    """One look per process: it reads the metadata of every installed package."""
    from importlib.metadata import entry_points  # costs more than a small file's answer

    members: list[tuple[str, object]] = []
    failed: list[Broken] = []
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            member = point.load()
            lacking = [name for name in needs if not hasattr(member, name)]
        except Exception as error:  # noqa: BLE001  a stranger's module may raise anything
            failed.append(Broken(group, point.name, f"{type(error).__name__}: {error}"))
            continue
        if lacking:
            failed.append(Broken(group, point.name, f"it lacks {', '.join(lacking)}"))
        else:
            members.append((point.name, member))
    for one in failed:
        sys.stderr.write(
            f"warning: the plug-in {one.name} of {one.group} cannot be used ({one.why})\n"
        )
    return Foreign(tuple(members), tuple(failed))
