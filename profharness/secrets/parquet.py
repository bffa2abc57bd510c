"""Secrets in Parquet files: texts and blobs of all columns, at any depth, and notes of the file.
The schema, the row groups and the compression of each column stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from profharness.errors import InputError
from profharness.secrets.cells import NAME_COLUMNS, VALUE_COLUMNS, Cell, cleaned, closed
from profharness.secrets.patterns import secret_spans
from profharness.secrets.replacing import private, take_place

MAGIC = b"PAR1"
_ROWS = 1 << 14
_SCHEMA_NOTE = b"ARROW:schema"  # Arrow's own, in base64, written anew with the file


def find(path: Path, left: list[str] | None = None) -> Counter[str]:
    """The secrets of a file; `left` is told in words what was not looked at. Raises InputError when
    the file cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    found: Counter[str] = Counter()
    try:
        with pq.ParquetFile(path) as file:
            _clean_notes(file.schema_arrow.metadata, found)
            if left is not None and any(map(secret_spans, _said_of(file.schema_arrow))):
                left.append(f"{path}: values that look secret in what its columns are called")
            for batch in file.iter_batches(batch_size=_ROWS):
                _clean_batch(batch, found)
                if left is not None:
                    left += (f"{path}: {part}" for part in _closed(batch))
    except (pa.ArrowException, OSError, MemoryError) as error:
        raise _damaged(path, error) from error
    return found


def clean(path: Path) -> None:
    """Replace the secrets of a file. Raises InputError when it cannot be read or written."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    ignored: Counter[str] = Counter()
    try:
        with private(path) as copy:
            with pq.ParquetFile(path) as file:
                schema = file.schema_arrow
                schema = schema.with_metadata(_clean_notes(schema.metadata, ignored))
                with pq.ParquetWriter(copy, schema, compression=_compression(file)) as out:
                    for group in range(file.num_row_groups):
                        table = file.read_row_group(group)
                        batches = [_clean_batch(one, ignored) for one in table.to_batches(_ROWS)]
                        out.write_table(
                            pa.Table.from_batches(batches, schema), row_group_size=1 << 30
                        )
            take_place(copy, path)
    except (pa.ArrowException, MemoryError) as error:
        raise _damaged(path, error) from error


def _said_of(fields: Iterable[Any]) -> Iterator[bytes]:
    """Names and notes of columns, at any depth."""
    for field in fields:
        yield field.name.encode()
        yield from (field.metadata or {}).values()
        kind = field.type
        yield from _said_of(kind.field(at) for at in range(kind.num_fields))


def _closed(batch: Any) -> Iterator[str]:
    """Blobs that are packed in a way that is not looked into, of the columns that are no lists."""
    import pyarrow as pa

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        if pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type):
            ways = {closed(one.as_py()) for one in column if one.is_valid}
            yield from (f"blobs in {name} that are packed as {way}" for way in sorted(ways - {""}))


def _damaged(path: Path, error: BaseException) -> InputError:
    return InputError(
        f"{path} is damaged, no readable Parquet: {str(error).splitlines()[0][:200]}",
        "copy or record it again; nothing was changed",
    )


def _compression(file: Any) -> Any:
    """By column, as the first row group has it; pyarrow's names for its codecs differ in one."""
    if not file.metadata.num_row_groups:
        return "snappy"
    group = file.metadata.row_group(0)
    chunks = [group.column(at) for at in range(group.num_columns)]
    return {
        chunk.path_in_schema: "none" if chunk.compression == "UNCOMPRESSED" else chunk.compression
        for chunk in chunks
    }


def _clean_notes(
    notes: dict[bytes, bytes] | None, found: Counter[str]
) -> dict[bytes, bytes] | None:
    if not notes:
        return notes
    return {
        key: value
        if key == _SCHEMA_NOTE
        else _value(value, is_text=True, names=("", key.decode("utf-8", "replace")), found=found)
        for key, value in notes.items()
    }


