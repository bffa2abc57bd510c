"""Lines of `DEMO name start duration`, in ns of CLOCK_BOOTTIME."""

from __future__ import annotations

from pathlib import Path

from profharness.trace.model import ClockDomain, Kernels, Source, Strings, Trace
from profharness.trace.places import Device
from profharness.trace.wanted import Wanted

name = "demo"


def sniff(head: bytes, name: str) -> bool:
    return head.startswith(b"DEMO ")


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:
    rows = [line.split()[1:] for line in path.read_text().splitlines()]
    strings = Strings()
    kernels = Kernels.build(
        start_ns=[int(start) for _, start, _ in rows],
        dur_ns=[int(length) for _, _, length in rows],
        name=strings.codes([kernel for kernel, _, _ in rows]),
        device=0,
        source=0,
    )
    source = Source(str(path), name, ClockDomain.BOOTTIME)
    return Trace(sources=(source,), devices=(Device("0"),), strings=strings, kernels=kernels)
