"""A command's function made into a command of the command-line library: its options come from the
structs that declare them.

A function takes typer's own declared parameters, a struct whose fields are declared options (it
gets one, filled), or `Annotated[Settings, OptionsOf(Request)]` (it gets what was given, by name,
and nothing that was not).
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_args, get_origin

import msgspec
import typer
from typer.models import ArgumentInfo

from profharness.cli.parsing.help_screen import HelpfulCommand
from profharness.cli.parsing.newest import RUN_OR_FILE, chosen
from profharness.cli.parsing.words import Interrupted
from profharness.options.declared import Declared, declared, parts
from profharness.options.many_files import ManyFiles
from profharness.rundir.private.spool import Spool

_FOLDERS = {
    "bundle": "sharing",
    "certify": "sharing",
    "export": "sharing",
    "fleet": "sizing",
    "index": "sharing",
    "replay": "replaying",
    "slurm-template": "running",
}
"""Commands whose modules are in a folder of `profharness/cli/`."""

Settings = dict[str, object]
"""What was given of some options, by name."""


@dataclass(frozen=True)
class OptionsOf:
    """The options of a struct as settings; `names` are those that the command takes (all, where
    empty).
    """

    struct: type[msgspec.Struct]
    names: frozenset[str] = frozenset()

    @property
    def fields(self) -> tuple[Declared, ...]:
        """What the command line takes of them."""
        return tuple(
            field
            for field in declared(self.struct)
            if not field.option.in_files_only and (not self.names or field.name in self.names)
        )


@dataclass(frozen=True)
class Asked:
    """A parameter of a command's function that several options fill; without `build` it gets their
    values by name.
    """

    name: str
    fields: tuple[Declared, ...]
    build: type[msgspec.Struct] | None

    def value(self, words: Mapping[str, Any]) -> object:
        """What the function gets, from the values of all options of the line."""
        given = {
            field.name: _value(field, words[field.name])
            for field in self.fields
            if words[field.name] is not None and words[field.name] != []
        }
        return given if self.build is None else self.build(**given)


def load(name: str) -> HelpfulCommand:
    """The command of that name, ready to parse a line; its module is imported here."""
    module = name.replace("-", "_")
    place = f"{_FOLDERS[name]}.{module}" if name in _FOLDERS else module
    return command_of(name, getattr(importlib.import_module(f"profharness.cli.{place}"), module))


def command_of(name: str, function: Callable[..., object]) -> HelpfulCommand:
    """A command of the command-line library that calls the function with what a line asks for."""
    call, fields = _callback(function)
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.command(
        name=name,
        cls=HelpfulCommand,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    )(call)
    command = typer.main.get_command(app)
    assert isinstance(command, HelpfulCommand)
    command.fields = {field.name: field for field in fields}
    _explain_arguments(command, inspect.signature(call))
    return command


def _callback(
    function: Callable[..., object],
) -> tuple[Callable[..., object], tuple[Declared, ...]]:
    """What the command-line library calls, with a parameter for each option; and the declared ones
    of these.
    """
    parameters = tuple(inspect.signature(function, eval_str=True).parameters.values())
    asked = {one.name: one for one in map(_asked, parameters) if one is not None}
    flat: list[inspect.Parameter] = []
    for parameter in parameters:
        if parameter.name in asked:
            one = asked[parameter.name]
            flat += [_parameter(field, settings=one.build is None) for field in one.fields]
        else:
            flat.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))
    fields = tuple(field for one in asked.values() for field in one.fields)
    own = {field.name for field in fields}
    files = frozenset(parameter.name for parameter in flat if _names_files(parameter))
    runs = frozenset(parameter.name for parameter in flat if _names_runs(parameter))

    def call(**given: Any) -> object:
        with ExitStack() as stack:
            spool = Spool(stack)
            words = {
                name: _files(word, spool) if name in files else word for name, word in given.items()
            }
            words |= {name: chosen(words[name]) for name in runs}
            plain = {name: word for name, word in words.items() if name not in own}
            filled = {one.name: one.value(words) for one in asked.values()}
            for line in filled.values():
                if isinstance(line, ManyFiles):
                    stack.enter_context(line.reading(getattr(line, "paths", ())))
            try:
                return function(**plain, **filled)
            except KeyboardInterrupt as stop:
                raise Interrupted from stop

    call.__doc__ = function.__doc__
    call.__signature__ = inspect.Signature(flat)  # type: ignore[attr-defined]  # typer reads it
    return call, fields


def _names_files(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is an argument that names files or folders, which may come by a pipe."""
    kind, *declarations = get_args(parameter.annotation) or (None,)
    return _holds_path(kind) and any(isinstance(one, ArgumentInfo) for one in declarations)


