"""Values of Kineto's arguments as columns: numbers that come as numbers or as text."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import msgspec

from profharness.readers.kineto.records import CommsArgs, Number
from profharness.trace.collectives import Collective, normalised
from profharness.trace.columns.build import packed_integers
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64


def unwanted(_: Sequence[Any]) -> None:
    """In the place of what adds rows: nothing of these events is looked at."""


def collective_of(args: CommsArgs) -> Collective:
    """A collective from the arguments of its record; counts are None where the file does not tell
    them.
    """
    moved, arrived, ranks = (
        None if (number := _integer(value)) < 0 else number
        for value in (args.in_elements, args.out_elements, args.group_size)
    )
    return Collective(
        normalised(str(args.collective)),
        moved,
        arrived,
        str(args.comms_dtype or ""),
        ranks,
        str(args.group_ranks or args.group_name or ""),
    )


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
    try:
        return packed_integers(values)
    except struct.error:
        return packed_integers(list(map(_integer, values)))


def rare_integers(values: Sequence[Number]) -> I64 | int:
    """The integers of a column that most files lack: NULL once where it holds nothing else."""
    return NULL if values.count(NULL) == len(values) else integers(values)


def _integer(value: Number) -> int:
    try:
        number = int(value) if value is not None else NULL
    except (ValueError, OverflowError):
        return NULL
    if 2**63 <= number < 2**64:
        number -= 2**64
    return number if -(2**63) <= number < 2**63 else NULL


NUL = b"\0"  # stands in no JSON
