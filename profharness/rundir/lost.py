"""What a run could not write: which files, why, and since when; a finding at its end.

A disk that is full, over its quota, read-only or gone, and a limit on the size of files
(`ulimit -f`), are no reason to end a workload, which may have hours behind it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from profharness.findings import Finding, finding

_NAMED = 3


@dataclass(frozen=True)
class LostFile:
    """A file of which a part is missing. `since_ns` (CLOCK_REALTIME) is when the first write to it
    failed, `why` the system's word for it.
    """

    path: str
    why: str
    since_ns: int = field(default_factory=time.time_ns)

    @classmethod
    def of(cls, path: Path | str, error: OSError) -> LostFile:
        """The file that `error` says something about, else `path`."""
        return cls(str(error.filename or path), error.strerror or type(error).__name__)


def lost_finding(lost: Iterable[LostFile], root: Path) -> Finding | None:
    """One finding on all files, named as they lie below the run's folder `root`; None without
    any.
    """
    first: dict[str, LostFile] = {}
    for one in lost:
        name = _below(one.path, root)
        if name not in first or one.since_ns < first[name].since_ns:
            first[name] = one
    if not first:
        return None
    since_ns = min(one.since_ns for one in first.values())
    reasons = dict.fromkeys(one.why for one in first.values())
    names = sorted(first)
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    since = f"{datetime.fromtimestamp(since_ns / 1e9, UTC):%Y-%m-%d %H:%M:%S} UTC"
    return finding(
        "output-lost",
        f"from {since} on not all could be written ({', '.join(reasons)}): "
        f"{', '.join(names[:_NAMED])}{more}; the workload went on",
        files=len(names),
    )


def _below(path: str, root: Path) -> str:
    return os.path.relpath(path, root) if Path(path).is_relative_to(root) else path
