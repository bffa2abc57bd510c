"""Kineto files of an allocator whose every byte is known."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from profharness import readers
from profharness.trace.model import Trace
from tests.readers.kineto.kineto_files import HOST, document, op, write

CUDA = 1


@dataclass
class Program:
    """A program that takes and frees memory of one device at whole microseconds, and what it holds;
    `before` bytes were taken before the recording. The device has `capacity` bytes.
    """

    before: int = 0
    chunk: int = 1 << 21
    capacity: int | None = None
    events: list[dict[str, Any]] = field(default_factory=list)
    alive: dict[int, tuple[str, int]] = field(default_factory=dict)
    peak: int = 0
    at_peak: dict[int, tuple[str, int]] = field(default_factory=dict)

    @property
    def held(self) -> int:
        return self.before + sum(size for _, size in self.alive.values())

    @property
    def reserved(self) -> int:
        return -(-self.held // self.chunk) * self.chunk

    def operator(self, name: str, start: int, end: int, *, inner: str = "") -> None:
        """An operator, with one inside of it that lasts as long but for a microsecond."""
        self.events.append(op(name, start, end - start, len(self.events)))
        if inner:
            self.events.append(op(inner, start, end - start - 1, len(self.events)))

    def module(self, name: str, start: int, end: int) -> None:
        """A call of a module."""
        self.events.append(
            {
                "ph": "X",
                "cat": "python_function",
                "name": f"nn.Module: {name}",
                "pid": HOST,
                "tid": HOST,
                "ts": start,
                "dur": end - start,
                "args": {},
            }
        )

    def step(self, number: int, start: int, end: int, items: int | None = None) -> None:
        """A step as torch's profiler marks it, or as a hook of ours that knows its items."""
        own = f"profharness.step:{number}:{items}"
        self.events.append(
            {
                "ph": "X",
                "cat": "user_annotation",
                "name": f"ProfilerStep#{number}" if items is None else own,
                "pid": HOST,
                "tid": HOST,
                "ts": start,
                "dur": end - start,
                "args": {},
            }
        )

    def take(self, at: float, address: int, size: int, owner: str = "") -> None:
        """Take memory; `owner` is whose it is by the truth."""
        self.alive[address] = (owner, size)
        self._say(at, address, size)
        if self.held > self.peak:
            self.peak, self.at_peak = self.held, dict(self.alive)

    def free(self, at: float, address: int) -> None:
        """Free what was taken."""
        _, size = self.alive.pop(address)
        self._say(at, address, -size)

    def free_early(self, at: float, address: int, size: int) -> None:
        """Free what was taken before the recording."""
        self.before -= size
        self._say(at, address, -size)

    def _say(self, at: float, address: int, size: int) -> None:
        self.events.append(
            {
                "ph": "i",
                "cat": "cpu_instant_event",
                "s": "t",
                "name": "[memory]",
                "pid": HOST,
                "tid": HOST,
                "ts": at,
                "args": {
                    "Total Reserved": self.reserved,
                    "Total Allocated": self.held,
                    "Bytes": size,
                    "Addr": address,
                    "Device Id": 0,
                    "Device Type": CUDA,
                },
            }
        )

    def file(self, folder: Path, name: str = "made.json") -> Path:
        """The program's file."""
        device = {"id": 0, "name": "a device", "totalGlobalMem": self.capacity}
        known = {} if self.capacity is None else {"deviceProperties": [device]}
        return write(folder / name, document(self.events, **known))

    def trace(self, folder: Path) -> Trace:
        """The program's file, read."""
        return readers.read(self.file(folder))