def _holds_path(kind: Any) -> bool:
    """Whether a type is a path, or made of paths: one that may be left out, or several."""
    return kind is Path or any(map(_holds_path, get_args(kind)))


def _names_runs(parameter: inspect.Parameter) -> bool:
    """Whether a parameter is an argument that the newest run stands for where it is left out."""
    declarations = get_args(parameter.annotation)[1:]
    return any(isinstance(one, ArgumentInfo) and one.metavar in RUN_OR_FILE for one in declarations)


def _files(word: Any, spool: Spool) -> Any:
    if isinstance(word, list | tuple):
        return [spool.file(one) for one in word]
    return word if word is None else spool.file(word)


def _explain_arguments(command: HelpfulCommand, signature: inspect.Signature) -> None:
    """Set the help of arguments again: click has one of its own since 8.5, and empties that of
    typer before 0.26.
    """
    for parameter in command.params:
        if parameter.param_type_name == "argument" and not parameter.help:
            declarations = signature.parameters[str(parameter.name)].annotation.__metadata__
            parameter.help = next(
                (one.help for one in declarations if getattr(one, "help", None)), None
            )


def _asked(parameter: inspect.Parameter) -> Asked | None:
    kind = parameter.annotation
    for one in getattr(kind, "__metadata__", ()):
        if isinstance(one, OptionsOf):
            return Asked(parameter.name, one.fields, None)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        return Asked(parameter.name, OptionsOf(kind).fields, kind)
    return None


def _value(field: Declared, word: Any) -> object:
    """A value of the command line as the field takes it; settings are checked by whom they
    are for.
    """
    if isinstance(word, Path) and get_origin(field.kind) is tuple:
        return (word,)  # the one run that stands for several files
    if isinstance(word, list):
        return field.option.gather(word) if field.option.gather else tuple(word)
    return word


def _parameter(field: Declared, *, settings: bool) -> inspect.Parameter:
    """The field as a parameter that typer understands. Settings have no defaults: what is not given
    stays out.
    """
    kind = _line_kind(field)
    default = field.default
    if field.required and field.option.metavar in RUN_OR_FILE:
        default = None  # the newest run takes its place
    elif field.required:
        default = inspect.Parameter.empty
    elif settings or default in ((), {}):
        default = None
    return inspect.Parameter(
        field.name,
        inspect.Parameter.KEYWORD_ONLY,
        default=default,
        annotation=Annotated[kind | None if default is None else kind, _declaration(field)],
    )


def _line_kind(field: Declared) -> Any:
    """The type of which the command-line library makes the option's words; lists of numbers and
    choices are texts, read and checked by name later.
    """
    if field.option.gather is not None:
        return list[str]
    kinds = parts(field.kind)
    kind = kinds[0]
    if get_origin(kind) is tuple and get_args(kind)[0] in (str, Path):
        return list[get_args(kind)[0]]  # type: ignore[misc]  # a type made here
    plain = isinstance(kind, type) and issubclass(kind, bool | int | float | Path | Enum)
    return kind if len(kinds) == 1 and plain else str


def repeatable(field: Declared) -> bool:
    """Whether the option may stand several times on a line, once for each of its values."""
    return get_origin(_line_kind(field)) is list


def _declaration(field: Declared) -> Any:
    option = field.option
    limit = option.limit if option.limit is not None and not option.limit.says else None
    common: dict[str, Any] = {
        "help": option.help,
        "metavar": option.metavar,
        "min": limit and limit.least,
        "max": limit and limit.most,
        "envvar": option.envvar,
        "autocompletion": _completion(field),
    }
    if option.argument:
        return typer.Argument(**common)
    return typer.Option(*field.names, rich_help_panel=option.topic.title, **common)


def _completion(field: Declared) -> Callable[[str], list[str]] | None:
    if not field.choices and not field.option.examples:
        return None

    def complete(incomplete: str) -> list[str]:
        words = field.choices or field.examples
        lead, comma, last = incomplete.rpartition(",")
        return [f"{lead}{comma}{word}" for word in words if word.startswith(last)]

    return complete
