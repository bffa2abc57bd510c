"""What the driver says of one AMD package per tick: one read of `gpu_metrics`, stamped by the driver itself.

The driver's stamp is CLOCK_BOOTTIME (ktime_get_boottime_ns at the read), the energy counter's unit is 2^-16 J
(15.2588 µJ; vendor tools multiply by a rounded 15.3), XGMI counts are KiB. The residency accumulators count the
firmware's own cycles, as `accumulation_counter` does: their growth over its growth is a share of time.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal, NamedTuple

from profharness.telemetry.sources import Column, Missing, SampledDevice
from profharness.telemetry.sources.amd_devices import Die
from profharness.telemetry.sources.amd_layouts import KIB
from profharness.telemetry.sources.amd_table import Table
from profharness.telemetry.sources.shares import ShareClock

How = Literal["one", "mean", "total"]
JOULES_PER_COUNT = 2.0 ** -16
MAX_HZ = 100.0  # each read is a message to the power controller, which refreshes more slowly than this
STALE_NS = 10_000_000_000  # a stamp further off than this is of another clock: the time of the read counts then
_WORD = 0xFFFFFFFF
_POWER_BITS = (1 << 32) - 1  # SMU_THROTTLER_*: power and current limits, then temperatures, then PROCHOT
_THERMAL_BITS = ((1 << 46) - 1) & ~_POWER_BITS
_EXTERNAL_BITS = 0b11 << 46

# metric, unit, field, scale, how to take it
_INSTANTS: tuple[tuple[str, str, str, float, How], ...] = (
    ("gpu_percent", "%", "gpu", 1.0, "one"), ("memory_activity", "share", "memory", 0.01, "one"),
    ("power_w", "W", "power", 1.0, "one"), ("clock_gpu", "MHz", "clock_gpu", 1.0, "mean"),
    ("clock_memory", "MHz", "clock_memory", 1.0, "mean"), ("clock_soc", "MHz", "clock_soc", 1.0, "mean"),
    ("temperature_edge", "°C", "temperature_edge", 1.0, "one"), ("temperature_hotspot", "°C", "temperature_hotspot", 1.0, "one"),
    ("temperature_memory", "°C", "temperature_memory", 1.0, "one"))
_COUNTERS: tuple[tuple[str, str, str, float, How], ...] = (
    ("power_energy", "W", "energy", JOULES_PER_COUNT, "one"), ("xgmi_read", "B/s", "xgmi_read", KIB, "total"),
    ("xgmi_written", "B/s", "xgmi_written", KIB, "total"))
PACKAGE_METRICS = frozenset({"power_w", "power_energy"})
# What amd_files can read where gpu_metrics does not give it.
FALLBACKS = frozenset({"gpu_percent", "memory_activity", "power_w", "clock_gpu", "clock_memory", "temperature_edge",
                       "temperature_hotspot", "temperature_memory"})
_RESIDENCIES = (("throttle_power", ("residency_power",)), ("throttle_external", ("residency_prochot",)),
                ("throttle_thermal", ("residency_socket", "residency_regulator", "residency_hbm")))
_BITS = (("throttle_power", _POWER_BITS), ("throttle_thermal", _THERMAL_BITS), ("throttle_external", _EXTERNAL_BITS))
_MEANS = (("gpu_activity_mean", "gpu_accumulated", "%", 1.0), ("memory_activity_mean", "memory_accumulated", "share", 0.01))
_ALL = (*(row[0] for row in (*_INSTANTS, *_COUNTERS)), *(metric for metric, _ in _BITS), *(row[0] for row in _MEANS))


class _Value(NamedTuple):
    column: Column
    take: Callable[[], int | float | None]


class AmdMetricsSource:
    """All devices of one `gpu_metrics` file: a die, or the partitions of a package."""

    max_hz = MAX_HZ

    def __init__(self, dies: tuple[Die, ...]) -> None:
        self.name = f"amd{dies[0].number}"
        self.columns: tuple[Column, ...] = ()
        self.devices = tuple(sampled(die) for die in dies)
        self._dies = dies
        self._table = Table(f"{dies[0].folder}/gpu_metrics")
        self._values: list[_Value] = []
        self._shares: list[_Residency | _Bits] = []
        self._stamp_ns = 0
        self._stamp: Callable[[], int | None] = lambda: None
        self.left: dict[str, str] = {}  # what amd_files should try, and why it is not here

    def probe(self) -> tuple[Missing, ...]:
        if why := self._table.open():
            missing = [Missing(metric, why) for metric in _ALL]
        else:
            missing = [*self._package_columns(), *self._throttle_columns(), *self._mean_columns()]
            self._partition_columns()
        self.columns = tuple(value.column for value in self._values)
        self.left = {absent.metric: absent.why for absent in missing if absent.metric in FALLBACKS}
        return tuple(absent for absent in missing if absent.metric not in FALLBACKS)

    def read(self, row: list[int | float], at: int) -> None:
        """Fields that the driver left unset in this read stay unread."""
        self._table.read()
        now_ns = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
        stamp_ns = self._stamp() or 0
        self._stamp_ns = stamp_ns if abs(now_ns - stamp_ns) < STALE_NS else 0
        for share in self._shares:
            share.update(self._stamp_ns or now_ns)
        for place, value in enumerate(self._values, at):
            taken = value.take()
            if taken is not None:
                row[place] = taken

    def _add(self, column: Column, take: Callable[[], int | float | None]) -> None:
        self._values.append(_Value(column, take))

    def _package_columns(self) -> list[Missing]:
        table, die = self._table, self._dies[0]
        missing = []
        if table.has("stamp"):
            self._stamp = table.taker("stamp")
            for device in range(len(self._dies)):
                self._add(Column("", "ns", "instant", device=device, role="stamp"), lambda: self._stamp_ns or None)
        for rows, form in ((_INSTANTS, "instant"), (_COUNTERS, "counter")):
            for metric, unit, field, scale, how in rows:
                if metric == "gpu_percent" and die.partitions > 1:
                    continue  # each partition has its own
                if not table.has(field):
                    missing.append(Missing(metric, f"{die.address}: gpu_metrics v{table.version} does not give it"))
                elif metric in PACKAGE_METRICS and not die.reports_package:
                    missing.append(Missing(metric, f"{die.address}: {die.package} reports for the package of both dies"))
                else:
                    column = Column(metric, unit, "counter" if form == "counter" else "instant", scale, device=0)
                    self._add(column, table.taker(field, how))
        return missing

    def _throttle_columns(self) -> list[Missing]:
        table = self._table
        if all(table.has(field) for field in ("accumulation", "residency_power", "residency_prochot")):
            for metric, fields in _RESIDENCIES:
                self._add_residency(metric, "share", _Residency(table, tuple(field for field in fields if table.has(field)), 1.0))
            return []
        if table.has("throttle"):
            for metric, bits in _BITS:
                self._add_residency(metric, "share", _Bits(table, bits))
            return []
        why = f"{self._dies[0].address}: gpu_metrics v{table.version} says nothing of throttling"
        return [Missing(metric, why) for metric, _ in _BITS]

    def _mean_columns(self) -> list[Missing]:
        """Accumulated activity has a unit only where the firmware's cycles are counted beside it."""
        table = self._table
        counted = table.has("accumulation")
        missing = []
        for metric, field, unit, scale in _MEANS:
            if counted and table.has(field):
                self._add_residency(metric, unit, _Residency(table, (field,), scale, at_most=101.0))
            else:
                missing.append(Missing(metric, f"{self._dies[0].address}: gpu_metrics v{table.version} gives no accumulator with a known unit"))
        return missing

    def _add_residency(self, metric: str, unit: str, share: _Residency | _Bits) -> None:
        self._shares.append(share)
        self._add(Column(metric, unit, "counter", 1e-9, "d", 0), share.taken)

    def _partition_columns(self) -> None:
        for place, die in enumerate(self._dies):
            busy = self._table.busy(die.partition)
            if busy and die.partitions > 1:
                self._add(Column("gpu_percent", "%", "instant", 1.0, "d", place), _MeanBusy(self._table, die.partition).taken)
            for number in range(len(busy) if len(busy) > 1 else 0):
                self._add(Column(f"xcc_busy_{number}", "%", "instant", 1.0, "q", place), _OneBusy(self._table, die.partition, number).taken)


