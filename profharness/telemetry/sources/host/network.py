"""Bytes over the network interfaces of the sampler's network namespace, which is the workload's
unless it has one of its own.

One read of /proc/net/dev holds the counters of all interfaces (proc(5)). The totals count each byte
once: interfaces with hardware behind them where there are any (bonds, bridges and VLANs carry the
same bytes again), else, as in a container, all but the loopback. RDMA (InfiniBand verbs, RoCE)
passes these counters by; it has its own (`rdma`).
"""

from __future__ import annotations

import os

from profharness.telemetry.sources import Column, Missing, SampledDevice

RECEIVED, SENT, LOOPBACK = "network_received", "network_sent", "network_loopback"
NETWORK_HZ = 2.0
_LOOPBACK_NAME = b"lo"
_RX, _TX = 0, 8  # places of the bytes among the 16 numbers of a line
_MOST = 8  # interfaces with columns of their own; the totals hold all
_BYTES = 65536


class NetworkSource:
    """Totals, the loopback (a server and its clients on one node), and each interface that has
    carried anything.
    """

    name = "network"
    max_hz = NETWORK_HZ
    devices: tuple[SampledDevice, ...] = ()

    def __init__(self, sysfs: str = "/sys", path: str = "/proc/net/dev") -> None:
        self.columns: tuple[Column, ...] = ()
        self._sysfs = sysfs
        self._path = path
        self._handle: int | None = None
        self._counted: frozenset[bytes] = frozenset()
        self._own: tuple[bytes, ...] = ()

    def probe(self) -> tuple[Missing, ...]:
        """List the interfaces that have carried anything, and choose which to count."""
        try:
            self._handle = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC)
            counts = interfaces(os.pread(self._handle, _BYTES, 0))
        except (OSError, ValueError) as error:
            why = f"{self._path} cannot be read ({getattr(error, 'strerror', None) or error})"
            return tuple(Missing(metric, why) for metric in (RECEIVED, SENT, LOOPBACK))
        self._counted = self._countable(frozenset(counts))
        used = [
            name
            for name, (received, sent) in counts.items()
            if name in self._counted and received + sent
        ]
        self._own = (
            tuple(sorted(used, key=lambda name: -sum(counts[name]))[:_MOST])
            if len(self._counted) > 1
            else ()
        )
        kinds = [
            RECEIVED,
            SENT,
            LOOPBACK,
            *(f"{kind}:{name.decode()}" for name in self._own for kind in (RECEIVED, SENT)),
        ]
        self.columns = tuple(Column(kind, "B/s", "counter") for kind in kinds)
        return ()

    def read(self, row: list[int | float], at: int) -> None:
        """An interface that went away leaves its columns unread."""
        assert self._handle is not None
        counts = interfaces(os.pread(self._handle, _BYTES, 0))
        counted = [numbers for name, numbers in counts.items() if name in self._counted]
        row[at] = sum(received for received, _ in counted)
        row[at + 1] = sum(sent for _, sent in counted)
        if _LOOPBACK_NAME in counts:
            row[at + 2] = counts[_LOOPBACK_NAME][0]
        for place, name in enumerate(self._own):
            if name in counts:
                row[at + 3 + 2 * place], row[at + 4 + 2 * place] = counts[name]

    def _countable(self, names: frozenset[bytes]) -> frozenset[bytes]:
        """Interfaces with hardware behind them; without any, all but the loopback."""
        real = frozenset(
            name
            for name in names
            if os.path.exists(self._device_link(name))  # noqa: PTH110  no pathlib in the sampler
        )
        return real or names - {_LOOPBACK_NAME}

    def _device_link(self, name: bytes) -> str:
        """The path that exists where an interface belongs to a device."""
        return f"{self._sysfs}/class/net/{name.decode()}/device"


def interfaces(text: bytes) -> dict[bytes, tuple[int, int]]:
    """Bytes received and sent by interface, from the text of /proc/net/dev. Raises ValueError for
    another text.
    """
    counts = {}
    for line in text.split(b"\n")[2:]:
        name, colon, numbers = line.rpartition(b":")
        if colon:
            fields = numbers.split(None, _TX + 1)
            if len(fields) <= _TX:
                raise ValueError("a line has too few numbers")
            counts[name.strip()] = (int(fields[_RX]), int(fields[_TX]))
    if not counts:
        raise ValueError("no interface in it")
    return counts
