"""Where device work ran, as sources name it: devices and their streams."""

from __future__ import annotations

from dataclasses import dataclass

NULL = -1


@dataclass(frozen=True)
class Device:
    """An accelerator as a source names it. `index` is the tool's own number as text, `dies` the
    XCDs that it spans.
    """

    index: str
    host: str = ""
    identity: str = ""
    name: str = ""
    vendor: str = ""
    compute_units: int | None = None
    rank: int | None = None
    architecture: str = ""
    dies: int | None = None
    max_clock_mhz: int | None = None
    pci_id: str = ""
    memory_bytes: int | None = None


@dataclass(frozen=True)
class Stream:
    """A stream of one device; `device` is a position in `Trace.devices`, `name` the tool's own
    number.
    """

    device: int
    name: str
    pid: int = NULL
