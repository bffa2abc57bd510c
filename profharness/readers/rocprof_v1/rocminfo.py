"""What `rocminfo` prints, as rocprof saves it beside its results (`<base>.sysinfo.txt`): one block
per HSA agent.

The dump says which GPUs a node has; rocprof's records name them by number only. Colour codes of a
terminal may be in it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from profharness.errors import InputError
from profharness.readers.bytes.csv_columns import read_text
from profharness.readers.bytes.limits import whole
from profharness.readers.rocprofv3.agents import pci_address
from profharness.trace.model import ClockDomain, Device, Problem, Source, Strings, Trace
from profharness.trace.wanted import Wanted

name = "rocminfo"

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_BLOCK = re.compile(r"^\*+\s*\n(Agent \d+)\s*\n\*+\s*\n", re.MULTILINE)
_KEY = re.compile(
    r"^  (\S[^:]*):[ \t]*(.*?)\s*$", re.MULTILINE
)  # facts of the agent itself are indented by two
_END = "*** Done ***"
_RESULTS = (".csv", ".json", ".db")
_LONGEST = 4 << 20  # dumps of large nodes have 100 kB
_PLACEHOLDERS = ("", "GPU-XX", "CPU-XX", "N/A")


@dataclass(frozen=True)
class Agent:
    """One HSA agent. `node` is its number among all agents. `identity` is the PCI address (of
    domain 0, which the dump leaves out); where several GPUs have the same, or it is missing, their
    unique ids; empty where there is neither.
    """

    node: int
    is_gpu: bool
    name: str
    isa: str
    identity: str
    compute_units: int | None
    max_clock_mhz: int | None

    def device(self, index: str) -> Device:
        """The agent as a device that a tool numbers `index`."""
        return Device(
            index=index,
            identity=self.identity,
            name=self.name,
            vendor="AMD",
            compute_units=self.compute_units,
            architecture=self.isa,
            max_clock_mhz=self.max_clock_mhz,
        )


@dataclass(frozen=True)
class Agents:
    """The agents of one node, in HSA order; none where no dump was found. `problems` are those of
    the dump.
    """

    agents: tuple[Agent, ...] = field(default=())
    problems: tuple[Problem, ...] = ()

    @property
    def gpus(self) -> tuple[Agent, ...]:
        return tuple(agent for agent in self.agents if agent.is_gpu)

    def devices(self, numbers: Sequence[int], *, gpus_only: bool) -> tuple[Device, ...]:
        """Devices for the numbers of one file. Releases up to 4.x number the GPUs alone, newer ones
        all agents.

        A number that is no GPU's gets no facts.
        """
        agents = (
            dict(enumerate(self.gpus)) if gpus_only else {agent.node: agent for agent in self.gpus}
        )
        return tuple(
            agents[number].device(str(number))
            if number in agents
            else Device(index=str(number), vendor="AMD")
            for number in numbers
        )


def sniff(head: bytes, name: str) -> bool:  # noqa: ARG001  the content decides
    """The headings of a dump."""
    return b"HSA Agents" in head and b"HSA System Attributes" in head


def read(path: Path, *, wanted: Wanted = Wanted.ALL) -> Trace:  # noqa: ARG001  all of it is read
    """The GPUs as devices, and no records. Raises InputError when no GPU is listed."""
    agents = _read(path)
    if not agents.gpus:
        raise InputError(
            f"{path} lists no GPU",
            "it is a list of a node's devices, not a trace: name the tool's results instead",
        )
    devices = agents.devices([agent.node for agent in agents.gpus], gpus_only=False)
    source = Source(str(path), name, ClockDomain.UNKNOWN, has_host_calls=False)
    return Trace(sources=(source,), strings=Strings(), devices=devices, problems=agents.problems)


def agents_beside(results: Path) -> Agents:
    """The agents of the dump that belongs to rocprof's results, with the same base name; none where
    there is no readable one.
    """
    base = results.name.removesuffix(".gz")
    base = next((base.removesuffix(end) for end in _RESULTS if base.endswith(end)), base)
    for ending in (".sysinfo.txt", ".sysinfo.txt.gz"):
        path = results.with_name(base + ending)
        if path.is_file():
            try:
                return _read(path)
            except InputError as error:
                return Agents(problems=(Problem("warning", str(path), 1, error.message),))
    return Agents()


def _read(path: Path) -> Agents:
    """The agents of a dump, which ends with a line that says so. Raises InputError when it cannot
    be read.
    """
    text, damage = read_text(path, _LONGEST)
    agents = parse_agents(text)
    if damage or (agents.agents and not _COLOUR.sub("", text).rstrip().endswith(_END)):
        said = f"the list of devices is cut or damaged: {damage or 'its end is missing'}"
        return replace(agents, problems=(Problem("warning", str(path), 1, said),))
    return agents


def parse_agents(text: str) -> Agents:
    """The agents of a dump; none in a text that is no dump."""
    parts = _BLOCK.split(_COLOUR.sub("", text))
    blocks = [dict(_KEY.findall(body)) for body in parts[2::2]]
    locations = Counter(_location(facts) for facts in blocks if facts.get("Device Type") == "GPU")
    return Agents(tuple(_agent(number, facts, locations) for number, facts in enumerate(blocks)))


def _location(facts: dict[str, str]) -> tuple[int, int]:
    """PCI domain and KFD's packed address; zero where they are not stated."""
    return _number(facts.get("Domain", "")) or 0, _number(facts.get("BDFID", "")) or 0


def _agent(number: int, facts: dict[str, str], locations: Counter[tuple[int, int]]) -> Agent:
    node = _number(facts.get("Node", ""))
    isa, shown, unique = (
        facts.get("Name", ""),
        facts.get("Marketing Name", ""),
        facts.get("Uuid", ""),
    )
    where = _location(facts)
    identity = (
        pci_address(*where)
        if where[1] and locations[where] == 1
        else ""
        if unique in _PLACEHOLDERS
        else unique
    )
    return Agent(
        node=number if node is None else node,
        is_gpu=facts.get("Device Type") == "GPU",
        name=shown or isa,
        isa=isa,
        identity=identity,
        compute_units=_number(facts.get("Compute Unit", "")),
        max_clock_mhz=_number(facts.get("Max Clock Freq. (MHz)", "")),
    )


def _number(text: str) -> int | None:
    return whole(text) if text.isdecimal() else None
