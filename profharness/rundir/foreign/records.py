"""What a record of a run may say: so many entries, numbers that can be computed with, and names
that stay inside the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any

import msgspec

from profharness.errors import InputError
from profharness.rundir.foreign.border import DAMAGED
from profharness.rundir.foreign.limits import NUMBER, RANKS, RECORDS, WHOLE
from profharness.rundir.foreign.names import is_plain_name
from profharness.units import format_number

_COUNTED_BYTES = 1 << 20  # fewer hold no more records than are allowed
_PLAIN = frozenset({str, bool, type(None)})
_PIDS = (1 << 31) - 1
# by the name of a field, what a number in it may be where that is less than `WHOLE`
_LEAST = {"ranks": 0, "rank": 0, "pid": -1, "repeat": 0, "trials": 0, "warmup_trials": 0}
_MOST = {"ranks": RANKS, "rank": RANKS, "traced_ranks": RANKS, "pid": _PIDS, "repeat": 1_000_000}


class _Outline(msgspec.Struct):
    """The lists of a manifest, whose entries are only counted."""

    points: list[msgspec.Raw] = []
    passes: list[msgspec.Raw] = []
    artifacts: list[msgspec.Raw] = []
    clocks: list[msgspec.Raw] = []
    processes: list[msgspec.Raw] = []
    rank_outcomes: list[msgspec.Raw] = []
    nodes: list[msgspec.Raw] = []
    layers: list[msgspec.Raw] = []
    findings: list[msgspec.Raw] = []


def check_counts(data: bytes, path: str) -> None:
    """Raises InputError for a manifest with more records than any run has, before they are made;
    msgspec's errors for what is no manifest.
    """
    if len(data) < _COUNTED_BYTES:
        return
    outline = msgspec.json.decode(data, type=_Outline)
    for name, most in RECORDS.items():
        if (count := len(getattr(outline, name))) > most:
            raise InputError(
                f"{path}: it lists {format_number(count)} {name.replace('_', ' ')}, more than the "
                f"{format_number(most)} that a run can have",
                DAMAGED,
            )


def check_numbers(record: object, path: str) -> None:
    """Raises InputError for a whole number in a record, or below it, that no 64 bits hold with room
    for a sum, and for a rank or process that no machine has.
    """
    if found := _wrong_number([record], "record"):
        raise InputError(f"{path}: {found}", DAMAGED)


def check_names(names: Iterable[str], what: str, path: str) -> None:
    """Raises InputError for a name of `what` (passes, layers) that would lead out of the run."""
    for name in names:
        if not is_plain_name(name):
            raise InputError(
                f"{path}: {name[:80]!r} is no name of a {what}: it names a file elsewhere", DAMAGED
            )


def _wrong_number(values: Sequence[object], field: str) -> str:
    """The first number in or below `values` that is out of bounds, in words; all of them stand in
    fields of this name.

    It goes down field by field and not record by record: a manifest of hundreds of thousands of
    records is judged by a few calls for each field.
    """
    for kind in dict.fromkeys(map(type, values)):
        if kind in _PLAIN:
            continue
        same = [value for value in values if value.__class__ is kind]
        if issubclass(kind, int | float):
            found = _judged(same, field)  # type: ignore[arg-type]  # all of them are numbers
        else:
            below = _below(kind, same, field)
            found = next(filter(None, (_wrong_number(inner, name) for name, inner in below)), "")
        if found:
            return found
    return ""


def _below(kind: type, values: Sequence[Any], field: str) -> Iterator[tuple[str, list[object]]]:
    """What records, mappings or lists of one kind hold, by the name of the field it stands in."""
    if issubclass(kind, msgspec.Struct):
        for name in kind.__struct_fields__:
            yield name, list(map(attrgetter(name), values))
    elif issubclass(kind, Mapping):
        named: dict[str, list[object]] = {}
        for value in values:
            for name, inner in value.items():
                if inner.__class__ not in _PLAIN:
                    named.setdefault(str(name), []).append(inner)
        yield from named.items()
    elif issubclass(kind, list | tuple):
        yield field, list(chain.from_iterable(values))


def _judged(numbers: Sequence[float], field: str) -> str:
    least, most = _LEAST.get(field, -WHOLE), _MOST.get(field, WHOLE)
    low, high = min(numbers), max(numbers)
    if isinstance(low, int) and isinstance(high, int):
        wrong = low if low < least else high
        fits = least <= low and high <= most
        return "" if fits else f"{field} is {_shown(wrong)}, which no run has"
    wrong_one = next((number for number in numbers if not abs(number) <= NUMBER), None)
    return "" if wrong_one is None else f"{field} is {wrong_one:g}, which no run has"


def _shown(value: int) -> str:
    return str(value) if abs(value) < 1 << 128 else f"a number of {value.bit_length()} bits"
