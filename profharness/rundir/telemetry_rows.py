"""The rows of the sampler's binary file: its header, and how a field or a value is taken out of all
rows at once.

Version 1 had 8-byte fields only, in the order of the header's columns; version 2 says where each
stands, and keeps what a driver gives as one table as it is, from which values are taken here.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from profharness.errors import InputError
from profharness.rundir.foreign.border import DAMAGED
from profharness.rundir.foreign.limits import NUMBER, TELEMETRY_COLUMNS, TELEMETRY_READS
from profharness.trace.model import F64, I64

MAGIC = b"PHTELEM1"
VERSION = 2
FIXED_BYTES = 16
MISSING = -1
_FIELD_BYTES = 8
_CODES = frozenset("bBhHiIlLqQefd")
_AT_ONCE = 1 << 20  # numbers of blocks that are held as int64
Flags = npt.NDArray[np.bool_]


class Taken(NamedTuple):
    """Values in a row: `repeat` of one struct `code`, from byte `offset` on; see
    `profharness.telemetry.sources.Taken`.
    """

    offset: int
    code: str
    repeat: int
    unset: int
    zero_is_unset: bool


class Column(msgspec.Struct, frozen=True):
    """One field of a row, or one value of a block; see `profharness.telemetry.records` for the
    roles.
    """

    role: Literal["deadline", "boot", "missed", "before", "after", "stamp", "block", "value"]
    type: str
    source: str = ""
    metric: str = ""
    unit: str = ""
    form: Literal["instant", "counter", "share", "bits"] = "instant"
    scale: float = 1.0
    device: int = -1
    at: int = -1
    taken: tuple[Taken, ...] = ()
    how: Literal["one", "mean", "average", "total"] = "one"
    over: Taken | None = None
    at_most: float = 0.0
    bits: int = 0


class SampledDevice(msgspec.Struct, frozen=True):
    """An accelerator that a source read. `package` is the identity of the device that reports power
    for it.
    """

    number: str
    identity: str = ""
    name: str = ""
    vendor: str = ""
    package: str = ""
    scope: str = ""
    mode: str = ""


class Absent(msgspec.Struct, frozen=True):
    """A metric that could not be had, and why."""

    metric: str
    why: str


class Header(msgspec.Struct, frozen=True):
    """What the sampler wrote about its rows."""

    v: int
    host: str
    hz: float
    columns: tuple[Column, ...]
    width: int = 0
    rates: dict[str, float] = {}
    pid: int | None = None
    profharness: str = ""
    boot_id: str = ""
    period_ns: int = 0
    devices: tuple[SampledDevice, ...] = ()
    missing: tuple[Absent, ...] = ()
    details: tuple[tuple[str, str], ...] = ()


class _VersionOnly(msgspec.Struct, frozen=True):
    v: int


def read_header(data: bytes, path: Path) -> tuple[Header, int]:
    """The header and where the rows begin. Raises InputError."""
    length = int.from_bytes(data[8:12], "little")
    if not data.startswith(MAGIC) or len(data) < FIXED_BYTES + length:
        raise InputError(
            f"{path} is no telemetry file or is cut within its header",
            "the sampler was killed as it started",
        )
    try:
        version = msgspec.json.decode(data[FIXED_BYTES : FIXED_BYTES + length], type=_VersionOnly).v
        if version > VERSION:
            raise InputError(
                f"{path}: version {version} is newer than {VERSION}", "update profharness"
            )
        header = msgspec.json.decode(data[FIXED_BYTES : FIXED_BYTES + length], type=Header)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(
            f"{path}: its header is damaged ({error})", "the file was altered after it was written"
        ) from error
    if not header.width:  # version 1
        header = msgspec.structs.replace(
            header,
            width=_FIELD_BYTES * len(header.columns),
            columns=tuple(
                msgspec.structs.replace(column, at=_FIELD_BYTES * place)
                for place, column in enumerate(header.columns)
            ),
        )
    if why := _misfit(header):
        raise InputError(f"{path}: its header is damaged ({why})", DAMAGED)
    return header, FIXED_BYTES + length


def _misfit(header: Header) -> str:
    """What of a header no row can hold, in words: fields outside of it, or more values than it has
    bytes; empty where all fits.
    """
    if why := _too_much(header):
        return why
    for column in header.columns:
        if not -1 <= column.device < len(header.devices) or not abs(column.scale) <= NUMBER:
            return f"{column.metric or column.role} is of no device of the file, or of no scale"
        taken = column.taken if column.over is None else (*column.taken, column.over)
        if not all(_fits(one, header.width) for one in taken):
            return f"values of {column.metric or column.role} are outside of a row"
        if not taken and not 0 <= column.at <= header.width - _FIELD_BYTES:
            return f"{column.metric or column.role} is outside of a row"
    return ""


def _too_much(header: Header) -> str:
    """What of the columns together no row can hold, in words."""
    if header.width <= 0:
        return f"its rows have {header.width} bytes"
    if len(header.columns) > min(header.width + _FIELD_BYTES, TELEMETRY_COLUMNS):
        return f"{len(header.columns)} columns in rows of {header.width} bytes"
    read = sum(map(_bytes_of, header.columns))
    if read > TELEMETRY_READS * header.width:
        return f"its columns are made of {read} bytes of rows of {header.width} bytes"
    return ""


def _bytes_of(column: Column) -> int:
    """Of how many bytes of a row a value is made; at least those that it has as a sample."""
    if column.role != "value":
        return 0
    taken = column.taken if column.over is None else (*column.taken, column.over)
    return max(_FIELD_BYTES, sum(one.repeat * _size(one) for one in taken))


def _size(taken: Taken) -> int:
    """Bytes of one of its numbers; of a kind that does not exist, none."""
    return np.dtype(f"<{taken.code}").itemsize if taken.code in _CODES else 0


def _fits(taken: Taken, width: int) -> bool:
    if taken.code not in _CODES or min(taken.offset, taken.repeat) < 0:
        return False
    return taken.offset + taken.repeat * _size(taken) <= width


def without_empty_rows(header: Header, data: bytes, start: int) -> tuple[bytes, int]:
    """The file without whole rows of nothing but zeros, which no sampler writes, and how many there
    were.
    """
    count = (len(data) - start) // header.width
    end = start + count * header.width
    rows = np.frombuffer(data, np.uint8, end - start, start).reshape(count, header.width)
    written = rows.any(axis=1)
    if written.all():
        return data, 0
    return data[:start] + rows[written].tobytes() + data[end:], int(count - written.sum())


class Rows:
    """All whole rows of a file; fields are views of its bytes."""

    def __init__(self, header: Header, data: bytes, start: int) -> None:
        self.header = header
        self.count = (len(data) - start) // header.width
        self.rest = (len(data) - start) % header.width
        self._data = data
        self._start = start
        self._first: dict[tuple[str, str], Column] = {}
        self._stamps: dict[tuple[str, int], Column] = {}
        for column in header.columns:
            for source in ("", column.source):
                self._first.setdefault((column.role, source), column)
            if column.role == "stamp":
                self._stamps.setdefault((column.source, column.device), column)

    def __len__(self) -> int:
        return self.count

    @property
    def most_values(self) -> int:
        """How many values the rows have, were each of them set."""
        return self.count * sum(column.role == "value" for column in self.header.columns)

    def role(self, role: str, source: str = "") -> I64:
        """The first field of that role (and source)."""
        column = self._first.get((role, source))
        if column is None:
            raise ValueError(f"its rows have no field '{role}'")
        return self.field(column)

    def stamp(self, source: str, device: int) -> Column | None:
        """The column with the source's own times of a device, where it has one."""
        return self._stamps.get((source, device))

    def field(self, column: Column) -> I64:
        """The column's 8 bytes in each row, as whole numbers."""
        return self._view("q", 1, column.at)[:, 0]

    def first(self, taken: Taken) -> tuple[I64, Flags]:
        """The first number of a block in each row, and in which rows it was set."""
        values, known = self._values(taken._replace(repeat=min(taken.repeat, 1)))
        return values[:, 0], known[:, 0]

    def _values(self, taken: Taken, begin: int = 0, end: int | None = None) -> tuple[I64, Flags]:
        """The numbers of a block in some rows, shape (rows, repeat), and which of them were set.
        The highest bit of a u64 is not used by any counter.
        """
        raw = self._view(taken.code, taken.repeat, taken.offset)[begin:end]
        known = raw != np.array(taken.unset, raw.dtype)
        if taken.zero_is_unset:
            known &= raw != 0
        return raw.astype(np.int64), known

    def number(self, column: Column) -> tuple[I64 | F64, Flags]:
        """The column's raw value in each row, and in which rows it has one."""
        if not column.taken:
            raw = self.field(column)
            if column.type == "d":
                return raw.view(np.float64), ~np.isnan(raw.view(np.float64))
            return raw, raw != MISSING
        if column.how == "one":
            return self.first(column.taken[0])
        total, set_ = self._sums(column.taken[0])
        if column.how == "total":
            return total, set_ > 0
        mean = total / np.maximum(set_, 1)
        return np.rint(mean) if column.how == "mean" else mean, set_ > 0

    def _sums(self, taken: Taken) -> tuple[I64, I64]:
        """The sum of the numbers of a block in each row, and how many were set; by parts of the
        rows, so that bytes of a long block never all become whole numbers at once.
        """
        total, set_ = np.zeros(self.count, np.int64), np.zeros(self.count, np.int64)
        step = max(_AT_ONCE // max(taken.repeat, 1), 1)
        for begin in range(0, self.count, step):
            part = slice(begin, begin + step)
            values, known = self._values(taken, part.start, part.stop)
            total[part] = np.where(known, values, 0).sum(axis=1)
            set_[part] = known.sum(axis=1)
        return total, set_

    def _view(self, code: str, repeat: int, offset: int) -> npt.NDArray[np.int64]:
        kind = np.dtype(f"<{code}")
        return (
            np.ndarray(
                (self.count, repeat),
                kind,
                self._data,
                self._start + offset,
                (self.header.width, kind.itemsize),
            )
            if self.count
            else np.zeros((0, repeat), kind)
        )
