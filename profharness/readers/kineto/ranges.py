"""Hardware counters that Kineto's CUPTI range profiler writes (`cuda_profiler_range`): per kernel
the counters, and no times.

The profiler replays kernels one by one. A range has the name of its kernel (`__missing__` where it
has none) and the counters among its arguments. Its start and length are made up: the ranges of a
window stand in the order of their kernels and divide it in equal parts (CuptiRangeProfiler.cpp of
libkineto). So these kernels have no times, and belong to the file's launches in their order where
there are as many.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from profharness.readers.bytes.decimals import microseconds
from profharness.readers.bytes.json_scan import NOT_JSON
from profharness.readers.kineto.records import Event
from profharness.trace.call_names import LAUNCH, matching
from profharness.trace.columns.build import Growing
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Api, Counters, Strings

CATEGORY = "cuda_profiler_range"
_UNNAMED = "__missing__"
UNNAMED = "kernel without a name"


@dataclass(frozen=True)
class _Range:
    """One range and the codes of its device and stream."""

    event: Event
    device: int
    stream: int


class RangeRows:
    """The ranges of one file."""

    def __init__(self) -> None:
        self._ranges: list[_Range] = []

    def __len__(self) -> int:
        return len(self._ranges)

    def add(self, events: Sequence[Event], devices: Sequence[int], streams: Sequence[int]) -> None:
        """The ranges of a block, with the codes of their devices and streams."""
        self._ranges += map(_Range, events, devices, streams)

    def add_kernels(self, kernels: Growing, strings: Strings, api: Api) -> None:
        """One kernel per range, in the order of their starts, behind those that the file has. Times
        of 0 and 0 are none.
        """
        start = microseconds([item.event.ts for item in self._ranges]).ns
        self._ranges = [self._ranges[row] for row in np.argsort(start, kind="stable").tolist()]
        names = [item.event.name for item in self._ranges]
        kernels.add(
            len(self),
            start=0,
            dur=0,
            name=[strings.code(UNNAMED if not n or n == _UNNAMED else n) for n in names],
            device=[item.device for item in self._ranges],
            stream=[item.stream for item in self._ranges],
            correlation=self._correlations(api, strings),
            grid=NULL,
            block=NULL,
            external=NULL,
            registers=NULL,
            shared=NULL,
            graph=NULL,
            collective=NULL,
        )

    def _correlations(self, api: Api, strings: Strings) -> I64:
        """The id of each range's launch; NULL where there are not as many launches as ranges."""
        launches = np.flatnonzero(matching(strings, api, LAUNCH))
        if len(launches) != len(self):
            return np.full(len(self), NULL, np.int64)
        ordered = launches[np.argsort(api.start_ns[launches], kind="stable")]
        correlation: I64 = api.correlation[ordered]
        return correlation

    def counters(self, strings: Strings, first: int) -> Counters:
        """The counters of the ranges, whose kernels stand from row `first` on. Arguments that are
        no numbers are left out.
        """
        rows = [
            (first + row, strings.code(name), value)
            for row, item in enumerate(self._ranges)
            for name, value in _numbers(item.event).items()
        ]
        kernel, name, value = zip(*rows, strict=True) if rows else ((), (), ())
        return Counters.build(
            len(rows),
            kernel=np.array(kernel, np.int64),
            name=np.array(name, np.int64),
            value=np.array(value, np.float64),
            source=0,
        )


def _numbers(event: Event) -> dict[str, float]:
    """The arguments of a range that are numbers."""
    try:
        args = msgspec.json.decode(event.args)
    except NOT_JSON:
        return {}
    if not isinstance(args, dict):
        return {}
    return {
        name: float(value)
        for name, value in args.items()
        if isinstance(value, int | float) and not isinstance(value, bool)
    }