class _Residency:
    """Growth of one or several accumulators over the growth of the firmware's cycle counter, as a clock of shares.

    Of several the largest counts: their causes may hold at once. Nothing is taken while the firmware has not gone on,
    and nothing any more once a share above `at_most` shows that the accumulator counts something else than cycles.
    """

    def __init__(self, table: Table, fields: tuple[str, ...], scale: float, at_most: float = 1.01) -> None:
        self._count_cycles = table.taker("accumulation")
        self._fields = tuple(table.taker(field) for field in fields)
        self._scale = scale
        self._at_most = at_most
        self._clock = ShareClock()
        self._cycles: int | None = None
        self._before: tuple[int, ...] = ()
        self._fresh = False

    def update(self, stamp_ns: int) -> None:
        cycles = self._count_cycles()
        self._fresh = cycles is not None and cycles != self._cycles and bool(self._fields)
        if not self._fresh or cycles is None:
            return
        values = tuple(take() or 0 for take in self._fields)
        share = 0.0
        if self._cycles is not None:
            grown = max((now - before) & _WORD for now, before in zip(values, self._before, strict=True))
            share = grown / ((cycles - self._cycles) & _WORD)
        if share > self._at_most:
            self._fields = ()
            self._fresh = False
            return
        self._clock.advance(stamp_ns, share * self._scale)
        self._cycles, self._before = cycles, values

    def taken(self) -> float | None:
        return self._clock.total if self._fresh else None


class _Bits:
    """Whether any of the bits of the status word is set, taken to hold since the read before."""

    def __init__(self, table: Table, bits: int) -> None:
        self._status = table.taker("throttle")
        self._bits = bits
        self._clock = ShareClock()
        self._fresh = False

    def update(self, stamp_ns: int) -> None:
        status = self._status()
        self._fresh = status is not None
        if status is not None:
            self._clock.advance(stamp_ns, 1.0 if status & self._bits else 0.0)

    def taken(self) -> float | None:
        return self._clock.total if self._fresh else None


class _MeanBusy:
    def __init__(self, table: Table, partition: int) -> None:
        self._table, self._partition = table, partition

    def taken(self) -> float | None:
        busy = self._table.busy(self._partition)
        return sum(busy) / len(busy) if busy else None


class _OneBusy:
    def __init__(self, table: Table, partition: int, number: int) -> None:
        self._table, self._partition, self._number = table, partition, number

    def taken(self) -> int | None:
        busy = self._table.busy(self._partition)
        return busy[self._number] if self._number < len(busy) else None


def sampled(die: Die) -> SampledDevice:
    """How the files name the device: its scope says what its power covers."""
    return SampledDevice(die.number, die.identity, die.name, "amd", die.package, die.scope, die.mode)
