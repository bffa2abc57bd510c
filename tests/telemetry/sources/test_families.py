"""The CPU sources over made-up and real files of the kernel."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from profharness.telemetry.sources import Target, open_families
from profharness.telemetry.sources.host import procfs
from profharness.telemetry.sources.host.cgroup import (
    CgroupSource,
    Hierarchy,
    find_hierarchy,
    nearest_quota,
    throttled_periods,
)
from profharness.telemetry.sources.host.node import (
    NodeMemorySource,
    NodeSource,
    busy_ns,
    used_bytes,
)
from profharness.telemetry.sources.host.pressure import PressureSource, some_total_us
from profharness.telemetry.sources.host.process_tree import Process, ProcessTree
from profharness.trace.sample_metrics import SAMPLE_METRICS
from tests.telemetry.running import wait_for

V1_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:7 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
V2_MOUNTS = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"


@pytest.mark.parametrize(
    ("groups", "mounts", "controller", "expected"),
    [
        (
            "4:memory:/slurm/uid_1/job_2\n0::/\n",
            V1_MOUNTS,
            "memory",
            Hierarchy(1, "/sys/fs/cgroup/memory", "/sys/fs/cgroup/memory/slurm/uid_1/job_2"),
        ),
        (
            "3:cpu,cpuacct:/\n0::/\n",
            V1_MOUNTS,
            "cpu",
            Hierarchy(1, "/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu,cpuacct"),
        ),
        (
            "0::/user.slice/job\n",
            V2_MOUNTS,
            "memory",
            Hierarchy(2, "/sys/fs/cgroup", "/sys/fs/cgroup/user.slice/job"),
        ),
        # a container: its mount shows a part of the hierarchy
        (
            "0::/pods/a/b\n",
            V2_MOUNTS.replace("0:26 /", "0:26 /pods/a"),
            "cpu",
            Hierarchy(2, "/sys/fs/cgroup", "/sys/fs/cgroup/b"),
        ),
        (
            "0::/pods/a\n",
            V2_MOUNTS.replace("0:26 /", "0:26 /pods/a"),
            "cpu",
            Hierarchy(2, "/sys/fs/cgroup", "/sys/fs/cgroup"),
        ),
        (
            "0::/x\n",
            V2_MOUNTS.replace(" /sys/fs/cgroup ", " /my\\040groups "),
            "cpu",
            Hierarchy(2, "/my groups", "/my groups/x"),
        ),
    ],
)
def test_the_group_is_found_where_it_is_mounted(
    groups: str, mounts: str, controller: str, expected: Hierarchy
) -> None:
    assert find_hierarchy(groups, mounts, controller) == expected


@pytest.mark.parametrize(
    ("groups", "mounts", "why"),
    [
        ("", V2_MOUNTS, "in no control group with the memory controller"),
        ("0::/a\n", "", "no cgroup hierarchy with the memory controller is mounted"),
        (
            "0::/pods/ab\n",
            V2_MOUNTS.replace("0:26 /", "0:26 /pods/a"),
            "/pods/ab lies outside of what is mounted at /sys/fs/cgroup",
        ),
        ("0::/../other\n", V2_MOUNTS, "outside"),
        ("7:memory:/a\n0::/\n", V2_MOUNTS, "no cgroup hierarchy with the memory controller"),
    ],
)
def test_why_a_group_cannot_be_found(groups: str, mounts: str, why: str) -> None:
    found = find_hierarchy(groups, mounts, "memory")
    assert isinstance(found, str)
    assert why in found


def _cgroup_tree(root: Path, version: int) -> Path:
    """A process of pid 7 in group /outer/inner, with a quota on the outer group only."""
    proc = root / "proc" / "7"
    inner = root / "cg" / "outer" / "inner"
    inner.mkdir(parents=True)
    proc.mkdir(parents=True)
    if version == 2:
        (proc / "cgroup").write_text("0::/outer/inner\n")
        (proc / "mountinfo").write_text(f"30 23 0:26 / {root}/cg rw - cgroup2 cgroup2 rw\n")
        (inner / "memory.current").write_text("123456789\n")
        (inner / "cpu.max").write_text("max 100000\n")
        (inner.parent / "cpu.max").write_text("250000 50000\n")
        (inner.parent / "cpu.stat").write_text(
            "usage_usec 9\nnr_periods 100\nnr_throttled 20\nthrottled_usec 77\n"
        )
    else:
        (proc / "cgroup").write_text("2:cpu,memory:/outer/inner\n0::/\n")
        (proc / "mountinfo").write_text(
            f"30 23 0:26 / {root}/cg rw - cgroup cgroup rw,cpu,memory\n"
        )
        (inner / "memory.usage_in_bytes").write_text("123456789\n")
        (inner / "cpu.cfs_quota_us").write_text("-1\n")
        (inner.parent / "cpu.cfs_quota_us").write_text("250000\n")
        (inner.parent / "cpu.cfs_period_us").write_text("50000\n")
        (inner.parent / "cpu.stat").write_text(
            "nr_periods 100\nnr_throttled 20\nthrottled_time 77\n"
        )
    return inner


@pytest.mark.parametrize("version", [1, 2])
def test_memory_and_the_nearest_quota_of_either_version(tmp_path: Path, version: int) -> None:
    inner = _cgroup_tree(tmp_path, version)
    source = CgroupSource(7, str(tmp_path / "proc"))
    assert source.probe() == ()
    assert [column.metric for column in source.columns] == ["memory_cgroup", "cpu_throttled"]
    row: list[int | float] = [-1, -1, -1]
    source.read(row, 1)
    assert row == [-1, 123456789, 20 * 50_000_000]
    (inner.parent / ("cpu.max" if version == 2 else "cpu.cfs_quota_us")).write_text(
        "max 100000" if version == 2 else "-1"
    )
    assert nearest_quota(Hierarchy(version, str(tmp_path / "cg"), str(inner))) is None
    unlimited = CgroupSource(7, str(tmp_path / "proc"))
    assert [(absent.metric, "no CPU quota" in absent.why) for absent in unlimited.probe()] == [
        ("cpu_throttled", True)
    ]


def test_a_root_group_without_memory_figure_says_so(tmp_path: Path) -> None:
    inner = _cgroup_tree(tmp_path, 2)
    (inner / "memory.current").unlink()
    assert [absent.metric for absent in CgroupSource(7, str(tmp_path / "proc")).probe()] == [
        "memory_cgroup"
    ]
    gone = CgroupSource(8, str(tmp_path / "proc")).probe()
    assert [absent.metric for absent in gone] == ["memory_cgroup", "cpu_throttled"]
    assert "process 8 cannot be read" in gone[0].why


def test_texts_of_the_kernel() -> None:
    assert (
        busy_ns(b"cpu  100 20 3 9999 500 4 5 77 10 0\ncpu0 1 1 1\n")
        == (100 + 20 + 3 + 4 + 5) * procfs.TICK_NS
    )
    assert (
        used_bytes(b"MemTotal:       1000 kB\nMemFree: 1 kB\nMemAvailable:    400 kB\n")
        == 600 * 1024
    )
    assert used_bytes(b"MemTotal:       1000 kB\n") is None
    assert (
        some_total_us(b"some avg10=0.00 avg60=1.00 avg300=0.00 total=4269620\nfull total=9\n")
        == 4269620
    )
    assert throttled_periods(b"nr_periods 5\nnr_throttled 3\n") == 3
    with pytest.raises(ValueError, match="nr_throttled"):
        throttled_periods(b"usage_usec 5\n")
    fields = ["S", "41", *["0"] * 9, "11", "12", "30", "40", *["0"] * 4, "5000", *["0"] * 30]
    stat = procfs.parse_stat(f"42 (a) b (c) {' '.join(fields)}\n".encode())
    assert stat == procfs.ProcessStat("S", 41, 5000 * procfs.TICK_NS, 70 * procfs.TICK_NS)


def test_pressure_says_what_is_missing(tmp_path: Path) -> None:
    (tmp_path / "cpu").write_text("some avg10=1.00 avg60=1.00 avg300=0.00 total=50\n")
    (tmp_path / "io").write_text("garbage\n")
    source = PressureSource(str(tmp_path))
    missing = dict(source.probe())
    assert set(missing) == {"pressure_memory", "pressure_io"}
    assert "No such file" in missing["pressure_memory"]
    row: list[int | float] = [-1]
    source.read(row, 0)
    assert row == [50]


def test_the_node_is_read_less_often_where_reading_is_dear(tmp_path: Path) -> None:
    (tmp_path / "meminfo").write_text("MemTotal: 10 kB\n")
    assert [absent.metric for absent in NodeMemorySource(str(tmp_path / "meminfo")).probe()] == [
        "memory_node_used"
    ]
    source = NodeSource("/proc/stat")
    assert source.probe() == ()
    assert 0 < source.max_hz <= 5

    class Dear(NodeSource):
        def read(self, row: list[int | float], at: int) -> None:
            end = time.thread_time_ns() + 2_000_000
            while time.thread_time_ns() < end:
                pass

    dear = Dear()
    dear.probe()
    assert dear.max_hz <= 0.5


def test_metrics_are_those_of_the_trace_model() -> None:
    sources, missing = open_families(("cpu",), Target(os.getpid(), "", 10.0))
    known = {metric.name: metric for metric in SAMPLE_METRICS}
    for source in sources:
        for column in source.columns:
            assert column.unit == known[column.metric].unit
            assert (column.form == "counter") == (known[column.metric].stamp == "interval")
    assert {absent.metric for absent in missing} <= known.keys()
    assert (
        open_families(("nothing",), Target(0, "", 1.0))[1][0].why
        == "there is no such source; known: cpu, gpu, amd, amdsmi, nvml, device-counters, "
        "counters-exporter"
    )


def test_a_process_cpu_clock_counts_all_threads_and_ends_with_the_process() -> None:
    assert abs(procfs.process_cpu_ns(os.getpid()) - time.process_time_ns()) < 50_000_000
    with subprocess.Popen([sys.executable, "-c", "pass"]) as child:
        child.wait()
    with pytest.raises(OSError, match=r".*"):
        procfs.process_cpu_ns(child.pid)
    assert procfs.process_stat(child.pid) is None
    assert procfs.thread_ids(child.pid) == []
    assert procfs.children_of_thread(child.pid, str(child.pid)) == []


FORKS_IN_A_THREAD = """
import subprocess, sys, threading
def start(): subprocess.run([sys.executable, '-c', 'import sys; print(flush=True); sys.stdin.readline()'])
thread = threading.Thread(target=start); thread.start(); thread.join()
"""


@pytest.mark.parametrize("has_children_files", [True, False])
def test_children_are_found_with_and_without_the_kernels_lists(
    tmp_path: Path, has_children_files: bool
) -> None:
    roots = tmp_path / "roots"
    tree = ProcessTree(str(roots))
    if has_children_files and not tree.has_children_files:
        pytest.skip("this kernel has no /proc/<pid>/task/<tid>/children")
    tree.has_children_files = has_children_files

    def size() -> int:
        tree.refresh(time.monotonic_ns())
        return len(tree.processes)

    with subprocess.Popen(
        [sys.executable, "-c", FORKS_IN_A_THREAD], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as root:
        assert root.stdout is not None
        root.stdout.readline()
        roots.write_text(f"{root.pid}")  # not a whole line yet
        assert size() == 0
        roots.write_text(f"{root.pid}\nnonsense\n")
        wait_for(lambda: size() == 2, "the child of the second thread")
        assert tree.resident_bytes() > 2e6
        before = tree.refresh(time.monotonic_ns())
        root.communicate(b"\n")
    wait_for(lambda: size() == 0, "the end of both")
    assert tree.refresh(time.monotonic_ns()) >= before


def test_processes_are_not_looked_at_again_while_no_pid_was_given_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    roots = tmp_path / "roots"
    tree = ProcessTree(str(roots))
    looked: list[int] = []
    stat = Process.stat

    def counted(process: Process) -> procfs.ProcessStat | None:
        looked.append(process.pid)
        return stat(process)

    monkeypatch.setattr(tree, "newest_pid", lambda: b"7\n")
    with subprocess.Popen(
        [sys.executable, "-c", "import sys; sys.stdin.readline()"], stdin=subprocess.PIPE
    ) as child:
        roots.write_text(f"{child.pid}\n")
        now = time.monotonic_ns()
        for second in range(3):
            tree.refresh(now + second * 1_000_000_000)
        assert tree.size == 1
        monkeypatch.setattr(Process, "stat", counted)
        used = [tree.refresh(now + second * 1_000_000_000) for second in range(3, 8)]
        assert (looked, tree.size) == ([], 1)
        assert used == sorted(used)  # its time is read at every tick all the same
        monkeypatch.setattr(tree, "newest_pid", lambda: b"8\n")
        tree.refresh(now + 9_000_000_000)
        assert looked == [child.pid]
        child.communicate(b"\n")


BURNS_IN_A_CHILD = """
import os, sys, time
pid = os.fork()
if pid == 0:
    while time.process_time() < 0.3: pass
    print('burnt', flush=True)
    sys.stdin.readline()
    os._exit(0)
os.waitpid(pid, 0)
print('waited', flush=True)
sys.stdin.readline()
"""


def test_a_child_that_ends_just_before_its_parent_is_asked_counts_once(tmp_path: Path) -> None:
    roots = tmp_path / "roots"
    tree = ProcessTree(str(roots))
    if not tree.has_children_files:
        pytest.skip("this kernel has no /proc/<pid>/task/<tid>/children")
    with subprocess.Popen(
        [sys.executable, "-c", BURNS_IN_A_CHILD],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        bufsize=1,
    ) as root:
        assert root.stdin is not None
        assert root.stdout is not None
        roots.write_text(f"{root.pid}\n")
        assert root.stdout.readline() == "burnt\n"
        later = time.monotonic_ns()
        before = tree.refresh(later)
        assert len(tree.processes) == 2
        root.stdin.write("\n")
        assert root.stdout.readline() == "waited\n"
        # a full look: the parent's account holds the child by now, and the child was followed until
        # a moment ago
        for _ in range(3):
            later += 2_000_000_000
            used = tree.refresh(later)
        assert len(tree.processes) == 1
        assert used - before < 100_000_000
        root.communicate("\n")