def _clean_batch(batch: Any, found: Counter[str]) -> Any:
    import pyarrow as pa

    names = list(batch.schema.names)
    naming = next((at for at, name in enumerate(names) if name.lower() in NAME_COLUMNS), None)
    called = None
    if naming is not None and pa.types.is_string(batch.schema.types[naming]):
        called = batch.column(naming).to_pylist()
    columns = []
    for at, name in enumerate(names):
        column, is_value = batch.column(at), name.lower() in VALUE_COLUMNS and at != naming
        if not _may_hold_text(column.type):
            columns.append(column)
            continue
        values = _values(column, called if is_value else None, name, found)
        columns.append(column if values is None else pa.array(values, column.type))
    return pa.RecordBatch.from_arrays(columns, schema=batch.schema)


def _values(column: Any, called: list[Any] | None, name: str, found: Counter[str]) -> Any:
    """The values of a column without secrets; None where there are none."""
    import pyarrow as pa

    if called is None and not pa.types.is_nested(column.type):
        plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
        if pa.types.is_fixed_size_binary(plain.type):
            return _fixed_values(plain, name, found)
        if pa.types.is_string_view(plain.type) or pa.types.is_binary_view(plain.type):
            # which Arrow does not compare
            text = pa.types.is_string_view(plain.type)
            plain = plain.cast(pa.large_string() if text else pa.large_binary())
        return _repeated_values(plain, name, found)
    before = column.to_pylist()
    names = called or [""] * len(before)
    trial: Counter[str] = Counter()
    values = [
        _any(one, (name, note if isinstance(note, str) else ""), trial)
        for one, note in zip(before, names, strict=True)
    ]
    found += trial
    return values if trial else None


def _repeated_values(column: Any, name: str, found: Counter[str]) -> Any:
    """As `_values`, each distinct value looked at once: a few bytes of a file can say that millions
    are equal.
    """
    encoded = column.dictionary_encode()
    held = [Counter[str]() for _ in range(len(encoded.dictionary))]
    distinct = encoded.dictionary.to_pylist()
    new = [_any(one, (name, ""), counts) for one, counts in zip(distinct, held, strict=True)]
    if not any(held):
        return None
    places = encoded.indices.to_pylist()
    for place, times in Counter(place for place in places if place is not None).items():
        for label, count in held[place].items():
            found[label] += count * times
    return [None if place is None else new[place] for place in places]


def _fixed_values(column: Any, name: str, found: Counter[str]) -> Any:
    cells = [
        None if one is None else cleaned(Cell(one, is_text=False, column=name, is_fixed=True))
        for one in column.to_pylist()
    ]
    held = sum((cell[1] for cell in cells if cell), Counter[str]())
    found += held
    return [cell and cell[0] for cell in cells] if held else None


def _any(value: Any, names: tuple[str, str], found: Counter[str]) -> Any:
    """A value of Python's, at any depth."""
    if isinstance(value, str | bytes):
        is_text = isinstance(value, str)
        raw = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
        new = _value(raw, is_text, names, found)
        return new.decode("utf-8", "surrogateescape") if is_text else new
    if isinstance(value, list):
        return [_any(one, names, found) for one in value]
    if isinstance(value, tuple):  # of a map
        key = _any(value[0], (names[0], ""), found)
        return (key, _any(value[1], (names[0], str(value[0])), found))
    if isinstance(value, dict):
        return {key: _any(one, (names[0], str(key)), found) for key, one in value.items()}
    return value


def _value(raw: bytes, is_text: bool, names: tuple[str, str], found: Counter[str]) -> bytes:
    new, held = cleaned(Cell(raw, is_text, *names))
    found += held
    return new


def _may_hold_text(kind: Any) -> bool:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return _may_hold_text(kind.value_type)
    if pa.types.is_nested(kind):
        return any(_may_hold_text(kind.field(at).type) for at in range(kind.num_fields))
    return bool(
        pa.types.is_string(kind)
        or pa.types.is_large_string(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_fixed_size_binary(kind)
        or pa.types.is_string_view(kind)
        or pa.types.is_binary_view(kind)
    )
