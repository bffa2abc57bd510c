"""The form of an estimate, which every kind of record uses."""

from __future__ import annotations

import msgspec


class Estimate(msgspec.Struct, frozen=True, kw_only=True):
    """A value with its 95 % interval; an end that the data do not bound is None."""

    value: float | None
    low: float | None = None
    high: float | None = None
