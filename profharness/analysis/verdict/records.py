"""What a verdict is, what it stands on, and how kernel time divides, as typed records
(docs/metrics.md#verdict).
"""

from __future__ import annotations

from typing import Literal

import msgspec


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """What holds a window back. JSON shows `kind`, `text` and `at_most`.

    `kind` is one of docs/metrics.md#verdict, `text` one sentence with its evidence. `at_most` is
    the factor, from 1 to 100 000, by which the work could at most run faster without the part that
    `kind` names; None where no bound holds. `share` is that part's share of the window (of the
    allowed cores on a CPU), and `evidence` what `text` says of it. `in_part`: some of the window is
    idle or not recorded, so that idle time is what is known of it. `counters_first`: nothing in the
    records is torch's, so that no operators' shapes can tell the work of kernels.
    """

    kind: str
    text: str
    at_most: float | None = None
    share: float = 0.0
    evidence: str = ""
    in_part: bool = False
    counters_first: bool = False

    @property
    def idle(self) -> bool:
        """Whether idle time is the largest part, of whatever cause."""
        return self.kind.startswith("idle")


class KernelParts(msgspec.Struct, frozen=True, kw_only=True):
    """The time in which kernels compute, in disjoint parts that sum to `Partition.compute_ns`.

    `underfilled_ns`: they leave more than half of the compute units empty. The others fill the
    device: at the compute ceiling, at the bandwidth ceiling, at neither (`inside_kernel_ns`), of
    known work that no ceiling judges (`undetermined_ns`), of unknown work.
    """

    compute_bound_ns: int = 0
    bandwidth_bound_ns: int = 0
    inside_kernel_ns: int = 0
    underfilled_ns: int = 0
    undetermined_ns: int = 0
    unknown_work_ns: int = 0

    @property
    def total_ns(self) -> int:
        return sum(getattr(self, name) for name in self.__struct_fields__)


def add_kernel_parts(parts: list[KernelParts]) -> KernelParts:
    """The sum, part by part."""
    return KernelParts(
        **{
            name: sum(getattr(part, name) for part in parts)
            for name in KernelParts.__struct_fields__
        }
    )


class CategoryTime(msgspec.Struct, frozen=True, kw_only=True):
    """Summed time in ns of the kernels of one category."""

    category: str
    total_ns: int


class Grounds(msgspec.Struct, frozen=True, kw_only=True):
    """What a verdict on a window can stand on, apart from its figures.

    `withheld` says what it would take where the records carry no verdict at all. `host_calls` tells
    whether the file holds any. `records` counts kernels and copies in the window (None: not
    counted), `longest_gap_ns` is the longest gap of each device, summed over devices. `unknown` are
    the kernels of unknown work by category, largest first, and `remedy` says what would make their
    work known. `ceilings` are what kernels are set against: measured, of a data sheet, or none.
    `start_up` says what a verdict on idle time would take where most of that is start-up. `torch`
    tells whether anything in the records is torch's: operators, or kernels.
    """

    withheld: str = ""
    host_calls: bool = True
    records: int | None = None
    longest_gap_ns: int = 0
    unknown: tuple[CategoryTime, ...] = ()
    remedy: str = ""
    ceilings: Literal["measured", "data sheet", "none"] = "data sheet"
    start_up: str = ""
    torch: bool = True


def add_grounds(grounds: list[Grounds]) -> Grounds:
    """What a verdict on several files together stands on. A file that carries no verdict stands for
    all; for what would make work known, the file with most unknown kernel time speaks.
    """
    if not grounds:
        return Grounds()
    categories: dict[str, int] = {}
    for part in grounds:
        for time in part.unknown:
            categories[time.category] = categories.get(time.category, 0) + time.total_ns
    counts = [part.records for part in grounds if part.records is not None]
    speaking = max(grounds, key=lambda part: sum(time.total_ns for time in part.unknown))
    return Grounds(
        withheld=next((part.withheld for part in grounds if part.withheld), ""),
        host_calls=any(part.host_calls for part in grounds),
        records=sum(counts) if len(counts) == len(grounds) else None,
        longest_gap_ns=sum(part.longest_gap_ns for part in grounds),
        unknown=ordered(categories),
        remedy=speaking.remedy,
        ceilings=speaking.ceilings,
        start_up=grounds[0].start_up if all(part.start_up for part in grounds) else "",
        torch=any(part.torch for part in grounds),
    )


def ordered(categories: dict[str, int]) -> tuple[CategoryTime, ...]:
    """Times by category as rows, largest first, then by name."""
    return tuple(
        CategoryTime(category=name, total_ns=total)
        for name, total in sorted(categories.items(), key=lambda pair: (-pair[1], pair[0]))
        if total
    )
