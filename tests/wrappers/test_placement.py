"""Memory of pinned processes: planned from an emulated sysfs, and set by the real system call where
the kernel allows it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.wrappers.control import WORKLOADS

sys.path.insert(0, str(WORKLOADS.parent))

from profharness_workloads.pinned import placement

Placement, MemoryPlan = placement.Placement, placement.MemoryPlan


@pytest.fixture
def sysfs(tmp_path: Path) -> str:
    """Three nodes of four CPUs; the last one has no memory."""
    for number in range(3):
        node = tmp_path / f"devices/system/node/node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(f"{4 * number}-{4 * number + 3}\n")
    (tmp_path / "devices/system/node/has_memory").write_text("0-1\n")
    return str(tmp_path)


@pytest.mark.parametrize(
    ("cpus", "memory", "nodes"),
    [
        ((4, 5), "bind", (1,)),
        ((2, 3, 4), "bind", (0, 1)),
        ((2, 3, 4), "interleave", (0, 1)),
        ((2, 3, 4), "preferred", (0,)),
        ((7, 8), "bind", (1,)),  # node 2 has CPUs alone
    ],
)
def test_memory_is_planned_on_the_nodes_of_the_cores(
    sysfs: str, cpus: tuple[int, ...], memory: str, nodes: tuple[int, ...]
) -> None:
    plan = placement.plan_memory(Placement(cpus, "core", memory), sysfs)
    assert plan == MemoryPlan(memory, nodes)


@pytest.mark.parametrize(
    ("cpus", "pin", "memory", "why"),
    [
        ((4,), "none", "bind", "the process is not pinned"),
        ((4,), "core", "default", "--memory default"),
        ((9, 10), "core", "bind", "node 2 of its CPUs has no memory"),
        ((99,), "core", "bind", "sysfs shows no NUMA nodes"),
    ],
)
def test_without_a_plan_there_is_a_reason(
    sysfs: str, cpus: tuple[int, ...], pin: str, memory: str, why: str
) -> None:
    assert placement.plan_memory(Placement(cpus, pin, memory), sysfs) == MemoryPlan(memory, (), why)


def test_a_kernel_that_lists_no_memory_has_it_on_all_nodes(sysfs: str) -> None:
    (Path(sysfs) / "devices/system/node/has_memory").unlink()
    assert placement.nodes_with_memory(sysfs) == (0, 1, 2)


PROGRAM = """
import ctypes, json, mmap, sys
sys.path.insert(0, sys.argv[1])
from profharness_workloads.pinned import placement
if sys.argv[4]:
    placement.SET_MEMPOLICY = {}
asked = placement.Placement((int(sys.argv[2]),), "core", "bind")
settled = placement.settle(asked, sys.argv[3])
block = mmap.mmap(-1, 1 << 22)
block.write(b"x" * (1 << 22))
with open("/proc/self/numa_maps") as maps:
    policies = {line.split()[1] for line in maps}
print(json.dumps([settled.memory, settled.refused, sorted(policies)]))
"""


def settled(sysfs: str, *, no_call: bool = False) -> tuple[str, str, list[str]]:
    """What a process of its own says of its memory, and its policies as the kernel lists them."""
    cpu = min(os.sched_getaffinity(0))
    words = [str(WORKLOADS.parent), str(cpu), sysfs, "x" if no_call else ""]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *words], capture_output=True, text=True, check=True
    )
    memory, refused, policies = json.loads(done.stdout)
    return memory, refused, policies


needs_maps = pytest.mark.skipif(
    not Path("/proc/self/numa_maps").exists() or not Path("/sys/devices/system/node").exists(),
    reason="needs a kernel that shows NUMA nodes",
)


@needs_maps
def test_the_kernel_binds_memory_to_the_node_of_the_core() -> None:
    memory, refused, policies = settled("/sys")
    cpu = min(os.sched_getaffinity(0))
    (node,) = placement.nodes_of([cpu])
    if refused or memory.startswith("on the only node"):
        pytest.skip(f"the kernel does not allow it: {refused or memory}")
    assert memory == f"bound to node {node}"
    assert f"bind:{node}" in policies


@needs_maps
def test_a_node_that_is_not_there_is_refused_in_words(tmp_path: Path) -> None:
    """sysfs says node 63, and the kernel knows no such node; node 0 makes it matter."""
    cpu = min(os.sched_getaffinity(0))
    for number, cpus in ((0, "4096"), (63, str(cpu))):
        node = tmp_path / f"devices/system/node/node{number}"
        node.mkdir(parents=True)
        (node / "cpulist").write_text(f"{cpus}\n")
    memory, refused, policies = settled(str(tmp_path))
    assert refused.startswith("memory policy bind was refused: ")
    assert memory == f"left to the kernel: {refused}"
    assert "bind:63" not in policies


@needs_maps
def test_on_the_only_node_a_refusal_costs_nothing(tmp_path: Path) -> None:
    node = tmp_path / "devices/system/node/node0"
    node.mkdir(parents=True)
    (node / "cpulist").write_text(f"{min(os.sched_getaffinity(0))}\n")
    memory, refused, _ = settled(str(tmp_path), no_call=True)
    assert refused == ""
    assert memory.startswith("on the only node (no memory policy was set: ")
