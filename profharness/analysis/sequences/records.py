"""What recurring sequences of short kernels say, as typed records. Nothing is computed here."""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.analysis.records import SCHEMA

Use = Literal["fuse", "graph"]


class SequenceRow(msgspec.Struct, frozen=True, kw_only=True):
    """One sequence of `kernels` kernels that ran `calls` times in the same order without sharing a
    kernel; `names` and `ops` are those of the first call (of a long one the first eight), an
    operator empty where none launched the kernel.

    Over all calls, `total_ns` is the kernels' time, `gap_ns` the idle time between them on their
    stream. `bytes` are those of tensors that one kernel writes and the next reads, each way once,
    as far as the `links_known` of `links` neighbours tell (null: none does). `saved_ns` is the most
    that can be gained: the gaps, and where kernels are fused, the bytes over the bandwidth.
    """

    use: Use
    names: tuple[str, ...]
    ops: tuple[str, ...]
    kernels: int
    calls: int
    total_ns: int
    gap_ns: int
    links: int
    links_known: int
    bytes: int | None
    saved_ns: float


class Sequences(msgspec.Struct, frozen=True, kw_only=True):
    """The sequences of one pass, the most that can be saved first; those to fuse and those to
    capture each share no kernel with others of their kind.

    Of all kernels (`kernels`, `kernel_ns`) these are short: `short_kernels` with `short_ns`, and
    `gap_ns` of idle time before them. `bandwidth` is in bytes per second, null where not known.
    """

    schema: int = SCHEMA
    by: Literal["sequence"] = "sequence"
    pass_name: str | None = msgspec.field(default=None, name="pass")
    kernels: int = 0
    kernel_ns: int = 0
    short_kernels: int = 0
    short_ns: int = 0
    gap_ns: int = 0
    bandwidth: float | None = None
    rows: tuple[SequenceRow, ...] = ()
