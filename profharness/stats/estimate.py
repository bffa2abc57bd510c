"""The form of a figure and of an estimate, which every kind of record uses."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its 95 % interval; an end that the data do not bound is None."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One value. `value` None means not measured, and `needs` says what would give it; with `low`
    or `high` it means that only these ends are known (docs/metrics.md#ranges). `coverage` is the
    share of `coverage_of` that the value rests on.
    """

    value: float | int | None
    unit: str
    low: float | int | None = None
    high: float | int | None = None
    source: str = msgspec.field(default="", name="from")
    needs: str = ""
    coverage: float | None = None
    coverage_of: str = "kernel time"
    note: str = ""

    @property
    def is_range(self) -> bool:
        """Whether only one or both ends are known: it lies between them, with no best value."""
        return self.value is None and not (self.low is None and self.high is None)

    @property
    def is_known(self) -> bool:
        """Whether it has a value, or ends between which it lies."""
        return self.value is not None or self.is_range

    @property
    def least(self) -> float | None:
        """The value, or the lower end of a range; None where neither is known."""
        least = self.low if self.value is None else self.value
        return None if least is None else float(least)
