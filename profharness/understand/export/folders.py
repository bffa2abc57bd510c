"""Sheets as files of one folder: Parquet, CSV or JSON, each file one sheet, written part after
part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from profharness.rundir.outputs import whole_file
from profharness.rundir.shown.screen import as_cell, encoded, one_line

if TYPE_CHECKING:
    import pandas as pd

    from profharness.understand.export.sheets import Sheet


def write_folder(sheets: Sequence[Sheet], folder: Path, form: str, *, raw: bool) -> list[Path]:
    """One file per sheet in a folder that is there; the files in order. `raw` leaves names as they
    are that a spreadsheet would take for formulas, in CSV.
    """
    paths = []
    for sheet in sheets:
        path = folder / f"{sheet.name}.{form}"
        with whole_file(path) as place:
            if form == "csv":
                _csv(sheet, place, raw=raw)
            else:
                _WRITERS[form](sheet, place)
        paths.append(path)
    return paths


def _csv(sheet: Sheet, path: Path, *, raw: bool) -> None:
    with path.open("w", encoding="utf-8", newline="") as out:
        for number, part in enumerate(sheet.parts()):
            cells(part, raw=raw).to_csv(out, header=number == 0, index=False, lineterminator="\n")


def cells(part: pd.DataFrame, *, raw: bool = False, longest: int | None = None) -> pd.DataFrame:
    """The part with texts that are fit for cells: what has no shape is escaped, and unless `raw` an
    apostrophe stands before what a spreadsheet would take for a formula.
    """

    def cell(value: object) -> object:
        if not isinstance(value, str):
            return value
        text = one_line(value, longest or len(value))
        return text if raw else as_cell(text)

    return part.assign(
        **{name: _mapped(part[name], cell) for name in part.columns if _holds_texts(part[name])}
    )


def _holds_texts(column: pd.Series[Any]) -> bool:
    return column.dtype.kind not in "iufb"


def _mapped(column: pd.Series[Any], cell: Callable[[object], object]) -> Any:
    """Each different text is worked on once."""
    import pandas as pd

    if isinstance(column.dtype, pd.CategoricalDtype):
        texts = {text: cell(text) for text in column.cat.categories}
        return column.astype(object).map(texts)
    return column.map(cell)


def _json(sheet: Sheet, path: Path) -> None:
    """A list of objects, one row per line; what is missing is null."""
    with path.open("wb") as out:
        lead = b"[\n"
        for part in sheet.parts():
            for row in records(part):
                out.write(lead)
                out.write(encoded(row))
                lead = b",\n"
        out.write(b"\n]\n")


def records(part: pd.DataFrame) -> Iterator[dict[str, object]]:
    """The rows as plain values by column; None for what is missing."""
    columns = [
        column.astype(object).where(column.notna(), None).tolist() for _, column in part.items()
    ]
    for row in zip(*columns, strict=True):
        yield dict(zip(part.columns, row, strict=True))


def _parquet(sheet: Sheet, path: Path) -> None:
    """Texts are dictionaries; unit and meaning of a column are its metadata."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    writer: Any = None
    try:
        for part in sheet.parts():
            if writer is None:
                first = pa.Table.from_pandas(part, preserve_index=False)
                schema = _noted(first.schema, sheet)
                writer = pq.ParquetWriter(path, schema, compression="zstd")
            writer.write_table(pa.Table.from_pandas(part, schema=schema, preserve_index=False))
    finally:
        if writer is not None:
            writer.close()


def _noted(schema: Any, sheet: Sheet) -> Any:
    """The schema with notes, and text in place of what the first part happens not to hold."""
    import pyarrow as pa

    found = []
    for column in schema:
        note = sheet.notes.get(column.name)
        kind = column.type
        if pa.types.is_dictionary(kind):
            kind = pa.dictionary(pa.int32(), pa.string())
        elif pa.types.is_null(kind):
            kind = pa.string()
        notes = {} if note is None else {"unit": note.unit, "meaning": note.meaning}
        found.append(pa.field(column.name, kind, metadata=notes))
    return pa.schema(found, metadata=schema.metadata)


_WRITERS: dict[str, Callable[[Sheet, Path], None]] = {"json": _json, "parquet": _parquet}
