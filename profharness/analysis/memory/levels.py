"""Which measured peaks are of one series over batch sizes: points of a run or trace, or files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from profharness.analysis.memory.batches import Place, memory_by_batch
from profharness.analysis.memory.records import (
    BatchMemory,
    BatchPeak,
    HeldPeak,
    Memory,
    MemoryUse,
)

if TYPE_CHECKING:
    from profharness.analysis.records import PointSummary

_NODE_USED, _DEVICE_USED = "memory_node_used", "gpu_memory_used"


@dataclass(frozen=True)
class Level:
    """What was held at one batch size of a series. `used` is what was in use of each memory in all,
    and `before` what was held before the recording, by the device (None: the host) and in bytes.
    """

    series: str
    batch_size: int
    held: tuple[HeldPeak, ...]
    used: Mapping[str | None, float] = field(default_factory=dict)
    before: Mapping[str | None, int] = field(default_factory=dict)


def by_batch(levels: Sequence[Level], host_bytes: int | None = None) -> tuple[BatchMemory, ...]:
    """Memory against batch size for each series and place. `host_bytes` is what the host has."""
    places: dict[tuple[str, str | None], list[tuple[Level, HeldPeak]]] = {}
    for level in levels:
        for one in level.held:
            places.setdefault((level.series, one.device), []).append((level, one))
    return tuple(
        memory_by_batch(
            Place(
                series,
                device,
                host_bytes if device is None else found[0][1].capacity_bytes,
                found[0][0].before.get(device) if len(found) == 1 else None,
            ),
            [_peak(level, one) for level, one in found],
        )
        for (series, device), found in places.items()
    )


def _peak(level: Level, one: HeldPeak) -> BatchPeak:
    used = level.used.get(one.device)
    taken = one.peak_bytes if one.reserved_peak_bytes is None else one.reserved_peak_bytes
    return BatchPeak(
        batch_size=level.batch_size,
        peak_bytes=one.peak_bytes,
        least_bytes=one.least_bytes,
        reserved_bytes=one.reserved_peak_bytes,
        elsewhere_bytes=None if used is None else max(0, round(used) - taken),
    )


def of_points(points: Iterable[PointSummary], sizes: Mapping[str, int] = {}) -> list[Level]:
    """Those of the points whose batch size is known: by itself, or by the point in `sizes`."""
    return [
        Level(_series(point), size, point.held, _used(point))
        for point in points
        if point.held and point.state == "ok"
        if (size := point.batch_size or sizes.get(point.point))
    ]


def _series(point: PointSummary) -> str:
    """What tells a point from others of its batch size."""
    said = (
        point.backend,
        point.mode,
        f"concurrency {point.concurrency}" if (point.concurrency or 1) > 1 else "",
        f"{point.processes} processes" if (point.processes or 1) > 1 else "",
        f"{point.rate:g} requests/s" if point.rate else "",
    )
    return ", ".join(filter(None, said))


def _used(point: PointSummary) -> dict[str | None, float]:
    """What telemetry saw in use of each memory while the point was measured, by all programs."""
    names: dict[str | None, tuple[str, ...]] = {None: (_NODE_USED,)}
    devices = [one.device for one in point.held if one.device is not None]
    for device in devices:
        own = f"{_DEVICE_USED}_{device.rsplit('/', 1)[-1]}"
        names[device] = (own, _DEVICE_USED) if len(devices) == 1 else (own,)
    return {
        place: float(figure.value)
        for place, candidates in names.items()
        for name in candidates[::-1]
        if (figure := point.metrics.get(name)) is not None and figure.value is not None
    }


def over_batches(
    memory: Memory | None,
    points: Sequence[PointSummary],
    host_bytes: int | None = None,
    sizes: Mapping[str, int] = {},
) -> Memory | None:
    """What allocators did, with memory against the batch sizes of these points, where any is known.
    `sizes` are those that points do not say themselves, `host_bytes` what the host has.
    """
    levels = of_points(points, sizes)
    if memory is None or not levels:
        return memory
    return msgspec.structs.replace(memory, by_batch=by_batch(levels, host_bytes))


def of_uses(uses: Sequence[MemoryUse]) -> list[Level]:
    """Those of loose traces whose steps say how many items each has."""
    return [
        Level(
            "",
            use.batch_size,
            (
                HeldPeak(
                    device=use.device,
                    peak_bytes=use.peak_bytes,
                    least_bytes=use.least_bytes,
                    reserved_peak_bytes=use.reserved_peak_bytes,
                    capacity_bytes=use.capacity_bytes,
                ),
            ),
            before={}
            if use.device is None or use.before_bytes is None
            else {use.device: use.before_bytes},
        )
        for use in uses
        if use.batch_size
    ]
