"""Where work ran, as sources name it: devices and their streams, processes and their threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePath
from typing import NamedTuple

NULL = -1
MOST_NAMES = 4096
"""Named processes and threads of one source: a process has hundreds of threads, not thousands."""
_LONGEST = 120
_INTERPRETERS = ("python", "julia", "perl", "ruby")


class ToolCeiling(NamedTuple):
    """The highest rate of a device by the tool that recorded it, in FLOP/s or B/s: of a type of
    matrix products (`fp16`), or of traffic to memory (`copy`). `measured` says that a program
    reached it there; else it follows from clocks and widths.
    """

    figure: str
    rate: float
    source: str
    measured: bool


@dataclass(frozen=True)
class Device:
    """An accelerator as a source names it. `index` is the tool's own number as text, `dies` the
    XCDs that it spans; of several `ceilings` of one figure the first counts.
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
    ceilings: tuple[ToolCeiling, ...] = ()


@dataclass(frozen=True)
class Stream:
    """A stream of one device; `device` is a position in `Trace.devices`, `name` the tool's own
    number.
    """

    device: int
    name: str
    pid: int = NULL


class Named(NamedTuple):
    """What a source calls a process or, where `tid` is not NULL, one of its threads."""

    pid: int
    tid: int
    name: str


def named(recorded: Iterable[tuple[int, int, str]]) -> tuple[Named, ...]:
    """The names of processes and threads (pid, tid, name), in the order in which they first came:
    the last name of each counts, as in viewers. Names without text are left out, long ones cut.
    """
    names: dict[tuple[int, int], str] = {}
    for pid, tid, name in recorded:
        text = name.strip()[:_LONGEST]
        if text and ((pid, tid) in names or len(names) < MOST_NAMES):
            names[pid, tid] = text
    return tuple(Named(pid, tid, name) for (pid, tid), name in names.items())


def command_name(words: Sequence[str]) -> str:
    """What to call a process by its command line: the program and, of an interpreter, its script,
    without their folders; empty where there is no word. Arguments stay out: they may be secret.
    """
    if not words:
        return ""
    program = PurePath(words[0]).name
    if not program.startswith(_INTERPRETERS):
        return program
    suffixes = {".py", ".jl", ".pl", ".rb"}
    script = next((word for word in words[1:] if PurePath(word).suffix in suffixes), "")
    return f"{program} {PurePath(script).name}".strip()
