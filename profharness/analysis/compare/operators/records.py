"""What a comparison says of the work of two traces, as typed records. Nothing is computed here."""

from __future__ import annotations

from typing import Literal

import msgspec

Clock = Literal["device", "host"]
By = Literal["op", "shape", "module", "category"]
Limiter = Literal["compute", "bandwidth"]
Side = Literal["both", "only-a", "only-b", "rest"]


class OtherWork(msgspec.Struct, frozen=True, kw_only=True):
    """Why two traces are no two measurements of the same work: the operations of matrix products
    in one step, where both tell them, and the share of each side's time in operators (or kernels,
    as `of` says) that both have.
    """

    of: Literal["operators", "kernels"]
    common_a: float
    common_b: float
    flops_a: float | None = None
    flops_b: float | None = None


class StepChange(msgspec.Struct, frozen=True, kw_only=True):
    """One step (trial, or the whole where none is marked) on both sides. `a_ns` and `b_ns` are the
    time of one on one device (or in one process); None where a window is a whole file.

    All rows are of the windows `window_a` and `window_b`, which hold `whole_a_ns` and `whole_b_ns`,
    so many steps, and so many devices or processes (`units_a`, `units_b`): the time of one step is
    the whole over both. `clock` says whose time it is.
    """

    clock: Clock
    a_ns: float | None
    b_ns: float | None
    change: float | None
    window_a: str
    window_b: str
    steps_a: int
    steps_b: int
    whole_a_ns: int
    whole_b_ns: int
    units_a: int = 1
    units_b: int = 1
    difference_ns: float

    @property
    def parts(self) -> tuple[int, int]:
        """What the times of both windows are divided by: steps of each device or process."""
        return self.steps_a * self.units_a, self.steps_b * self.units_b


class WorkRow(msgspec.Struct, frozen=True, kw_only=True):
    """The time of one operator, shape, module or category in both windows, in ns; None where a side
    does not have it.

    `difference_ns` is that of one step (B less A), `ratio` B over A per step, `share` the part of
    the whole's difference. `side` is `rest` for time that belongs to no row: idle time, and work of
    no operator. `same_a_ns` and `same_b_ns` are the part in calls with the same inputs on both.
    `limiter` is the ceiling that holds an operator of both back and has moved the way of its time.
    """

    name: str
    side: Side
    a_ns: int | None
    b_ns: int | None
    calls_a: int | None = None
    calls_b: int | None = None
    difference_ns: float
    ratio: float | None = None
    share: float | None = None
    reason: str = ""
    limiter: Limiter | None = None
    shapes: str | None = None
    dtypes: str | None = None
    same_a_ns: int | None = None
    same_b_ns: int | None = None


class WorkTable(msgspec.Struct, frozen=True, kw_only=True):
    """Rows that sum to `whole_a_ns` and `whole_b_ns` of the step's record exactly: those of both
    and the rest, the largest difference first, then what one side has alone.
    """

    by: By
    clock: Clock
    rows: tuple[WorkRow, ...]


class Branch(msgspec.Struct, frozen=True, kw_only=True):
    """One node of both trees of operators and what holds them: time with everything inside of it,
    in ns of the windows, and its part of the difference of one step. `own_ns` is the part of the
    difference that is no child's.

    `times` counts nodes that are shown as one, which stand beside each other and have one name.
    """

    name: str
    side: Side
    a_ns: int
    b_ns: int
    calls_a: int
    calls_b: int
    difference_ns: float
    own_ns: float
    times: int = 1
    inner: tuple[Branch, ...] = ()


class WorkComparison(msgspec.Struct, frozen=True, kw_only=True):
    """All tables of the work of two traces; None where a side recorded nothing for a table."""

    step: StepChange
    other_work: OtherWork | None = None
    operators: WorkTable
    shapes: WorkTable | None = None
    modules: WorkTable | None = None
    categories: WorkTable | None = None
    tree: Branch | None = None
