"""What a server's batches say by kind, as typed records. Nothing is computed here."""

from __future__ import annotations

from typing import Literal

import msgspec

BatchKind = Literal["prefill", "decode", "mixed"]


class BatchRow(msgspec.Struct, frozen=True, kw_only=True):
    """All batches of one kind: those that read prompts (`prefill`), that continue sequences
    (`decode`), or both (`mixed`).

    `prefill_tokens` and `decode_tokens` are the tokens that they work on, null where the marks do
    not say; `sequences` is the mean number of sequences of a batch. `host_ns` is the time of their
    marks on the host, `device_ns` that of the work that was launched inside, and `busy_ns` the time
    in which a device did any of it. `step_range` are the names of their marks as an expression for
    `--step-range`.
    """

    kind: BatchKind
    batches: int
    sequences: float
    prefill_tokens: int | None
    decode_tokens: int | None
    host_ns: int
    device_ns: int
    busy_ns: int
    step_range: str


class SteadyBatches(msgspec.Struct, frozen=True, kw_only=True):
    """The longest row of batches, without a pause between, that continue at least nine tenths as
    many sequences as the largest one does: from the batch at position `first` (from 0, by time) to
    the one before `end`. `span_ns` is from the first one's start to the last one's end, `tokens` of
    all of them; null where the marks do not say.
    """

    first: int
    end: int
    sequences: float
    tokens: int | None
    span_ns: int


class Batches(msgspec.Struct, frozen=True, kw_only=True):
    """The batches of a trace: by kind, and those of its steady state."""

    rows: tuple[BatchRow, ...]
    steady: SteadyBatches | None = None
