"""What the analysis says of copies and allocators, as typed records. Nothing is computed here."""

from __future__ import annotations

import msgspec

from profharness.stats.estimate import Estimate


class CopyRow(msgspec.Struct, frozen=True, kw_only=True):
    """Copies or fills of one direction, kind of host memory and class of size, that start in the
    window; times in ns, sums over devices.

    `direction` is h2d, d2h, d2d, p2p, h2h, fill or unknown, `host_memory` pageable, pinned or
    managed, empty where it is not recorded. The sizes lie from `least_bytes` to below `below_bytes`
    (None: no limit); where sizes are not known both and `bytes` are None. `busy_ns` is the union of
    the copies inside of the window, `exposed_ns` the part of it in which no kernel ran. Bandwidths
    are in B/s: of the sum, and the median over copies.

    Of `linked_calls`, whose launching call is known, `blocking_calls` kept it until the copy had
    ended. `kernel` names the kernel that does the copying where the tool recorded one: its size is
    never known, and its time is time of kernels, so that nothing of it is exposed.
    """

    direction: str
    host_memory: str = ""
    kernel: str = ""
    least_bytes: int | None = None
    below_bytes: int | None = None
    calls: int
    bytes: int | None = None
    total_ns: int
    busy_ns: int
    exposed_ns: int | None = None
    window_ns: int
    bytes_per_s: float | None = None
    bytes_per_s_median: float | None = None
    linked_calls: int = 0
    blocking_calls: int | None = None


class MemoryRow(msgspec.Struct, frozen=True, kw_only=True):
    """What one operator or module took from an allocator in the window, and what of all that it
    ever took was alive at the peak; bytes, and numbers of allocations.
    """

    name: str
    allocations: int = 0
    bytes: int = 0
    kept: int = 0
    kept_bytes: int = 0


class MemoryUse(msgspec.Struct, frozen=True, kw_only=True):
    """What one process held of the host's (`device` None) or of one device's memory in the window,
    in bytes; `file` names the trace where there are several, `point` the point of a run.

    `least_bytes` were held all the time. `peak_ns` is the time of the peak after the start of the
    window, `step` the step that it lies in. `reserved_bytes` is what the allocator had taken at the
    peak, `reserved_peak_bytes` at most; None where it reserves nothing ahead. `before_bytes` of the
    peak were taken before the recording. `operators` and `modules` sum to the peak (`kept_bytes`),
    and to all that was taken in the window (`bytes`); `needs` says what is missing where there are
    none. `batch_size` is the number of items of each step, where its marks say so. `growth_bytes`
    per step has a 95 % interval. The curve holds the lowest and highest values of short stretches.
    """

    device: str | None
    file: str = ""
    point: str = ""
    pid: int | None = None
    capacity_bytes: int | None = None
    peak_bytes: int
    least_bytes: int = 0
    peak_ns: int
    step: str | None = None
    reserved_bytes: int | None = None
    reserved_peak_bytes: int | None = None
    before_bytes: int | None = None
    allocations: int
    releases: int
    allocated_bytes: int
    steps: int | None = None
    batch_size: int | None = None
    growth_bytes: Estimate | None = None
    operators: tuple[MemoryRow, ...] = ()
    modules: tuple[MemoryRow, ...] = ()
    needs: str = ""
    at_ns: tuple[int, ...] = ()
    allocated: tuple[int, ...] = ()
    reserved: tuple[int, ...] = ()


class HeldPeak(msgspec.Struct, frozen=True, kw_only=True):
    """The most that allocators held of the host's (`device` None) or of one device's memory in the
    windows of one point, in bytes; of several `processes` the sum of their peaks. `least_bytes` is
    what they held all the time.
    """

    device: str | None
    processes: int = 1
    peak_bytes: int
    least_bytes: int = 0
    reserved_peak_bytes: int | None = None
    capacity_bytes: int | None = None


class BatchPeak(msgspec.Struct, frozen=True, kw_only=True):
    """What one batch size took of a memory, in bytes: at the peak, and at every instant. What of
    this is not known is 0. `elsewhere_bytes` is what is held beside it
    by others: other programs, the driver, and what of the same processes no allocator records.
    """

    batch_size: int
    peak_bytes: int
    least_bytes: int = 0
    reserved_bytes: int | None = None
    elsewhere_bytes: int | None = None


class BatchMemory(msgspec.Struct, frozen=True, kw_only=True):
    """Memory against batch size of one series at one place (docs/metrics.md#memory-by-batch).

    The line through the peaks of the sizes from `from_batch` on is `fixed_bytes` and `item_bytes`
    per item. It misses the worst of them by the share `misfit`; it `holds` if that is little, which
    two sizes cannot tell (None), and `grows` if its part per item is a good part of the peak.
    `largest_batch` fits in `capacity_bytes`; ends beyond `limit`, the largest size that the peaks
    speak for, are None. `needs` says what is missing.
    """

    series: str = ""
    device: str | None
    peaks: tuple[BatchPeak, ...]
    from_batch: int | None = None
    fixed_bytes: Estimate | None = None
    item_bytes: Estimate | None = None
    misfit: float | None = None
    holds: bool | None = None
    grows: bool | None = None
    capacity_bytes: int | None = None
    before_bytes: int | None = None
    limit: int
    largest_batch: Estimate | None = None
    needs: str = ""


class AllocatorCall(msgspec.Struct, frozen=True, kw_only=True):
    """Calls of one function of the driver that takes or frees memory, and their time in the window,
    in ns.
    """

    name: str
    calls: int
    total_ns: int


class Memory(msgspec.Struct, frozen=True, kw_only=True):
    """What allocators did in the window, `window_ns` long, and over batch sizes."""

    window_ns: int
    uses: tuple[MemoryUse, ...] = ()
    calls: tuple[AllocatorCall, ...] = ()
    by_batch: tuple[BatchMemory, ...] = ()
