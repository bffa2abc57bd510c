"""`--pmc` -> passes: names checked against the device's architecture, and packed by what each
hardware block can count.

The tables are data, wrappers/counters/<architecture>.toml. Counters are asked for by name or by the
name of a set; every set has a pass of its own, the other names are packed together in the order in
which they were given.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from profharness.errors import UsageError
from profharness.node.probe import Environment

ASSUMED = "gfx942"
"""The architecture that is planned for where no AMD device is seen."""

_REDUCED = re.compile(r"(_(sum|max|min|avr)|\[\d+\])$")
_MISSPELT = 0.9  # as alike as a name and its misspelling are
_OF_OTHER_NAME = {"SQC": "SQ"}  # blocks whose counters stand under another block's limit


class CounterTable(msgspec.Struct, frozen=True):
    """One architecture: limits per block, raw names, derived metrics with the raw counters that
    they need. One that is not `complete` leaves names that it does not hold to the tool.
    """

    architecture: str
    limits: dict[str, int]
    raw: dict[str, tuple[str, ...]]
    derived: dict[str, tuple[str, ...]] = {}
    accumulated: dict[str, tuple[str, ...]] = {}
    instead: dict[str, str] = {}
    sets: dict[str, tuple[str, ...]] = {}
    complete: bool = True

    def needs(self, name: str) -> tuple[str, ...] | None:
        """The raw counters behind a name; None for a name that this architecture does not have."""
        for table in (self.derived, self.accumulated):
            if name in table:
                return table[name]
        base = _REDUCED.sub("", name)
        return (
            (base,)
            if base not in self.instead and (base in self.raw["names"] or self.block(base))
            else None
        )

    def block(self, raw: str) -> str:
        """The hardware block of a raw counter, by how its name begins; empty for none that is
        known.
        """
        start = raw.partition("_")[0]
        block = _OF_OTHER_NAME.get(start, start)
        return block if block in self.limits and raw.isupper() else ""


@dataclass
class _Group:
    """Counters of one pass, and what they occupy."""

    names: list[str]
    raw: set[str]
    accumulated: int = 0


def groups(
    names: Sequence[str], environment: Environment, wrappers: Path
) -> tuple[tuple[str, ...], ...]:
    """The counters of each pass. Raises UsageError for a name that a device of this node does not
    have.

    Where the node's devices differ, a name must exist on each of them.
    """
    here = architectures(environment)
    known = [table for name in here if (table := load(wrappers, name)) is not None]
    if not known:  # devices without a table: the tool itself has to judge
        _check_no_set(names, here, wrappers)
        return (tuple(names),)
    found: list[tuple[str, ...]] = []
    loose: list[str] = []
    for name in names:
        if all(name in table.sets for table in known):
            found += _packed(known[0].sets[name], known[0])
        else:
            for table in known:
                _check(name, table, wrappers)
            loose.append(name)
    return (*found, *_packed(loose, known[0]))


def architectures(environment: Environment) -> tuple[str, ...]:
    """Those of the node's AMD devices, each once; the assumed one where there is none."""
    here = tuple(
        dict.fromkeys(
            device.architecture
            for device in environment.devices
            if device.kind == "rocm" and device.architecture
        )
    )
    return here or (ASSUMED,)


def assumption(environment: Environment) -> str:
    """What was taken for granted where no AMD device is seen; empty where one is."""
    seen = any(device.kind == "rocm" and device.architecture for device in environment.devices)
    return (
        ""
        if seen
        else (
            f"no AMD device is seen here: counters and passes are planned for {ASSUMED}, "
            "another device may refuse names or need more passes"
        )
    )


def load(wrappers: Path, architecture: str) -> CounterTable | None:
    """The table of one architecture; None where we have none."""
    path = wrappers / "counters" / f"{architecture}.toml"
    if not path.is_file():
        return None
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), CounterTable)


def _check_no_set(names: Sequence[str], here: Sequence[str], wrappers: Path) -> None:
    """Raises UsageError for the name of a set, which no tool knows, on devices without sets."""
    tables = _all_tables(wrappers)
    for name in names:
        having = [table.architecture for table in tables if name in table.sets]
        if having:
            raise UsageError(
                f"--pmc: {name} is a set of counters of {', '.join(having)}, "
                f"and {', '.join(here)} has no sets",
                "name counters one by one: `rocprofv3 --list-avail` shows those of the device",
            )


def _all_tables(wrappers: Path) -> list[CounterTable]:
    names = sorted(path.stem for path in (wrappers / "counters").glob("*.toml"))
    return [table for name in names if (table := load(wrappers, name)) is not None]


def _check(name: str, table: CounterTable, wrappers: Path) -> None:
    if table.needs(name) is not None:
        return
    base = _REDUCED.sub("", name)
    if name in table.instead or base in table.instead:
        raise UsageError(
            f"--pmc: {table.architecture} has no {name}",
            f"ask for {table.instead.get(name) or table.instead[base]}",
        )
    having = [
        other.architecture
        for other in _all_tables(wrappers)
        if name in other.sets
        or (table.complete and (name in other.derived or name in other.raw["names"]))
    ]
    if having:
        raise UsageError(
            f"--pmc: {table.architecture} has no counter or set {name!r}, "
            f"which is one of {', '.join(having)}",
            f"sets of {table.architecture}: {', '.join(table.sets)}; counters: see "
            "`rocprofv3 --list-avail`",
        )
    everything = (*table.sets, *table.derived, *table.accumulated, *table.raw["names"])
    near = difflib.get_close_matches(name, everything, 3, 0.6 if table.complete else _MISSPELT)
    if not near and not table.complete:
        return
    raise UsageError(
        f"--pmc: {table.architecture} has no counter or set {name!r}",
        f"did you mean {', '.join(near)}?"
        if near
        else f"sets: {', '.join(table.sets)}; counters: see `rocprofv3 --list-avail`",
    )


def _packed(names: Sequence[str], table: CounterTable) -> list[tuple[str, ...]]:
    """First fit, in the order given. A metric that fits nowhere, and one that the table does not
    hold, has a pass of its own, and the tool judges it.
    """
    packed: list[_Group] = []
    alone: list[tuple[str, ...]] = []
    for name in names:
        known = table.needs(name)
        if known is None:  # what it occupies is not known
            alone.append((name,))
            continue
        needs = set(known)
        accumulated = int(name in table.accumulated)
        fitting = next(
            (
                group
                for group in packed
                if _fits(group.raw | needs, group.accumulated + accumulated, table.limits, table)
            ),
            None,
        )
        if fitting is None:
            packed.append(_Group([name], needs, accumulated))
        else:
            fitting.names.append(name)
            fitting.raw |= needs
            fitting.accumulated += accumulated
    return [*(tuple(group.names) for group in packed), *alone]


def _fits(raw: set[str], accumulated: int, limits: Mapping[str, int], table: CounterTable) -> bool:
    used: dict[str, int] = {"SQ": accumulated}
    for counter in raw:
        block = table.block(counter)
        used[block] = used.get(block, 0) + 1
    return accumulated <= 1 and all(count <= limits.get(block, 1) for block, count in used.items())
