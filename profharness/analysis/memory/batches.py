"""Memory against batch size, and the largest batch that fits (docs/metrics.md#memory-by-batch).

What is alive at one instant of a step is a fixed part and a part per item. The peak, as the highest
of all instants, is a convex function of the batch size, of straight pieces: the largest sizes lie
on the steepest of them, which is the one to extrapolate.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from profharness.analysis.memory.records import BatchMemory, BatchPeak
from profharness.stats.bootstrap import student95
from profharness.stats.estimate import Estimate
from profharness.trace.model import F64

REACH = 16
"""Times the largest measured size, beyond which nothing is said: kernels change with the size."""
MISFIT = 0.02
"""The share by which a peak may miss the line: algorithms with other workspaces change it so."""
_OF_GROWTH = 0.05
"""The same as a share of what the line grows by between its sizes: beside a large fixed part, any
slope would do else."""
_ROUNDING = 512
"""Bytes to which allocators round, and which are no curve."""
_GROWS = 0.25
"""The part of the peak that grows with the batch, of what is not held all the time, below which the
largest sizes do not tell which instant will be the peak of larger ones."""
_LEAST = 3
"""Sizes that an interval needs."""


@dataclass(frozen=True)
class Place:
    """Whose memory it is: a series of points on the host (None) or a device, what the place holds
    in all, and what was held before the recording, where these are known; in bytes.
    """

    series: str
    device: str | None
    capacity: int | None = None
    before: int | None = None


@dataclass(frozen=True, eq=False)
class Line:
    """Weighted least squares through the peaks of at least two sizes, for errors that grow with the
    peak: what to expect of another size, with half its 95 % interval (infinite for two sizes).
    """

    sizes: F64
    peaks: F64

    @cached_property
    def weights(self) -> F64:
        return np.asarray(1 / np.maximum(self.peaks, 1.0) ** 2)

    @cached_property
    def centre(self) -> float:
        """The weighted mean of the sizes."""
        return float(np.average(self.sizes, weights=self.weights))

    @cached_property
    def spread(self) -> float:
        """The weighted sum of squares of the sizes around it."""
        return float((self.weights * (self.sizes - self.centre) ** 2).sum())

    @cached_property
    def per_item(self) -> float:
        """The slope, in bytes per item."""
        around = self.weights * (self.sizes - self.centre)
        return float((around * self.peaks).sum()) / self.spread

    @cached_property
    def fixed(self) -> float:
        """The line at no items, in bytes."""
        middle = float(np.average(self.peaks, weights=self.weights))
        return middle - self.per_item * self.centre

    @cached_property
    def relative(self) -> F64:
        """The distance of each peak from the line, as a share of the peak."""
        line = self.fixed + self.per_item * self.sizes
        return np.asarray((self.peaks - line) * np.sqrt(self.weights))

    @property
    def misfit(self) -> float:
        """The largest of these distances."""
        return float(np.max(np.abs(self.relative)))

    @property
    def holds(self) -> bool:
        """Whether the peaks lie on it, as far as can be told."""
        growth = abs(self.per_item) * (self.sizes[-1] - self.sizes[0])
        missed = np.max(np.abs(self.relative) * self.peaks)
        return bool(self.misfit <= MISFIT and missed <= max(_OF_GROWTH * growth, _ROUNDING))

    @cached_property
    def scale(self) -> float:
        """Half the interval of a peak as a share of it, were the line known."""
        freedom = len(self.sizes) - 2
        if not freedom:
            return math.inf
        return student95(freedom) * math.sqrt(float((self.relative**2).sum()) / freedom)

    def at(self, size: float) -> float:
        """The line at a size, in bytes."""
        return self.fixed + self.per_item * size

    def margin(self, size: float) -> float:
        """Half the interval of the line at a size."""
        return self.scale * math.sqrt(self._variance(size))

    def margin_of_peak(self, size: float) -> float:
        """Half the interval of one further peak at a size."""
        return self.scale * math.sqrt(self._variance(size) + self.at(size) ** 2)

    def margin_per_item(self) -> float:
        """Half the interval of the part per item."""
        return self.scale / math.sqrt(self.spread)

    def _variance(self, size: float) -> float:
        return 1 / float(self.weights.sum()) + (size - self.centre) ** 2 / self.spread


def line_of(peaks: Sequence[BatchPeak]) -> Line:
    """The line through the largest sizes: as many of them as lie on one, three at least where there
    are as many.
    """
    for first in range(max(1, len(peaks) - _LEAST + 1)):
        line = _line(peaks[first:])
        if line.holds:
            break
    return line


def _line(peaks: Sequence[BatchPeak]) -> Line:
    return Line(
        np.array([one.batch_size for one in peaks], np.float64),
        np.array([one.peak_bytes for one in peaks], np.float64),
    )


def memory_by_batch(place: Place, peaks: Sequence[BatchPeak]) -> BatchMemory:
    """What the peaks of one series at one place say; of several of one size the highest counts.
    Raises ValueError without any.
    """
    peaks = _one_of_each_size(peaks)
    top = peaks[-1].batch_size
    if len(peaks) == 1:
        return _of_one(place, peaks[0])
    line = line_of(peaks)
    known = len(line.sizes) >= _LEAST
    holds = line.holds if known else None
    limit = top if holds is False else top * REACH
    grows = _grows(line, peaks)
    largest = _largest if grows else _at_least
    return BatchMemory(
        series=place.series,
        device=place.device,
        peaks=tuple(peaks),
        from_batch=int(line.sizes[0]),
        fixed_bytes=_around(line.fixed, line.margin(0)),
        item_bytes=_around(line.per_item, line.margin_per_item()),
        misfit=line.misfit if known else None,
        holds=holds,
        grows=grows,
        capacity_bytes=place.capacity,
        limit=limit,
        largest_batch=largest(place, peaks, line, limit) if holds is not False else None,
        needs=_needs(place, peaks),
    )


def _one_of_each_size(peaks: Sequence[BatchPeak]) -> list[BatchPeak]:
    if not peaks:
        raise ValueError("no peaks")
    highest: dict[int, BatchPeak] = {}
    for one in peaks:
        known = highest.get(one.batch_size)
        if known is None or one.peak_bytes > known.peak_bytes:
            highest[one.batch_size] = one
    return [highest[size] for size in sorted(highest)]


def _around(value: float, margin: float) -> Estimate:
    if not math.isfinite(margin):
        return Estimate(value=value)
    return Estimate(value=value, low=value - margin, high=value + margin)


def _needs(place: Place, peaks: Sequence[BatchPeak]) -> str:
    """What would say more of the largest batch."""
    lacking = []
    if place.capacity is None:
        lacking.append("how much memory there is")
    elif any(one.elsewhere_bytes is None for one in peaks):
        lacking.append("telemetry of what others hold of this memory")
    if len(peaks) < _LEAST:
        lacking.append(f"{_LEAST} batch sizes for an interval")
    return ", ".join(lacking)


@dataclass(frozen=True)
class _Room:
    """What is left for the allocator, in bytes (at best, as to be expected, at worst), and how many
    times what it gives out it reserves.
    """

    most: float
    expected: float
    least: float
    reserving: float


def _room(capacity: int, peaks: Sequence[BatchPeak]) -> _Room:
    """By what others held at any of the sizes, and by what the allocator reserved at the largest:
    what it had reserved for a larger one before, it keeps at a small one.
    """
    elsewhere = [one.elsewhere_bytes or 0 for one in peaks]
    last = peaks[-1]
    reserving = max(1.0, (last.reserved_bytes or 0) / max(last.peak_bytes, 1))
    return _Room(
        capacity - min(elsewhere), capacity - elsewhere[-1], capacity - max(elsewhere), reserving
    )


def _largest(place: Place, peaks: Sequence[BatchPeak], line: Line, limit: int) -> Estimate | None:
    """Where the line meets the room: expected, and its ends by the interval of the line, by what
    others held and by what the allocator reserves beyond what it gives out.
    """
    if place.capacity is None:
        return None
    room, top = _room(place.capacity, peaks), peaks[-1].batch_size
    value = _last(lambda size: line.at(size) * room.reserving <= room.expected, top, limit)
    if len(line.sizes) < _LEAST:
        return Estimate(value=value)
    low = _last(
        lambda size: (line.at(size) + line.margin_of_peak(size)) * room.reserving <= room.least,
        top,
        limit,
    )
    high = _last(lambda size: line.at(size) - line.margin_of_peak(size) <= room.most, top, limit)
    return Estimate(value=value, low=limit if low is None else low, high=high)


def _grows(line: Line, peaks: Sequence[BatchPeak]) -> bool:
    last = peaks[-1]
    changing = last.peak_bytes - min(one.least_bytes for one in peaks)
    return line.per_item * last.batch_size > _GROWS * max(changing, _ROUNDING)


def _at_least(
    place: Place,
    peaks: Sequence[BatchPeak],
    line: Line,  # noqa: ARG001  as `_largest`
    limit: int,
) -> Estimate | None:
    """What fits whichever instant is the peak: each holds no more than at the largest size now, of
    which at most all that is not held all the time grows with the batch.
    """
    if place.capacity is None:
        return None
    room, last = _room(place.capacity, peaks), peaks[-1]
    always = min(one.least_bytes for one in peaks)
    per_item = (last.peak_bytes - always) / last.batch_size
    low = _last(
        lambda size: (always + per_item * size) * room.reserving <= room.least,
        last.batch_size,
        limit,
    )
    return Estimate(value=None, low=limit if low is None else low)


def _last(fits: Callable[[float], bool], top: int, limit: int) -> int | None:
    """The largest size that fits, at least the measured one, which did; None where that is the
    limit or more.
    """
    if fits(limit):
        return None
    low, high = top, limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _of_one(place: Place, peak: BatchPeak) -> BatchMemory:
    """One size alone: at least what fits if all that is held grows with it. Where it is known what
    was held before the recording, what is to be expected if that does not grow and all else does.
    """
    size = peak.batch_size
    limit = size * REACH
    largest = None
    if place.capacity is not None:
        room = _room(place.capacity, [peak])
        low = _last(
            lambda new: peak.peak_bytes * new / size * room.reserving <= room.least, size, limit
        )
        before = place.before
        value = None
        if before is not None and 0 < before < peak.peak_bytes:
            grows = (peak.peak_bytes - before) / size
            value = _last(
                lambda new: (before + grows * new) * room.reserving <= room.expected, size, limit
            )
        largest = Estimate(value=value, low=limit if low is None else low)
    lacking = [_needs(place, [peak])]
    if not place.before:
        lacking.append("what was held before the recording")
    return BatchMemory(
        series=place.series,
        device=place.device,
        peaks=(peak,),
        capacity_bytes=place.capacity,
        before_bytes=place.before,
        limit=limit,
        largest_batch=largest,
        needs=", ".join(filter(None, lacking)),
    )
