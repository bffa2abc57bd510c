"""Measured ceilings that are not believed, as findings."""

from __future__ import annotations

from collections.abc import Iterator

from profharness.analysis.kernels.ceilings import measured_name, of_figure
from profharness.analysis.measurement import Measurement
from profharness.findings import Finding, finding
from profharness.node.ceilings import COPY, Calibration


def not_believed(calibration: Calibration, figure: str) -> Finding:
    """Of a type of product, or of `COPY`: what was measured, and why it is no ceiling."""
    product = calibration.gemm_flops.get(figure)
    value = (calibration.copy_bytes_per_s if figure == COPY else product) or 0.0
    when = f" ({calibration.created[:10]})"
    return _finding(measured_name(figure), figure, value, when, calibration.doubt(figure))


def _finding(name: str, figure: str, value: float, when: str, why: str) -> Finding:
    unit = "B/s" if figure == COPY else "FLOP/s"
    return finding(
        "ceiling-not-believed",
        f"{name} of {value / 1e9:.4g} G{unit}{when} is not believed and no ceiling here: {why}",
        figure=figure,
        ceiling=value,
    )


def ceilings_not_believed(m: Measurement) -> Iterator[Finding]:
    """Of the devices of a trace, as far as its kernels would be set against them."""
    told = set[tuple[str, str]]()
    for roofs in m.facts.roofs.values():
        for one, why in roofs.beyond:
            if (one.source, one.figure) not in told:
                told.add((one.source, one.figure))
                name = f"{one.source}, {of_figure(one.figure)},"
                yield _finding(name, one.figure, one.rate, "", why)
        if roofs.calibration is None:
            continue
        for doubt in roofs.calibration.doubts:
            key = roofs.calibration.created, doubt.figure
            if key not in told and doubt.figure in (COPY, *m.facts.work.dtypes):
                told.add(key)
                yield not_believed(roofs.calibration, doubt.figure)
