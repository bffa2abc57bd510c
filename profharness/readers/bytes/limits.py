"""How much a file may ask of the program, and how large its numbers may be: one place, with the
reason of each (docs/formats.md#bounds).

A limit that grows with the file stands as a share of it, so that no honest file meets one.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Annotated, Final

import msgspec

from profharness.rundir.blocks import GZIP

LARGEST: Final = 2**63 - 1
"""A column is int64."""

DEVICES: Final = 4096
SMALL_DEVICES: Final = 512
_DEVICE_BYTES: Final = 8 << 10
"""Devices that one file names: those of a machine are a hundred, of a file of many ranks some
thousand, and each of these brings kilobytes of records. Each is measured by itself, which takes
milliseconds: some thousand in a small file are refused."""

LEVELS: Final = 10_000
"""Operators or host calls inside of one another: Python stops at a thousand. What lies inside of
what is worked out level by level."""

_NAMES, _NAME_BYTES = 20_000, 64
_CHARACTERS, _FILE_CHARACTERS = 8 << 20, 2
"""Kernels of different names, and the characters of these together: each name is judged by some
forty patterns. A program has hundreds, of thousands of characters each where templates made them;
a gzipped record takes 15 bytes and more, and names repeat.
"""


def kernel_names_of(paths: Iterable[Path]) -> tuple[int, int]:
    """How many different names the kernels of some files may have that make one trace, and how many
    characters in all.
    """
    size = sum(_size(path) for path in paths)
    return _NAMES + size // _NAME_BYTES, _CHARACTERS + _FILE_CHARACTERS * size


_RECORDS, _RECORD_BYTES = 500_000, 4
"""Records of a file besides one for so many of its bytes: gzipped traces have 15 and more for each
event, and plain ones 60."""


EXECUTIONS: Final = 1_000
"""Executions of a program with a table each, as rocprof-compute leaves them: one for each set of
counters, of which all that a device has make some hundred. Their tables lie in memory together."""

_TABLES_FIELDS: Final = 2_000_000
"""Fields of these tables together besides one for each of their bytes."""


def fields_of_executions(paths: Iterable[Path]) -> int:
    """How many fields the tables of several executions may hold together, gzipped or plain."""
    return _TABLES_FIELDS + sum(_size(path) for path in paths)


def devices_of(path: Path) -> int:
    """How many devices a file may name."""
    return min(DEVICES, SMALL_DEVICES + _size(path) // _DEVICE_BYTES)


def records_of(path: Path) -> int:
    """How many records a file may hold, gzipped or plain, before it is one that was made to cost
    much: several times what any trace of this size has.
    """
    return _RECORDS + _size(path) // _RECORD_BYTES


_VALUE_BYTES, _VALUE_GROWTH = 64 << 20, 2


def value_bytes_of(path: Path) -> int:
    """How many bytes one value in a JSON document may have that is read as a whole: the texts of
    all marks of a process are one.
    """
    return _VALUE_BYTES + _VALUE_GROWTH * _size(path)


_PROCESSES, _PROCESS_BYTES = 256, 1 << 10
"""Processes of one file of rocprofv3: each lists the agents of its node, which takes kilobytes, and
is put together by itself."""


def processes_of(path: Path) -> int:
    """How many processes one file may hold."""
    return _PROCESSES + _size(path) // _PROCESS_BYTES


_PACKET_BYTES: Final = 2
"""Packets are short, and those of telemetry say nearly the same: gzipped they take 2.7 bytes and
more each, those of kernels and calls 6 and more; plain ones take 25 and more."""


def packets_of(path: Path) -> int:
    """How many packets a Perfetto trace may hold, gzipped or plain, those of bundles among them."""
    return _RECORDS + _size(path) // _PACKET_BYTES


_LINES, _LINE_BYTES = 300_000, 3
"""A loop that asks one event again and again logs lines that differ in their times alone: gzipped
they take three bytes each, those of ordinary work ten."""

_ROWS, _ROW_BYTES = 50_000, 20
"""Rows of a call tree that a tool printed: gzipped they take sixteen bytes and more each, and a
tree of ten thousand is a large one."""


def lines_of(path: Path) -> int:
    """How many lines a log may hold when it is gzipped. A plain one may hold any number: reading it
    takes as long as its size says.
    """
    return _LINES + _size(path) // _LINE_BYTES if _is_gzipped(path) else LARGEST


def printed_rows_of(path: Path) -> int:
    """How many lines a table in text may hold, as `lines_of`."""
    return _ROWS + _size(path) // _ROW_BYTES if _is_gzipped(path) else LARGEST


COLUMNS: Final = 10_000
"""Columns of a table of counters: one that has each channel of all dies has some thousand."""

COUNTERS: Final = 10_000
"""Different hardware counters of one trace, for the same reason."""

_FIELDS = 500_000
"""A table of counters or statistics is held as a text for each of its fields, with some sixty bytes
around it. Gzipped, a field takes two bytes and more: names of kernels repeat, times do not."""


def fields_of(path: Path) -> int:
    """How many fields a CSV file may hold that is read as a table of texts when it is gzipped; a
    plain one may hold any number.
    """
    return _FIELDS + _size(path) if _is_gzipped(path) else LARGEST


STREAMS, _STREAM_BYTES = 10_000, 512
"""Queues or streams of kernels: each is followed by itself. A process has tens, and libraries that
make one for each task some hundred."""


def streams_of(paths: Iterable[Path]) -> int:
    """How many streams the kernels of some files may have that make one trace."""
    return STREAMS + sum(_size(path) for path in paths) // _STREAM_BYTES


LOADS, _LOAD_BYTES = 1_000, 4 << 10
"""Levels of load in one export of perf_analyzer: each is summarised by itself, which takes a
millisecond. A scan has tens, with some hundred requests each."""


def loads_of(path: Path) -> int:
    """How many levels of load one export may hold."""
    return LOADS + _size(path) // _LOAD_BYTES


PROCESSES, _OWN_BYTES = 512, 8 << 10
"""Processes that the records of a trace are of: each is written and named by itself, which takes
milliseconds. Tools write a file for each, with some kilobytes at least; a trace that was merged has
those of all ranks."""


def processes_of_trace(paths: Iterable[Path]) -> int:
    """Of how many processes the records of some files may be that make one trace."""
    return PROCESSES + sum(_size(path) for path in paths) // _OWN_BYTES


def _is_gzipped(path: Path) -> bool:
    try:
        with path.open("rb") as file:
            return file.read(len(GZIP)) == GZIP
    except OSError:  # whoever opens it says why
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:  # whoever opens it says why
        return 0


LATEST_NS: Final = 2**62 - 1
"""The times of a record lie within this on both sides of zero (the year 2116 for a clock of the
day), so that neither a difference of two nor a start plus a duration leaves int64."""

_MOST_DIGITS = 20  # of int64 with its sign; Python refuses thousands, and takes long for hundreds

Whole = Annotated[int, msgspec.Meta(ge=-(2**63), le=LARGEST)]
"""A JSON number that fits an int64 column."""

Nanoseconds = Annotated[int, msgspec.Meta(ge=-LATEST_NS, le=LATEST_NS)]
"""A JSON number that is a time of a record."""

MOST_RANK: Final = 2**31 - 1

Rank = Annotated[int, msgspec.Meta(ge=-1, le=MOST_RANK)]
"""The number of a process among those that work together: MPI's and NCCL's are 32 bits wide."""

Extent = Annotated[int, msgspec.Meta(ge=-1, le=2**32 - 1)]
"""A JSON number that is a size along one axis of a launch: the dispatch packet of HSA holds 32
bits, and so do CUDA's grids."""


