"""`profharness.run`: a run in a process of its own, as the command line starts it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from profharness.cli.notebook.words import words_of
from profharness.errors import (
    InputError,
    ProfharnessError,
    Unavailable,
    UsageError,
    WorkloadFailed,
)
from profharness.rundir.shown.screen import one_line
from profharness.understand.session.opening import open_run
from profharness.understand.session.recording import Run

_ERRORS: dict[int, type[ProfharnessError]] = {
    1: WorkloadFailed,
    UsageError.exit_code: UsageError,
    Unavailable.exit_code: Unavailable,
    InputError.exit_code: InputError,
}
_KEPT_LINES = 200
_KEPT_IN = re.compile(r"profharness: the run is kept in (.+), but it could not be analysed: ")


class _Told(msgspec.Struct):
    """What `run --json` prints, as far as it is needed here."""

    run: str


def run(
    workload: str | Sequence[str | os.PathLike[str]] = "particlenet",
    *,
    quiet: bool = False,
    **options: object,
) -> Run:
    """Start `profharness run` and open the run that it makes. `workload` is the name of a scan or
    a scan file, or a command as a list of words. Options are called as on the command line, with
    underscores: `profharness.run("particlenet", batch_sizes=[1, 4], profile="torch")`.

    What the program and the workload say goes to stderr as it comes, unless `quiet`. The run of a
    command that failed is returned, with its `exit_status`. Raises UsageError for an option that
    `run` does not have, WorkloadFailed for a scan that failed (what it measured is kept), and what
    the command line would have told: UsageError, Unavailable, InputError.
    """
    line = [sys.executable, "-m", "profharness", "run", *_line(workload, options), "--json"]
    if quiet:
        line.append("--quiet")
    if not isinstance(workload, str):
        line += ["--", *(os.fspath(word) for word in workload)]
    ended = _followed(line, quiet=quiet)
    root = _root_of(ended)
    if root is not None:
        made = open_run(root)
        if ended.status == 0 or made.manifest.kind == "command":
            return made
    raise _error(ended, root)


def _line(
    workload: str | Sequence[str | os.PathLike[str]], options: dict[str, object]
) -> list[str]:
    """Raises UsageError for a command without a word, and as `words_of` does."""
    if isinstance(workload, str):
        return [workload, *words_of(options)]
    if not workload:
        raise UsageError("an empty list is no command", 'name one: ["python", "train.py"]')
    return words_of(options)


class _Ended(msgspec.Struct):
    """How the process ended: its exit code, what it printed, and the last lines that it said."""

    status: int
    printed: bytes
    said: list[str]


def _followed(line: Sequence[str], *, quiet: bool) -> _Ended:
    """Run the line to its end. An interrupt of this process goes on to it, once."""
    said: list[str] = []
    with tempfile.TemporaryFile() as out:
        child = subprocess.Popen(
            line, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.PIPE, process_group=0
        )
        try:
            _relayed(child, said, quiet=quiet)
            status = child.wait()
        except BaseException:  # Ctrl-C: what was measured is finished before this goes on
            child.send_signal(signal.SIGINT)
            _relayed(child, said, quiet=quiet)
            child.wait()
            raise
        out.seek(0)
        return _Ended(status, out.read(), said)


def _relayed(child: subprocess.Popen[bytes], said: list[str], *, quiet: bool) -> None:
    """What the process says, on our stderr as it comes; the last lines of it are kept."""
    assert child.stderr is not None
    for raw in child.stderr:
        text = raw.decode("utf-8", "replace")
        said.append(text.rstrip("\n"))
        del said[:-_KEPT_LINES]
        if not quiet:
            sys.stderr.write(text)
            sys.stderr.flush()


def _root_of(ended: _Ended) -> Path | None:
    """Where the run is; None where none was made."""
    try:
        return Path(msgspec.json.decode(ended.printed, type=_Told).run)
    except msgspec.DecodeError:
        pass
    kept = [found[1] for line in ended.said if (found := _KEPT_IN.match(line))]
    return Path(kept[-1]) if kept else None


def _error(ended: _Ended, root: Path | None) -> ProfharnessError:
    """What the command line told, as an exception."""
    starts = [at for at, line in enumerate(ended.said) if line.startswith("error: ")]
    kind = _ERRORS.get(ended.status, ProfharnessError)
    kept = "" if root is None else f"what was measured is kept: profharness.open({str(root)!r})"
    if not starts:
        last = one_line(ended.said[-1]) if ended.said else "without a word"
        return kind(f"profharness run ended with exit code {ended.status}: {last}", kept)
    told = ended.said[starts[-1] :]
    message = [told[0].removeprefix("error: ")]
    hints: list[str] = []
    for line in told[1:]:
        if line.startswith(" " * 7) and not hints:
            message.append(line.strip())
        elif line.startswith("  "):
            hints.append(line.strip())
        else:
            break
    return kind("\n".join(message), "\n".join([*hints, kept] if kept else hints))
