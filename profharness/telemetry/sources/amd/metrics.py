"""What the driver says of one AMD package per tick: one read of `gpu_metrics`, stamped by the
driver itself, and kept as it is.

The driver's stamp is CLOCK_BOOTTIME (ktime_get_boottime_ns at the read), the energy counter's unit
is 2^-16 J (15.2588 µJ; vendor tools multiply by a rounded 15.3), XGMI counts are KiB. The residency
accumulators count the firmware's own cycles, as `accumulation_counter` does: their growth over its
growth is a share of time.
"""

from __future__ import annotations

from collections.abc import Sequence
from os import pread
from typing import Any, Literal

from profharness.telemetry.records import block_type
from profharness.telemetry.sources import Column, Missing, SampledDevice
from profharness.telemetry.sources.amd.devices import Die
from profharness.telemetry.sources.amd.layouts import KIB
from profharness.telemetry.sources.amd.table import CHANGED, Cut, Table, cuts, kept, set_values

How = Literal["one", "mean", "total"]
JOULES_PER_COUNT = 2.0**-16
MAX_HZ = (
    100.0  # each read is a message to the power controller, which refreshes more slowly than this
)
_POWER_BITS = (
    1 << 32
) - 1  # SMU_THROTTLER_*: power and current limits, then temperatures, then PROCHOT
_THERMAL_BITS = ((1 << 46) - 1) & ~_POWER_BITS
_EXTERNAL_BITS = 0b11 << 46

# metric, unit, field, scale, how to take it
_INSTANTS: tuple[tuple[str, str, str, float, How], ...] = (
    ("gpu_percent", "%", "gpu", 1.0, "one"),
    ("memory_activity", "share", "memory", 0.01, "one"),
    ("power_w", "W", "power", 1.0, "one"),
    ("clock_gpu", "MHz", "clock_gpu", 1.0, "mean"),
    ("clock_memory", "MHz", "clock_memory", 1.0, "mean"),
    ("clock_soc", "MHz", "clock_soc", 1.0, "mean"),
    ("temperature_edge", "°C", "temperature_edge", 1.0, "one"),
    ("temperature_hotspot", "°C", "temperature_hotspot", 1.0, "one"),
    ("temperature_memory", "°C", "temperature_memory", 1.0, "one"),
)
_COUNTERS: tuple[tuple[str, str, str, float, How], ...] = (
    ("power_energy", "W", "energy", JOULES_PER_COUNT, "one"),
    ("xgmi_read", "B/s", "xgmi_read", KIB, "total"),
    ("xgmi_written", "B/s", "xgmi_written", KIB, "total"),
)
PACKAGE_METRICS = frozenset({"power_w", "power_energy"})
# What amd_files can read where gpu_metrics does not give it.
FALLBACKS = frozenset(
    {
        "gpu_percent",
        "memory_activity",
        "power_w",
        "clock_gpu",
        "clock_memory",
        "temperature_edge",
        "temperature_hotspot",
        "temperature_memory",
    }
)
_RESIDENCIES = (
    ("throttle_power", ("residency_power",)),
    ("throttle_external", ("residency_prochot",)),
    ("throttle_thermal", ("residency_socket", "residency_regulator", "residency_hbm")),
)
_BITS = (
    ("throttle_power", _POWER_BITS),
    ("throttle_thermal", _THERMAL_BITS),
    ("throttle_external", _EXTERNAL_BITS),
)
_MEANS = (
    ("gpu_activity_mean", "gpu_accumulated", "%", 1.0),
    ("memory_activity_mean", "memory_accumulated", "share", 0.01),
)
_ALL = (
    *(row[0] for row in (*_INSTANTS, *_COUNTERS)),
    *(metric for metric, _ in _BITS),
    *(row[0] for row in _MEANS),
)


