"""The figures of `counter_shares` over the windows of a measurement."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from profharness.analysis.kernels.counter_shares import Share
from profharness.analysis.measurement import Measurement
from profharness.analysis.records import Figure


def figure(share: Share) -> Callable[[Measurement], Figure]:
    """The figure over the windows: the mean over kernels, by their time (by their number where they
    have none).
    """

    def compute(m: Measurement) -> Figure:
        values = m.facts.shares.get(share.name)
        weight = m.kernel_ns.astype(np.float64) if m.kernel_ns.any() else np.ones(len(m.kernel_ns))
        known = np.zeros(len(weight), np.bool_) if values is None else np.isfinite(values)
        total = float(weight[known].sum())
        if values is None or not total:
            names = " ".join(share.raw) or share.derived[0]
            return Figure(
                value=None,
                unit="share",
                source=m.origin,
                needs=(
                    f"counters (--pmc {share.derived[0]}, or {names}) on a device whose units "
                    "are known"
                )
                if share.raw
                else f"counters (--pmc {share.derived[0]})",
            )
        return Figure(
            value=float(values[known] @ weight[known]) / total,
            unit="share",
            source=m.origin,
            note="by counters; kernels run one by one there",
            coverage=total / float(weight.sum()),
            coverage_of="kernel time" if m.kernel_ns.any() else "the kernels",
        )

    return compute
