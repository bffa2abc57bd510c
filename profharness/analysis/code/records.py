"""A table of the lines or instructions of kernels, as reports and JSON hold it."""

from __future__ import annotations

from typing import Literal

import msgspec

SCHEMA = 1
By = Literal["line", "instruction"]


class StallReason(msgspec.Struct, frozen=True, kw_only=True):
    """Why waves did not issue, in how many samples of the row, and their share of all its
    samples.
    """

    reason: str
    samples: int
    share: float


class CodeRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line or instruction of one kernel (docs/metrics.md#code).

    `share` is that of all samples of the table, with its 95 % interval, or of all latency of thread
    traces, which count and do not sample. `source` is `file:line`, None where the code was built
    without debug information, `kernel` None where no kernel trace names it, `instruction` None by
    line and for code that the tool could not decode. `lanes` is the mean of active lanes.
    """

    kernel: str | None
    source: str | None
    instruction: str | None
    decoded: bool = True
    share: float
    share_low: float | None = None
    share_high: float | None = None
    samples: int | None = None
    lanes: float | None = None
    issued: int | None = None
    stalled: int | None = None
    stall_reasons: tuple[StallReason, ...] = ()
    hits: int | None = None
    latency_cycles: int | None = None
    stall_cycles: int | None = None
    idle_cycles: int | None = None


class CodeHotspots(msgspec.Struct, frozen=True, kw_only=True):
    """Rows by share (falling), then by kernel, source and instruction. `without_source` counts the
    samples, or cycles of latency, of code that names no source line, `undecoded` the samples of
    code that the tool could not decode. `method` is None where nothing was recorded.
    """

    schema: int = SCHEMA
    by: By
    pass_name: str | None = msgspec.field(default=None, name="pass")
    method: Literal["host_trap", "stochastic", "thread_trace"] | None
    samples: int | None = None
    latency_cycles: int | None = None
    without_source: int = 0
    undecoded: int = 0
    rows: tuple[CodeRow, ...] = ()