def whole(text: str) -> int | None:
    """The whole number that `text` is, where it fits int64; else None."""
    text = text.strip()
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None
    number = -int(digits) if text.startswith("-") else int(digits)
    return number if abs(number) <= LARGEST else None


def finite(text: str) -> float | None:
    """The number that `text` is, as programs write it; None for what is none, or is none that can
    be measured. Python's `float` also takes `1_000`, other scripts' digits, `inf` and `nan`.
    """
    if not text.isascii() or "_" in text:
        return None
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def decimal_of(text: str) -> Decimal:
    """The number that `text` is, exactly. Raises ValueError where it is none that programs write:
    Python's `Decimal` also takes `1_000` and other scripts' digits.
    """
    if not text.isascii() or "_" in text:
        raise ValueError(text[:_MOST_DIGITS])
    try:
        return Decimal(text)
    except InvalidOperation as error:
        raise ValueError(text[:_MOST_DIGITS]) from error


def count_of(text: str) -> int:
    """The whole number, not below zero, that `text` is. Raises ValueError where it is none or does
    not fit int64.
    """
    number = whole(text)
    if number is None or number < 0:
        raise ValueError(text[:_MOST_DIGITS])
    return number


def cut(number: Decimal) -> int:
    """A number that is not below zero, cut to a whole one. Raises OverflowError where int64 does
    not hold it: one with an exponent of millions would take hours to write out.
    """
    if not number.is_finite() or number.adjusted() > _MOST_DIGITS or not 0 <= number <= LARGEST:
        raise OverflowError("it does not fit a column")
    return int(number)
