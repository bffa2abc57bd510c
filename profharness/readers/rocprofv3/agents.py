"""The processors that the ROCm tools list ("agents"), and the devices and streams of a trace made
from them.

Agents are numbered in three ways: by KFD node (absolute), as far as the process may use them
(logical), and among the GPUs alone; rocprofiler-sdk's files use the second unless the user asked
for another.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from profharness.trace.columns.table import NULL
from profharness.trace.model import I64, Device, Stream


@dataclass(frozen=True)
class Agent:
    """One processor. `location` is the PCI bus, device and function as KFD packs them."""

    number: int
    node: int
    is_gpu: bool
    architecture: str = ""
    product: str = ""
    vendor: str = ""
    compute_units: int | None = None
    dies: int | None = None
    max_clock_mhz: int | None = None
    location: int | None = None
    domain: int = 0
    handle: int = NULL
    type_number: int = NULL
    pci_id: str = ""


def pci_id(vendor: int, device: int) -> str:
    """`1002:74a1` from the numbers of maker and product; empty where one is missing."""
    return f"{vendor:04x}:{device:04x}" if vendor > 0 and device > 0 else ""


def pci_address(domain: int, location: int) -> str:
    """`0000:75:00.0`: KFD's location is bus << 8 | device << 3 | function, with a partition's
    number above 2^28.
    """
    return f"{domain:04x}:{location >> 8 & 0xFF:02x}:{location >> 3 & 0x1F:02x}.{location & 7}"


def identities(agents: Mapping[int, Agent]) -> dict[int, str]:
    """PCI address of each GPU by its key; partitions that share one are told apart by a suffix as
    `/1`, in the order of their nodes.
    """
    gpus = sorted(
        (agent.node, key) for key, agent in agents.items() if agent.is_gpu and agent.location
    )
    addresses = {key: pci_address(agents[key].domain, agents[key].location or 0) for _, key in gpus}
    shared = {address for address, times in Counter(addresses.values()).items() if times > 1}
    seen: Counter[str] = Counter()
    for key, address in addresses.items():
        if address in shared:
            addresses[key] = f"{address}/{seen[address]}"
            seen[address] += 1
    return addresses


@dataclass(frozen=True, eq=False)
class Process:
    """What all records of one process share. `agents` are by the number that its records use."""

    host: str = ""
    pid: int = NULL
    agents: Mapping[int, Agent] = field(default_factory=dict)

    @property
    def identities(self) -> dict[int, str]:
        return identities(self.agents)


class Places:
    """Devices and streams in the order in which records name them; one device per host and PCI
    address.
    """

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.streams: list[Stream] = []
        self._device: dict[tuple[str, str, str], int] = {}
        self._stream: dict[Stream, int] = {}

    def device_positions(self, process: Process, numbers: I64) -> I64:
        """Positions among the devices for agents' numbers; NULL for NULL and for CPUs."""
        used, row = np.unique(numbers, return_inverse=True)
        identity = process.identities
        places = [
            self._place(process, number, identity.get(number, "")) for number in used.tolist()
        ]
        return np.array(places, np.int64)[row] if places else np.zeros(0, np.int64)

    def stream_positions(self, process: Process, device: I64, numbers: I64) -> I64:
        """Positions among the streams for pairs of device and the tool's stream (or queue) number;
        NULL where it has none.
        """
        numbers_used, code = np.unique(numbers, return_inverse=True)
        width = max(len(numbers_used), 1)
        pairs, row = np.unique(device * width + code, return_inverse=True)
        places = []
        for pair in pairs.tolist():
            position, number = divmod(pair, width)
            text = int(numbers_used[number])
            stream = Stream(position, str(text), process.pid)
            places.append(
                NULL if text == NULL else self._stream.setdefault(stream, len(self._stream))
            )
        self.streams = list(self._stream)
        return np.array(places, np.int64)[row] if places else np.zeros(0, np.int64)

    def add_all(self, process: Process) -> None:
        """Every GPU of a process, used or not."""
        self.device_positions(
            process, np.array([n for n, agent in process.agents.items() if agent.is_gpu], np.int64)
        )

    def _place(self, process: Process, number: int, identity: str) -> int:
        agent = process.agents.get(number)
        if number == NULL or (agent is not None and not agent.is_gpu):
            return NULL
        key = (process.host, identity, "" if identity else str(number))
        if key not in self._device:
            self._device[key] = len(self.devices)
            self.devices.append(_device(process.host, number, identity, agent))
        return self._device[key]


def _device(host: str, number: int, identity: str, agent: Agent | None) -> Device:
    if agent is None:
        return Device(index=str(number), host=host, vendor="AMD")
    return Device(
        index=str(number),
        host=host,
        identity=identity,
        name=agent.product or agent.architecture,
        vendor=agent.vendor or "AMD",
        compute_units=agent.compute_units,
        architecture=agent.architecture,
        dies=agent.dies,
        max_clock_mhz=agent.max_clock_mhz,
        pci_id=agent.pci_id,
    )
