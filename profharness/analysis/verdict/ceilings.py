"""Measured ceilings that are not believed, as findings."""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.kernels.ceilings import measured_name
from profharness.analysis.measurement import Measurement
from profharness.findings import Finding, finding
from profharness.node.ceilings import COPY, Calibration


def not_believed(calibration: Calibration, figure: str) -> Finding:
    """Of a type of product, or of `COPY`: what was measured, and why it is no ceiling."""
    product = calibration.gemm_flops.get(figure)
    value = (calibration.copy_bytes_per_s if figure == COPY else product) or 0.0
    name, unit = measured_name(figure), "B/s" if figure == COPY else "FLOP/s"
    return finding(
        "ceiling-not-believed",
        f"{name} of {value / 1e9:.4g} G{unit} ({calibration.created[:10]}) is not believed and no "
        f"ceiling here: {calibration.doubt(figure)}",
        figure=figure,
        ceiling=value,
    )


def ceilings_not_believed(m: Measurement) -> Iterator[Finding]:
    """Of the devices of a trace, as far as its kernels would be set against them."""
    told = set[tuple[str, str]]()
    for roofs in m.facts.roofs.values():
        if roofs.calibration is None:
            continue
        for doubt in roofs.calibration.doubts:
            key = roofs.calibration.created, doubt.figure
            if key not in told and doubt.figure in (COPY, *m.facts.work.dtypes):
                told.add(key)
                yield not_believed(roofs.calibration, doubt.figure)
