"""Where a page or document goes: its name where none was given, and that nothing is lost there."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from profharness.errors import OutputExists
from profharness.rundir.outputs import refuse_inputs, require_writable

ANOTHER = "name another place with -o"
_ENDINGS = (
    ".gz",
    ".json",
    ".csv",
    ".db",
    ".rpd",
    ".pftrace",
    ".proto",
    ".perfetto-trace",
    ".parquet",
    ".tsv",
    ".txt",
    ".log",
    ".trace",
    ".pt",
)  # of the formats that readers know
_PIPES = ("/dev/", "/proc/")
_LONGEST = 120


def stem_of(path: Path) -> str:
    """A file's name without its known endings (`resnet.pt.trace.json.gz` is `resnet`), a run's or
    folder's name; `stdin` for what comes through a pipe without a name.
    """
    given = str(path)
    if given == "-" or given.startswith(_PIPES):
        return "stdin"
    name = path.name or path.resolve().name or "report"
    while True:
        ending = next((one for one in _ENDINGS if name.lower().endswith(one)), "")
        if not ending or ending == name.lower():
            return name[:_LONGEST]
        name = name[: -len(ending)]


def place_here(paths: Sequence[Path], ending: str) -> Path:
    """`NAME.report.html` in the working directory, after the first of the paths."""
    return Path(f"{stem_of(paths[0])}.report.{ending}")


def require_free(place: Path, inputs: Sequence[Path], *, force: bool) -> None:
    """A file can be made at the place, and nothing that is read for it or that exists goes. Raises
    UsageError, and OutputExists without `force`.
    """
    refuse_inputs(place, inputs)
    if not force and (place.exists() or place.is_symlink()):
        raise OutputExists(f"{place} exists", f"{ANOTHER}, or overwrite it with --force")
    require_writable(place, ANOTHER)
