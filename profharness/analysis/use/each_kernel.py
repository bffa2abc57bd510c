"""What is known of each single kernel, as one looks at it in a timeline: how much of its device it
fills by itself, its work, and which roof holds it back.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from profharness.analysis.kernels import roofline
from profharness.analysis.kernels.facts import NO_YARDSTICK, KernelFacts, Yardstick
from profharness.trace.columns.table import NULL
from profharness.trace.kernel_figures import KernelFigures
from profharness.trace.model import Counters, Trace

if TYPE_CHECKING:
    from collections.abc import Collection

    from profharness.stats.intervals import F64

_LIMITERS = roofline.CLASSES[: roofline.UNDETERMINED]


def fills(trace: Trace) -> KernelFigures:
    """How much of its device each kernel fills by itself; nothing else is told."""
    kernels = trace.kernels
    units = np.array([device.compute_units or 0 for device in trace.devices] + [0], np.int64)
    held = units[kernels.device]
    known = (held > 0) & (kernels.workgroups > 0)
    share = np.where(known, kernels.workgroups, np.nan) / np.where(known, held, 1)
    unknown = np.full(len(kernels), np.nan)
    return KernelFigures(
        100.0 * np.minimum(share, 1.0),
        unknown,
        unknown,
        unknown,
        np.full(len(kernels), NULL, np.int64),
        _LIMITERS,
    )


def of_each(
    trace: Trace,
    yardstick: Yardstick | None,
    perturbing: Collection[str] = (),
    *,
    limits: bool = True,
) -> KernelFigures:
    """The same and, where operators or counters tell it, what each kernel did.

    Operations and bytes stand only where a kernel does all of its operator's matrix work, or moves
    all of its bytes: a share of them would be an estimate. Its share of the peak follows from them.
    The times of `perturbing` passes, and of records that carry counters, are set against nothing;
    counters of the trace, or the yardstick's means, speak for its other kernels. Without `limits`
    no limiter is told, and without a yardstick no share of the peak either.
    """
    given = yardstick or NO_YARDSTICK
    counted = trace if len(trace.counters) and given.means is None else given.counted
    facts = KernelFacts(replace(trace, counters=Counters.build(0)), replace(given, counted=counted))
    filled = fills(trace)
    if not facts.tells_work or not len(trace.kernels):
        return filled
    work, rates = facts.work, facts.rates
    timed = ~_slowed(trace, perturbing) & (yardstick is not None)
    flops = np.where(work.alone, work.flops, np.nan)
    of_peak: F64 = np.where(
        timed & np.isfinite(flops) & ~rates.above, 100.0 * rates.compute_share, np.nan
    )
    tells = timed & (rates.kind != roofline.UNDETERMINED) & limits
    return replace(
        filled,
        of_peak=of_peak,
        flops=flops,
        moved=np.where(work.moves_alone, work.low_bytes, np.nan),
        limiter=np.where(tells, rates.kind, NULL),
    )


def _slowed(trace: Trace, perturbing: Collection[str]) -> roofline.Mask:
    """Which kernels are of a pass that perturbs them, or of a source with counters."""
    slow = np.array([source.pass_name in perturbing for source in trace.sources] + [False])
    of_counters = np.unique(trace.counters.source)
    slow[of_counters[of_counters != NULL]] = True
    slowed: roofline.Mask = slow[trace.kernels.source]
    return slowed
