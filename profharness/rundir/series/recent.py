"""The last minutes of some metrics of a sampler's file that still grows, read column by column:
what a page shows meanwhile, at next to no cost.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from profharness.errors import InputError
from profharness.rundir.foreign.limits import SMALL_BYTES
from profharness.rundir.telemetry_rows import (
    FIXED_BYTES,
    Header,
    Rows,
    read_header,
    without_empty_rows,
)
from profharness.rundir.telemetry_samples import column_series
from profharness.trace.model import F64, I64

BACK_S = 300.0
MOST_ROWS = 20_000
_OVERLAP = 12
"""Rows that are read again: a counter's growth is from one row that has it to the next, and slow
sources are read twice a second."""


@dataclass(frozen=True, eq=False)
class RecentSeries:
    """One metric of a device (empty for the host): ends of its samples on CLOCK_MONOTONIC in ns,
    and values.
    """

    metric: str
    unit: str
    device: str
    at_ns: I64
    value: F64


class RecentSamples:
    """Keeps the last `BACK_S` of the wanted metrics; `read` adds what the file has got since."""

    def __init__(self, path: Path, metrics: Collection[str]) -> None:
        self.host = ""
        self._path = path
        self._metrics = frozenset(metrics)
        self._header: Header | None = None
        self._start = 0
        self._seen = 0  # whole rows
        self._kept: dict[int, tuple[I64, F64]] = {}

    def read(self) -> tuple[RecentSeries, ...]:
        """The series that have a sample, in the order of the file's columns. Raises InputError for
        what is no sampler's file, OSError where it cannot be read.
        """
        with self._path.open("rb") as file:
            if self._header is None:
                head = file.read(FIXED_BYTES)
                length = min(int.from_bytes(head[8:12], "little"), SMALL_BYTES)
                self._header, self._start = read_header(head + file.read(length), self._path)
                self.host = self._header.host
            header = self._header
            whole = max(self._path.stat().st_size - self._start, 0) // header.width
            if whole > self._seen:
                most = min(MOST_ROWS, math.ceil(BACK_S * max(header.hz, 1.0)))
                first = max(self._seen - _OVERLAP, whole - most, 0)
                file.seek(self._start + first * header.width)
                self._add(header, file.read((whole - first) * header.width))
                self._seen = whole
        return tuple(self._series(header))

    def _add(self, header: Header, data: bytes) -> None:
        data, _ = without_empty_rows(header, data, 0)
        rows = Rows(header, data, 0)
        if not len(rows):
            return
        for place, column in enumerate(header.columns):
            if column.role != "value" or column.metric not in self._metrics:
                continue
            _, until, value = column_series(rows, place)
            at, before = self._kept.get(place, (until[:0], value[:0]))
            new = until > (int(at[-1]) if len(at) else 0)
            at = np.concatenate([at, until[new]])
            value = np.concatenate([before, value[new]])
            if len(at):
                recent = at > int(at[-1]) - int(BACK_S * 1e9)
                self._kept[place] = at[recent], value[recent]

    def _series(self, header: Header) -> list[RecentSeries]:
        found = []
        for place, (at, value) in sorted(self._kept.items()):
            column = header.columns[place]
            device = header.devices[column.device] if column.device >= 0 else None
            name = "" if device is None else device.number or device.identity
            if len(at):
                found.append(RecentSeries(column.metric, column.unit, name, at, value))
        return found


def recent_of(path: Path, metrics: Collection[str]) -> RecentSamples | None:
    """A reader of the file; None where there is none yet, or it is cut within its header."""
    samples = RecentSamples(path, metrics)
    try:
        samples.read()
    except (InputError, OSError):
        return None
    return samples
