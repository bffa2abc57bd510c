"""Where the time of two recordings differs, as a frame of one row per operator, shape, module or
category.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from profharness.errors import UsageError
from profharness.report.frame import frame_of
from profharness.rundir.shown.screen import one_line

if TYPE_CHECKING:
    import pandas as pd

    from profharness.analysis.compare.records import Comparison
    from profharness.understand.loose.sides import Side
    from profharness.understand.session.recording import Recording

_TABLES = {"op": "operators", "shape": "shapes", "module": "modules", "category": "categories"}


def work_frame(a: Recording, b: Recording, by: str) -> pd.DataFrame:
    """The rows of `by` of both. Raises UsageError for another word, for several files in one
    recording, and where one of them did not record what the rows are made of.
    """
    from profharness.report.compared.tables import work_values

    if by not in _TABLES:
        raise UsageError(
            f"there are no rows by {one_line(by)!r} in a comparison", f"name {', '.join(_TABLES)}"
        )
    for files in (len(a.paths), len(b.paths)):
        if files > 1:
            raise UsageError(
                f"{files} files in one recording are not compared by their operators",
                "read one file of each, such as that of rank 0",
            )
    found = compared(a, b)
    table = getattr(found, _TABLES[by])
    if table is None:
        raise UsageError(
            f"there is nothing to compare by {by}: one of both recorded none",
            "record operators with --profile torch, shapes and modules with its options",
        )
    frame = frame_of(work_values(table))
    frame.attrs["step"] = msgspec.to_builtins(found.step)
    return frame


def compared(a: Recording, b: Recording) -> Comparison:
    """What changed from `a` to `b`, as `compare` says it; by operator where each is of one file."""
    from profharness.understand.loose.sides import compare_sides

    return compare_sides(_side(a), _side(b))


def _side(recording: Recording) -> Side:
    from profharness.trace.wanted import Wanted
    from profharness.understand.load import load
    from profharness.understand.loose.scans import is_scan
    from profharness.understand.loose.sides import Side, content_of_loaded

    content = None
    if len(recording.paths) == 1 and not is_scan(recording.paths):
        loaded = load(recording.paths, wanted=Wanted.SHOWN)
        content = content_of_loaded(loaded, operator_input=recording.operator_input)
    return Side(recording.paths[0], recording.summary, content=content)
