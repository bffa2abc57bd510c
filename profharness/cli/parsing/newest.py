"""Which run is meant where a line names none, or says `latest`: the newest one below the folder of
runs.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from profharness.errors import UsageError
from profharness.rundir.foreign.newest import newest_runs, output_folder
from profharness.rundir.shown.screen import mention

LATEST = Path("latest")
RUN_OR_FILE = frozenset({"RUN|FILE", "RUN|FILE..."})
"""Arguments, as help names them, that stand for the newest run where they are left out."""
_HINT = "name a run directory or a trace file, or make a run: `profharness run -- COMMAND`"


def chosen(word: Any) -> Any:
    """The runs and files of an argument, one or a list, with the newest run in the place of nothing
    and of `latest`, and a sentence on stderr that names it. A file or folder of the name `latest`
    is itself. Raises UsageError where there is no run.
    """
    if word is None or word == []:
        return newest_of(1)[0]
    return list(map(named, word)) if isinstance(word, list) else named(word)


def named(path: Path) -> Path:
    """The path, or for `latest` the newest run, unless something has that name."""
    return newest_of(1)[0] if path == LATEST and not path.exists() else path


def newest_of(count: int) -> tuple[Path, ...]:
    """As many of the newest runs, the newest first, told on stderr. Raises UsageError for fewer."""
    base = output_folder()
    found = newest_runs(base)[:count]
    if len(found) < count:
        have = f"there is {'only one run' if found else 'no run'} below {base}"
        raise UsageError(f"{have}, and the line names none", _HINT)
    mention(f"the newest run{'s' * (count > 1)}: {', '.join(map(str, found))}")
    return found
