"""Which CPUs each process of a multi-process scan may use: read, checked, and proposed from what a
node has.

The file is JSON: a bare list of lists of CPU ids, the i-th for process i, as
`multi_process_benchmark.py` of the DeepSparse examples takes it
(https://github.com/neuralmagic/deepsparse, examples/amd-azure). In place of a list an entry may be
`{"cpus": [0, 1] or "0-1,8", "device": "cuda:0"}`. Node facts are the kernel's own, from sysfs
(Documentation/ABI/testing/sysfs-devices-system-cpu, sysfs-devices-node, sysfs-bus-pci).
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import msgspec

from profharness.errors import InputError, UsageError

Grouping = Literal["core", "l3", "numa", "gpu"]
GROUPINGS: tuple[Grouping, ...] = get_args(Grouping)
GPU_CLASSES = (
    "0x0300",
    "0x0302",
    "0x0380",
    "0x1200",
)  # display controllers, and processing accelerators (MI300)
VENDORS = {"0x1002": "amd", "0x10de": "nvidia"}

# LUMI-G: one EPYC 7A53, core 0 of each L3 kept for the system; the L3 nearest to each GCD in HIP
# order. Source: LUMI documentation, "GPU nodes - LUMI-G",
# https://docs.lumi-supercomputer.eu/hardware/lumig/
LUMI = ("49-55", "57-63", "17-23", "25-31", "1-7", "9-15", "33-39", "41-47")


@dataclass(frozen=True)
class Place:
    """Where one process runs: logical CPU ids, and the accelerator (`cuda:1`), or "" to leave that
    to --device.
    """

    cpus: tuple[int, ...]
    device: str = ""


@dataclass(frozen=True)
class Topology:
    """One place per process, in order."""

    places: tuple[Place, ...]

    def first(self, streams: int) -> Topology:
        """The first `streams` places. Raises UsageError when there are fewer."""
        if streams > len(self.places):
            raise UsageError(
                f"--streams {streams}: the topology holds {len(self.places)} "
                f"list{'s' if len(self.places) != 1 else ''} of CPUs",
                "ask for fewer streams, or write a topology with one list for each",
            )
        return Topology(self.places[:streams])


def parse_cpus(text: str) -> tuple[int, ...]:
    """`0-3,8` as ids in order, as the kernel writes its lists. Raises ValueError for anything
    else.
    """
    ids: list[int] = []
    for part in text.strip().split(","):
        low, _, high = part.strip().partition("-")
        first, last = int(low), int(high or low)
        if first < 0 or last < first:
            raise ValueError(f"{part!r} is not a range of CPU ids")
        ids += range(first, last + 1)
    return tuple(ids)


def parse(data: bytes, origin: str) -> Topology:
    """The topology in a file's bytes. Raises InputError naming what is wrong where."""
    try:
        raw = msgspec.json.decode(data)
    except msgspec.DecodeError as error:
        raise InputError(f"{origin}: not JSON ({error})", _FORM) from error
    if not isinstance(raw, list) or not raw:
        raise InputError(f"{origin}: not a list of lists of CPU ids", _FORM)
    return Topology(tuple(_place(entry, number, origin) for number, entry in enumerate(raw)))


_FORM = (
    "a topology is a list with one list of CPU ids per process, [[0, 1], [2, 3]]; "
    "`profharness topology` writes one for this node"
)


def _place(entry: object, number: int, origin: str) -> Place:
    device = ""
    ids = entry
    if isinstance(entry, dict):
        unknown = sorted(set(entry) - {"cpus", "device"})
        if unknown or "cpus" not in entry:
            raise InputError(
                f"{origin}: entry {number} has {', '.join(unknown) or 'no cpus'}",
                'an entry is a list, or {"cpus": [..], "device": "cuda:0"}',
            )
        device, ids = str(entry.get("device") or ""), entry["cpus"]
    if isinstance(ids, str):
        try:
            ids = list(parse_cpus(ids))
        except ValueError as error:
            raise InputError(
                f"{origin}: entry {number}: {ids!r} is not a list of CPUs such as 0-3,8", _FORM
            ) from error
    if (
        not isinstance(ids, list)
        or not ids
        or not all(type(one) is int and one >= 0 for one in ids)
    ):
        raise InputError(f"{origin}: entry {number} is not a list of CPU ids", _FORM)
    return Place(tuple(ids), device)


