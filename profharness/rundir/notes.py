"""What people note of a run: tags and one text, in `notes.json` beside the manifest, which stays as
the measuring left it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from profharness.errors import UsageError
from profharness.rundir.foreign.border import reading
from profharness.rundir.foreign.inside import Inside
from profharness.rundir.foreign.small_files import read_file
from profharness.rundir.paths import write_atomic

NOTES = "notes.json"
MOST_TAGS, LONGEST_TAG, LONGEST_NOTE = 50, 60, 2_000
_MOST_BYTES = 1 << 20


class Notes(msgspec.Struct, frozen=True, kw_only=True):
    """Tags of a run in the order in which they were given, and a note."""

    schema: int = 1
    tags: tuple[str, ...] = ()
    note: str = ""


def read_notes(root: Path) -> Notes:
    """The notes of a run; none where there is no such file. Raises InputError for a damaged one."""
    path = root / NOTES
    if not path.is_file():
        return Notes()
    with reading(path, "not readable notes"):
        return msgspec.json.decode(read_file(Inside(root).require(path), _MOST_BYTES), type=Notes)


def write_notes(root: Path, notes: Notes) -> None:
    """Keep the notes in the run; OSError where it cannot be written into."""
    data = msgspec.json.format(msgspec.json.encode(notes), indent=1) + b"\n"
    write_atomic(root / NOTES, data)


def tagged(notes: Notes, tag: str) -> Notes:
    """The notes with one tag more. Raises UsageError for what is no tag."""
    word = " ".join(tag.split())
    if not word or len(word) > LONGEST_TAG:
        raise UsageError(
            f"a tag has 1 to {LONGEST_TAG} characters: {word[:LONGEST_TAG]!r}",
            "longer words belong into --note",
        )
    if len({*notes.tags, word}) > MOST_TAGS:
        raise UsageError(f"a run has {MOST_TAGS} tags at most", "take some out of its notes.json")
    return msgspec.structs.replace(notes, tags=tuple(dict.fromkeys((*notes.tags, word))))


def noted(notes: Notes, text: str) -> Notes:
    """The notes with this text in place of the former; empty takes it away. Raises UsageError."""
    if len(text) > LONGEST_NOTE:
        raise UsageError(
            f"a note has {LONGEST_NOTE} characters at most, this one has {len(text)}",
            "put long texts into a file of your own in the run",
        )
    return msgspec.structs.replace(notes, note=text.strip())
