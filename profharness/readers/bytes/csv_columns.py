"""A CSV file of a profiler as columns of text, and exact numbers from them.

Profilers write integers; a file that went through a spreadsheet holds `8.1097E+14` where times of a
nanosecond stood. Such a value cannot be brought back, so that it is no number here, and counted.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt

from profharness.errors import InputError
from profharness.readers.bytes.limits import COLUMNS, fields_of, finite, whole
from profharness.rundir.blocks import Blocks
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Problem

Mask = npt.NDArray[np.bool_]
_WHOLE = re.compile(r"[+-]?\d+(?:\.0*)?\Z", re.ASCII)
_HALVES = re.compile(r"([+-]?\d+)\.(\d+)\Z", re.ASCII)
_SCIENTIFIC = re.compile(r"[+-]?\d+(?:\.\d*)?[eE][+-]?\d+\Z")
_FIELD_LIMIT = 1 << 24


@dataclass(frozen=True, eq=False)
class Table:
    """Columns by name as the header spells them, all of one length. `uneven` counts rows that were
    left out because they have more or fewer fields than the header; `damage` says in words why the
    file ended early, if it did, and `is_open` that its last line has no end. Of columns of one name
    (`repeated`) the first is there.
    """

    path: Path
    columns: dict[str, list[str]]
    rows: int
    uneven: int = 0
    damage: str = ""
    is_open: bool = False
    repeated: tuple[str, ...] = ()

    def first(self, *names: str) -> list[str] | None:
        """The first of these columns that is there; spelling of case does not count."""
        low = self._by_lower_name
        return next((low[name.lower()] for name in names if name.lower() in low), None)

    @cached_property
    def _by_lower_name(self) -> dict[str, list[str]]:
        return {name.lower(): column for name, column in self.columns.items()}

    def problems(self) -> list[Problem]:
        """What is wrong with the file itself."""
        problems = []
        if self.damage:
            problems.append(
                Problem(
                    "error",
                    str(self.path),
                    1,
                    f"the file is cut or damaged: {self.damage}; {self.rows} rows were read",
                )
            )
        if self.uneven:
            problems.append(
                Problem(
                    "warning",
                    str(self.path),
                    self.uneven,
                    "rows have more or fewer fields than the header and were left out",
                )
            )
        return [
            *problems,
            *open_line(self.path, is_open=self.is_open),
            *name_repeated(self.path, self.repeated),
        ]


def open_line(path: Path, *, is_open: bool) -> tuple[Problem, ...]:
    """The problem of a file whose last line has no end: cut within the last field of a row, the row
    looks whole, and `16384` became `163`. Tools end every line.
    """
    said = (
        "its last line has no end: a file edited by hand may lack it; one as a tool wrote "
        "it was cut there, and its last value may be short"
    )
    return (Problem("warning", str(path), 1, said),) if is_open else ()


def name_repeated(path: Path, names: Sequence[str]) -> tuple[Problem, ...]:
    """The problem of a header in which several columns have one name."""
    said = f"columns have the name of another: the first counts ({', '.join(names[:3])})"
    return (Problem("warning", str(path), len(names), said),) if names else ()


def repeated(names: Sequence[str]) -> tuple[str, ...]:
    """The names that stood before, as often as they do; columns without a name are passed over."""
    seen: set[str] = set()
    found: list[str] = []
    for name in names:
        if name and name in seen:
            found.append(name)
        seen.add(name)
    return tuple(found)


def is_open(text: str) -> bool:
    """Whether the last line of a text has no end."""
    return bool(text) and not text.endswith(("\n", "\r"))


def read_text(path: Path, most: int | None = None) -> tuple[str, str]:
    """The file as text, plain or gzipped, up to the block that makes it longer than `most` bytes,
    and what damaged it. Raises InputError when it cannot be read.
    """
    blocks = Blocks(path, text=True)
    found, length, damage = [], 0, ""
    for block in blocks:
        found.append(block)
        length += len(block)
        if most is not None and length > most:
            damage = f"it is longer than {most >> 20} MiB"
            break
    return b"".join(found).decode("utf-8-sig", "replace"), damage or blocks.damage


def read_table(path: Path) -> Table:
    """All rows of a file with a header, of a gzipped one up to `fields_of` it. Raises InputError
    when there is no header or the file cannot be read.
    """
    return parse_table(path, *read_fields(path))


def read_fields(path: Path) -> tuple[str, str]:
    """The text of a CSV file and what damaged it, of a gzipped one as much as holds so many fields
    as `fields_of` it. Raises InputError when it cannot be read.
    """
    most = fields_of(path)
    blocks = Blocks(path, text=True)
    found, fields, damage = [], 0, ""
    for block in blocks:
        found.append(block)
        fields += block.count(b",") + block.count(b"\n")
        if fields > most:
            damage = "it holds more fields than a file of its size can"
            break
    return b"".join(found).decode("utf-8-sig", "replace"), damage or blocks.damage


def parse_table(path: Path, text: str, damage: str = "") -> Table:
    """`read_table` of text that was read already."""
    csv.field_size_limit(_FIELD_LIMIT)
    # a zero byte stands where another was lost: it must not make a shorter number of what is left
    text = text.replace("\0", "\ufffd")
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
        if any(len(row) != len(rows[0]) for row in rows):
            rows = _by_line(text)
    except csv.Error as error:
        raise InputError(
            f"{path} is no readable CSV file: {error}", "copy it again from where the tool wrote it"
        ) from error
    if not rows:
        raise InputError(
            f"{path} holds no header line",
            "the tool was interrupted before it wrote anything: record again",
        )
    header = [name.strip() for name in rows[0]]
    if len(header) > COLUMNS:
        raise InputError(
            f"{path} names {len(header)} columns, more than the {COLUMNS} that a table may have",
            "copy it again from where the tool wrote it",
        )
    even = [row for row in rows[1:] if len(row) == len(header)]
    columns = [list(column) for column in zip(*even, strict=True)] if even else [[] for _ in header]
    named: dict[str, list[str]] = {}
    for name, column in zip(header, columns, strict=True):
        named.setdefault(name, column)
    uneven = len(rows) - 1 - len(even)
    return Table(path, named, len(even), uneven, damage, is_open(text), repeated(header))


def _by_line(text: str) -> list[list[str]]:
    """The rows of a file of which some have not the length of the header. A quote that is not
    closed makes one row of all lines up to the next quote: those among them that are rows by
    themselves are taken as such.
    """
    lines = list(io.StringIO(text, newline=""))
    reader = csv.reader(lines)
    rows: list[list[str]] = []
    first = 0
    for row in reader:
        own = lines[first : reader.line_num]
        first = reader.line_num
        if rows and len(row) != len(rows[0]) and len(own) > 1:
            each = [alone for line in own for alone in csv.reader([line]) if alone]
            rows += each if any(len(alone) == len(rows[0]) for alone in each) else [row]
        elif row:
            rows.append(row)
    return rows


@dataclass(frozen=True, eq=False)
class Integers:
    """`values[i]` is exact where `valid[i]`, else NULL. `scientific` counts values like 8.1E+14,
    `fractions` those like 2.5 (their floor is the value, and they are valid).
    """

    values: I64
    valid: Mask
    scientific: int = 0
    fractions: int = 0


def integers(texts: Sequence[str] | None, rows: int) -> Integers:
    """Integers of a column; all invalid where the column is missing. A float without fraction
    counts as an integer.
    """
    if texts is None:
        return Integers(np.full(rows, NULL, np.int64), np.zeros(rows, np.bool_))
    try:
        if not _is_plain("".join(texts)):
            return _each(texts)
        return Integers(
            np.fromiter(map(int, texts), np.int64, len(texts)), np.ones(len(texts), np.bool_)
        )
    except (ValueError, OverflowError):
        return _each(texts)


def _is_plain(text: str) -> bool:
    """Whether Python's `int` takes nothing else in it for a number than what programs write."""
    return text.isascii() and "_" not in text


