"""The critical paths of one run or file, and what changes of them were worth where another point
measured that.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from profharness.analysis.critical.changes import Change
from profharness.analysis.critical.records import CriticalPath, Forecast, RankPath
from profharness.analysis.critical.summary import critical_path
from profharness.understand.hotspots import records_of
from profharness.understand.load import Loaded
from profharness.understand.steps import stepped


def path_of(
    loaded: Loaded, changes: Sequence[Change] = (), step_range: str = ""
) -> CriticalPath | None:
    """The paths of the pass that speaks for kernels; None where it recorded nothing of the host. A
    forecast of a batch size that another point measured stands beside what was measured.
    """
    loaded = stepped(loaded, step_range, must=False)
    _, trace = records_of(loaded)
    batches = _batch_sizes(loaded)
    found = critical_path(trace, changes, batches)
    if found is None or not any(change.batch for change in changes):
        return found
    return msgspec.structs.replace(
        found,
        processes=tuple(_against(path, found, changes, batches) for path in found.processes),
    )


def _batch_sizes(loaded: Loaded) -> dict[str, int]:
    """The batch size of each point of a run, by the point's name."""
    manifest = loaded.manifest
    if manifest is None:
        return {}
    return {point.id: point.batch_size for point in manifest.points if point.batch_size is not None}


def _against(
    path: RankPath, found: CriticalPath, changes: Sequence[Change], batches: dict[str, int]
) -> RankPath:
    """The path with its forecasts of batch sizes beside what the points of these sizes took."""
    sizes = {change.text: change.batch for change in changes if change.batch is not None}
    measured = {
        batches[other.point]: other.step_ns
        for other in found.processes
        if other.point in batches and other.rank == path.rank and other.step_ns
    }
    return msgspec.structs.replace(
        path,
        what_if=tuple(_compared(made, sizes.get(made.change), measured) for made in path.what_if),
    )


def _compared(made: Forecast, size: int | None, step_ns: dict[int, float]) -> Forecast:
    """The forecast of a batch size beside the step time measured there, and beside what the other
    sizes of the scan say of it.
    """
    if size is None or not made.steps:
        return made
    by_line = through_others(size, step_ns)
    from_scan = None if by_line is None else by_line * made.steps
    measured = step_ns[size] * made.steps if size in step_ns else None
    return msgspec.structs.replace(
        made,
        measured_ns=measured,
        error=None if measured is None else made.forecast_ns / measured - 1,
        from_scan_ns=from_scan,
        from_scan_error=None if measured is None or from_scan is None else from_scan / measured - 1,
    )


def through_others(size: int, step_ns: dict[int, float]) -> float | None:
    """The step time at a batch size, in ns, by the line a + b x size through those of all other
    sizes, each weighted by its relative error; None with fewer than two others or no positive time.
    """
    others = {other: ns for other, ns in step_ns.items() if other != size}
    if len(others) < 2:
        return None
    sizes, times = np.array(list(others), np.float64), np.array(list(others.values()))
    slope, intercept = np.polyfit(sizes, times, 1, w=1 / times)
    at = float(intercept + slope * size)
    return at if at > 0 else None
