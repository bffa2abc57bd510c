"""Bytes over the RDMA ports (InfiniBand, RoCE), which /proc/net/dev does not see: collectives
between nodes go this way.

/sys/class/infiniband/<device>/ports/<port>/counters/port_rcv_data and port_xmit_data count units of
four bytes (Documentation/ABI/stable/sysfs-class-infiniband in the kernel tree). Each read asks the
adapter, so they are read seldom. On adapters without extended counters they have 32 bits and stop
at their highest value.

The drivers of AMD's (ionic) and Broadcom's (bnxt_re) adapters count plain bytes in
ports/1/hw_counters instead, and what they leave in `counters` is none of these units, so that their
own files come first.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from profharness.telemetry.sources import SLOW_HZ, Column, Missing, SampledDevice
from profharness.telemetry.sources.cost import affordable_hz
from profharness.telemetry.sources.host import procfs

RECEIVED, SENT = "rdma_received", "rdma_sent"
BYTES_PER_COUNT = 4
_MOST = 8  # ports with columns of their own; the totals hold all


_STANDARD = ("counters", ("port_rcv_data",), ("port_xmit_data",), BYTES_PER_COUNT)
_OF_DRIVERS = {
    "ionic": (
        "hw_counters",
        ("rx_rdma_ucast_bytes", "rx_rdma_mcast_bytes"),
        ("tx_rdma_ucast_bytes", "tx_rdma_mcast_bytes"),
        1,
    ),
    "bnxt_": ("hw_counters", ("rx_bytes",), ("tx_bytes",), 1),
}
"""By the begin of the driver's name: folder, files received, files sent, bytes per count."""


class _Port(NamedTuple):
    """Open counters of one port, `mlx5_0/1`."""

    name: str
    received: tuple[int, ...]
    sent: tuple[int, ...]
    bytes_per_count: int

    def read(self) -> tuple[int, int]:
        """Bytes received and sent. Raises OSError or ValueError."""
        received, sent = (
            sum(int(os.pread(handle, 32, 0)) for handle in handles)
            for handles in (self.received, self.sent)
        )
        return received * self.bytes_per_count, sent * self.bytes_per_count


class RdmaSource:
    """Totals of all ports, and each port that has carried anything where there are several."""

    name = "rdma"
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, sysfs: str = "/sys") -> None:
        self.max_hz = SLOW_HZ
        self.columns: tuple[Column, ...] = ()
        self._folder = f"{sysfs}/class/infiniband"
        self._ports: list[_Port] = []
        self._own: tuple[int, ...] = ()  # places among the ports

    def probe(self) -> tuple[Missing, ...]:
        """Open the counters of each RDMA port that is up."""
        why = ""
        carried: list[int] = []
        for name, folder, driver in self._ports_of_devices():
            opened = _opened(name, folder, driver)
            if isinstance(opened, str):
                why = opened
                continue
            self._ports.append(opened)
            carried.append(sum(opened.read()))
        if not self._ports:
            why = why or f"{self._folder} names no port: there is no RDMA adapter here"
            return Missing(RECEIVED, why), Missing(SENT, why)
        if len(self._ports) > 1:
            self._own = tuple(
                place
                for place in sorted(range(len(carried)), key=lambda place: -carried[place])[:_MOST]
                if carried[place]
            )
        kinds = [
            RECEIVED,
            SENT,
            *(
                f"{kind}:{self._ports[place].name}"
                for place in self._own
                for kind in (RECEIVED, SENT)
            ),
        ]
        self.columns = tuple(Column(kind, "B/s", "counter") for kind in kinds)
        self.max_hz = affordable_hz(self, SLOW_HZ)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        """Raises OSError and ValueError: without one of the ports a total would fall."""
        counts = [port.read() for port in self._ports]
        row[at] = sum(received for received, _ in counts)
        row[at + 1] = sum(sent for _, sent in counts)
        for first, place in zip(
            range(at + 2, at + 2 + 2 * len(self._own), 2), self._own, strict=True
        ):
            row[first], row[first + 1] = counts[place]

    def _ports_of_devices(self) -> list[tuple[str, str, str]]:
        """Name, folder and driver of every port, in order."""
        return [
            (
                f"{device}/{port}",
                f"{self._folder}/{device}/ports/{port}",
                _driver(f"{self._folder}/{device}"),
            )
            for device in _listed(self._folder)
            for port in _listed(f"{self._folder}/{device}/ports")
        ]


def _driver(folder: str) -> str:
    """`ionic`, `bnxt_en`: the PCI device's driver, else the begin of the RDMA device's own name."""
    try:
        text = procfs.read_once(f"{folder}/device/uevent")
    except OSError:
        text = b""
    lines = text.decode("ascii", "replace").splitlines()
    named = [line[7:].strip() for line in lines if line.startswith("DRIVER=")]
    return named[0] if named else folder.rpartition("/")[2]


def _opened(name: str, folder: str, driver: str) -> _Port | str:
    """The port, or why its counters cannot be read: some drivers offer none (they answer with
    EINVAL, or leave the files out).
    """
    own = [kind for begin, kind in _OF_DRIVERS.items() if driver.startswith(begin)]
    why = ""
    for place, received, sent, unit in own or [_STANDARD]:
        handles: list[int] = []
        try:
            for file in (*received, *sent):
                handles.append(os.open(f"{folder}/{place}/{file}", os.O_RDONLY | os.O_CLOEXEC))
                int(os.pread(handles[-1], 32, 0))
        except (OSError, ValueError) as error:
            for handle in handles:
                os.close(handle)
            why = f"{folder}/{place}: {getattr(error, 'strerror', None) or 'no number in it'}"
            continue
        return _Port(name, tuple(handles[: len(received)]), tuple(handles[len(received) :]), unit)
    return why


def _listed(folder: str) -> list[str]:
    try:
        return sorted(os.listdir(folder))  # noqa: PTH208 - no pathlib in the sampler
    except OSError:
        return []
