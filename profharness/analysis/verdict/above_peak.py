"""Shares of a peak that cannot be: no device does more than its peak, whatever the arithmetic says
(docs/metrics.md#ceilings).

A data sheet's peak holds at its highest clock; what a calibration reached is the best of one
library on one day, and a clock that is sampled is not exact. So a little above one is possible, and
is said of nobody. Beyond that the figure is wrong, and no verdict is built on it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import msgspec
import numpy as np

from profharness.analysis.kernels.categories import function_name
from profharness.analysis.kernels.ceilings import ABOVE_MEASURED, ABOVE_SHEET, BENCHMARK, CALIBRATED
from profharness.analysis.measurement import Measurement
from profharness.analysis.records import Figure, StepSummary
from profharness.findings import Finding, Severity, finding
from profharness.trace.columns.keys import coded
from profharness.units import format_share

NOTABLE_SHARE = 0.01
_COMPUTE = {
    "mfu": "mfu",
    "mfu_at_clock": "mfu at the observed clock",
    "flops_of_ceiling": "FLOP/s of the ceiling",
    "hfu": "hfu",
}
_TRAFFIC = {"bandwidth_share": "memory bandwidth", "roofline_share": "FLOP/s of the roofline"}
_NOT_OF_ONE_SHEET = frozenset({"mfu_at_clock", "roofline_share"})
_OF_AN_ITEM = (
    "the FLOPs of an item are those of another shape (or --flops-per-item is wrong), "
    "or the timer stopped before the device had finished"
)
_OF_A_TRACE = (
    "shapes that belong to other work, kernels or parts of them that the trace "
    "lacks, or fp32 products that ran in a faster type (TF32)"
)
_OF_COUNTERS = "counters of other kernels, or of another architecture"


def impossible(name: str, figure: Figure | None) -> bool:
    """Whether even the low end of a share of a peak lies above what a device can do."""
    least = None if figure is None else figure.least
    if figure is None or least is None:
        return False
    loose = name in _NOT_OF_ONE_SHEET or _of_a_program(figure)
    return float(least if figure.low is None else figure.low) > (
        ABOVE_MEASURED if loose else ABOVE_SHEET
    )


def _of_a_program(figure: Figure) -> bool:
    """Whether a share is one of what a program reached."""
    return f"of {CALIBRATED}" in figure.note or BENCHMARK in figure.note


def above_peak(
    figures: Mapping[str, Figure], point: str | None = None, where: str = ""
) -> Iterator[Finding]:
    """One finding for what is above the peak of the compute units, else one for traffic. `where`
    comes before the sentence.
    """
    compute, traffic = (
        {name: figures[name] for name in names if impossible(name, figures.get(name))}
        for names in (_COMPUTE, _TRAFFIC)
    )
    if compute:
        yield _finding(
            compute, _why_compute(compute, figures), _severity(compute, "error"), point, where
        )
    elif traffic:
        counted = any("by counters" in figure.note for figure in traffic.values())
        why = (
            _OF_COUNTERS if counted else "tensors that stay in a cache and are not read from memory"
        ) + f", or {_device(traffic)}"
        yield _finding(traffic, why, "warning" if counted else "info", point, where)


def _finding(
    shares: Mapping[str, Figure], why: str, severity: Severity, point: str | None, where: str
) -> Finding:
    titles = _COMPUTE | _TRAFFIC
    values = {name: figure.least or 0.0 for name, figure in shares.items()}
    amounts = ", ".join(f"{titles[name]} {value:.3g}" for name, value in values.items())
    roof = next(
        (
            part
            for figure in shares.values()
            for part in figure.note.split("; ")
            if part.startswith("of ")
        ),
        "",
    )
    return finding(
        "above-peak",
        f"{where}{amounts} of a possible 1{f' ({roof})' if roof else ''}; likely {why}",
        point=point,
        severity=severity,
        **values,
    )


def _why_compute(shares: Mapping[str, Figure], figures: Mapping[str, Figure]) -> str:
    if set(shares) == {"hfu"}:
        return f"{_OF_COUNTERS}, or {_device(shares)}"
    return f"{_OF_AN_ITEM if 'flops_per_item' in figures else _OF_A_TRACE}, or {_device(shares)}"


def _device(shares: Mapping[str, Figure]) -> str:
    if not all(_of_a_program(figure) for figure in shares.values()):
        return "a device taken for another"
    by_tool = any(BENCHMARK in figure.note for figure in shares.values())
    return f"a {'benchmark' if by_tool else 'calibration'} that ran beside other work"


def _severity(shares: Mapping[str, Figure], of_sheet: Severity) -> Severity:
    """What one program reached is a weaker bound than a data sheet."""
    return "warning" if all(_of_a_program(figure) for figure in shares.values()) else of_sheet


def kernels_above_peak(m: Measurement) -> Iterator[Finding]:
    """Kernels that do more FLOP/s than their device can while they run; a mean over the windows
    hides them.
    """
    above = m.facts.rates.above & (m.kernel_ns > 0)
    whole, part = int(m.kernel_ns.sum()), int(m.kernel_ns[above].sum())
    if not whole or part / whole < NOTABLE_SHARE:
        return
    rows = np.flatnonzero(above)
    place = coded(m.trace.kernels.name[rows])[1]
    top = rows[place == int(np.argmax(np.bincount(place, weights=m.kernel_ns[rows])))]
    share = float(np.average(m.facts.rates.compute_share[top], weights=m.kernel_ns[top]))
    name = function_name(m.trace.strings[int(m.trace.kernels.name[top[0]])])
    yield finding(
        "above-peak",
        f"{len(rows)} {'kernel does' if len(rows) == 1 else 'kernels do'} more FLOP/s than the "
        f"device can ({format_share(part / whole)} of kernel time; "
        f"{name} on average {share:.3g} times its peak); likely {_OF_A_TRACE}, "
        "or a device taken for another",
        severity="warning",
        kernels=len(rows),
        kernel_time_share=part / whole,
        of_peak=share,
    )


def steps_above_peak(
    steps: Sequence[StepSummary], of_trace: Sequence[Finding]
) -> tuple[Finding, ...]:
    """For the step that is furthest above, with how many there are; nothing where the same was
    said of the whole trace (`of_trace`).
    """
    above = [
        item for step in steps for item in above_peak(step.metrics, where=f"step {step.step}: ")
    ]
    if not above or any(
        item.id == "above-peak" and item.point is None and set(item.figures) & set(above[0].figures)
        for item in of_trace
    ):
        return ()
    worst = max(above, key=lambda item: max(map(float, item.figures.values())))
    return (
        msgspec.structs.replace(
            worst,
            message=f"{worst.message} (above in {len(above)} of {len(steps)} steps)",
            figures={**worst.figures, "steps": len(above)},
        ),
    )
