"""Which device the telemetry of our own writer is of: it stands in the title of the group that a
counter is in, not in the counter's own name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np

from profharness.readers.bytes.proto_scan import I64
from profharness.readers.perfetto.gpu import gpu_infos, hosts
from profharness.readers.perfetto.packets import Packets
from profharness.readers.perfetto.slices import per_track
from profharness.readers.perfetto.tracks import Tracks
from profharness.trace.columns.table import NULL
from profharness.trace.model import Device, Trace

_TITLE = re.compile(
    r"(?:Telemetry|Memory of torch|Memory through HSA) · (?:.* · )?(?:[^·]* )?GPU (\S+)\Z"
)


@dataclass(frozen=True, eq=False)
class Sensed:
    """The devices that titles name, by machine and index, and of each sample which it is; NULL
    where the title names none.
    """

    named: tuple[tuple[int, str], ...]
    of_sample: I64

    def placed(self, trace: Trace, packets: Packets) -> Trace:
        """The trace with these samples on the devices of its work; a device without work is added
        to them.
        """
        if not self.named:
            return trace
        machines = hosts(packets)
        known: dict[int, dict[int, Device]] = {}
        for (machine, number), device in gpu_infos(packets, machines).items():
            known.setdefault(machine, {})[number] = device
        devices = list(trace.devices)
        position = [
            _position(devices, Device(index, machines.get(machine, "")), known.get(machine, {}))
            for machine, index in self.named
        ]
        is_titled = self.of_sample != NULL
        placed = np.where(is_titled, np.array(position)[self.of_sample], trace.samples.device)
        samples = trace.samples.with_columns(device=placed)
        return replace(trace, devices=tuple(devices), samples=samples)


def titled(tracks: Tracks, track: I64) -> Sensed:
    """What the titles of the groups say, of samples on these tracks."""
    named: dict[tuple[int, str], int] = {}

    def device(uuid: int) -> int:
        group = tracks[tracks[uuid].parent]
        title = _TITLE.match(group.name)
        return NULL if title is None else named.setdefault((group.machine, title[1]), len(named))

    of_sample = per_track(track, device)
    return Sensed(tuple(named), of_sample)


def _position(devices: list[Device], sought: Device, known: dict[int, Device]) -> int:
    """The device of this index and host, else the one that slices name by its number in this file;
    `known` are those of its machine by that number.
    """
    same = ((n, d) for n, d in known.items() if (d.index, d.host) == (sought.index, sought.host))
    number, described = next(same, (NULL, sought))
    places = {(device.index, device.host): place for place, device in enumerate(devices)}
    for named in ((sought.index, sought.host), (str(number), "")):
        if named in places:
            return places[named]
    devices.append(described)
    return len(devices) - 1
