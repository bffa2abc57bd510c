"""Measured ceilings beside what the points of a run reached: one that work goes beyond was measured
too low, beside other work or at a lower clock, and is no ceiling for any point.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from profharness.analysis.kernels.ceilings import exceeded_by
from profharness.analysis.run.view import RunView
from profharness.analysis.run.work import ceilings_of, dtype_of, number
from profharness.analysis.verdict.ceilings import not_believed
from profharness.findings import Finding
from profharness.node.ceilings import COPY


def against_points(view: RunView) -> RunView:
    """The view without belief in those ceilings beyond which a point goes with even the low end of
    its throughput.
    """
    every = list(view.yardstick.calibrations)
    beyond: dict[tuple[int, str], float] = {}
    for record in view.manifest.points if every else ():
        flops, stats = number(record.notes.get("flops_per_item")), view.stats(record.id)
        roofs = ceilings_of(view.manifest, record, view.yardstick)
        roof = None if roofs is None else roofs.flops(dtype_of(record))
        if roofs is None or roof is None or not roof.measured or flops is None or stats is None:
            continue
        reached = flops * (stats.throughput if stats.low is None else stats.low)
        if reached > roof.limit:
            place = next(at for at, one in enumerate(every) if one is roofs.calibration)
            key = place, dtype_of(record)
            beyond[key] = max(beyond.get(key, 0.0), reached / roof.value)
    for (place, figure), times in beyond.items():
        every[place] = every[place].doubted(figure, exceeded_by(times))
    return replace(view, yardstick=replace(view.yardstick, calibrations=tuple(every)))


def ceilings_not_believed(view: RunView) -> Iterator[Finding]:
    """Each ceiling of the points' devices that was measured and is not believed, once."""
    told = set[tuple[str, str]]()
    for record in view.manifest.points if view.yardstick.calibrations else ():
        roofs = ceilings_of(view.manifest, record, view.yardstick)
        if roofs is None or roofs.calibration is None:
            continue
        for figure in (dtype_of(record), COPY):
            key = roofs.calibration.created, figure
            if roofs.calibration.doubt(figure) and key not in told:
                told.add(key)
                yield not_believed(roofs.calibration, figure)
