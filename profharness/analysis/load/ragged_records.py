"""How batches of requests of different lengths were filled, as typed records. Nothing is computed
here.
"""

from __future__ import annotations

import msgspec

from profharness.stats.estimate import Estimate


class Answers(msgspec.Struct, frozen=True, kw_only=True):
    """`differ` of `compared` requests were answered otherwise beside others than alone. `largest`
    is the largest difference relative to its output's largest value, None where shapes differ or a
    value is missing; `met` the largest batch in which the server put them, in items.
    """

    compared: int
    differ: int
    largest: float | None
    met: int


class RaggedWay(msgspec.Struct, frozen=True, kw_only=True):
    """One level under one way of ragged batching: none, padded, grouped (ours) or triton (Triton's
    own). Rates in items/s, latency in ms, shares between 0 and 1.

    `padded_share` are zeros in the requests, `filled_share` zeros that the model's process added;
    `lengths_per_execution` how many different shapes its requests had, `mixed_share` the executions
    with more than one, `calls_per_execution` how often the model ran for it. `shortest` and
    `longest` are the last dimensions that met. None where nobody counted.
    """

    point: str
    backend: str
    target: str
    way: str
    batch_size: int | None
    concurrency: int | None
    rate: float | None
    throughput: Estimate
    latency_ms: float | None = None
    executions: int | None = None
    requests_per_execution: float | None = None
    items_per_execution: float | None = None
    lengths_per_execution: float | None = None
    most_lengths: int | None = None
    mixed_share: float | None = None
    calls_per_execution: float | None = None
    shortest: int | None = None
    longest: int | None = None
    particles_per_item: float | None = None
    padded_share: float | None = None
    filled_share: float | None = None
    answers: Answers | None = None
