"""Tables of formulas: TOML files read into typed rows, and the row that is meant for an operator.

Our own table ships in the package; those of installed packages (entry points of the group
`profharness.formulas`, each an object with `read_text()`, such as a path) and those that a user
names are read after it, and of several rows for one name the latest one wins. The format is
documented in docs/formulas.md.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import msgspec

from profharness import families
from profharness.analysis.operators.element_types import names as type_names
from profharness.analysis.operators.entries import AnyEntry, Arithmetic, Matmul
from profharness.analysis.operators.expressions import Expression, ExpressionError, compiled
from profharness.errors import InputError
from profharness.families import Plugin

GROUP = "profharness.formulas"
OWN = Path(__file__).with_name("formulas.toml")
_HINT = "docs/formulas.md describes the keys of every kind"
_TEXTS = ("flops", "bytes", "flops_full")


@dataclass(frozen=True)
class Row:
    """One entry of a table, ready to use. `label` names it in messages."""

    entry: AnyEntry
    label: str
    patterns: tuple[re.Pattern[str], ...] = ()
    expressions: dict[str, Expression] = field(default_factory=dict)

    def takes(self, arguments: int) -> bool:
        """Whether it expects this number of recorded arguments."""
        since, until = self.entry.since, self.entry.until
        return (since is None or arguments >= since) and (until is None or arguments <= until)

    def found_in(self, name: str) -> re.Match[str] | None:
        """The match of its regular expressions in a name."""
        matches = (pattern.search(name) for pattern in self.patterns)
        return next((found for found in matches if found is not None), None)


@dataclass(frozen=True)
class Table:
    """Rows by exact name, and those with regular expressions, latest first; those of operators and
    those of kernels apart. `refused` are the tables of other packages that cannot be used.
    """

    rows: tuple[Row, ...]
    refused: tuple[Plugin, ...] = ()
    _found: dict[tuple[str, bool], tuple[Row, ...]] = field(default_factory=dict, repr=False)
    _exact: dict[str, list[int]] = field(default_factory=dict, repr=False)
    _searched: dict[bool, list[int]] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        for place, row in enumerate(self.rows):
            for name in row.entry.names:
                self._exact.setdefault(name, []).append(place)
            if row.patterns:
                self._searched.setdefault(row.entry.kernel, []).append(place)

    def meant_for(self, name: str, *, kernel: bool = False) -> tuple[Row, ...]:
        """The rows for an operator (or a kernel) of this name, the one that wins first."""
        known = self._found.get((name, kernel))
        if known is not None:
            return known
        # a file may hold a new name in every record, and most rows know theirs exactly
        places = {at for at in self._exact.get(name, ()) if self.rows[at].entry.kernel is kernel}
        places.update(
            at
            for at in self._searched.get(kernel, ())
            if at not in places and self.rows[at].found_in(name) is not None
        )
        found = tuple(self.rows[at] for at in sorted(places, reverse=True))
        self._found[name, kernel] = found
        return found


@dataclass(frozen=True)
class TableText:
    """The TOML of one table, and the file that it comes from: as text it can be sent to processes
    that do not see the file.
    """

    source: str
    text: str


def load(texts: Sequence[TableText] = ()) -> Table:
    """Our table, those of installed packages, and these, in this order.

    Raises InputError for a text that is no table of formulas; a table of an installed package that
    is none is left out and named in `refused`.
    """
    rows = list(own())
    refused: list[Plugin] = []
    for name, member in families.foreign(GROUP, ("read_text",)):
        try:
            rows.extend(read(_text_of(member), f"the plug-in {name}"))
        except InputError as error:
            refused.append(Plugin(GROUP, name, error.message))
            sys.stderr.write(
                f"warning: the table of formulas of the plug-in {name} cannot be used "
                f"({error.message}); update or uninstall its package\n"
            )
    for text in texts:
        rows.extend(read(text.text, text.source))
    return Table(tuple(rows), tuple(refused))


def read_texts(paths: Sequence[Path]) -> tuple[TableText, ...]:
    """What these files hold. Raises InputError for one that cannot be read."""
    texts = []
    for path in paths:
        try:
            texts.append(TableText(str(path), path.read_text(encoding="utf-8")))
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"{path}: cannot be read ({error})", _HINT) from error
    return tuple(texts)


@cache
def own() -> tuple[Row, ...]:
    """The rows of the table that ships with profharness."""
    return tuple(read(OWN.read_text(encoding="utf-8"), OWN.name))


def read(text: str, source: str) -> Iterable[Row]:
    """The rows of a TOML text. Raises InputError that names the entry and the key."""
    try:
        held = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise InputError(f"{source}: no TOML: {error}", _HINT) from error
    strange = sorted(set(held) - {"formula"})
    listed = held.get("formula", [])
    if strange or not isinstance(listed, list):
        raise InputError(
            f"{source}: a table of formulas has [[formula]] entries"
            + (f", and no {', '.join(strange)}" if strange else ""),
            _HINT,
        )
    return [_row(item, f"{source}, entry {place}") for place, item in enumerate(listed, start=1)]


def _text_of(member: object) -> str:
    """What a plug-in's object holds; whatever goes wrong in it is its table's fault."""
    try:
        text = member.read_text()  # type: ignore[attr-defined]  # families asked for it
    except Exception as error:  # a stranger's object may raise anything
        raise InputError(f"a table of {GROUP} cannot be read ({error})") from error
    if not isinstance(text, str):
        raise InputError(f"a table of {GROUP} is no text")
    return text


def _row(item: object, place: str) -> Row:
    named = item.get("match") if isinstance(item, dict) else None
    label = f"{place} ({named if isinstance(named, str) else '...'})"
    try:
        entry: AnyEntry = msgspec.convert(item, type=AnyEntry, strict=True)
    except msgspec.ValidationError as error:
        raise InputError(f"{label}: {error}", _HINT) from error
    patterns = []
    for name in entry.names:
        if len(name) > 2 and name.startswith("/") and name.endswith("/"):
            try:
                patterns.append(re.compile(name[1:-1]))
            except re.error as error:
                raise InputError(f"{label}: match: {error}", _HINT) from error
        elif not name:
            raise InputError(f"{label}: match: an empty name", _HINT)
    if isinstance(entry, Matmul) and isinstance(entry.out, str) and entry.out not in type_names():
        raise InputError(f"{label}: out: no type is called {entry.out}", _HINT)
    return Row(entry, label, tuple(patterns), _expressions(entry, label))


def _expressions(entry: AnyEntry, label: str) -> dict[str, Expression]:
    if not isinstance(entry, Arithmetic):
        if entry.kernel:
            raise InputError(f"{label}: kernel: only kind = 'expression' fits kernels", _HINT)
        return {}
    texts = {key: getattr(entry, key) for key in _TEXTS}
    if texts["flops"] is None and texts["bytes"] is None:
        raise InputError(f"{label}: flops or bytes is needed", _HINT)
    made = {}
    for key, text in texts.items():
        if text is None:
            continue
        try:
            made[key] = compiled(text)
        except ExpressionError as error:
            raise InputError(f"{label}: {key}: {error}", _HINT) from error
    return made
