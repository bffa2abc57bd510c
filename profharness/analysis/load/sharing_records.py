"""What sharing a device or a server costs models, as typed records. Nothing is computed here."""

from __future__ import annotations

import msgspec

from profharness.stats.estimate import Estimate


class SharedModel(msgspec.Struct, frozen=True, kw_only=True):
    """One model alone and together with the others: items/s, median latency in ms, and the slowdown
    alone / together.

    Ends of the slowdown are those of the two rates' intervals at their worst. None where the model
    was not measured alone.
    """

    target: str
    alone: Estimate
    together: Estimate
    slowdown: Estimate
    latency_alone_ms: float | None = None
    latency_together_ms: float | None = None


class SharedLevel(msgspec.Struct, frozen=True, kw_only=True):
    """All models at once, each under `concurrency` requests in flight. `total` is the sum of their
    rates in items/s.

    `spread`: each model on a device of its own, where there are several; else all on one.
    """

    point: str
    batch_size: int | None
    concurrency: int | None
    total: Estimate
    models: tuple[SharedModel, ...]
    spread: bool = False
