"""CPU lists of pinned processes: what files may hold, what is refused, and what is proposed from an
emulated node.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from profharness.cli import run_cli
from profharness.errors import InputError, UsageError
from profharness.node import topology
from profharness.node.topology import Place, Topology


class Sysfs:
    """A sysfs tree with caches, nodes and GPUs, as Linux lays them out."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text + "\n", encoding="ascii")

    def cpus(self, count: int, per_l3: int, *, threads: int = 1) -> None:
        """`count` cores; with two threads, thread 1 of core c is CPU count + c (as the kernel
        numbers them).
        """
        for cpu in range(count * threads):
            core = cpu % count
            first = core - core % per_l3
            shared = ",".join(
                f"{first + t * count}-{first + per_l3 - 1 + t * count}" for t in range(threads)
            )
            self.put(
                f"devices/system/cpu/cpu{cpu}/topology/thread_siblings_list",
                ",".join(str(core + t * count) for t in range(threads)),
            )
            self.put(f"devices/system/cpu/cpu{cpu}/cache/index0/level", "1")
            self.put(f"devices/system/cpu/cpu{cpu}/cache/index0/shared_cpu_list", str(core))
            self.put(f"devices/system/cpu/cpu{cpu}/cache/index3/level", "3")
            self.put(f"devices/system/cpu/cpu{cpu}/cache/index3/shared_cpu_list", shared)

    def node(self, number: int, cpus: str) -> None:
        self.put(f"devices/system/node/node{number}/cpulist", cpus)

    def gpu(
        self, address: str, cpus: str, node: int, *, kind: str = "0x038000", vendor: str = "0x1002"
    ) -> None:
        base = f"bus/pci/devices/{address}"
        for name, value in (
            ("vendor", vendor),
            ("class", kind),
            ("local_cpulist", cpus),
            ("numa_node", str(node)),
        ):
            self.put(f"{base}/{name}", value)


@pytest.fixture
def sysfs(tmp_path: Path) -> Sysfs:
    return Sysfs(tmp_path / "sys")


def test_the_bare_list_of_the_deepsparse_tool_is_read() -> None:
    assert topology.parse(b"[[0,1,2],[8,9]]", "t.json").places == (Place((0, 1, 2)), Place((8, 9)))


def test_an_entry_may_name_its_device_and_ranges() -> None:
    assert topology.parse(b'[{"cpus":"0-2,8","device":"cuda:1"},[4]]', "t.json").places == (
        Place((0, 1, 2, 8), "cuda:1"),
        Place((4,)),
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "not JSON"),
        ("[]", "not a list of lists"),
        ("{}", "not a list of lists"),
        ("[0, 1]", "entry 0 is not a list"),
        ("[[0], []]", "entry 1 is not a list"),
        ("[[0, -1]]", "entry 0"),
        ("[[0, true]]", "entry 0"),
        ('[["0-3"]]', "entry 0"),
        ('[{"cores": [1]}]', "cores"),
        ('[{"cpus": "3-1"}]', "3-1"),
    ],
)
def test_anything_else_is_refused_by_its_place(text: str, said: str) -> None:
    with pytest.raises(InputError) as caught:
        topology.parse(text.encode(), "t.json")
    assert said in caught.value.message
    assert caught.value.message.startswith("t.json")


def test_ids_that_stand_twice_are_named() -> None:
    with pytest.raises(UsageError, match="CPU 1-2 stand in it more than once"):
        topology.check(topology.parse(b"[[0,1,2],[2,1,3]]", "t.json"), range(8), "t.json")


def test_ids_outside_the_mask_are_named_with_the_mask() -> None:
    with pytest.raises(UsageError, match=r"CPU 9 is not among those that this job may use \(0-3\)"):
        topology.check(topology.parse(b"[[0],[9]]", "t.json"), range(4), "t.json")


def test_more_streams_than_lists_are_refused() -> None:
    with pytest.raises(UsageError, match="--streams 3: the topology holds 2 lists"):
        Topology((Place((0,)), Place((1,)))).first(3)


@given(
    st.lists(st.lists(st.integers(0, 300), min_size=1, max_size=6), min_size=1, max_size=6),
    st.lists(st.sampled_from(["", "cuda:0", "cuda:1"]), min_size=6, max_size=6),
)
def test_what_is_written_is_read_again(lists: list[list[int]], devices: Sequence[str]) -> None:
    whole = Topology(
        tuple(Place(tuple(ids), device) for ids, device in zip(lists, devices, strict=False))
    )
    assert topology.parse(topology.render(whole).encode(), "t.json") == whole


@given(st.sets(st.integers(0, 200), min_size=1))
def test_ranges_are_the_kernels_own_form(ids: set[int]) -> None:
    assert topology.parse_cpus(topology.ranges(sorted(ids))) == tuple(sorted(ids))


def test_a_place_per_cache_with_one_thread_per_core(sysfs: Sysfs) -> None:
    sysfs.cpus(8, 4, threads=2)
    sysfs.node(0, "0-15")
    node = topology.look(sysfs.root, range(16))
    assert topology.propose(node, "l3").places == (Place((0, 1, 2, 3)), Place((4, 5, 6, 7)))
    assert topology.propose(node, "l3", smt=True).places == (
        Place((0, 1, 2, 3, 8, 9, 10, 11)),
        Place((4, 5, 6, 7, 12, 13, 14, 15)),
    )
    assert len(topology.propose(node, "core").places) == 8


