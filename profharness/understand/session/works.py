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

    from profharness.analysis.compare.operators.content import Content
    from profharness.understand.session.recording import Recording

_TABLES = {"op": "operators", "shape": "shapes", "module": "modules", "category": "categories"}


def work_frame(a: Recording, b: Recording, by: str) -> pd.DataFrame:
    """The rows of `by` of both. Raises UsageError for another word, for several files in one
    recording, and where one of them did not record what the rows are made of.
    """
    from profharness.analysis.compare.operators.joined import with_work
    from profharness.analysis.compare.runs import compare
    from profharness.report.compared.tables import work_values

    if by not in _TABLES:
        raise UsageError(
            f"there are no rows by {one_line(by)!r} in a comparison", f"name {', '.join(_TABLES)}"
        )
    found = with_work(
        compare(a.summary, b.summary), (a.summary, _content(a)), (b.summary, _content(b))
    )
    table = getattr(found, _TABLES[by])
    if table is None:
        raise UsageError(
            f"there is nothing to compare by {by}: one of both recorded none",
            "record operators with --profile torch, shapes and modules with its options",
        )
    frame = frame_of(work_values(table))
    frame.attrs["step"] = msgspec.to_builtins(found.step)
    return frame


def _content(recording: Recording) -> Content | None:
    from profharness.trace.wanted import Wanted
    from profharness.understand.load import load
    from profharness.understand.loose.sides import content_of_loaded

    if len(recording.paths) > 1:
        raise UsageError(
            f"{len(recording.paths)} files in one recording are not compared by their operators",
            "read one file of each, such as that of rank 0",
        )
    loaded = load(recording.paths, wanted=Wanted.SHOWN)
    return content_of_loaded(loaded, operator_input=recording.operator_input)
