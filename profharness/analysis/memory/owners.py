"""Who took memory and held the peak, as rows of `hotspots --by memory` (docs/metrics.md#memory)."""

from __future__ import annotations

from typing import Literal

import msgspec

from profharness.analysis.memory.records import Memory, MemoryUse
from profharness.analysis.records import SCHEMA


class OwnerRow(msgspec.Struct, frozen=True, kw_only=True):
    """One operator or module and one memory: of the host (`device` null) or a device, of one
    process, and of one point of a run.

    `kept_bytes` in `kept` allocations were alive at the peak, which is the part `share` of it;
    `bytes` in `allocations` were taken in the window.
    """

    device: str | None
    point: str = ""
    pid: int | None = None
    owner: Literal["operator", "module"]
    name: str
    kept_bytes: int
    share: float | None
    kept: int
    bytes: int
    allocations: int


class MemoryOwners(msgspec.Struct, frozen=True, kw_only=True):
    """The owners of one pass, what held most of a peak first. Operators sum to the peak of each
    memory (`peak_bytes` is the sum of these), and so do modules, so that both do not add up.
    """

    schema: int = SCHEMA
    by: Literal["memory"] = "memory"
    pass_name: str | None = msgspec.field(default=None, name="pass")
    peak_bytes: int = 0
    rows: tuple[OwnerRow, ...] = ()


def memory_owners(memory: Memory | None, pass_name: str | None = None) -> MemoryOwners:
    """The owners of all that allocators recorded; without rows where they recorded nothing."""
    uses = () if memory is None else memory.uses
    rows = [row for use in uses for row in _rows(use)]
    return MemoryOwners(
        pass_name=pass_name,
        peak_bytes=sum(use.peak_bytes for use in uses),
        rows=tuple(sorted(rows, key=lambda row: (-row.kept_bytes, -row.bytes, row.name))),
    )


def _rows(use: MemoryUse) -> list[OwnerRow]:
    kinds: tuple[Literal["operator", "module"], ...] = ("operator", "module")
    return [
        OwnerRow(
            device=use.device,
            point=use.point,
            pid=use.pid,
            owner=kind,
            name=row.name,
            kept_bytes=row.kept_bytes,
            share=row.kept_bytes / use.peak_bytes if use.peak_bytes else None,
            kept=row.kept,
            bytes=row.bytes,
            allocations=row.allocations,
        )
        for kind, rows in zip(kinds, (use.operators, use.modules), strict=True)
        for row in rows
    ]
