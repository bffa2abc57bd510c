"""The trials of a run by pass and point, from the marks of its trace, each trial once.

The harness's own trials.csv is the record of a trial; a tool's trace that shows the same spans
repeats it and is used only where the first is missing.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from profharness.stats.intervals import Intervals, window
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Marks, Trace

OWN_LAYER = "trials"
BARE = "bare"


@dataclass(frozen=True, eq=False)
class PointTrials:
    """Trials of one point in one pass, by start. `owner` numbers the processes that ran them; times
    in ns.
    """

    pass_name: str
    key: str
    starts_ns: I64
    durations_ns: I64
    items: I64
    owner: I64

    @property
    def processes(self) -> int:
        return len(np.unique(self.owner))

    @property
    def span(self) -> Intervals:
        """From the first trial's start to the last one's end."""
        return window(int(self.starts_ns[0]), int((self.starts_ns + self.durations_ns).max()))

    @property
    def rates(self) -> F64:
        """Items per second of each trial."""
        return np.asarray(self.items / self.durations_ns * 1e9)


Trials = dict[tuple[str, str], PointTrials]


def collect(trace: Trace, items_per_trial: dict[str, int] | None = None) -> Trials:
    """Trials by (pass, point key). Marks without items take `items_per_trial` of their point, else
    1.

    Repeats of a point keep their own keys (`id~1`). Trials without duration are left out.
    """
    marks = trace.marks
    wanted = (
        (marks.kind == trace.strings.find("trial"))
        & (marks.kind != NULL)
        & (marks.dur_ns > 0)
        & (marks.source != NULL)
    )
    by_point: dict[tuple[str, str], list[tuple[int, npt.NDArray[np.intp]]]] = {}
    for source in np.unique(marks.source[wanted]).tolist():
        rows = np.flatnonzero(wanted & (marks.source == source))
        for code in np.unique(marks.point[rows]).tolist():
            key = trace.strings[code] or trace.sources[source].point
            if key:
                by_point.setdefault((trace.sources[source].pass_name, key), []).append(
                    (source, rows[marks.point[rows] == code])
                )
    fallback = items_per_trial or {}
    return {
        name: _trials(trace, name, _preferred(trace, groups), fallback.get(name[1], 1))
        for name, groups in by_point.items()
    }


def _preferred(
    trace: Trace, groups: list[tuple[int, npt.NDArray[np.intp]]]
) -> list[npt.NDArray[np.intp]]:
    """Our own record where there is one; else one tool's, the one with most trials, in all of its
    processes.
    """
    own_records = [rows for source, rows in groups if trace.sources[source].layer == OWN_LAYER]
    if own_records:
        return own_records
    by_layer: dict[str, list[npt.NDArray[np.intp]]] = {}
    for source, rows in groups:
        by_layer.setdefault(trace.sources[source].layer, []).append(rows)
    return max(by_layer.values(), key=lambda parts: sum(len(rows) for rows in parts))


def _trials(
    trace: Trace, name: tuple[str, str], parts: list[npt.NDArray[np.intp]], items: int
) -> PointTrials:
    marks: Marks = trace.marks.take(np.concatenate(parts))
    owner = np.repeat(np.arange(len(parts)), [len(rows) for rows in parts])
    order = np.argsort(marks.start_ns, kind="stable")
    counted = np.where(marks.items > 0, marks.items, items)
    return PointTrials(
        *name, marks.start_ns[order], marks.dur_ns[order], counted[order], owner[order]
    )


def base_of(key: str) -> str:
    """The point that a key repeats: `torch-b4~1` is `torch-b4`."""
    return key.partition("~")[0]


def reference_pass(trials: Collection[tuple[str, str]], passes: tuple[str, ...]) -> str:
    """The pass that throughput comes from: bare, else the first of the run that has trials (its
    figures are inflated).
    """
    present = {name for name, _ in trials}
    return next((name for name in (BARE, *passes) if name in present), min(present, default=""))
