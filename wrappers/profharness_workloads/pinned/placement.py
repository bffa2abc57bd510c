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


def settle(placement: Placement, sysfs: str = "/sys") -> str:
    """Pin this process and set its memory policy. Returns what could not be done, or "".

    core: its own list; numa: every CPU of the nodes that the list lies in; none: nothing is set.
    Raises OSError when the CPUs are not to be had.
    """
    if placement.pin == NONE:
        return ""
    nodes = nodes_of(placement.cpus, sysfs)
    cpus = set(placement.cpus)
    if placement.pin == NUMA:
        cpus = {cpu for node_cpus in nodes.values() for cpu in node_cpus} & os.sched_getaffinity(
            0
        ) or cpus
    os.sched_setaffinity(0, cpus)
    return _set_memory(placement.memory, sorted(nodes))


def _set_memory(policy: str, nodes: Sequence[int]) -> str:
    number = SET_MEMPOLICY.get(platform.machine())
    if policy == "default" or not nodes:
        return ""
    if number is None:
        return (
            "no memory policy was set: the system call's number on %s is not known"
            % platform.machine()
        )
    if policy == "preferred":
        nodes = nodes[:1]  # the kernel takes one
    words = max(nodes) // 64 + 1
    mask = (ctypes.c_uint64 * words)()
    for node in nodes:
        mask[node // 64] |= 1 << (node % 64)
    libc = ctypes.CDLL(None, use_errno=True)
    # the kernel reads one bit less than it is told (set_mempolicy(2), BUGS)
    if (
        libc.syscall(
            ctypes.c_long(number),
            ctypes.c_int(POLICIES[policy]),
            mask,
            ctypes.c_ulong(words * 64 + 1),
        )
        == 0
    ):
        return ""
    return "memory policy %s was refused: %s" % (policy, os.strerror(ctypes.get_errno()))
