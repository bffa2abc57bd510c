"""What is known of every kernel of a trace, worked out once for all windows that are asked for:
residency, work, rates.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from profharness.analysis.kernels import ceilings, counter_shares, counter_work, roofline
from profharness.analysis.kernels.ceilings import Ceiling, Ceilings
from profharness.analysis.kernels.counter_work import Counted, CountedMeans
from profharness.analysis.kernels.occupancy import Residency, residency
from profharness.analysis.kernels.roofline import Rates
from profharness.analysis.operators import work as op_work
from profharness.analysis.operators.engine import NO_INPUT, OperatorInput
from profharness.analysis.operators.rows import RowWork, row_work
from profharness.analysis.operators.work import KernelWork
from profharness.node.ceilings import Calibration
from profharness.stats.streams import Stream
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, Trace


@dataclass(frozen=True, eq=False)
class Yardstick:
    """What a trace is measured against: ceilings measured on its devices, the counters of another
    pass and the telemetry of the same run, and what a user gave to tell the operators' work.

    `software` tells which of several calibrations of a device is meant. `means` stand in the place
    of `counted` where the counters are not in memory together.
    """

    calibrations: tuple[Calibration, ...] = ()
    software: dict[str, str] | None = None
    counted: Trace | None = None
    operator_input: OperatorInput = NO_INPUT
    means: CountedMeans | None = None
    telemetry: tuple[Stream, ...] = ()


NO_YARDSTICK = Yardstick()


@dataclass(eq=False)
class KernelFacts:
    """Each property is an array (or holds arrays) over the kernels of the trace, made when it is
    first asked for.
    """

    trace: Trace
    yardstick: Yardstick = NO_YARDSTICK

    @property
    def tells_work(self) -> bool:
        """Whether anything may tell the work of kernels: operators, counters or the user's formulas
        (the tables are read only where there are any).
        """
        given, user = self.yardstick, self.yardstick.operator_input
        by_formula = bool(user.formulas) and user.engine.knows_kernels
        counted = given.counted is not None or given.means is not None
        return len(self.trace.ops) > 0 or counted or by_formula

    @cached_property
    def residency(self) -> Residency:
        return residency(self.trace)

    @cached_property
    def roofs(self) -> dict[int, Ceilings]:
        """The ceilings of each device, by its position: a measured one that kernels go beyond is
        none.
        """
        given = self.yardstick
        roofs = ceilings.of_trace(
            self.trace, given.calibrations, given.software, beside=given.counted
        )
        measured = any(roof.calibration is not None or roof.by_tool for roof in roofs.values())
        if not measured or not self.timed or not self.tells_work:
            return roofs
        return roofline.believed(self.trace, self.work, roofs, self.counted)

    def ceilings_of(self, row: int) -> tuple[Ceiling | None, Ceiling | None]:
        """What a kernel's operations and its traffic are set against."""
        roof, code = self.roofs[int(self.trace.kernels.device[row])], int(self.work.dtype[row])
        return roof.flops("fp16" if code == NULL else self.work.dtypes[code]), roof.bandwidth

    @cached_property
    def operators(self) -> RowWork | None:
        """The work of every operator; None without operators."""
        engine = self.yardstick.operator_input.engine
        return row_work(self.trace, engine) if len(self.trace.ops) else None

    @cached_property
    def work(self) -> KernelWork:
        """By the operators that launched the kernels, else by entries for kernels."""
        engine = self.yardstick.operator_input.engine
        by_operator = op_work.of_kernels(self.trace, self.operators)
        return op_work.with_own_entries(self.trace, by_operator, self.operators, engine)

    @cached_property
    def multiplying(self) -> npt.NDArray[np.bool_]:
        """Which kernels are of a category that multiplies matrices."""
        return op_work.matrix_kernels(self.trace.kernels.name, self.trace.strings)

    @cached_property
    def hidden(self) -> npt.NDArray[np.bool_]:
        """Which kernels multiply, or may, and do not tell how much."""
        unnamed = op_work.unnamed_products(self.trace)
        return (self.multiplying | unnamed) & ~np.isfinite(self.work.flops)

    @cached_property
    def counted(self) -> Counted | None:
        """What counters say of each kernel: those of the counter pass, else the trace's own; None
        where there are none.
        """
        if self.yardstick.means is not None:
            gathered = self.yardstick.means.of(self.trace)
            return gathered if gathered.anything else None
        counter_pass = self.yardstick.counted
        if counter_pass is not None and len(counter_pass.counters):
            matched = counter_work.counted_work(counter_pass, self.trace)
            return matched if matched.anything else None
        if not len(self.trace.counters):
            return None
        recorded = counter_work.per_dispatch(self.trace)
        return recorded if recorded.anything else None

    @cached_property
    def shares(self) -> dict[str, F64]:
        """What counters say of how the units were used, per kernel, by name; empty without
        counters.
        """
        other = self.yardstick.counted
        if other is not None and len(other.counters):
            return {
                name: counter_work.mean_of_dispatches(other, self.trace, column)
                for name, column in counter_shares.of_kernels(other).items()
            }
        return counter_shares.of_kernels(self.trace) if len(self.trace.counters) else {}

    @cached_property
    def timed(self) -> bool:
        """Whether the durations of kernels may be set against their work: not where the same
        records carry the counters.
        """
        return not len(self.trace.counters)

    @cached_property
    def rates(self) -> Rates:
        """What each kernel reached against the roofs: FLOP/s and bytes per second, and its limiter;
        not known (NaN, undetermined) where kernels have no durations.
        """
        kernel_rates = roofline.rates(self.trace, self.work, self.roofs, self.counted)
        if self.timed:
            return kernel_rates
        unknown = np.full(len(self.trace.kernels), np.nan)
        undetermined = np.full(len(self.trace.kernels), roofline.UNDETERMINED, np.int64)
        return Rates(
            kernel_rates.flops,
            kernel_rates.moved,
            unknown,
            unknown,
            unknown,
            undetermined,
            kernel_rates.counted,
            np.zeros(len(unknown), np.bool_),
        )
