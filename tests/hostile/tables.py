"""Changes of CSV files: cells, headers, columns, quotes, lines."""

from __future__ import annotations

import csv
import io
import random
from collections.abc import Callable

from tests.hostile import extremes, raw

Rows = list[list[str]]


def _row(rows: Rows, rng: random.Random) -> list[str]:
    """A row below the header, or the header where there is no other."""
    return rows[rng.randrange(1, len(rows))] if len(rows) > 1 else rows[0]


def set_cell(rows: Rows, rng: random.Random) -> None:
    row = _row(rows, rng)
    if row:
        row[rng.randrange(len(row))] = extremes.cell(rng)


def set_column(rows: Rows, rng: random.Random) -> None:
    at, value, own = rng.randrange(len(rows[0]) or 1), extremes.cell(rng), rng.random() < 0.3
    for row in rows[1:]:
        if at < len(row):
            row[at] = extremes.cell(rng) if own else value


def set_header(rows: Rows, rng: random.Random) -> None:
    if rows[0]:
        rows[0][rng.randrange(len(rows[0]))] = rng.choice((extremes.text(rng), rng.choice(rows[0])))


def copy_column(rows: Rows, rng: random.Random) -> None:
    """A column twice, with its header."""
    at = rng.randrange(len(rows[0]) or 1)
    for row in rows:
        if at < len(row):
            row.insert(rng.randrange(2) * at, row[at])


def drop_column(rows: Rows, rng: random.Random) -> None:
    at, with_header = rng.randrange(len(rows[0]) or 1), rng.random() < 0.7
    for row in rows[0 if with_header else 1 :]:
        if at < len(row):
            del row[at]


def shift_row(rows: Rows, rng: random.Random) -> None:
    row = _row(rows, rng)
    if rng.random() < 0.5:
        row.insert(rng.randrange(len(row) + 1), extremes.cell(rng))
    elif row:
        del row[rng.randrange(len(row))]


def swap_columns(rows: Rows, rng: random.Random) -> None:
    one, other = rng.randrange(len(rows[0]) or 1), rng.randrange(len(rows[0]) or 1)
    for row in rows[1:]:
        if max(one, other) < len(row):
            row[one], row[other] = row[other], row[one]


def repeat_rows(rows: Rows, rng: random.Random) -> None:
    rows.extend(list(_row(rows, rng)) for _ in range(rng.choice((1, 2, 500))))


def header_again(rows: Rows, rng: random.Random) -> None:
    rows.insert(rng.randrange(len(rows) + 1), list(rows[0]))


def drop_rows(rows: Rows, rng: random.Random) -> None:
    del rows[rng.randrange(len(rows)) : rng.choice((len(rows), len(rows) // 2 + 1))]


def long_row(rows: Rows, rng: random.Random) -> None:
    _row(rows, rng).extend(["1"] * rng.choice((3, 5000)))


ROWS: tuple[Callable[[Rows, random.Random], None], ...] = (
    set_cell, set_cell, set_cell, set_column, set_column, set_header, copy_column, drop_column,
    shift_row, swap_columns, repeat_rows, header_again, drop_rows, long_row,
)  # fmt: skip


def open_quote(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + b'"' + data[at:]


def ends(data: bytes, rng: random.Random) -> bytes:
    """Other ends of lines, and no end of the last one."""
    return data.replace(b"\n", rng.choice((b"\r\n", b"\r", b"\n\n", b"\0", b"")))


def delimiter(data: bytes, rng: random.Random) -> bytes:
    return data.replace(b",", rng.choice((b";", b"\t", b" ", b",,", b"|")))


def marked(data: bytes, rng: random.Random) -> bytes:
    """A mark of the order of bytes, or another encoding."""
    text = data.decode("utf-8", "replace")
    return rng.choice((b"\xef\xbb\xbf" + data, text.encode("utf-16"), text.encode("utf-32")))


def bad_byte(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data) + 1)
    return data[:at] + rng.choice(extremes.BYTES) + data[at:]


TEXT: tuple[raw.Change, ...] = (open_quote, ends, delimiter, marked, bad_byte, bad_byte)


def change(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """The table with one change, and its name."""
    if rng.random() < 0.25:
        chosen = rng.choice(TEXT)
        return chosen(data, rng), f"csv.{chosen.__name__}"
    text = data.decode("utf-8", "surrogateescape")
    try:
        rows = [row for row in csv.reader(io.StringIO(text, newline="")) if row]
    except csv.Error:
        return raw.change(data, rng)
    if not rows:
        return raw.change(data, rng)
    change_it = rng.choice(ROWS)
    change_it(rows, rng)
    out = io.StringIO()
    quoting = rng.choice((csv.QUOTE_MINIMAL, csv.QUOTE_ALL))
    csv.writer(out, lineterminator="\n", quoting=quoting).writerows(rows)
    return out.getvalue().encode("utf-8", "surrogateescape"), f"csv.{change_it.__name__}"