class AmdMetricsSource:
    """All devices of one `gpu_metrics` file: a die, or the partitions of a package."""

    max_hz = MAX_HZ

    def __init__(self, dies: tuple[Die, ...]) -> None:
        self.name = f"amd{dies[0].number}"
        self.columns: tuple[Column, ...] = ()
        self.devices = tuple(sampled(die) for die in dies)
        self._dies = dies
        self._table = Table(f"{dies[0].folder}/gpu_metrics")
        self._cuts: tuple[Cut, ...] = ()
        self._is_whole = (
            True  # what is kept is the table from its begin on; the row's type says up to where
        )
        self._shape = self._table.shape
        self.left: dict[str, str] = {}  # what amd_files should try, and why it is not here

    def probe(self) -> tuple[Missing, ...]:
        """Learn what the driver's table holds on this device; metrics that a file of their own may
        still give are left to the fallback.
        """
        if why := self._table.open():
            missing = [Missing(metric, why) for metric in _ALL]
        else:
            missing, columns = self._all_columns()
            self.columns = self._in_block(columns)
            self._is_whole = len(self._cuts) == 1
            self._shape = self._table.shape
        self.left = {absent.metric: absent.why for absent in missing if absent.metric in FALLBACKS}
        return tuple(absent for absent in missing if absent.metric not in FALLBACKS)

    def read(self, row: list[Any], at: int) -> None:
        """Raises OSError, and ValueError as `Table.read` does; what every tick does is written out
        here, since a call costs more than its work.
        """
        handle, size, head = self._shape
        data = pread(handle, size + 1, 0)
        if len(data) != size or not data.startswith(head):
            raise ValueError(CHANGED)
        row[at] = (
            data if self._is_whole else b"".join([data[start:end] for start, end, _ in self._cuts])
        )

    def instants(self) -> dict[str, float]:
        """What holds now for the whole package, by metric: to be held against another source.
        Raises OSError and ValueError.
        """
        data = self._table.read()
        values_now: dict[str, float] = {}
        for metric, _, field, scale, _ in _INSTANTS:
            values = (
                [value for _, value in set_values(data, self._table.field(field))]
                if self._table.has(field)
                else []
            )
            if values and (metric not in PACKAGE_METRICS or self._dies[0].reports_package):
                values_now[metric] = scale * sum(values) / len(values)
        return values_now

    def _in_block(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """The block, then the columns as they are found in it."""
        self._cuts = cuts(
            taken
            for column in columns
            for taken in (*column.taken, *([column.over] if column.over else []))
        )
        if not columns:
            return ()
        last = self._cuts[-1]
        block = Column(
            "", "", "instant", type=block_type(last.at + last.end - last.start), role="block"
        )
        return (
            block,
            *(
                column._replace(
                    taken=tuple(kept(taken, self._cuts) for taken in column.taken),
                    over=kept(column.over, self._cuts) if column.over else None,
                )
                for column in columns
            ),
        )

    def _all_columns(self) -> tuple[list[Missing], list[Column]]:
        missing, columns = self._package_columns()
        for more in (self._throttle_columns(), self._mean_columns()):
            missing += more[0]
            columns += more[1]
        stamps: list[Column] = []
        if self._table.has("stamp"):
            stamps = [
                Column(
                    "",
                    "ns",
                    "instant",
                    device=device,
                    role="stamp",
                    taken=(self._table.field("stamp"),),
                )
                for device in range(len(self._dies))
            ]
        return missing, [*stamps, *columns, *self._busy_columns()]

    def _package_columns(self) -> tuple[list[Missing], list[Column]]:
        table, die = self._table, self._dies[0]
        missing: list[Missing] = []
        columns: list[Column] = []
        for rows, form in ((_INSTANTS, "instant"), (_COUNTERS, "counter")):
            for metric, unit, field, scale, how in rows:
                if metric == "gpu_percent" and die.partitions > 1:
                    continue  # each partition has its own
                if not table.has(field):
                    missing.append(
                        Missing(
                            metric, f"{die.address}: gpu_metrics v{table.version} does not give it"
                        )
                    )
                elif metric in PACKAGE_METRICS and not die.reports_package:
                    missing.append(
                        Missing(
                            metric,
                            f"{die.address}: {die.package} reports for the package of both dies",
                        )
                    )
                else:
                    columns.append(
                        Column(
                            metric,
                            unit,
                            "counter" if form == "counter" else "instant",
                            scale,
                            device=0,
                            taken=(table.field(field),),
                            how=how,
                        )
                    )
        return missing, columns

    def _throttle_columns(self) -> tuple[list[Missing], list[Column]]:
        table = self._table
        if all(
            table.has(field) for field in ("accumulation", "residency_power", "residency_prochot")
        ):
            # causes of one metric may hold at once: the largest counts
            causes = {
                metric: [field for field in fields if table.has(field)]
                for metric, fields in _RESIDENCIES
            }
            return (
                [
                    Missing(
                        metric,
                        f"{self._dies[0].address}: gpu_metrics v{table.version} does not give it",
                    )
                    for metric, fields in causes.items()
                    if not fields
                ],
                [
                    self._share(metric, "share", fields, 1.0, 1.01)
                    for metric, fields in causes.items()
                    if fields
                ],
            )
        if table.has("throttle"):
            return [], [
                Column(
                    metric, "share", "bits", device=0, taken=(table.field("throttle"),), bits=bits
                )
                for metric, bits in _BITS
            ]
        why = f"{self._dies[0].address}: {_why_no_throttling(table)}"
        return [Missing(metric, why) for metric, _ in _BITS], []

    def _mean_columns(self) -> tuple[list[Missing], list[Column]]:
        """Accumulated activity has a unit only where the firmware's cycles are counted beside
        it.
        """
        table = self._table
        counted = table.has("accumulation")
        missing: list[Missing] = []
        columns: list[Column] = []
        for metric, field, unit, scale in _MEANS:
            if counted and table.has(field):
                columns.append(self._share(metric, unit, (field,), scale, 101.0))
            else:
                missing.append(
                    Missing(
                        metric,
                        f"{self._dies[0].address}: gpu_metrics v{table.version} gives no "
                        "accumulator with a known unit",
                    )
                )
        return missing, columns

    def _share(
        self, metric: str, unit: str, fields: Sequence[str], scale: float, at_most: float
    ) -> Column:
        """A share above `at_most` shows that the accumulator counts something else than the
        firmware's cycles.
        """
        table = self._table
        return Column(
            metric,
            unit,
            "share",
            scale,
            device=0,
            taken=tuple(table.field(field) for field in fields),
            over=table.field("accumulation"),
            at_most=at_most,
        )

    def _busy_columns(self) -> list[Column]:
        columns: list[Column] = []
        for place, die in enumerate(self._dies):
            whole, dies = self._table.busy(die.partition), self._table.busy_dies(die.partition)
            if whole is not None and dies and die.partitions > 1:
                columns.append(
                    Column(
                        "gpu_percent", "%", "instant", device=place, taken=(whole,), how="average"
                    )
                )
            if len(dies) > 1:
                columns += [
                    Column(f"xcc_busy_{number}", "%", "instant", device=place, taken=(taken,))
                    for number, taken in enumerate(dies)
                ]
        return columns


def _why_no_throttling(table: Table) -> str:
    """For tables with neither residencies nor the driver's translated bits. `throttle_status` has
    the bits of the part's own firmware.

    In v1.4 and v1.5 the driver sets it to 0 at every read, since the firmware's table lacks it
    (smu_v13_0_6_get_gpu_metrics in drivers/gpu/drm/amd/pm/swsmu/smu13/smu_v13_0_6_ppt.c): that 0
    does not say that the device runs freely.
    """
    status = table.value("throttle_status")
    if status is None:
        return f"gpu_metrics v{table.version} says nothing of throttling"
    if status == 0 and table.version in ("1.4", "1.5"):
        return (
            f"the driver writes 0 into throttle_status of gpu_metrics v{table.version} "
            "whatever the device does; drivers with v1.6 and later (ROCm 6.3) count "
            "throttling"
        )
    return (
        f"throttle_status of gpu_metrics v{table.version} ({status:#x}) has bits of the "
        "part's firmware, whose meaning is not known here"
    )


def sampled(die: Die) -> SampledDevice:
    """How the files name the device: its scope says what its power covers."""
    return SampledDevice(
        die.number, die.identity, die.name, "amd", die.package, die.scope, die.mode
    )
