"""Settings by name, as a scan file or a command line gives them, made into a request; a wrong one
is told in one sentence.
"""

from __future__ import annotations

import difflib
import tomllib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeVar, get_args, get_origin

import msgspec

from profharness.errors import InputError, UsageError
from profharness.options import pinning, serving_rules
from profharness.options.axes import in_file
from profharness.options.command_scan import ALSO_WITH_AXES
from profharness.options.declared import Declared, declared, flag
from profharness.options.request import Request

COMMAND_LINE = "the command line"  # the origin that is told by options rather than by keys

S = TypeVar("S", bound=msgspec.Struct)

_WORDS: dict[object, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    type(None): "",
}


def setting_name(key: str, origin: str) -> str:
    """A setting as its giver knows it: `--trials`, or `scan.toml: trials`."""
    return flag(key) if origin == COMMAND_LINE else f"{origin}: {key}"


def from_mapping(values: Mapping[str, object], origin: str) -> Request:
    """Build a request; `origin` is a file or "the command line". Raises UsageError naming the
    key.
    """
    return read_settings(Request, values, origin)


def read_settings(struct: type[S], values: Mapping[str, object], origin: str) -> S:
    """Build a struct of declared options from what a file or a command line gives. Raises
    UsageError naming the key.
    """
    known = {field.name: field for field in declared(struct)}
    for key in values:
        if key not in known:
            near = difflib.get_close_matches(key, known, 1)
            raise UsageError(
                f"{origin}: there is no setting {key!r}",
                f"did you mean {near[0]!r}?"
                if near
                else f"known settings: {', '.join(sorted(known))}",
            )
    plain = {key: _from_text(known[key], value, origin) for key, value in values.items()}
    for key, value in plain.items():
        _check_type(known[key], value, origin)
    return msgspec.convert(plain, struct)


def _from_text(field: Declared, value: object, origin: str) -> object:
    form = field.option.text
    return value if form is None else form.parse(value, setting_name(field.name, origin))


def _check_type(field: Declared, value: object, origin: str) -> None:
    """Raises UsageError that names the option, and what it takes."""
    # what other packages add to is known only now
    kind = Literal.__getitem__(field.choices) if callable(field.option.choices) else field.kind
    try:
        msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        only = (
            ", which is all it takes"
            if get_origin(kind) is Literal and len(get_args(kind)) == 1
            else ""
        )
        shown = repr(value) if len(repr(value)) <= 60 else "this value"
        raise UsageError(
            f"{setting_name(field.name, origin)}: {shown} is not {_in_words(kind)}{only}",
            "see `profharness run --help` for each setting's values",
        ) from error


def _in_words(kind: Any) -> str:
    """A field's type as a person would say it: `auto or a whole number`, `one of asc, desc,
    random`.
    """
    arguments = get_args(kind)
    if get_origin(kind) is Literal:
        return f"one of {', '.join(arguments)}" if len(arguments) > 1 else str(arguments[0])
    if get_origin(kind) is tuple:
        return {
            int: "a list of whole numbers",
            float: "a list of numbers",
            str: "a list of texts",
        }.get(arguments[0], "a list")
    if get_origin(kind) is dict:
        return f"a table of names, each with {_in_words(arguments[1])}"
    return (
        _WORDS[kind]
        if kind in _WORDS
        else " or ".join(words for each in reversed(arguments) if (words := _in_words(each)))
    )


def check_kind(
    given: Iterable[str], origin: str, *, is_command: bool, has_axes: bool = False
) -> None:
    """Raises UsageError for a setting that this kind of run would pass over; a scan of a command
    (`has_axes`) understands some of both.
    """
    known = {field.name: field.option.only for field in declared(Request)}
    kind = "command" if is_command else "scan"
    for key in given:
        only = known[key]
        if is_command and has_axes and key in ALSO_WITH_AXES:
            continue
        if only is not None and only.kind != kind:
            raise UsageError(f"{setting_name(key, origin)} {only.says}", only.hint)


def check_scan(given: Iterable[str], origin: str, request: Request) -> None:
    """Raises UsageError for a setting that a scan of this kind, served or not, would pass over."""
    if request.command:
        return

    def named(key: str) -> str:
        return setting_name(key, origin)

    given = tuple(given)
    serving_rules.check_given(given, request, named)
    if not request.served:
        pinning.check_given(given, request, named)


def read_scan_file(path: Path) -> dict[str, object]:
    """The settings of a TOML scan file. Raises InputError when it is missing or not TOML."""
    try:
        return in_file(tomllib.loads(path.read_text(encoding="utf-8")))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror})",
            "name an existing scan file, or a scan: particlenet",
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{path}: not a TOML file ({error})",
            "a scan file holds lines such as batch_sizes = [1, 4, 16]",
        ) from error
