"""Options of `profharness run` that are given in Python, as words of a command line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from functools import cache
from os import PathLike, fspath
from typing import SupportsIndex

from profharness.cli.parsing.commands import repeatable
from profharness.cli.run import RunSwitches
from profharness.errors import UsageError
from profharness.options.declared import Declared, declared
from profharness.options.request import Request

_OF_THE_LINE = frozenset({"json", "dry_run", "for_node", "rocm_version"})
"""Options that are about what the command prints, which is not printed here."""


def words_of(options: Mapping[str, object]) -> list[str]:
    """The words for these options, named as on the command line with underscores: `batch_sizes=[1,
    4]` is `--batch-sizes=1,4`. None leaves an option out.

    Raises UsageError for an option that `run` does not have, with the nearest, and for a value that
    is no text, number, truth value, or list or dict of such.
    """
    words = []
    for name, value in options.items():
        field = _known().get(name)
        if field is None:
            near = difflib.get_close_matches(name, _known(), 1)
            raise UsageError(
                f"run has no option {name!r}",
                f"did you mean {near[0]!r}?" if near else "see `profharness run --help`",
            )
        if value is not None:
            words += _words(field, name, value)
    return words


@cache
def _known() -> dict[str, Declared]:
    """The options of `run` by what they are called in Python."""
    found = {}
    for field in (*declared(Request), *declared(RunSwitches)):
        if not field.option.argument and not field.option.in_files_only:
            for one in field.names:
                if one.startswith("--"):
                    found[one[2:].replace("-", "_")] = field
    return {name: field for name, field in found.items() if name not in _OF_THE_LINE}


def _words(field: Declared, name: str, value: object) -> list[str]:
    flag = field.names[0]
    if field.kind is bool:
        if not isinstance(value, bool):
            raise UsageError(f"{name}: {value!r} is not a truth value", "give True or False")
        return [flag] if value else []
    if isinstance(value, Mapping):
        value = [f"{key}:{_joined(name, one)}" for key, one in value.items()]
    if repeatable(field) and not isinstance(value, str) and isinstance(value, Iterable):
        return [f"{flag}={_text(name, one)}" for one in value]
    return [f"{flag}={_joined(name, value)}"]


def _joined(name: str, value: object) -> str:
    """A value, or several with commas between them."""
    if isinstance(value, Iterable) and not isinstance(value, str | bytes):
        return ",".join(_text(name, one) for one in value)
    return _text(name, value)


def _text(name: str, value: object) -> str:
    if isinstance(value, str | PathLike):
        return str(fspath(value))
    if isinstance(value, float):
        return repr(float(value))  # NumPy's numbers have a text of their own
    if isinstance(value, SupportsIndex) and not isinstance(value, bool):
        return str(value)
    raise UsageError(
        f"{name}: {value!r} cannot stand on a command line",
        "give a text, a number, or a list of such",
    )
