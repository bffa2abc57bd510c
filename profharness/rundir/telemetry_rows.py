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
from profharness.rundir.foreign.limits import NUMBER, TELEMETRY_COLUMNS
from profharness.trace.model import F64, I64

MAGIC = b"PHTELEM1"
VERSION = 2
FIXED_BYTES = 16
MISSING = -1
_FIELD_BYTES = 8
_CODES = frozenset("bBhHiIlLqQefd")
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
    if header.width <= 0:
        return f"its rows have {header.width} bytes"
    if len(header.columns) > min(header.width + _FIELD_BYTES, TELEMETRY_COLUMNS):
        return f"{len(header.columns)} columns in rows of {header.width} bytes"
    for column in header.columns:
        if not -1 <= column.device < len(header.devices) or not abs(column.scale) <= NUMBER:
            return f"{column.metric or column.role} is of no device of the file, or of no scale"
        taken = column.taken if column.over is None else (*column.taken, column.over)
        if not all(_fits(one, header.width) for one in taken):
            return f"values of {column.metric or column.role} are outside of a row"
        if not taken and not 0 <= column.at <= header.width - _FIELD_BYTES:
            return f"{column.metric or column.role} is outside of a row"
    return ""


def _fits(taken: Taken, width: int) -> bool:
    if taken.code not in _CODES or min(taken.offset, taken.repeat) < 0:
        return False
    return taken.offset + taken.repeat * np.dtype(f"<{taken.code}").itemsize <= width


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

    def __len__(self) -> int:
        return self.count

    def role(self, role: str, source: str = "") -> I64:
        """The first field of that role (and source)."""
        column = next(
            column
            for column in self.header.columns
            if column.role == role and source in ("", column.source)
        )
        return self.field(column)

    def field(self, column: Column) -> I64:
        """The column's 8 bytes in each row, as whole numbers."""
        return self._view("q", 1, column.at)[:, 0]

    def values(self, taken: Taken) -> tuple[npt.NDArray[np.int64], Flags]:
        """The numbers of a block, shape (rows, repeat), and which of them were set. The highest bit
        of a u64 is not used by any counter.
        """
        raw = self._view(taken.code, taken.repeat, taken.offset)
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
        values, known = self.values(column.taken[0])
        if column.how == "one":
            return values[:, 0], known[:, 0]
        total = np.where(known, values, 0).sum(axis=1)
        if column.how == "total":
            return total, known.any(axis=1)
        mean = total / np.maximum(known.sum(axis=1), 1)
        return np.rint(mean) if column.how == "mean" else mean, known.any(axis=1)

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