def _each(texts: Sequence[str]) -> Integers:
    values, valid = np.full(len(texts), NULL, np.int64), np.zeros(len(texts), np.bool_)
    scientific = fractions = 0
    for row, given in enumerate(texts):
        text = given.strip()
        if _WHOLE.match(text):
            number = whole(text.partition(".")[0])
        elif match := _HALVES.match(text):
            number = whole(match[1])
            fractions += 1
        else:
            scientific += _SCIENTIFIC.match(text) is not None
            continue
        if number is not None:
            values[row], valid[row] = number, True
    return Integers(values, valid, scientific, fractions)


@dataclass(frozen=True, eq=False)
class Figures:
    """`values[i]` is NaN where a field is empty or no number; `unreadable` says where it is the
    latter.
    """

    values: F64
    unreadable: Mask

    @property
    def are_most(self) -> bool:
        """Whether more of the fields that are not empty are numbers than are none."""
        return int(self.unreadable.sum()) <= int((~np.isnan(self.values)).sum())


def figures(texts: Sequence[str]) -> Figures:
    """Numbers of a column, each by itself."""
    values = np.array([_figure(text) for text in texts], np.float64)
    lost = np.isnan(values)
    if lost.any():
        lost &= np.array([bool(text.strip()) for text in texts], np.bool_)
    return Figures(values, lost)


def _figure(text: str) -> float:
    number = finite(text)
    return float("nan") if number is None else number


def unreadable(texts: Sequence[str] | None, parsed: Integers) -> int:
    """How many fields of a column are neither empty nor whole numbers that can be: -1 is what tools
    write for none, and nothing lies below it.
    """
    below = int((parsed.values < NULL).sum())
    if texts is None or parsed.valid.all():
        return below
    return below + sum(bool(texts[row].strip()) for row in np.flatnonzero(~parsed.valid).tolist())


def not_numbers(path: Path, count: int) -> tuple[Problem, ...]:
    """The problem of fields that hold something else than the number that belongs there."""
    said = "values are no numbers: taken as not recorded"
    return (Problem("warning", str(path), count, said),) if count else ()


def is_exception(empty: int, rows: int) -> bool:
    """Whether so many rows of a column are empty that the others tell that they should not be."""
    return 0 < empty <= rows // 2


def empty_fields(texts: Sequence[str] | None) -> int:
    """How many fields of a column are empty where most are not."""
    empty = sum(not text.strip() for text in texts) if texts is not None else 0
    return empty if texts is not None and is_exception(empty, len(texts)) else 0


def lacking(path: Path, empty: Mapping[str, int]) -> tuple[Problem, ...]:
    """The problem of fields that are empty in columns that other rows fill, by their columns."""
    listed = ", ".join(f"{name} {count}" for name, count in sorted(empty.items()) if count)
    said = f"fields are empty where other rows have a value: taken as not recorded ({listed})"
    return (Problem("warning", str(path), sum(empty.values()), said),) if listed else ()
