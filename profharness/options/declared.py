"""What declares an option: its help, topic, spelling, limits and text form, beside its type and
default in a struct.

    class Request(msgspec.Struct):
        trials: Annotated[int, Option("Trials per point, at least.", SCAN, limit=...)] = 100

The command line, `--help`, scan files, the checks and the JSON Schema all derive from this one
declaration.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec

from profharness.errors import UsageError


class Topic(msgspec.Struct, frozen=True):
    """A group of options that help shows together: `word` asks for it, `title` stands above it."""

    word: str
    title: str
    about: str = ""


GENERAL = Topic("options", "Options")
LAYERS = Topic("layers", "Layers", "what is recorded, AMD's tracers and their counters")
SCAN = Topic("scan", "Scans", "model, batch sizes, trials, inputs")
AXES = Topic("axes", "Scans of a command", "axes, design, repeats, what counts as its rate")
SERVING = Topic("serving", "Served scans", "load, protocol, our server or another one")
PROCESSES = Topic("processes", "Multi-process scans", "pinned copies at once")
TELEMETRY = Topic("telemetry", "Telemetry", "source, rate, measuring the idle device")
PLACE = Topic("place", "Place", "launcher, ranks, container, interpreter")
BATCH = Topic("batch", "Batch jobs", "what Slurm is asked for: account, partition, time, modules")
OUTPUT = Topic("output", "Output", "run directory, name, what is printed")
SELECTION = Topic("selection", "Selection")
MANY_FILES = Topic("files", "Many files")
TOPICS = (
    *(LAYERS, SCAN, AXES, SERVING, PROCESSES, TELEMETRY, PLACE, BATCH),
    *(SELECTION, MANY_FILES, OUTPUT),
)
"""The order in which help shows them, after the general options."""


class Limit(msgspec.Struct, frozen=True):
    """The range of a number, or of each number in a list.

    Where `says` is empty, the command-line library refuses other values in its own words. `{}` in
    it is the value.
    """

    least: float | None = None
    above: float | None = None
    most: float | None = None
    says: str = ""
    hint: str = ""

    def holds(self, value: float) -> bool:
        """Whether the value lies in the range."""
        return (
            (self.least is None or value >= self.least)
            and (self.above is None or value > self.above)
            and (self.most is None or value <= self.most)
        )


class TextForm(msgspec.Struct, frozen=True):
    """A text that stands for a value of another type: `4..2048` for a list of numbers.

    `parse(value, named)` turns a text into the value and leaves all else as it is; it raises
    UsageError about `named`. `pattern` is a regular expression that such a text matches; `schema`
    is the JSON Schema of what a scan file gives, where that is no text.
    """

    parse: Callable[[object, str], object]
    pattern: str = ""
    schema: dict[str, Any] | None = None


class Only(msgspec.Struct, frozen=True):
    """The one kind of run that understands an option, and what is said where it is given to the
    other.
    """

    kind: Literal["scan", "command"]
    says: str
    hint: str


@dataclass(frozen=True)
class Option:
    """One option, declared beside its type and its default.

    `names` is its spelling on the command line where that is not --field-name; an `argument` is a
    word without a name, and what stands `in_files_only` is no option of a command. `common` ones
    stand on the first screen of a long help. `gather` joins the words of an option that may be
    repeated. `choices` is all that it takes (a function where other packages may add to it),
    `examples` some of it; both are completed by the shell. `more_help` is asked when the help is
    shown.
    """

    help: str
    topic: Topic = GENERAL
    _: KW_ONLY
    names: tuple[str, ...] = ()
    metavar: str | None = None
    common: bool = False
    argument: bool = False
    in_files_only: bool = False
    limit: Limit | None = None
    check: Callable[[Any], None] | None = None
    text: TextForm | None = None
    gather: Callable[[Sequence[str]], object] | None = None
    choices: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    examples: tuple[str, ...] | Callable[[], tuple[str, ...]] = ()
    only: Only | None = None
    envvar: str | None = None
    more_help: Callable[[str], str] | None = None


class Declared(msgspec.Struct, frozen=True):
    """A field of a struct with its declaration; `kind` is its type without the declaration."""

    name: str
    kind: Any
    default: Any
    option: Option

    @property
    def names(self) -> tuple[str, ...]:
        """How it is spelled on the command line."""
        return self.option.names or (flag(self.name),)

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is msgspec.NODEFAULT

    @property
    def examples(self) -> tuple[str, ...]:
        """Some texts that it takes."""
        examples = self.option.examples
        return examples() if callable(examples) else examples

    @property
    def choices(self) -> tuple[str, ...]:
        """All texts that it takes, where they can be listed."""
        literals = [part for part in parts(self.kind) if get_origin(part) is Literal]
        choices = self.option.choices
        if callable(choices):
            return choices()
        return choices or tuple(word for part in literals for word in get_args(part))


@functools.cache
def declared(struct: type[msgspec.Struct]) -> tuple[Declared, ...]:
    """The fields of a struct in order. Raises TypeError for one that is not declared as an
    option.
    """
    kinds = get_type_hints(struct)
    found = []
    for field in msgspec.structs.fields(struct):
        notes = getattr(field.type, "__metadata__", ())
        option = next((note for note in notes if isinstance(note, Option)), None)
        if option is None:
            raise TypeError(f"{struct.__name__}.{field.name} has no Option")
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        found.append(Declared(field.name, kinds[field.name], default, option))
    return tuple(found)


def flag(key: str) -> str:
    """The usual spelling of a setting on the command line."""
    return "--" + key.replace("_", "-")


def parts(kind: object) -> tuple[Any, ...]:
    """The members of a union without None; another type alone."""
    members = get_args(kind) if get_origin(kind) in (Union, UnionType) else (kind,)
    return tuple(member for member in members if member is not NoneType)


def check_each(settings: msgspec.Struct, fields: Sequence[Declared]) -> None:
    """Check the values of these fields, each by itself. Raises UsageError with the way out."""
    for field in fields:
        value = getattr(settings, field.name)
        if field.option.limit is not None:
            _check_limit(field, field.option.limit, value)
        if field.option.check is not None:
            field.option.check(value)


def _check_limit(field: Declared, limit: Limit, value: object) -> None:
    numbers = value if isinstance(value, tuple) else (value,)
    for number in numbers:
        if isinstance(number, int | float) and not limit.holds(number):
            raise UsageError(f"{field.names[0]}: {limit.says.format(number)}", limit.hint)


def existing_file(option: str, hint: str) -> Callable[[str], None]:
    """A check that raises UsageError where a text is given and names no file."""

    def check(path: str) -> None:
        if path and not Path(path).is_file():
            raise UsageError(f"{option}: there is no file {path}", hint)

    return check
