"""Values of Kineto's arguments as columns: numbers that come as numbers or as text."""

from __future__ import annotations

import re
import struct
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import msgspec

from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.kineto.records import CommsArgs, Number
from profharness.trace.collectives import Collective, encode, normalised
from profharness.trace.columns.build import packed_integers
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Problem, Strings

_NARROW = 2**31
_DECIMAL = re.compile(r"\s*[+-]?[0-9]{1,20}\s*\Z", re.ASCII)

ArgsT = TypeVar("ArgsT", bound=msgspec.Struct)


def arguments_of(text: bytes, kind: type[ArgsT], repairs: Counter[str]) -> ArgsT:
    """The arguments of one event; none where they are of another form, which is counted."""
    try:
        return msgspec.json.decode(text, type=kind | None) or kind()  # null: no arguments
    except NOT_JSON:
        repairs["arguments"] += 1
        return kind()


class Odd(Counter[str]):
    """Makes columns, and counts by the argument's name what stands in them that cannot be: texts
    that are no decimal number, fractions, what 64 bits do not hold, and what lies below zero where
    nothing can. -1 stands for "not recorded" in many tools, and here.
    """

    def whole(self, name: str, values: Sequence[Number], *, signed: bool = False) -> I64:
        """int64 of numbers and decimal texts; NULL for anything else. In signed columns, unsigned
        64-bit values are taken by their bits.
        """
        try:
            column = packed_integers(values)
        except struct.error:
            numbers = list(map(_integer, values))
            self[name] += numbers.count(None)
            column = packed_integers([NULL if one is None else one for one in numbers])
        if not signed and len(column) and column.min() < NULL:
            below = column < NULL
            self[name] += int(below.sum())
            column[below] = NULL
        return column

    def rare(self, name: str, values: Sequence[Number], *, signed: bool = False) -> I64 | int:
        """`whole` of a column that most files lack: NULL once where it holds nothing else."""
        if values.count(NULL) == len(values):
            return NULL
        return self.whole(name, values, signed=signed)

    def small(self, name: str, values: Sequence[Number]) -> I64 | int:
        """`rare` of a figure whose column has 32 bits."""
        column = self.rare(name, values)
        if not isinstance(column, int) and column.max(initial=0) >= _NARROW:
            beyond = column >= _NARROW
            self[name] += int(beyond.sum())
            column[beyond] = NULL
        return column

    def number(self, name: str, value: Number) -> int | None:
        """One number; None where it is not recorded, or cannot be."""
        number = _integer(value)
        if number is None or number < NULL:
            self[name] += 1
            return None
        return number if number >= 0 else None


def not_possible(path: Path, odd: Mapping[str, int]) -> Iterator[Problem]:
    """The problem of values that cannot be, by the names of what they stand for."""
    listed = ", ".join(
        f"{name} {count}"
        for name, count in sorted(odd.items(), key=lambda one: (-one[1], one))
        if count
    )
    said = f"values are no numbers, or none that can be: taken as not recorded ({listed})"
    if listed:
        yield Problem("warning", str(path), sum(odd.values()), said)


def unwanted(_: Sequence[Any]) -> None:
    """In the place of what adds rows: nothing of these events is looked at."""


_Splits = tuple[Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)], ...]


def collective_codes(args: Sequence[CommsArgs], odd: Odd, strings: Strings) -> list[int] | int:
    """Codes of what collectives do; NULL for everything else, once where there are none."""
    if [a.collective for a in args].count(None) == len(args):
        return NULL
    return [
        NULL if a.collective is None else strings.code(encode(collective_of(a, odd))) for a in args
    ]


def collective_of(args: CommsArgs, odd: Odd) -> Collective:
    """A collective from the arguments of its record; counts are None where the file does not tell
    them.
    """
    moved = odd.number("In msg nelems", args.in_elements)
    arrived = odd.number("Out msg nelems", args.out_elements)
    ranks = odd.number("Group size", args.group_size)
    return Collective(
        normalised(str(args.collective)),
        moved,
        arrived,
        str(args.comms_dtype or ""),
        ranks,
        str(args.group_ranks or args.group_name or ""),
        _splits(args.in_splits),
        _splits(args.out_splits),
    )


def _splits(value: Number) -> tuple[int, ...]:
    """Split sizes, a list as text; empty for even parts (torch writes none), and for a list that
    torch cut short (`[1, 2, ..., 9]`).
    """
    try:
        return msgspec.json.decode(value, type=_Splits) if isinstance(value, str) else ()
    except (msgspec.DecodeError, UnicodeDecodeError):
        return ()


def place_name(number: Number) -> str:
    """What a device or a queue is called: 1.0 is the same as 1."""
    return str(int(number) if isinstance(number, float) and number == number // 1 else number)


def raw_bytes(values: Sequence[msgspec.Raw]) -> list[bytes]:
    """The bytes of each value. Cutting them out of one text is several times faster than asking
    each for its own.
    """
    parts = NUL.join(values).split(NUL)
    return parts if len(parts) == len(values) else [bytes(value) for value in values]


def integers(values: Sequence[Number]) -> I64:
    """int64 of numbers and decimal texts; NULL for anything else, unsigned 64-bit values by their
    bits.
    """
    return Odd().whole("", values, signed=True)


def _integer(value: Number) -> int | None:
    """A whole number, NULL for none; None for what is no whole number of 64 bits."""
    if type(value) is int and 0 <= value < 2**63:
        return value
    if value is None:
        return NULL
    if isinstance(value, str):
        if not _DECIMAL.match(value):
            return None
    elif not isinstance(value, int | float) or value != value // 1:
        return None  # a database holds bytes, too
    number = int(value)
    if 2**63 <= number < 2**64:
        number -= 2**64
    return number if -(2**63) <= number < 2**63 else None


NUL = b"\0"  # stands in no JSON
