"""`profharness index`: one page over many runs, and tags and notes of single ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from profharness.errors import InputError, UsageError

if TYPE_CHECKING:
    from profharness.rundir.notes import Notes

_HEAD = 4096


def index(
    folder: Annotated[Path, typer.Argument(help="The folder with the runs.", metavar="FOLDER")],
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The page (default: FOLDER/index.html)."),
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", help="First give a run this tag. Repeatable.", metavar="RUN=WORD"),
    ] = None,
    note: Annotated[
        list[str] | None,
        typer.Option(
            "--note",
            help="First give a run this note, in place of its old one.",
            metavar="RUN=TEXT",
        ),
    ] = None,
    force: Annotated[
        bool, typer.Option("--force", help="Overwrite a page that is not an index.")
    ] = False,
) -> None:
    """Write one page over the runs below a folder: best figure, verdict, findings, tags and notes.
    The table can be filtered and sorted, and a plot shows each figure over the commits.
    """
    from profharness.cli.running.answers import near
    from profharness.cli.sharing.places import require_free
    from profharness.report.sheets.index import render
    from profharness.rundir import notes
    from profharness.rundir.paths import write_atomic
    from profharness.understand.run_entries import entries

    place = output or folder / "index.html"
    roots = _roots(folder)
    require_free(place, (), force=force or _is_ours(place))
    for words, change in ((tag or (), notes.tagged), (note or (), notes.noted)):
        for word in words:
            _change(word, folder, roots, change)
    shown = entries(roots, place.absolute().parent)
    title = folder.resolve().name or str(folder)
    write_atomic(place, render(title, shown).encode())
    typer.echo(near(place))


def _roots(folder: Path) -> list[Path]:
    """The runs below the folder. Raises InputError where there are none."""
    from profharness.rundir.foreign.listing import runs_below

    try:
        found = runs_below(folder)
    except OSError as error:
        raise InputError(
            f"{folder} cannot be read: {error.strerror or error}",
            "name a folder with runs, such as traces",
        ) from error
    if not found:
        raise InputError(
            f"no runs below {folder}", "make one with `profharness run`, or name another folder"
        )
    return found


def _is_ours(place: Path) -> bool:
    """Whether an index of ours stands there, which may be written again."""
    from profharness.report.sheets.index import MARK

    try:
        with place.open("rb") as file:
            return f'<meta name="generator" content="{MARK}">'.encode() in file.read(_HEAD)
    except OSError:
        return False


def _change(
    word: str, folder: Path, roots: Sequence[Path], change: Callable[[Notes, str], Notes]
) -> None:
    """Carry out one `RUN=TEXT`. Raises UsageError where no run is named, or it cannot be written
    into.
    """
    from profharness.rundir.notes import read_notes, write_notes
    from profharness.rundir.outputs import unwritable

    root, text = _named(word, folder, roots)
    try:
        write_notes(root, change(read_notes(root), text))
    except OSError as error:
        raise unwritable(root / "notes.json", error, "copy the run first") from error


def _named(word: str, folder: Path, roots: Sequence[Path]) -> tuple[Path, str]:
    """The run and the text of `RUN=TEXT`; both may hold an equals sign, so that the first part that
    names a run counts.
    """
    known = {root.resolve() for root in roots}
    at = word.find("=")
    while at >= 0:
        for root in (folder / word[:at], Path(word[:at])):
            if word[:at] and root.resolve() in known:
                return root, word[at + 1 :]
        at = word.find("=", at + 1)
    raise UsageError(
        f"{word}: names no run below {folder}", "write RUN=WORD, with the name of a run's folder"
    )
