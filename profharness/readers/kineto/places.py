"""Where the work of a Kineto file ran: its devices and streams, with what the file's header says of
them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from profharness.readers.kineto.events import KinetoRows
from profharness.readers.kineto.header import DeviceProperties, Header
from profharness.trace.columns.column import is_repeated
from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Device, Stream

UNKNOWN = DeviceProperties()
# a table of all pairs of devices and streams is made up to so many for each row
_DENSE = 4
_SMALL = 1 << 16


@dataclass(frozen=True)
class Origin:
    """What all rows of a file share. `base_ns` is added to every start, `groups` are the ranks of
    its process groups.
    """

    base_ns: int
    host: str
    rank: int | None
    groups: tuple[tuple[int, ...], ...] = ()


class Places:
    """Devices in the order of their numbers, and the streams that were seen on each."""

    def __init__(self, rows: KinetoRows) -> None:
        self._names = sorted(rows.devices, key=natural)
        rank = {name: position for position, name in enumerate(self._names)}
        self._device = np.array([*(rank[name] for name in rows.devices), NULL], np.int64)
        met = list(rows.streams)
        self._stream_names = sorted(met, key=natural)
        place = {name: position for position, name in enumerate(self._stream_names)}
        self._stream = np.array([*(place[name] for name in met), NULL], np.int64)
        self._streams: dict[tuple[int, int], int] = {}

    def device(self, codes: I64) -> I64:
        """Positions among the devices of codes as they were met; NULL stays NULL."""
        return self._device[codes]

    def stream(self, device: I64, codes: I64) -> I64:
        """Positions among the streams, adding new ones, for pairs of device position and stream
        code.
        """
        if is_repeated(codes) and len(codes) and codes[0] == NULL:
            return codes
        width = max(len(self._stream_names), 1)
        pairs = device * width + self._stream[codes]
        if not len(pairs):
            return pairs
        low = int(pairs.min())
        if int(pairs.max()) - low > max(_DENSE * len(pairs), _SMALL):
            found, at = np.unique(pairs, return_inverse=True)
            new = [
                self._streams.setdefault(divmod(pair, width), len(self._streams))
                for pair in found.tolist()
            ]
            placed: I64 = np.array(new, np.int64)[at.reshape(-1)]
            return placed
        # as many as there are devices times streams
        present = np.zeros(int(pairs.max()) - low + 1, np.bool_)
        present[pairs - low] = True
        place_of = np.zeros(len(present), np.int64)
        for place in np.flatnonzero(present).tolist():
            place_of[place] = self._streams.setdefault(
                divmod(place + low, width), len(self._streams)
            )
        places: I64 = place_of[pairs - low]
        return places

    def streams(self) -> tuple[Stream, ...]:
        return tuple(Stream(device, self._stream_names[code]) for device, code in self._streams)

    def devices(self, header: Header, origin: Origin, vendor: str) -> tuple[Device, ...]:
        """The devices in order, with what the header says of each; `vendor` is that of the whole
        file, empty where only names tell.
        """
        records = []
        for name in self._names:
            properties = header.device(name) or UNKNOWN
            maker = vendor or vendor_of(properties.name)
            records.append(
                Device(
                    index=name,
                    host=origin.host,
                    name=properties.name,
                    rank=origin.rank,
                    vendor=maker,
                    compute_units=properties.compute_units,
                    architecture=properties.architecture(maker),
                    memory_bytes=properties.memory_bytes,
                )
            )
        return tuple(records)


def vendor_of(name: str) -> str:
    """Whose device it is, by the name that its driver gives it; empty where that does not tell."""
    if name.startswith("AMD"):
        return "amd"
    return "nvidia" if name.startswith(("NVIDIA", "Tesla", "Quadro", "GeForce")) else ""


def natural(text: str) -> tuple[bool, int, str]:
    """A key to sort by: numbers in their order, before other text."""
    return (False, int(text), "") if text.isascii() and text.isdigit() else (True, 0, text)
