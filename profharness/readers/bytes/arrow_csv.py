"""Large CSV files as columns, block by block: exact integers, and texts as codes of a pool.

The parser is Arrow's. Files of a few hundred lines are read by `csv_columns`, which needs no such
library.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np

from profharness.errors import InputError
from profharness.readers.border import without_reports
from profharness.readers.bytes.arrow_bytes import ArrowBytes
from profharness.readers.bytes.csv_columns import figures as figures_of
from profharness.readers.bytes.csv_columns import (
    is_exception,
    lacking,
    name_repeated,
    not_numbers,
    open_line,
    repeated,
)
from profharness.readers.bytes.limits import LATEST_NS, records_of, whole
from profharness.rundir.blocks import Blocks, read_head
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Problem, Strings

Kind = Literal["time", "integer", "text", "figure"]
BLOCK_BYTES = 4 << 20
_EXACT = 1 << 53
_LONGEST_HEADER = 1 << 14


def header_of(head: bytes) -> list[str]:
    """The names in the header of a file that begins with `head`, lower-case; empty where it is no
    text.
    """
    return _header(head)[0]


def _header(head: bytes) -> tuple[list[str], int]:
    """Names, and how many lines they take: where a quote is not closed, a line end is part of a
    name (RFC 4180).
    """
    try:
        text = head.removeprefix(b"\xef\xbb\xbf")[:_LONGEST_HEADER].decode("utf-8", "replace")
        reader = csv.reader(io.StringIO(text, newline=""))
        names = next(reader, [])
        if any("\0" in name for name in names):  # no text, and no header
            return [], 0
    except csv.Error:
        return [], 0
    return [name.strip().lower() for name in names], reader.line_num


@dataclass(frozen=True, eq=False)
class Block:
    """Rows of one block: integers (NULL where empty) and codes of texts by column, figures
    apart.
    """

    rows: int
    integers: dict[str, I64]
    figures: dict[str, F64]


@dataclass(eq=False)
class CsvColumns:
    """The columns of one file, in blocks, once; the counts are complete when the last block was
    given.

    `wanted` maps lower-case names to what they hold; names that the file lacks are left out. A row
    without a whole number in a `time` column is left out and counted in `not_whole`; `uneven`
    counts rows of the wrong length, and `unreadable` values of other columns that are no numbers
    (they are NULL). Of columns in `may_be_empty`, single rows may have no value.
    """

    path: Path
    wanted: Mapping[str, Kind]
    strings: Strings
    block_bytes: int = BLOCK_BYTES
    rows: int = 0
    uneven: int = 0
    not_whole: int = 0
    unreadable: int = 0
    may_be_empty: Collection[str] = ()
    first_bad: str = ""
    damage: str = ""
    is_open: bool = False
    repeated: tuple[str, ...] = ()
    bad_header: bool = False
    _lengths: Counter[int | None] = field(default_factory=Counter)
    _empty: Counter[str] = field(default_factory=Counter)
    _clean: bool = False

    def blocks(self) -> list[Block]:
        """All blocks. Raises InputError when the file cannot be read."""
        blocks = self._attempt(None)
        width, rows = next(iter(self._lengths.most_common(1)), (None, 0))
        # where several rows, and all of them, have one length that is not the header's, the header
        # is at fault; a cut file has one such row
        if (
            not self.rows
            and rows == self.uneven > 1
            and width is not None
            and self._suffices(width)
        ):
            blocks = self._attempt(width)
            self.bad_header = self.rows > 0
        return blocks

    def _suffices(self, width: int) -> bool:
        """Whether so many names of the header hold all its times and texts that are wanted."""
        names = header_of(read_head(self.path, _LONGEST_HEADER))
        return not any(self.wanted.get(name) in ("time", "text") for name in names[width:])

    def _attempt(self, width: int | None) -> list[Block]:
        import pyarrow as pa

        # a row of the wrong length is handed to `_skip` as text, which Arrow cannot do with bytes
        # that are none: where reading fails, they are replaced first. Arrow's own report of that
        # goes to where nobody sees it
        for clean, careful in ((False, False), (True, False), (True, True)):
            self.rows = self.uneven = self.not_whole = self.unreadable = 0
            self._lengths.clear()
            self._empty.clear()
            self._clean = clean
            try:
                with without_reports():
                    return list(self._read(width, careful=careful))
            except _HexadecimalError:
                continue
            except pa.ArrowInvalid as error:
                if "Empty CSV" in str(error):
                    return []
                if careful or self.uneven > self._most_uneven:
                    raise InputError(
                        f"{self.path} is no readable CSV file: {error}",
                        "copy it again from where the tool wrote it",
                    ) from error
                # some number is none: read texts and judge each
        return []

    def problems(self) -> Iterator[Problem]:
        """What is wrong with the file itself."""
        where = str(self.path)
        if self.damage:
            yield Problem(
                "error",
                where,
                1,
                f"the file is cut or damaged: {self.damage}; {self.rows} rows were read",
            )
        if self.uneven:
            yield Problem(
                "warning",
                where,
                self.uneven,
                "rows have more or fewer fields than the header and were left out",
            )
        if self.bad_header:
            yield Problem(
                "warning",
                where,
                1,
                "the header does not fit the rows: columns behind the first fault in it are "
                "not read, and a row may be lost",
            )
        if self.not_whole:
            yield Problem(
                "error",
                where,
                self.not_whole,
                "rows have times that are no whole numbers, or below zero, and were left out "
                f"(first: {self.first_bad!r}; a spreadsheet cuts digits)",
            )
        if self.unreadable:
            yield from not_numbers(self.path, self.unreadable)
        empty = {
            name: count * (name not in self.may_be_empty and is_exception(count, self.rows))
            for name, count in self._empty.items()
        }
        yield from lacking(self.path, empty)
        yield from open_line(self.path, is_open=self.is_open)
        yield from name_repeated(self.path, self.repeated)

    def _read(self, width: int | None, *, careful: bool) -> Iterator[Block]:
        """The blocks, with as many names of the header as `width` says."""
        import pyarrow as pa
        from pyarrow import csv as arrow_csv

        source = Blocks(self.path, text=True)
        supply = ArrowBytes(source, clean=self._clean)
        stream = supply.stream()
        header, lines = _header(stream.peek(_LONGEST_HEADER))
        self.repeated = tuple(name for name in repeated(header[:width]) if name in self.wanted)
        names = _once(header[:width] or [""])
        kept = [name for name in names if name in self.wanted]
        code = pa.dictionary(pa.int32(), pa.binary())
        types = {"text": code, "figure": pa.float64(), "time": pa.int64(), "integer": pa.int64()}
        with (
            supply,
            arrow_csv.open_csv(
                stream,
                read_options=arrow_csv.ReadOptions(
                    use_threads=False,
                    block_size=self.block_bytes,
                    column_names=names,
                    skip_rows=lines,
                ),
                parse_options=arrow_csv.ParseOptions(invalid_row_handler=self._skip),
                convert_options=arrow_csv.ConvertOptions(
                    check_utf8=False,
                    null_values=[""],
                    include_columns=kept,
                    column_types={
                        name: pa.binary()
                        if careful and self.wanted[name] != "text"
                        else types[self.wanted[name]]
                        for name in kept
                    },
                ),
            ) as batches,
        ):
            for batch in batches:
                if supply.has_hexadecimal and not careful:
                    raise _HexadecimalError
                block = self._judged(batch, kept) if careful else self._plain(batch, kept)
                self.rows += block.rows
                yield block
                if self.rows > self._most:
                    self.damage = "it holds more rows than a file of its size can"
                    return
        self.damage, self.is_open = source.damage, source.last not in (b"\n", b"\r")

    def _skip(self, row: Any) -> Literal["skip", "error"]:
        if row.text:
            self.uneven += 1
            self._lengths[row.actual_columns] += 1
        return "error" if self.uneven > self._most_uneven else "skip"

    @property
    def _most_uneven(self) -> int:
        """Each costs a call from Arrow's parser, which takes as long as reading a hundred rows."""
        return self._most // 5

    @cached_property
    def _most(self) -> int:
        """Rows that are read."""
        return records_of(self.path)

    def _plain(self, batch: Any, names: list[str]) -> Block:
        integers, figures, valid = {}, {}, []
        first_bad = ""
        for name in names:
            column = batch.column(name)
            if self.wanted[name] == "text":
                integers[name] = self._codes(name, column)
                continue
            if self.wanted[name] == "figure":
                values = column.fill_null(np.nan).to_numpy(zero_copy_only=False)
                figures[name] = self._measured(values)
                continue
            # copied, so that Arrow can use the block's memory for the next one
            whole = column.fill_null(NULL) if column.null_count else column
            numbers = integers[name] = np.array(whole.to_numpy(zero_copy_only=False), np.int64)
            if self.wanted[name] == "integer":
                self._empty[name] += column.null_count
                self._judge(numbers)
                continue
            bad = (numbers < 0) | (numbers > LATEST_NS)
            if bad.any():
                valid.append(~bad)
                bad &= column.is_valid().to_numpy(zero_copy_only=False)
                first_bad = first_bad or (str(numbers[bad.argmax()]) if bad.any() else "")
        return self._without(Block(batch.num_rows, integers, figures), valid, first_bad)

    def _judge(self, numbers: I64) -> None:
        """Ids and sizes are not below zero; -1 is what tools write for none."""
        if len(numbers) and numbers.min() < NULL:
            below = numbers < NULL
            self.unreadable += int(below.sum())
            numbers[below] = NULL

    def _measured(self, values: F64) -> F64:
        """Values of counters; NaN for what is no number."""
        lost = ~np.isfinite(values)
        self.unreadable += int(lost.sum())
        return np.where(lost, np.nan, values)

    def _judged(self, batch: Any, names: list[str]) -> Block:
        """The slow way for files with damaged numbers."""
        integers, figures, valid = {}, {}, []
        first_bad = ""
        for name in names:
            column = batch.column(name)
            if self.wanted[name] == "text":
                integers[name] = self._codes(name, column)
                continue
            is_time = self.wanted[name] == "time"
            sound = None if self.wanted[name] == "figure" else _decimals(column)
            if sound is not None and (not is_time or ((sound >= 0) & (sound <= LATEST_NS)).all()):
                integers[name] = sound
                if not is_time:
                    self._judge(sound)
                continue
            texts = [
                (value or b"").decode("utf-8", "replace").strip() for value in column.to_pylist()
            ]
            if self.wanted[name] == "figure":
                figures[name] = self._measured(figures_of(texts).values)
                continue
            numbers = [_whole(text) for text in texts]
            if is_time:
                numbers = [
                    None if number is None or not 0 <= number <= LATEST_NS else number
                    for number in numbers
                ]
            good = np.array([number is not None for number in numbers], np.bool_)
            integers[name] = np.array(
                [NULL if number is None else number for number in numbers], np.int64
            )
            if is_time:
                valid.append(good)
                first_bad = first_bad or next(
                    (text for text, is_number in zip(texts, good, strict=True) if not is_number), ""
                )
            else:
                self._empty[name] += texts.count("")
                self.unreadable += sum(
                    1 for text, is_number in zip(texts, good, strict=True) if text and not is_number
                )
                self._judge(integers[name])
        return self._without(Block(batch.num_rows, integers, figures), valid, first_bad)

    def _without(self, block: Block, valid: list[Any], first_bad: str) -> Block:
        """The block without the rows that lack a time."""
        if not valid:
            return block
        keep = np.logical_and.reduce(valid)
        self.not_whole += int((~keep).sum())
        self.first_bad = self.first_bad or first_bad
        return Block(
            int(keep.sum()),
            {name: column[keep] for name, column in block.integers.items()},
            {name: column[keep] for name, column in block.figures.items()},
        )

    def _codes(self, name: str, column: Any) -> I64:
        """Codes in the pool; NULL where the field is empty."""
        texts = [value.decode("utf-8", "replace") for value in column.dictionary.to_pylist()]
        table = np.array(
            [*(self.strings.code(text) if text else NULL for text in texts), NULL], np.int64
        )
        codes: I64 = table[column.indices.fill_null(len(texts)).to_numpy(zero_copy_only=False)]
        if "" in texts or column.null_count:
            self._empty[name] += int((codes == NULL).sum())
        return codes


class _HexadecimalError(Exception):
    """What Arrow takes for numbers must be judged as text."""


def _decimals(column: Any) -> I64 | None:
    """The numbers of a column of texts, where all of them are plain decimals; else None."""
    import pyarrow as pa
    from pyarrow import compute

    plain = compute.match_substring_regex(column, pattern=r"^-?[0-9]{1,18}$")
    if not compute.all(plain.fill_null(False)).as_py():  # noqa: FBT003  its only argument
        return None
    return np.array(column.cast(pa.string()).cast(pa.int64()), np.int64)


def _once(names: list[str]) -> list[str]:
    """The names, each once: of several that are alike the first counts, and the others get one that
    no header has, since its names are stripped.
    """
    return [name if names.index(name) == at else f" {at}" for at, name in enumerate(names)]


def _whole(text: str) -> int | None:
    """A whole number; one with a fraction of zeros only as far as a float could hold it exactly."""
    digits, point, fraction = text.partition(".")
    number = None if fraction.strip("0") else whole(digits)
    return None if number is None or (point and abs(number) >= _EXACT) else number
