"""Members of a family (layers, readers, scans, telemetry sources, findings, tables of formulas), by
name and loaded on use.

Our own members stand as text in one literal tuple, `"package.module:Attribute"` or
`"package.module"`, in their family's folder. Others come from installed packages by entry points,
each family under one group. A member that cannot be loaded is a warning with its name, once, and
`doctor` shows it; it never ends a command. Standard library only: the sampler's process uses this,
too.
"""

from __future__ import annotations

import os
import re
import sys
from functools import cache
from importlib import import_module
from typing import NamedTuple

_GROUP = re.compile(rb"^\[(profharness\.\w+)\]", re.MULTILINE)


class Plugin(NamedTuple):
    """A member of another package: the entry point's group and name, and why it cannot be used."""

    group: str
    name: str
    why: str = ""


_SEEN: dict[str, list[Plugin]] = {}  # of the groups that were asked for in this process


def load(name: str) -> object:
    """The member that `"package.module:Attribute"` or `"package.module"` names.

    Raises ImportError and AttributeError.
    """
    module, _, attribute = name.partition(":")
    return getattr(import_module(module), attribute) if attribute else import_module(module)


@cache
def foreign(
    group: str, needs: tuple[str, ...], *, is_class: bool = False
) -> tuple[tuple[str, object], ...]:
    """What installed packages add under `group`, by the names of the entry points, in their order.

    Each member must have the attributes that it `needs`. Of a class the member is one instance.
    """
    _SEEN[group] = []
    if group not in _groups():
        return ()
    from importlib.metadata import entry_points  # costs more than the answer on a small file

    members: list[tuple[str, object]] = []
    for point in sorted(entry_points(group=group), key=lambda point: point.name):
        try:
            member = point.load()
            if lacking := [name for name in needs if not hasattr(member, name)]:
                raise TypeError(f"it lacks {', '.join(lacking)}")
            members.append((point.name, member() if is_class else member))
            _SEEN[group].append(Plugin(group, point.name))
        except Exception as error:  # noqa: BLE001  a stranger's module may raise anything
            why = f"{type(error).__name__}: {error}"
            _SEEN[group].append(Plugin(group, point.name, why))
            sys.stderr.write(
                f"warning: the plug-in {point.name} of {group} cannot be used ({why}); "
                "update or uninstall its package\n"
            )
    return tuple(members)


def plugins() -> tuple[Plugin, ...]:
    """All members of other packages that `foreign` met in this process, usable or not."""
    return tuple(plugin for group in sorted(_SEEN) for plugin in _SEEN[group])


@cache
def _groups() -> frozenset[str]:
    """The groups of ours that some installed package names: a look of a millisecond, where the
    standard library's own would import and read far more.
    """
    found: set[bytes] = set()
    for folder in dict.fromkeys(sys.path):
        try:
            with os.scandir(folder or ".") as entries:
                names = [e.path for e in entries if e.name.endswith((".dist-info", ".egg-info"))]
        except OSError:
            continue
        for name in names:
            found.update(_GROUP.findall(_text(f"{name}/entry_points.txt")))
    return frozenset(group.decode() for group in found)


def _text(path: str) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123  pathlib would cost the sampler its import
            return file.read()
    except OSError:
        return b""
