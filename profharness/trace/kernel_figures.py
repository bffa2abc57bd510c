"""What an analysis tells of each kernel, for viewers to show, and the names by which they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from profharness.trace.model import F64, I64

FILL: Final = "fill_percent"
OF_PEAK: Final = "share_of_peak_percent"
FLOPS: Final = "flops"
BYTES: Final = "bytes_at_least"
LIMITER: Final = "limiter"
NUMBERS: Final = (FILL, OF_PEAK, FLOPS, BYTES)
"""Numbers that no tool recorded: a reader of such a file must not take them for counters."""


@dataclass(frozen=True, eq=False)
class KernelFigures:
    """One entry per kernel of a trace; NaN, or NULL for `limiter`, where it is not known.

    `fill` and `of_peak` are percent, `flops` operations, `moved` bytes; `limiter` is a position in
    `limiters`.
    """

    fill: F64
    of_peak: F64
    flops: F64
    moved: F64
    limiter: I64
    limiters: tuple[str, ...] = ()

    def take(self, rows: I64) -> KernelFigures:
        """The figures of these kernels."""
        return KernelFigures(
            self.fill[rows],
            self.of_peak[rows],
            self.flops[rows],
            self.moved[rows],
            self.limiter[rows],
            self.limiters,
        )
