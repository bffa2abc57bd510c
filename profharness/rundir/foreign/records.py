"""What a record of a run may say: so many entries, numbers that can be computed with, and names
that stay inside the run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

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
    if found := _wrong_number(record, "record"):
        raise InputError(f"{path}: {found}", DAMAGED)


def check_names(names: Iterable[str], what: str, path: str) -> None:
    """Raises InputError for a name of `what` (passes, layers) that would lead out of the run."""
    for name in names:
        if not is_plain_name(name):
            raise InputError(
                f"{path}: {name[:80]!r} is no name of a {what}: it names a file elsewhere", DAMAGED
            )


def _wrong_number(value: object, field: str) -> str:
    """The first number below `value` that is out of bounds, in words; it stands in `field`."""
    if isinstance(value, msgspec.Struct):
        fields = value.__struct_fields__
        inner: Iterable[tuple[str, object]] = zip(
            fields, [getattr(value, name) for name in fields], strict=True
        )
    elif isinstance(value, Mapping):
        inner = value.items()
    elif isinstance(value, list | tuple):
        inner = ((field, one) for one in value)
    else:
        return _judged(value, field)
    for name, one in inner:
        # texts and what is missing, most of a record, are passed over without a call
        if one.__class__ not in _PLAIN and (found := _wrong_number(one, str(name))):
            return found
    return ""


def _judged(value: object, field: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        fits = _LEAST.get(field, -WHOLE) <= value <= _MOST.get(field, WHOLE)
        return "" if fits else f"{field} is {_shown(value)}, which no run has"
    if isinstance(value, float) and not abs(value) <= NUMBER:
        return f"{field} is {value:g}, which no run has"
    return ""


def _shown(value: int) -> str:
    return str(value) if abs(value) < 1 << 128 else f"a number of {value.bit_length()} bits"
