"""The page over many runs: a table to filter and sort, two of them to compare, and how a figure
went over the commits.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

from profharness.report.sheets.entries import Entry
from profharness.report.sheets.frame import rendered
from profharness.report.sheets.pictures import Dot, history_picture
from profharness.report.text.figures import si_text
from profharness.report.text.folding import cut_middle
from profharness.rundir.shown.screen import one_line

MOST_HISTORIES = 24
"""Curves of history on a page, those with most runs first."""

MARK = "profharness index"
"""By this the program knows a page of its own, which it may write again."""
_LONGEST = 160


@dataclass(frozen=True)
class Row:
    """A run as the table shows it; `word` names it on a command line."""

    entry: Entry
    word: str
    what: str
    made: str
    best: str
    findings: str
    created_s: float | None


@dataclass(frozen=True)
class History:
    """How the best figure of one scan or command on one device went from run to run."""

    title: str
    note: str
    picture: object


def render(title: str, entries: Sequence[Entry]) -> str:
    """The whole page, the newest run first."""
    newest = sorted(entries, key=lambda entry: _seconds(entry.created) or 0.0, reverse=True)
    return rendered(
        "index.html.j2",
        title=title,
        brand=MARK,
        facts=(f"{len(entries)} run{'' if len(entries) == 1 else 's'}",),
        rows=tuple(map(_row, newest)),
        histories=tuple(_histories(entries)),
    )


def _row(entry: Entry) -> Row:
    counts = ((entry.errors, "error"), (entry.warnings, "warning"))
    shown = (f"{count} {word}{'' if count == 1 else 's'}" for count, word in counts if count)
    return Row(
        entry,
        word=shlex.quote(entry.path),
        what=cut_middle(one_line(entry.what), _LONGEST),
        made=_made(entry.created),
        best="" if entry.best is None else si_text(entry.best, entry.unit),
        findings=", ".join(shown),
        created_s=_seconds(entry.created),
    )


def _made(created: str) -> str:
    """`2026-11-24 03:20 UTC`; what is no time as it stands."""
    if _seconds(created) is None or not created.endswith("Z"):
        return one_line(created, 40)
    return f"{created[:16].replace('T', ' ')} UTC"


def _seconds(created: str) -> float | None:
    try:
        return datetime.fromisoformat(created).timestamp()
    except ValueError:  # what a foreign manifest says is no time
        return None


def _histories(entries: Sequence[Entry]) -> Iterator[History]:
    """One for each scan or command on a device that has two runs or more."""
    groups: dict[tuple[str, str, str], list[tuple[float, Entry]]] = {}
    for entry in entries:
        at = _seconds(entry.created)
        if entry.best is not None and at is not None:
            groups.setdefault((entry.what, entry.device, entry.unit), []).append((at, entry))
    several = [(key, runs) for key, runs in groups.items() if len(runs) > 1]
    several.sort(key=lambda group: -len(group[1]))
    for (what, device, unit), runs in several[:MOST_HISTORIES]:
        runs.sort(key=lambda run: run[0])
        name = cut_middle(one_line(what), _LONGEST) + (f" on {device}" if device else "")
        commits = {entry.commit for _, entry in runs if entry.commit}
        first, last = runs[0][1].best or 0.0, runs[-1][1].best or 0.0
        change = f", the last {100 * (last / first - 1):+.1f} % from the first" if first else ""
        yield History(
            name,
            f"{len(runs)} runs of {len(commits)} commit{'' if len(commits) == 1 else 's'}, by the "
            f"time of the run{change}. A hollow dot had changes that were not committed.",
            history_picture(
                [_dot(at, entry) for at, entry in runs], unit, f"Best {unit} of {name} over time"
            ),
        )


def _dot(at: float, entry: Entry) -> Dot:
    commit = f", commit {entry.commit}" if entry.commit else ""
    changed = " with changes" if entry.dirty else ""
    value = entry.best or 0.0
    tip = f"{entry.name}: {si_text(value, entry.unit)}{commit}{changed}, {entry.created}"
    return Dot(at, value, tip, entry.dirty)
