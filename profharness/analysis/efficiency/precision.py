"""fp32 products that run in fp32's own precision on a device that multiplies such operands several
times as fast with fewer bits (docs/metrics.md#fp32-products).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from profharness.analysis.efficiency.recorded import operators_of
from profharness.analysis.measurement import Measurement
from profharness.findings import Finding, finding
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64
from profharness.units import format_share

NOTABLE_OF_MATRIX, NOTABLE_OF_KERNELS = 0.1, 0.03
"""Shares of the time of matrix kernels and of all kernels from which the products are worth naming:
even if they took no time at all, less than that share of the time would be gained.
"""
ALLOWED_SHARE = 0.01
"""Where more than this share of the time of fp32 products ran in TF32, it is allowed, and the
library left the others in fp32 for reasons of its own (extents that are no multiple of 4).
"""


def fp32_products(m: Measurement) -> Iterator[Finding]:
    """Products of fp32 operands that no kernel rounds to TF32 (XF32), where the device has a peak
    for that.

    Convolutions are left out: their reduced precision has a switch of its own, which is on unless
    somebody turned it off.
    """
    whole = int(m.kernel_ns.sum())
    work, works, kernels = m.facts.work, m.facts.operators, m.trace.kernels
    if works is None or "fp32" not in work.dtypes or not whole or not m.facts.timed:
        return
    owner = np.where(kernels.op == NULL, NULL, works.owner[kernels.op])
    product = operators_of(m.trace, "gemm")[owner] & (owner != NULL) & (work.dtype != NULL)
    plain = product & (work.dtype == work.dtypes.index("fp32"))
    rounded = product & (
        work.dtype == (work.dtypes.index("tf32") if "tf32" in work.dtypes else NULL)
    )
    gain = _gain(m)
    plain &= np.isfinite(gain) & (gain > 1.0)
    time = int(m.kernel_ns[plain].sum())
    matrix = int(m.kernel_ns[m.facts.multiplying | plain].sum())  # names do not tell every product
    if time < max(NOTABLE_OF_MATRIX * matrix, NOTABLE_OF_KERNELS * whole) or not time:
        return
    if int(m.kernel_ns[rounded].sum()) > ALLOWED_SHARE * (time + int(m.kernel_ns[rounded].sum())):
        return
    least = m.kernel_ns[plain] * np.fmax(
        1.0 / gain[plain], np.fmin(m.facts.rates.bandwidth_share[plain], 1.0)
    )
    at_most = time / float(least.sum())
    ratio = float(np.average(gain[plain], weights=m.kernel_ns[plain]))
    yield finding(
        "fp32-products",
        f"fp32 matrix products without reduced precision take {format_share(time / matrix)} of the "
        f"time of matrix kernels ({format_share(time / whole)} of all kernel time): TF32 has "
        f"{ratio:.3g} times their peak on this device, so that they could run at most "
        f"{at_most:.3g} times as fast",
        matrix_share=time / matrix,
        kernel_time_share=time / whole,
        peak_ratio=ratio,
        at_most=at_most,
    )


def _gain(m: Measurement) -> F64:
    """Per kernel how many times the fp32 peak of its device its TF32 (XF32) peak is; NaN where
    either is not known.
    """
    gain = np.full(len(m.trace.kernels), np.nan)
    for device, roof in m.facts.roofs.items():
        plain, rounded = roof.peak("fp32"), roof.peak("tf32")
        if plain is not None and rounded is not None:
            gain[m.trace.kernels.device == device] = rounded.value / plain.value
    return gain
