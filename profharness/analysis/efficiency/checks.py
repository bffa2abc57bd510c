"""What a window could have done better on the same device, as findings."""

from __future__ import annotations

from profharness.analysis.efficiency.contention import contention
from profharness.analysis.efficiency.layout import copies_under_products, layout_under_convolutions
from profharness.analysis.efficiency.precision import fp32_products
from profharness.analysis.efficiency.tile_waste import tile_waste
from profharness.analysis.measurement import Measurement
from profharness.analysis.run.growing import growing_in
from profharness.analysis.verdict.ceilings import ceilings_not_believed
from profharness.analysis.verdict.start_up import start_up_findings
from profharness.findings import Finding

_CHECKS = (
    start_up_findings,
    growing_in,
    ceilings_not_believed,
    layout_under_convolutions,
    copies_under_products,
    fp32_products,
    tile_waste,
    contention,
)


def efficiency_findings(m: Measurement) -> tuple[Finding, ...]:
    """What all checks find in the windows. None of it speaks against a figure."""
    return tuple(item for check in _CHECKS for item in check(m))
