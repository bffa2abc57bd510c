"""What an index shows of each run, and of a run that cannot be read."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Entry:
    """One run. `path` is how a command names it and `page` where its report lies, seen from the
    index (empty without one). `best` is the best throughput of a scan, or the steps or items per
    second of a command, in `unit`; None where there is none. `problem` says why a run has no
    figures.
    """

    name: str
    path: str
    page: str = ""
    created: str = ""
    state: str = ""
    what: str = ""
    device: str = ""
    best: float | None = None
    best_at: str = ""
    unit: str = ""
    verdict: str = ""
    verdict_kind: str = ""
    errors: int = 0
    warnings: int = 0
    commit: str = ""
    dirty: bool = False
    tags: tuple[str, ...] = ()
    note: str = ""
    problem: str = ""
