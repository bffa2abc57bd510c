"""Bytes over Slingshot NICs (HPE Cassini, cxi), which /proc/net/dev does not see: RCCL by the OFI
plugin, MPI by libfabric and Lustre pass the kernel's network stack by, and hsnN counts the bytes of
sockets alone.

/sys/class/cxi/cxiN/device/telemetry/<counter> holds `<count>@<seconds>.<nanoseconds>`, the time
being CLOCK_REALTIME just after the read of the register (shs-cxi-driver, cass_telem.c). Everyone
may read it. Each read asks the NIC, and the folder has about 960 files: two are read for each NIC,
four more where they exist (the optimised and the plain Ethernet frames), and seldom. The counters
have 56 bits, which last 33 days at 25 GB/s, and restart with the driver: a smaller count is a
restart, and the interval has no value. They are of the whole NIC, whoever used it.
"""

from __future__ import annotations

import os
import time
from typing import NamedTuple

from profharness.telemetry.sources import (
    SLOW_HZ,
    STALE_NS,
    Column,
    Missing,
    SampledDevice,
)
from profharness.telemetry.sources.cost import affordable_hz
from profharness.telemetry.sources.host.stamps import realtime_offset_ns

RECEIVED, SENT = "slingshot_received", "slingshot_sent"
_FILES = (
    (RECEIVED, "hni_sts_rx_ok_octets"),
    (SENT, "hni_sts_tx_ok_octets"),
    (f"{RECEIVED}_optimised", "hni_sts_rx_octets_opt"),
    (f"{SENT}_optimised", "hni_sts_tx_octets_opt"),
    (f"{RECEIVED}_ethernet", "hni_sts_rx_octets_ieee"),
    (f"{SENT}_ethernet", "hni_sts_tx_octets_ieee"),
)
_WANTED = 2  # of them, without which a NIC is not counted
_MOST = 8  # NICs with columns of their own; the totals hold all
_FIRST = 1 << 20  # a total begins here, so that it may fall by one


class _Nic(NamedTuple):
    """Open counters of one NIC by metric, and the last count of each."""

    name: str
    handles: dict[str, int]
    last: dict[str, int]


class SlingshotSource:
    """Totals of all NICs, and each NIC where there are several."""

    name = "slingshot"
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, sysfs: str = "/sys") -> None:
        self.max_hz = SLOW_HZ
        self.columns: tuple[Column, ...] = ()
        self._folder = f"{sysfs}/class/cxi"
        self._nics: list[_Nic] = []
        self._totals: dict[str, int] = {}
        self._own: tuple[_Nic, ...] = ()

    def probe(self) -> tuple[Missing, ...]:
        """Open the counters of each NIC that gives its octets."""
        why = f"{self._folder} is absent: there is no Slingshot NIC here"
        for name in _listed(self._folder):
            opened = _opened(name, f"{self._folder}/{name}/device/telemetry")
            if isinstance(opened, str):
                why = opened
            else:
                self._nics.append(opened)
        if not self._nics:
            return tuple(Missing(metric, why) for metric, _ in _FILES)
        # a part that one NIC does not tell would be too small as a total
        metrics = [
            metric for metric, _ in _FILES if all(metric in nic.handles for nic in self._nics)
        ]
        self._totals = dict.fromkeys(metrics, _FIRST)
        self._own = tuple(self._nics[:_MOST]) if len(self._nics) > 1 else ()
        kinds = [
            *metrics,
            *(f"{metric}:{nic.name}" for nic in self._own for metric in (RECEIVED, SENT)),
        ]
        self.columns = (
            Column("", "ns", "instant", role="stamp"),
            *(Column(kind, "B/s", "counter") for kind in kinds),
        )
        self.max_hz = affordable_hz(self, SLOW_HZ)
        absent = [metric for metric, _ in _FILES if metric not in metrics]
        return tuple(
            Missing(metric, f"{self._folder}: not every NIC's telemetry has it")
            for metric in absent
        )

    def read(self, row: list[int | float], at: int) -> None:
        """Raises OSError and ValueError: without one of the NICs a total would fall.

        A total grows by what the counters of all NICs grew by. Where one restarted it falls by one,
        which tells the reader that this interval has no value.
        """
        counts: list[dict[str, int]] = []
        stamp = 0
        for nic in self._nics:
            found = {}
            for metric in self._totals:
                found[metric], stamp = parsed(os.pread(nic.handles[metric], 64, 0))
            counts.append(found)
        for metric in self._totals:
            grown = [
                found[metric] - nic.last.get(metric, found[metric])
                for nic, found in zip(self._nics, counts, strict=True)
            ]
            self._totals[metric] += sum(grown) if min(grown) >= 0 else -1
        for nic, found in zip(self._nics, counts, strict=True):
            nic.last.update(found)
        now = row_time(stamp)
        if now is not None:
            row[at] = now
        values = [
            *self._totals.values(),
            *(nic.last[metric] for nic in self._own for metric in (RECEIVED, SENT)),
        ]
        row[at + 1 : at + 1 + len(values)] = values


def row_time(realtime_ns: int) -> int | None:
    """CLOCK_BOOTTIME ns of the driver's stamp; None where that is no recent time."""
    at = realtime_ns - realtime_offset_ns()
    return at if 0 <= time.clock_gettime_ns(time.CLOCK_BOOTTIME) - at < STALE_NS else None


def parsed(text: bytes) -> tuple[int, int]:
    """Count, and time in CLOCK_REALTIME ns (0 where the file has none). Raises ValueError where
    there is no number.
    """
    count, _, stamp = text.strip().partition(b"@")
    seconds, _, part = stamp.partition(b".")
    if not seconds.isdigit():
        return int(count), 0
    return int(count), int(seconds) * 1_000_000_000 + int(part[:9].ljust(9, b"0") or b"0")


def _opened(name: str, folder: str) -> _Nic | str:
    """The NIC, or why its octets cannot be read."""
    handles: dict[str, int] = {}
    for place, (metric, file) in enumerate(_FILES):
        try:
            handle = os.open(f"{folder}/{file}", os.O_RDONLY | os.O_CLOEXEC)
        except OSError as error:
            if place < _WANTED:
                _close(handles)
                return f"{folder}/{file}: {error.strerror}"
            continue
        try:
            parsed(os.pread(handle, 64, 0))
        except (OSError, ValueError) as error:
            os.close(handle)
            if place < _WANTED:
                _close(handles)
                return f"{folder}/{file}: {getattr(error, 'strerror', None) or 'no number in it'}"
            continue
        handles[metric] = handle
    return _Nic(name, handles, {})


def _close(handles: dict[str, int]) -> None:
    for handle in handles.values():
        os.close(handle)


def _listed(folder: str) -> list[str]:
    """`cxi0`, `cxi1` and so on, in the order of their numbers."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - no pathlib in the sampler
    except OSError:
        return []
    numbers = (name[3:] for name in names if name.startswith("cxi"))
    return [f"cxi{number}" for number in sorted(int(one) for one in numbers if one.isdigit())]