def read(path: Path) -> Topology:
    """A topology file. Raises InputError when it cannot be read or is none."""
    try:
        return parse(path.read_bytes(), str(path))
    except OSError as error:
        raise InputError(
            f"{path}: cannot be read ({error.strerror})",
            "`profharness topology -o FILE` writes one for this node",
        ) from error


def check(topology: Topology, allowed: Iterable[int], origin: str) -> Topology:
    """Every id is one that this job may use, and stands once. Raises UsageError that names the ids.

    `allowed`: the CPUs of the affinity mask (sched_getaffinity), which a batch system narrows.
    """
    may = frozenset(allowed)
    times = Counter(cpu for place in topology.places for cpu in place.cpus)
    if twice := sorted(cpu for cpu, count in times.items() if count > 1):
        raise UsageError(
            f"{origin}: CPU {ranges(twice)} {'stands' if len(twice) == 1 else 'stand'} in it "
            "more than once",
            "processes that share a core measure each other: give each CPU to one process",
        )
    if absent := sorted(set(times) - may):
        raise UsageError(
            f"{origin}: CPU {ranges(absent)} {'is' if len(absent) == 1 else 'are'} not among "
            f"those that this job may use ({ranges(sorted(may))})",
            "`profharness topology` writes one for this node and this job's mask",
        )
    return topology


def ranges(ids: Sequence[int]) -> str:
    """Ascending ids as the kernel writes them: `0-3,8`."""
    parts: list[str] = []
    start = previous = None
    for one in [*ids, None]:
        if previous is not None and one == previous + 1:
            previous = one
            continue
        if start is not None:
            parts.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = one
    return ",".join(parts)


# ---------------------------------------------------------------- what a node has


@dataclass(frozen=True)
class Gpu:
    """An accelerator on the PCI bus, in bus order. `cpus`: those that the kernel calls local
    to it.
    """

    address: str
    vendor: str
    cpus: tuple[int, ...]
    node: int = -1


@dataclass(frozen=True)
class Node:
    """CPUs of this job in groups; each tuple ascending, groups in order of their first CPU.

    `threads`: the hardware threads of each core.
    """

    allowed: tuple[int, ...]
    threads: tuple[tuple[int, ...], ...]
    l3: tuple[tuple[int, ...], ...]
    numa: tuple[tuple[int, ...], ...]
    gpus: tuple[Gpu, ...]


def look(sysfs: Path = Path("/sys"), allowed: Iterable[int] | None = None) -> Node:
    """What sysfs tells about the CPUs of this job's mask (or `allowed`)."""
    mask = tuple(sorted(os.sched_getaffinity(0) if allowed is None else allowed))
    cpu = sysfs / "devices/system/cpu"
    threads = (_cpu_list(cpu / f"cpu{one}/topology/thread_siblings_list") or (one,) for one in mask)
    l3 = {one: _last_cache(cpu / f"cpu{one}/cache") or mask for one in mask}
    nodes = sorted(
        (sysfs / "devices/system/node").glob("node[0-9]*"), key=lambda path: int(path.name[4:])
    )
    numa = [_cpu_list(path / "cpulist") for path in nodes] or [mask]
    return Node(
        mask,
        _groups(threads, mask),
        _groups((l3[one] for one in mask), mask),
        _groups(numa, mask),
        _gpus(sysfs),
    )


def _groups(lists: Iterable[Sequence[int]], mask: Sequence[int]) -> tuple[tuple[int, ...], ...]:
    kept = {tuple(one for one in sorted(ids) if one in mask) for ids in lists}
    return tuple(sorted(group for group in kept if group))


def _last_cache(folder: Path) -> tuple[int, ...]:
    """CPUs that share the highest level of cache with this one."""
    levels = sorted(
        (int(_text(index / "level") or 0), index) for index in folder.glob("index[0-9]*")
    )
    return _cpu_list(levels[-1][1] / "shared_cpu_list") if levels else ()


def _gpus(sysfs: Path) -> tuple[Gpu, ...]:
    found = []
    for device in sorted((sysfs / "bus/pci/devices").glob("*")):
        vendor = VENDORS.get(_text(device / "vendor"), "")
        if vendor and _text(device / "class")[:6] in GPU_CLASSES:
            found.append(
                Gpu(
                    device.name,
                    vendor,
                    _cpu_list(device / "local_cpulist"),
                    int(_text(device / "numa_node") or -1),
                )
            )
    return tuple(found)


