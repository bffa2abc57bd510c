"""The form of a figure and of an estimate, which every kind of record uses."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its 95 % interval; an end that the data do not bound is None."""

    value: float | None
    low: float | None = None
    high: float | None = None


class Figure(msgspec.Struct, frozen=True, kw_only=True):
    """One value. `value` None means not measured, and `needs` says what would give it. `coverage`
    is the share of `coverage_of` that the value rests on.
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
