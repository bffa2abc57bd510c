"""Bytes over Slingshot NICs (HPE Cassini, cxi), which /proc/net/dev does not see: RCCL by the OFI
plugin, MPI by libfabric and Lustre pass the kernel's network stack by, and hsnN counts the bytes of
sockets alone.

/sys/class/cxi/cxiN/device/telemetry/<counter> holds `<count>@<seconds>.<nanoseconds>`, the time
being CLOCK_REALTIME just after the read of the register (shs-cxi-driver, cass_telem.c). Everyone
may read it. Each read asks the NIC, and the folder has about 960 files: two are read for each NIC,
ten more where they exist (optimised and plain Ethernet frames, link retries, pauses, timeouts), and
seldom. Where a driver gives no octets, the frames of each size class count with the smallest size
of the class: at least so many bytes. The counters have 56 bits, which last 33 days at 25 GB/s, and
restart with the driver: a smaller count is a restart, and the interval has no value. They are of
the whole NIC, whoever used it.
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
LEAST = f"{RECEIVED}_least", f"{SENT}_least"
_OCTETS = (
    (RECEIVED, ("hni_sts_rx_ok_octets",)),
    (SENT, ("hni_sts_tx_ok_octets",)),
)
_PARTS = (
    (f"{RECEIVED}_optimised", ("hni_sts_rx_octets_opt",)),
    (f"{SENT}_optimised", ("hni_sts_tx_octets_opt",)),
    (f"{RECEIVED}_ethernet", ("hni_sts_rx_octets_ieee",)),
    (f"{SENT}_ethernet", ("hni_sts_tx_octets_ieee",)),
)
_EVENTS = (
    ("slingshot_link_retries", ("hni_llr_tx_replay_event", "hni_llr_rx_replay_event")),
    ("slingshot_pauses", ("hni_pause_sent",)),
    ("slingshot_timeouts", ("pct_sct_timeouts", "pct_spt_timeouts", "pct_tct_timeouts")),
)
_WANTED = tuple(metric for metric, _ in (*_OCTETS, *_PARTS, *_EVENTS))
_MOST = 8  # NICs with columns of their own; the totals hold all
_FIRST = 1 << 20  # a total begins here, so that it may fall by one


class _Counter(NamedTuple):
    """An open file, and what each of its counts stands for."""

    handle: int
    weight: int


class _Nic(NamedTuple):
    """Open counters of one NIC by metric, and the last sum of each."""

    name: str
    counters: dict[str, tuple[_Counter, ...]]
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
        self._main: tuple[str, str] = (RECEIVED, SENT)

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
            return tuple(Missing(metric, why) for metric in _WANTED)
        exact = [nic for nic in self._nics if RECEIVED in nic.counters]
        self._nics = exact or self._nics
        self._main = (RECEIVED, SENT) if exact else LEAST
        # a part that one NIC does not tell would be too small as a total
        metrics = [
            metric
            for metric in (*self._main, *_WANTED)
            if all(metric in nic.counters for nic in self._nics)
        ]
        metrics = list(dict.fromkeys(metrics))
        self._totals = dict.fromkeys(metrics, _FIRST)
        self._own = tuple(self._nics[:_MOST]) if len(self._nics) > 1 else ()
        kinds = [
            *metrics,
            *(f"{metric}:{nic.name}" for nic in self._own for metric in self._main),
        ]
        self.columns = (
            Column("", "ns", "instant", role="stamp"),
            *(Column(kind, _unit(kind), "counter") for kind in kinds),
        )
        self.max_hz = affordable_hz(self, SLOW_HZ)
        absent = [metric for metric in _WANTED if metric not in metrics]
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
                found[metric], stamp = _sum(nic.counters[metric])
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
            *(nic.last[metric] for nic in self._own for metric in self._main),
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


def _unit(metric: str) -> str:
    return "events/s" if metric in dict(_EVENTS) else "B/s"


def _sum(counters: tuple[_Counter, ...]) -> tuple[int, int]:
    """The weighted sum of the counts, and the time of the last of them."""
    total = stamp = 0
    for handle, weight in counters:
        count, stamp = parsed(os.pread(handle, 64, 0))
        total += weight * count
    return total, stamp


def _opened(name: str, folder: str) -> _Nic | str:
    """The NIC, or why its octets cannot be read."""
    counters: dict[str, tuple[_Counter, ...]] = {}
    why = ""
    for metric, files in (*_OCTETS, *_PARTS, *_EVENTS):
        opened = _open_all(folder, tuple((file, 1) for file in files))
        if isinstance(opened, str):
            why = why or opened
        else:
            counters[metric] = opened
    if not {RECEIVED, SENT} <= counters.keys():
        for metric, direction in zip(LEAST, ("rx", "tx"), strict=True):
            opened = _open_all(folder, size_classes(folder, direction))
            if isinstance(opened, str) or not opened:
                _close(counters)
                return why
            counters[metric] = opened
        for metric in (RECEIVED, SENT):
            _close({metric: counters.pop(metric, ())})
    return _Nic(name, counters, {})


def _open_all(folder: str, files: tuple[tuple[str, int], ...]) -> tuple[_Counter, ...] | str:
    """All of the files, or why one of them cannot be read."""
    opened: list[_Counter] = []
    for file, weight in files:
        try:
            handle = os.open(f"{folder}/{file}", os.O_RDONLY | os.O_CLOEXEC)
            opened.append(_Counter(handle, weight))
            parsed(os.pread(handle, 64, 0))
        except (OSError, ValueError) as error:
            _close({"": tuple(opened)})
            return f"{folder}/{file}: {getattr(error, 'strerror', None) or 'no number in it'}"
    return tuple(opened)


def size_classes(folder: str, direction: str) -> tuple[tuple[str, int], ...]:
    """The files that count frames by size, `hni_rx_ok_65_to_127`, each with its smallest size; 27
    and 35 are single sizes, and the highest class is open.
    """
    try:
        names = os.listdir(folder)  # noqa: PTH208 - no pathlib in the sampler
    except OSError:
        return ()
    begin = f"hni_{direction}_ok_"
    sizes = {
        name: name.removeprefix(begin).partition("_to_")[0]
        for name in names
        if name.startswith(begin)
    }
    return tuple(sorted((name, int(size)) for name, size in sizes.items() if size.isdigit()))


def _close(counters: dict[str, tuple[_Counter, ...]]) -> None:
    for opened in counters.values():
        for handle, _ in opened:
            os.close(handle)


def _listed(folder: str) -> list[str]:
    """`cxi0`, `cxi1` and so on, in the order of their numbers."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - no pathlib in the sampler
    except OSError:
        return []
    numbers = (name[3:] for name in names if name.startswith("cxi"))
    return [f"cxi{number}" for number in sorted(int(one) for one in numbers if one.isdigit())]
