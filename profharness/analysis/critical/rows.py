"""The segments of a path by class, name, operator and process."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from profharness.analysis.critical import classes
from profharness.analysis.critical.records import KEPT_ROWS, PathRow
from profharness.analysis.critical.scope import Scope
from profharness.analysis.critical.segments import Segments
from profharness.analysis.host.kinds import without_address
from profharness.trace.columns.keys import first_rows, pack
from profharness.trace.columns.table import NULL

_Named = tuple[str, str, str, str]


def path_rows(parts: Sequence[tuple[Scope, Segments, str]], window_ns: int) -> tuple[PathRow, ...]:
    """The `KEPT_ROWS` largest rows, largest first. Parts are segments with the process that their
    names are of, and what to call it.
    """
    ns, segments = Counter[_Named](), Counter[_Named]()
    for scope, found, process in parts:
        if len(found):
            _count(scope, found, process, (ns, segments))
    rows = [
        PathRow(
            kind=named[0],
            name=named[1],
            operator=named[2],
            ns=total,
            share=total / window_ns,
            segments=segments[named],
            process=named[3],
        )
        for named, total in ns.items()
    ]
    rows.sort(key=lambda row: (-row.ns, row.kind, row.name, row.operator, row.process))
    return tuple(rows[:KEPT_ROWS])


def _count(
    scope: Scope, found: Segments, process: str, into: tuple[Counter[_Named], Counter[_Named]]
) -> None:
    first, place = first_rows(pack([found.kind, found.name, found.operator]))
    length = np.zeros(len(first), np.int64)
    np.add.at(length, place, found.length)
    count = np.bincount(place, minlength=len(first))
    strings = scope.trace.strings

    def text(code: int) -> str:
        return without_address(strings[code]) if code != NULL else ""

    ns, segments = into
    for group, row in enumerate(first.tolist()):
        of = text(int(found.name[row])), text(int(found.operator[row]))
        named = classes.KEYS[int(found.kind[row])], *of, process
        ns[named] += int(length[group])
        segments[named] += int(count[group])
