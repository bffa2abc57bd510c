"""What a caller may choose about a Perfetto file, and what it is told afterwards."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from profharness.trace.kernel_figures import KernelFigures
from profharness.trace.model import Trace
from profharness.units import format_bytes, format_number

GpuRepresentation = Literal["render-stage", "track-event"]
RATE_UNIT = "items/s"
"""The unit of rates where nobody says what the items are."""
OperatorKind = Callable[[str], str]
"""The kind of an operator by its name, empty for none: operators of a kind have equal colours."""

MetricTitle = Callable[[str], str]
"""What a counter is called by the name of its metric."""

KernelTeller = Callable[[Trace], KernelFigures]
"""What is known of each kernel of a trace, or of each part of one, beside what was recorded."""


def no_kind(name: str) -> str:  # noqa: ARG001  it is called with a name
    """Of operators whose kinds nobody tells."""
    return ""


def own_name(metric: str) -> str:
    """Of metrics that nobody has titles for."""
    return metric


@dataclass(frozen=True)
class ClockReading:
    """One instant of the reference host on two clocks, so that viewers can print wall-clock
    times.
    """

    boottime_ns: int
    realtime_ns: int


@dataclass(frozen=True)
class HostFacts:
    """What is known about a node; empty or None where it is not."""

    host: str
    sysname: str = ""
    release: str = ""
    version: str = ""
    machine: str = ""
    cpus: int | None = None


@dataclass(frozen=True)
class WriteOptions:
    """`gpu_repr` track-event is for viewers older than v55.

    `max_kernels` keeps the first kernels by start time: a viewer needs about 1.4 kB for each, out
    of 4 GB.
    """

    gpu_repr: GpuRepresentation = "render-stage"
    max_kernels: int | None = None
    clocks: tuple[ClockReading, ...] = ()
    hosts: tuple[HostFacts, ...] = ()
    operator_kind: OperatorKind = no_kind
    rate_unit: str = RATE_UNIT
    metric_title: MetricTitle = own_name
    tell_kernels: KernelTeller | None = None


@dataclass(frozen=True)
class LeftOut:
    """Records of one table that were not written, and why."""

    table: str
    count: int
    reason: str


@dataclass(frozen=True)
class WriteReport:
    """Records written by kind. `slices` are host calls, ops, marks and requests; `samples` counts
    telemetry values without the closing value of each series; `flows` are launch to device-work
    arrows.
    """

    kernels: int
    copies: int
    slices: int
    samples: int
    flows: int
    bytes: int
    left_out: tuple[LeftOut, ...] = ()

    def lines(self) -> tuple[str, ...]:
        """What was written and what was not, a sentence each."""

        def counted(count: int, what: str) -> str:
            return f"{format_number(count)} {what}"

        written = ", ".join(
            (
                counted(self.kernels, "kernels"),
                counted(self.copies, "copies and fills"),
                counted(self.slices, "host spans"),
                counted(self.samples, "telemetry values"),
                counted(self.flows, "launch arrows"),
                format_bytes(self.bytes),
            )
        )
        return (
            f"wrote {written}",
            *(f"left out {counted(x.count, x.table)}: {x.reason}" for x in self.left_out),
        )
