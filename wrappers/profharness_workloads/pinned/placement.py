"""Where one process runs: CPUs and memory, set before a framework is loaded; and what the kernel
made of it.

Standard library alone. Memory policies are those of set_mempolicy(2); the system call is made
directly, since the C library offers it only through libnuma.
"""

from __future__ import annotations

import ctypes
import glob
import os
import platform
import re
from typing import Dict, List, NamedTuple, Sequence, Tuple

CORE, NUMA, NONE = "core", "numa", "none"
POLICIES = {"default": 0, "preferred": 1, "bind": 2, "interleave": 3}  # MPOL_* of linux/mempolicy.h
SET_MEMPOLICY = {"x86_64": 238, "aarch64": 237, "ppc64le": 261}  # system call numbers of Linux
THREAD_COUNTS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class Placement(NamedTuple):
    """`cpus` as the topology lists them; `pin` is core, numa or none; `memory` a policy of
    POLICIES.
    """

    cpus: Tuple[int, ...]
    pin: str = CORE
    memory: str = "interleave"


def nodes_of(cpus: Sequence[int], sysfs: str = "/sys") -> Dict[int, Tuple[int, ...]]:
    """The NUMA nodes that these CPUs lie in, each with all of its CPUs; empty where sysfs shows no
    nodes.
    """
    nodes = {}
    for path in glob.glob(os.path.join(sysfs, "devices/system/node/node[0-9]*")):
        with open(os.path.join(path, "cpulist"), encoding="ascii") as file:
            node_cpus = parse_cpus(file.read())
        if set(node_cpus) & set(cpus):
            nodes[int(re.findall(r"\d+$", path)[0])] = node_cpus
    return nodes


def parse_cpus(text: str) -> Tuple[int, ...]:
    """`0-3,8` as ids."""
    ids: List[int] = []
    for part in text.strip().split(","):
        low, _, high = part.partition("-")
        if low:
            ids.extend(range(int(low), int(high or low) + 1))
    return tuple(ids)


def environment(placement: Placement) -> Dict[str, str]:
    """Thread counts for libraries that read them once, at import: as many as the process has
    CPUs.
    """
    return {name: str(len(placement.cpus)) for name in THREAD_COUNTS}


class Settled(NamedTuple):
    """What became of a process's memory: `memory` says where it lies, `refused` what the kernel did
    not allow where that matters.
    """

    memory: str
    refused: str = ""


class MemoryPlan(NamedTuple):
    """A policy of POLICIES over NUMA nodes; without nodes `why` says why none is set."""

    policy: str
    nodes: Tuple[int, ...]
    why: str = ""


def settle(placement: Placement, sysfs: str = "/sys") -> Settled:
    """Pin this process and set its memory policy, before anything large is allocated: what lies in
    memory already stays where it is.

    core: its own list; numa: every CPU of the nodes that the list lies in; none: nothing is set.
    Raises OSError when the CPUs are not to be had.
    """
    if placement.pin != NONE:
        cpus = set(placement.cpus)
        if placement.pin == NUMA:
            whole = {cpu for ids in nodes_of(placement.cpus, sysfs).values() for cpu in ids}
            cpus = whole & os.sched_getaffinity(0) or cpus
        os.sched_setaffinity(0, cpus)
    plan = plan_memory(placement, sysfs)
    if not plan.nodes:
        return Settled("left to the kernel: %s" % plan.why)
    refused = _set_memory(plan)
    if not refused:
        return Settled(_in_words(plan))
    if len(nodes_with_memory(sysfs)) < 2:
        return Settled("on the only node (%s)" % refused)
    return Settled("left to the kernel: %s" % refused, refused)


def plan_memory(placement: Placement, sysfs: str = "/sys") -> MemoryPlan:
    """Which policy over which nodes: those of the process's CPUs that have memory."""
    policy = placement.memory
    if placement.pin == NONE:
        return MemoryPlan(policy, (), "the process is not pinned")
    if policy == "default":
        return MemoryPlan(policy, (), "--memory default")
    near = nodes_of(placement.cpus, sysfs)
    if not near:
        return MemoryPlan(policy, (), "sysfs shows no NUMA nodes")
    with_memory = nodes_with_memory(sysfs)
    nodes = tuple(node for node in sorted(near) if node in with_memory)
    if not nodes:
        return MemoryPlan(
            policy, (), "node %s of its CPUs has no memory" % ", ".join(map(str, sorted(near)))
        )
    return MemoryPlan(policy, nodes[:1] if policy == "preferred" else nodes)  # the kernel takes one


def nodes_with_memory(sysfs: str = "/sys") -> Tuple[int, ...]:
    """The NUMA nodes that have memory, as the kernel lists them; all nodes where it does not tell
    (Documentation/ABI/stable/sysfs-devices-node).
    """
    folder = os.path.join(sysfs, "devices/system/node")
    try:
        with open(os.path.join(folder, "has_memory"), encoding="ascii") as file:
            return parse_cpus(file.read())
    except OSError:
        names = glob.glob(os.path.join(folder, "node[0-9]*"))
        return tuple(sorted(int(re.findall(r"\d+$", name)[0]) for name in names))


_SAID = {"bind": "bound to", "preferred": "preferred on", "interleave": "interleaved over"}


def _in_words(plan: MemoryPlan) -> str:
    """`bound to node 0`, `interleaved over nodes 0, 1`."""
    return "%s node%s %s" % (
        _SAID[plan.policy],
        "" if len(plan.nodes) == 1 else "s",
        ", ".join(map(str, plan.nodes)),
    )


def _set_memory(plan: MemoryPlan) -> str:
    """What could not be done, or ""."""
    number = SET_MEMPOLICY.get(platform.machine())
    if number is None:
        return (
            "no memory policy was set: the system call's number on %s is not known"
            % platform.machine()
        )
    words = max(plan.nodes) // 64 + 1
    mask = (ctypes.c_uint64 * words)()
    for node in plan.nodes:
        mask[node // 64] |= 1 << (node % 64)
    libc = ctypes.CDLL(None, use_errno=True)
    # the kernel reads one bit less than it is told (set_mempolicy(2), BUGS)
    if (
        libc.syscall(
            ctypes.c_long(number),
            ctypes.c_int(POLICIES[plan.policy]),
            mask,
            ctypes.c_ulong(words * 64 + 1),
        )
        == 0
    ):
        return ""
    return "memory policy %s was refused: %s" % (plan.policy, os.strerror(ctypes.get_errno()))
