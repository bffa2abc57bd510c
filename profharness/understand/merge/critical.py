"""The critical path as a track of the merged trace: one slice per segment, beside the steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from profharness.analysis.critical.classes import KEYS, LABELS
from profharness.analysis.critical.summary import paths_of
from profharness.trace.columns.table import NULL, concat
from profharness.trace.model import Marks, Strings
from profharness.understand.hotspots import records_of
from profharness.understand.steps import stepped

if TYPE_CHECKING:
    from profharness.analysis.critical.scope import Scope
    from profharness.analysis.critical.segments import Segments
    from profharness.trace.model import Trace
    from profharness.understand.load import Loaded


def with_critical_path(loaded: Loaded) -> Trace:
    """The trace with the path of each process of the pass that speaks for kernels, as marks of the
    kind `path`.
    """
    trace = loaded.trace
    strings = Strings(trace.strings.texts)
    _, speaking = records_of(stepped(loaded, must=False))
    places = {id(source): position for position, source in enumerate(trace.sources)}
    marks = [
        _marks(scope, found, strings, places.get(id(scope.source), 0))
        for scope, found in paths_of(speaking)
    ]
    return replace(trace, strings=strings, marks=concat([trace.marks, *marks]))


def _marks(scope: Scope, found: Segments, strings: Strings, source: int) -> Marks:
    """The segments of one path. A slice is named by its class, and by what it is behind that."""
    pairs = np.stack((found.kind, found.name), axis=1)
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    texts = scope.trace.strings
    codes = [
        strings.code(LABELS[KEYS[kind]] + (f": {texts[name]}" if name != NULL else ""))
        for kind, name in distinct.tolist()
    ]
    owner = scope.source
    return Marks.build(
        start_ns=found.start,
        dur_ns=found.length,
        name=np.array(codes, np.int64)[place.reshape(-1)],
        kind=strings.code("path"),
        host=strings.code(owner.host) if owner.host else NULL,
        rank=NULL if owner.rank is None else owner.rank,
        pid=int(scope.rows.owners[scope.main][1]),
        source=source,
    )
