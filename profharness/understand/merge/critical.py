"""The critical path as a track of the merged trace: one slice per segment, beside the steps."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from profharness.analysis.critical.classes import KEYS, LABELS
from profharness.analysis.critical.summary import paths_of, process_name
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
        _marks(owner, scope, found, (strings, places.get(id(owner.source), 0)))
        for owner, parts in paths_of(speaking)
        for scope, found in parts
    ]
    return replace(trace, strings=strings, marks=concat([trace.marks, *marks]))


def _marks(owner: Scope, scope: Scope, found: Segments, into: tuple[Strings, int]) -> Marks:
    """The segments of the path of one process (`owner`) that lie on one (`scope`). A slice is named
    by its class, by what it is behind that, and by the other process where it lies on one.
    """
    strings, position = into
    on = "" if scope is owner else f" ({process_name(scope)})"
    pairs = np.stack((found.kind, found.name), axis=1)
    distinct, place = np.unique(pairs, axis=0, return_inverse=True)
    texts = scope.trace.strings
    codes = [
        strings.code(LABELS[KEYS[kind]] + (f": {texts[name]}" if name != NULL else "") + on)
        for kind, name in distinct.tolist()
    ]
    source = owner.source
    return Marks.build(
        start_ns=found.start,
        dur_ns=found.length,
        name=np.array(codes, np.int64)[place.reshape(-1)],
        kind=strings.code("path"),
        host=strings.code(source.host) if source.host else NULL,
        rank=NULL if source.rank is None else source.rank,
        pid=int(owner.rows.owners[owner.main][1]),
        source=position,
    )
