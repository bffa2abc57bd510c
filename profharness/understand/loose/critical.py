"""The critical paths of one run or file, and of a scan what each batch size takes by the others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec
import numpy as np

from profharness.analysis.critical.changes import USUAL, Change
from profharness.analysis.critical.records import CriticalPath
from profharness.analysis.critical.scan_forecasts import (
    NO_SCAN,
    Scan,
    ScanPoint,
    scan_forecasts,
)
from profharness.analysis.critical.scope import scopes
from profharness.analysis.critical.summary import critical_path
from profharness.analysis.time.steps import steps
from profharness.trace.parts.select import by_source
from profharness.understand.hotspots import passes_in_order, records_of
from profharness.understand.load import Loaded
from profharness.understand.steps import stepped

if TYPE_CHECKING:
    from profharness.rundir.manifest import Manifest, PointRecord
    from profharness.trace.model import Trace

_BARE = "bare"
_REPEAT = "~"  # between a point's name and the number of its repeat
MOST_POINTS = 200


def path_of(
    loaded: Loaded,
    changes: Sequence[Change] = (),
    step_range: str = "",
    *,
    for_report: bool = False,
) -> CriticalPath | None:
    """The paths of the pass that speaks for kernels; None where it recorded nothing of the host. Of
    a scan each batch size is forecast from the others, beside what was measured.
    """
    scan = scan_of(loaded)
    trace = records_to_walk(loaded, step_range)
    found = critical_path(trace, changes, scan, for_report=for_report)
    return found if found is None else _with_other_passes(found, loaded, scan, changes)


def _with_other_passes(
    found: CriticalPath, loaded: Loaded, scan: Scan, changes: Sequence[Change]
) -> CriticalPath:
    """The path with the batch sizes of series that were recorded in other passes."""
    asked = [change.batch for change in changes if change.batch]
    batches, told = list(found.batches), {made.series for made in found.batches}
    if len({point.series for point in scan.points.values()}) > 1:
        for _, records in passes_in_order(loaded):
            more = scan_forecasts(list(scopes(records)), scan, asked)
            batches += [made for made in more if made.series not in told]
            told |= {made.series for made in more}
    return msgspec.structs.replace(found, batches=tuple(batches))


def records_to_walk(loaded: Loaded, step_range: str = "") -> Trace:
    """The records of the pass that speaks for kernels, with the steps that were asked for."""
    return records_of(stepped(loaded, step_range, must=False))[1]


def shown_path(loaded: Loaded, shown: Trace | None, step_range: str = "") -> CriticalPath | None:
    """The critical path for a report, with what the usual changes would be worth; None of a scan
    of very many points, and where nothing is known of the host. `shown` is the trace with Python's
    functions; a run goes without them (see `load.told`).
    """
    if loaded.manifest is not None and len(loaded.manifest.points) > MOST_POINTS:
        return None
    if shown is not None and loaded.manifest is None:
        loaded = replace(loaded, trace=shown)
    return path_of(loaded, USUAL, step_range, for_report=True)


def scan_of(loaded: Loaded) -> Scan:
    """The batch sizes of a scan with their trials without a profiler, and how far points that were
    measured again drifted; no points for anything else.
    """
    manifest = loaded.manifest
    if manifest is None:
        return NO_SCAN
    trials = _bare_trials(loaded)
    points: dict[str, ScanPoint] = {}
    drift: dict[str, float] = {}
    for record in manifest.points:
        if record.batch_size is not None and record.state == "ok" and not record.repeat:
            points[record.id] = ScanPoint(
                record.batch_size, _series(record, manifest), tuple(trials.get(record.id, ()))
            )
    for again, later in trials.items():
        name = again.partition(_REPEAT)[0]
        if name in points and name in trials:
            off = abs(float(np.median(later) / np.median(trials[name])) - 1)
            series = points[name].series
            drift[series] = max(drift.get(series, 0.0), off)
    return Scan(points, drift)


def _series(record: PointRecord, manifest: Manifest) -> str:
    """What a point shares with those that differ in their batch size alone, in the words that tell
    it from the run's other points.
    """
    several = len({point.backend for point in manifest.points}) > 1
    parts = [
        record.backend if several else "",
        f"{record.processes} processes" if (record.processes or 1) > 1 else "",
        f"{record.concurrency} in flight" if record.concurrency else "",
        record.mode or "",
        f"{record.rate:g} requests/s" if record.rate else "",
    ]
    return ", ".join(part for part in parts if part)


def _bare_trials(loaded: Loaded) -> dict[str, list[int]]:
    """How long each trial took without a profiler, in ns, by point; empty without such a pass."""
    trace = loaded.trace
    bare = [source.pass_name == _BARE for source in trace.sources]
    found: dict[str, list[int]] = {}
    if any(bare):
        for step in steps(by_source(trace, bare)):
            found.setdefault(step.point, []).append(step.dur_ns)
    return found
