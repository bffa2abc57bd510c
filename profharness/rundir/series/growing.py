"""The newest values of a sampler's file that still grows, and the amounts since it began: what an
exporter shows at a moment.
"""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from profharness.errors import InputError
from profharness.rundir import telemetry
from profharness.trace.columns.table import NULL
from profharness.trace.model import F64, I64, Device, Trace
from profharness.trace.series.names import Series, series_of

BACK_S = 5.0  # of samples that are looked at again each time: several of the slowest sources
STALE_S = 10.0  # a value that is older is not the present one any more
MOST_ROWS = 200_000


class Reading(NamedTuple):
    """One series now: `value` is on the scale of its name. `device` is None for the host."""

    metric: str
    series: Series
    device: Device | None
    value: float


class GrowingSamples:
    """Reads what was added since the last time; samples that were seen already count once.

    The times of a sample may differ a little between two readings of the file, since the clock of a
    driver is brought to the sampler's by what lies in the rows that are read. A sample counts as
    new where more than half of its interval lies behind the last one.
    """

    def __init__(self, path: Path, hz: float) -> None:
        self.host = ""
        self.version = ""
        self.devices: tuple[Device, ...] = ()
        self._path = path
        self._hz = hz
        self._read_at = time.monotonic()
        self._seen: dict[tuple[str, int], float] = {}
        self._amounts: dict[tuple[str, int], float] = {}

    def read(self) -> tuple[Reading, ...]:
        """The present values, by metric and device; none where the sampler has not begun, or has
        written nothing for ten seconds.
        """
        now = time.monotonic()
        back = BACK_S + max(now - self._read_at, 0.0) * 1.5
        rows = min(math.ceil(back * self._hz) + 2, MOST_ROWS)
        try:
            trace = telemetry.read_tail(self._path, rows)
        except InputError:
            return ()
        self._read_at = now
        source = trace.sources[0]
        self.host, self.version = source.host, source.tool_version
        self.devices = trace.devices
        return tuple(self._readings(trace, time.monotonic_ns()))

    def _readings(self, trace: Trace, now_ns: int) -> Iterator[Reading]:
        samples = trace.samples
        pairs = dict.fromkeys(zip(samples.metric.tolist(), samples.device.tolist(), strict=True))
        for code, place in pairs:
            metric = trace.strings[code]
            device = None if place == NULL else trace.devices[place]
            series = series_of(metric, "" if device is None else device.vendor or "other")
            if series is None:
                continue
            mine = samples.take((samples.metric == code) & (samples.device == place))
            key = (metric, place)
            if series.summed:
                self._add(key, mine.at_ns, mine.until_ns, mine.value)
            if key not in self._seen and series.summed:
                continue  # instants alone, which are no amount
            if now_ns - int(mine.until_ns[-1]) <= STALE_S * 1e9:
                value = self._amounts[key] if series.summed else float(mine.value[-1])
                yield Reading(metric, series, device, value * series.scale)

    def _add(
        self,
        key: tuple[str, int],
        at: I64,
        until: I64,
        value: F64,
    ) -> None:
        """Value × seconds of the samples that are new."""
        length = until - at
        seen = self._seen.get(key, -math.inf)
        new = (length > 0) & (until - length / 2 > seen)
        grown = float((value[new] * length[new]).sum()) / 1e9
        self._amounts[key] = self._amounts.get(key, 0.0) + grown
        if new.any():
            self._seen[key] = float(until[new].max())