def test_the_jobs_mask_narrows_what_is_proposed(sysfs: Sysfs) -> None:
    sysfs.cpus(8, 4)
    sysfs.node(0, "0-3")
    sysfs.node(1, "4-7")
    node = topology.look(sysfs.root, [1, 2, 5])
    assert topology.propose(node, "l3").places == (Place((1, 2)), Place((5,)))
    assert topology.propose(node, "numa").places == (Place((1, 2)), Place((5,)))


def test_gpus_that_share_a_node_get_a_cache_each(sysfs: Sysfs) -> None:
    """Two dies near one NUMA node of two L3 caches, as on LUMI-G."""
    sysfs.cpus(32, 8)
    sysfs.node(0, "0-15")
    sysfs.node(1, "16-31")
    for number, (address, cpus) in enumerate(
        [
            ("0000:c1:00.0", "16-31"),
            ("0000:c6:00.0", "16-31"),
            ("0000:d1:00.0", "0-15"),
            ("0000:d6:00.0", "0-15"),
        ]
    ):
        sysfs.gpu(address, cpus, 1 - number // 2)
    sysfs.gpu("0000:01:00.0", "0-15", 0, kind="0x020000", vendor="0x15b3")  # a network card
    found = topology.propose(topology.look(sysfs.root, range(32)), "gpu")
    assert [place.device for place in found.places] == ["cuda:0", "cuda:1", "cuda:2", "cuda:3"]
    assert [topology.ranges(place.cpus) for place in found.places] == [
        "16-23",
        "24-31",
        "0-7",
        "8-15",
    ]


def test_gpus_with_fewer_caches_share_by_core(sysfs: Sysfs) -> None:
    sysfs.cpus(8, 8)
    sysfs.node(0, "0-7")
    for address in ("0000:41:00.0", "0000:42:00.0", "0000:43:00.0"):
        sysfs.gpu(address, "0-7", 0, kind="0x120000")
    found = topology.propose(topology.look(sysfs.root, range(8)), "gpu")
    assert [place.cpus for place in found.places] == [(0, 1, 2), (3, 4, 5), (6, 7)]


def test_a_gpu_without_a_core_left_is_said(sysfs: Sysfs) -> None:
    sysfs.cpus(2, 2)
    for address in ("0000:41:00.0", "0000:42:00.0"):
        sysfs.gpu(address, "0-1", 0)
    with pytest.raises(UsageError, match="1 core of this job is near 2 GPUs"):
        topology.propose(topology.look(sysfs.root, [0]), "gpu")


def test_no_gpu_is_said(sysfs: Sysfs) -> None:
    sysfs.cpus(2, 2)
    with pytest.raises(UsageError, match="no AMD or NVIDIA GPU"):
        topology.propose(topology.look(sysfs.root, [0, 1]), "gpu")


def test_the_map_of_a_known_machine_leaves_its_reserved_cores() -> None:
    used = {cpu for place in topology.lumi().places for cpu in place.cpus}
    assert used == set(range(64)) - set(range(0, 64, 8))


def test_the_command_writes_what_run_reads(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "places.json"
    assert run_cli(["topology", "--per", "core", "-o", str(path)]) == 0
    assert topology.read(path).places == tuple(
        Place(tuple(ids)) for ids in json.loads(path.read_text())
    )
    assert capsys.readouterr().out == ""
    assert run_cli(["topology", "-o", str(path)]) == 2
    assert "exists" in capsys.readouterr().err


def test_an_unknown_grouping_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert run_cli(["topology", "--per", "socket"]) == 2
    assert "core, l3, numa, gpu" in capsys.readouterr().err


def test_plans_keep_to_caches_then_nodes_and_use_every_core(sysfs: Sysfs) -> None:
    """12 cores in caches of 3, two nodes: places of 2 lie in a cache first, then across caches of
    a node.
    """
    sysfs.cpus(12, per_l3=3)
    sysfs.node(0, "0-5")
    sysfs.node(1, "6-11")
    node = topology.look(sysfs.root, range(12))
    made = [place.cpus for place in topology.divide(node, 2).places]
    assert made == [(0, 1), (3, 4), (6, 7), (9, 10), (2, 5), (8, 11)]
    assert [len(topology.divide(node, cores).places) for cores in (1, 3, 4, 6, 12)] == [
        *(12, 4, 3, 2, 1)
    ]
    # 4 does not fit into a cache of 3, and 2 of each node's 6 cores make one across the nodes
    assert topology.divide(node, 4).places[-1].cpus == (4, 5, 10, 11)


def test_plans_take_one_thread_per_core_and_refuse_what_does_not_fit(sysfs: Sysfs) -> None:
    sysfs.cpus(4, per_l3=4, threads=2)
    sysfs.node(0, "0-7")
    node = topology.look(sysfs.root, range(8))
    assert [place.cpus for place in topology.divide(node, 2).places] == [(0, 1), (2, 3)]
    with pytest.raises(UsageError, match="--cores-per-process 5: this job may use 4 cores"):
        topology.divide(node, 5)
