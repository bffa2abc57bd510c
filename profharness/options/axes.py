"""What `--scan batch=8,16,32` says: axes as names with values, the words that the values are put
into, and the design. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from profharness.errors import UsageError
from profharness.rundir.executions.axes import POWER_CAP, RANKS, Axis

SHAPE = "shape:"
LHS = "lhs:"
MOST_POINTS = 10_000
"""Of one design: more executions than anybody waits for, and fewer than memory holds."""
_VALUE = {"type": ["string", "number", "boolean"]}
SCHEMA = {
    "type": "object",
    "additionalProperties": {"anyOf": [_VALUE, {"type": "array", "items": _VALUE}]},
}
"""The JSON Schema of the table in a scan file."""
_NAME = re.compile(r"(?:env:[A-Za-z_][A-Za-z0-9_]*|shape:[^\s={}]+|[A-Za-z_][A-Za-z0-9_.-]*)")
_RANGE = re.compile(r"(\d+)\.\.(\d+)(?::(\d+))?")
_ALMOST = re.compile(r"[+-]?[\d.]+?\.\.[^/]*|[^/]*?\.\.[+-]?\d[\d.]*(?::.*)?")
"""A number on one side of the dots: meant as a range, and none."""
_MOST_LEVELS = 1000
_HOW = "write --scan NAME=VALUES, such as --scan batch=8,16,32 or --scan workers=0..8:1"


def gather(words: Sequence[str]) -> dict[str, str]:
    """Each `NAME=VALUES` of `--scan` by its name. Raises UsageError."""
    table: dict[str, str] = {}
    for word in words:
        name, equals, values = word.partition("=")
        if not equals or not name.strip():
            raise UsageError(f"--scan: {word!r} is not NAME=VALUES", _HOW)
        if name.strip() in table:
            raise UsageError(
                f"--scan: the axis {name.strip()} is given twice", "give all its values at once"
            )
        table[name.strip()] = values
    return table


def parse(value: object, named: str) -> object:
    """A table of axes, whose values may be texts such as `8,16` or lists, as tuples of texts; all
    else as it is. Raises UsageError about `named`.
    """
    if not isinstance(value, Mapping):
        return value
    return {str(name): _values(str(name), given, named) for name, given in value.items()}


def check(table: Mapping[str, Sequence[str]]) -> None:
    """Raises UsageError for a name that is none, no value, or a value that comes twice."""
    for name, values in table.items():
        if not _NAME.fullmatch(name):
            raise UsageError(
                f"--scan: {name!r} is no name of an axis",
                "write a word that stands in braces in the command, or env:VARIABLE",
            )
        if not values:
            raise UsageError(f"--scan: the axis {name} has no values", _HOW)
        axis = Axis(name, tuple(values))
        if name == POWER_CAP and not (axis.is_number and all(float(one) > 0 for one in values)):
            raise UsageError(
                f"--scan {POWER_CAP}: {','.join(values)} are not caps in watts",
                f"write watts, such as --scan {POWER_CAP}=150,200,250",
            )
        distinct = {float(value) if axis.is_number else value for value in values}
        if len(distinct) != len(values):
            raise UsageError(f"--scan: the axis {name} has a value twice", "give each value once")


def _values(name: str, given: object, named: str) -> tuple[str, ...]:
    if isinstance(given, str):
        return tuple(
            value for part in given.split(",") if part.strip() for value in _part(part, name, named)
        )
    if isinstance(given, list | tuple):
        return tuple(value for part in given for value in _of_list(part, name, named))
    return tuple(_of_list(given, name, named))


def _of_list(part: object, name: str, named: str) -> tuple[str, ...]:
    if isinstance(part, bool):
        return ("true" if part else "false",)
    if isinstance(part, int | float):
        return (repr(part),)
    if isinstance(part, str):
        return (part,)
    raise UsageError(f"{named}: {name} has a value that is neither a number nor a text", _HOW)


def _part(part: str, name: str, named: str) -> tuple[str, ...]:
    """The values of one part between commas: itself, or those of a range."""
    text = part.strip()
    match = _RANGE.fullmatch(text)
    if match is None:
        if _ALMOST.fullmatch(text):
            raise UsageError(
                f"{named}: {name}: {text} is no range",
                "write whole numbers, as 8..64 for powers of two or 0..8:1 to count; "
                "a list such as 0.5,1,2 for others",
            )
        return (text,)
    low, high, step = int(match[1]), int(match[2]), int(match[3] or 0)
    if low > high:
        raise UsageError(f"{named}: {name}: the range {text} is empty", f"write {high}..{low}")
    if step or match[3] is not None:
        if not step:
            raise UsageError(
                f"{named}: {name}: the steps of {text} are 0", f"write {low}..{high}:1"
            )
        levels = range(low, high + 1, step)
        if len(levels) > _MOST_LEVELS:
            raise UsageError(
                f"{named}: {name}: {text} has {len(levels)} values", "take larger steps"
            )
        return tuple(map(str, levels))
    if low == 0:
        raise UsageError(
            f"{named}: {name}: {text} doubles, and 0 cannot be doubled",
            f"write 0,1..{high} for powers of two, or 0..{high}:1 to count",
        )
    return tuple(str(low * 2**at) for at in range((high // low).bit_length()))


def in_file(settings: Mapping[str, object]) -> dict[str, object]:
    """The settings of a scan file, whose table of axes may also be called `scan`, as the option
    is.
    """
    table = settings.get("scan")
    if not isinstance(table, dict) or "axes" in settings:
        return dict(settings)
    return {name: value for name, value in settings.items() if name != "scan"} | {"axes": table}


def filled(text: str, texts: Mapping[str, str]) -> str:
    """`text` with `{name}` replaced where it names an axis, by the value of `texts`; values are not
    searched again, and other braces stay as they are.
    """
    if not texts:
        return text
    names = "|".join(re.escape(name) for name in sorted(texts, key=len, reverse=True))
    return re.sub(rf"\{{({names})\}}", lambda match: texts[match[1]], text)


def starts_ranks(axes: Sequence[Axis], command: Sequence[str]) -> bool:
    """Whether an axis says how many ranks of the command are started: `ranks`, where no word of
    the command has it in braces (`mpirun -n {ranks}` starts them itself).
    """
    braces = "{" + RANKS + "}"
    named = any(axis.name == RANKS for axis in axes)
    return named and not any(braces in word for word in command)


def require_used(axes: Sequence[Axis], texts: Sequence[str]) -> None:
    """Raises UsageError for an axis that sets nothing: no variable, no power cap, and no word has
    it in braces.
    """
    for axis in axes:
        if axis.name.startswith(SHAPE):
            raise UsageError(
                f"--scan {axis.name}: shapes are of a model, and a command was given",
                "let the command take it: --scan tokens=64,128 -- python train.py {tokens}",
            )
        braces = "{" + axis.name + "}"
        sets_itself = axis.variable or axis.name in (POWER_CAP, RANKS)
        if not sets_itself and not any(braces in text for text in texts):
            raise UsageError(
                f"--scan {axis.name}: the command has no {braces}, so that nothing would vary",
                f"write {braces} where its value belongs, or --scan env:{axis.name} for a variable",
            )


def design_size(design: str) -> int | None:
    """The points of `lhs:N`; None for the full grid. Raises UsageError for another text."""
    if design == "grid":
        return None
    number = design.removeprefix(LHS)
    if not design.startswith(LHS) or not number.isdigit() or not 2 <= int(number) <= MOST_POINTS:
        raise UsageError(
            f"--design: {design!r} is not a design",
            f"use grid, or lhs:N for N points of it (2 to {MOST_POINTS})",
        )
    return int(number)