def _cpu_list(path: Path) -> tuple[int, ...]:
    text = _text(path)
    return parse_cpus(text) if text else ()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii").strip()
    except OSError:
        return ""


def propose(node: Node, per: Grouping, *, smt: bool = False) -> Topology:
    """One place per core, L3 cache, NUMA node, or GPU. Raises UsageError where the node has no such
    thing.

    GPUs with the same local CPUs share them: whole L3 caches in bus order while they suffice, else
    equal runs of cores. `smt` keeps every hardware thread; else one per core.
    """
    usable = set(node.allowed if smt else (core[0] for core in node.threads))
    if per == "gpu":
        return _per_gpu(node, usable)
    groups = node.l3 if per == "l3" else node.numa if per == "numa" else node.threads
    return Topology(
        tuple(
            Place(kept)
            for group in groups
            if (kept := tuple(one for one in group if one in usable))
        )
    )


def _per_gpu(node: Node, usable: set[int]) -> Topology:
    if not node.gpus:
        raise UsageError(
            "--per gpu: no AMD or NVIDIA GPU stands on this node's PCI bus",
            "use --per l3 or --per numa",
        )
    near = {
        gpu.address: tuple(one for one in (gpu.cpus or node.allowed) if one in usable)
        for gpu in node.gpus
    }
    places = {}
    for cpus in dict.fromkeys(near.values()):
        sharing = [gpu for gpu in node.gpus if near[gpu.address] == cpus]
        parts = _shares(cpus, [group for group in node.l3 if set(group) & set(cpus)], len(sharing))
        if not all(parts):
            raise UsageError(
                f"--per gpu: {len(cpus)} core{'s' if len(cpus) != 1 else ''} of this job "
                f"{'are' if len(cpus) != 1 else 'is'} near {len(sharing)} GPUs",
                "ask the batch system for more cores, or use --per numa",
            )
        places.update({gpu.address: part for gpu, part in zip(sharing, parts, strict=True)})
    return Topology(
        tuple(Place(places[gpu.address], f"cuda:{number}") for number, gpu in enumerate(node.gpus))
    )


def _shares(
    cpus: Sequence[int], caches: Sequence[Sequence[int]], count: int
) -> list[tuple[int, ...]]:
    """`cpus` in `count` parts: by caches where each part can have whole ones, else in equal
    runs.
    """
    units: list[list[int]] = [[one for one in cache if one in cpus] for cache in caches]
    if len(units) < count:
        units = [[one] for one in cpus]
    per, extra = divmod(len(units), count)
    parts, at = [], 0
    for number in range(count):
        size = per + (number < extra)
        parts.append(tuple(sorted(one for unit in units[at : at + size] for one in unit)))
        at += size
    return parts


def divide(node: Node, cores: int) -> Topology:
    """As many places of `cores` cores each as the job's CPUs give, one hardware thread per core.

    A place lies within one L3 cache where it fits, else within one NUMA node, and only what is left
    of all nodes makes places across them. Raises UsageError where not even one place fits.
    """
    usable = {core[0] for core in node.threads}
    places: list[Place] = []
    left = usable
    for groups in (node.l3, node.numa, (node.allowed,)):
        still_left: set[int] = set()
        for group in groups:
            ids = sorted(left & set(group))
            whole = len(ids) - len(ids) % cores
            places += [Place(tuple(ids[at : at + cores])) for at in range(0, whole, cores)]
            still_left |= set(ids[whole:])
        left = still_left
    if not places:
        raise UsageError(
            f"--cores-per-process {cores}: this job may use {len(usable)} "
            f"core{'s' if len(usable) != 1 else ''}",
            "ask for fewer, or ask the batch system for more cores",
        )
    return Topology(tuple(places))


def lumi() -> Topology:
    """The map that LUMI's documentation gives for a whole LUMI-G node."""
    return Topology(tuple(Place(parse_cpus(text), f"cuda:{gcd}") for gcd, text in enumerate(LUMI)))


def render(topology: Topology) -> str:
    """As a file: one line per process. Without devices it is the bare list of lists that other
    tools read too.
    """
    lines = [
        json.dumps(
            {"cpus": list(place.cpus), "device": place.device} if place.device else list(place.cpus)
        )
        for place in topology.places
    ]
    return "[\n  " + ",\n  ".join(lines) + "\n]\n"
