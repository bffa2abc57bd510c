"""Our own AMD reader over emulated sysfs trees."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir import telemetry
from profharness.telemetry.files import AppendFile
from profharness.telemetry.records import Layout, encode_header
from profharness.telemetry.sampler import Rows
from profharness.telemetry.sources import Missing, Source, Target, open_families
from profharness.telemetry.sources.amd.devices import find_dies, why_none
from profharness.telemetry.sources.amd.layouts import layout_of
from profharness.trace.model import Trace
from profharness.trace.sample_metrics import SAMPLE_METRICS
from tests.telemetry import emulated, namespace
from tests.telemetry.emulated import FIRST, SECOND, U32, U64, State, Tree, table
from tests.telemetry.reading import read
from tests.telemetry.running import ROOT, Sampler, wait_for

VERSIONS = ("1.3", "1.4", "1.5", "1.6", "1.7", "1.8", "1.9")
UNITS = {metric.name: metric.unit for metric in SAMPLE_METRICS}


def opened(root: Path) -> tuple[tuple[Source, ...], tuple[Missing, ...]]:
    return open_families(("amd",), Target(0, "", 10.0, str(root)))


def why(missing: tuple[Missing, ...], metric: str) -> list[str]:
    return [absent.why for absent in missing if absent.metric == metric]


@pytest.mark.parametrize("version", VERSIONS)
def test_every_layout_gives_the_same_values(tmp_path: Path, version: str) -> None:
    stamp = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - 1_000_000_000
    state = State(power_w=612, energy_j=5678.25, gpu=93, memory=37, clock=2100, stamp_ns=stamp)
    emulated.mi300x(tmp_path, version, state=state)
    sources, missing = opened(tmp_path)
    found = {metric: value for (_, metric), value in read(sources).items()}
    assert {
        name: found[name]
        for name in ("gpu_percent", "power_w", "power_energy", "clock_gpu", "stamp")
    } == {
        "gpu_percent": 93,
        "power_w": 612,
        "power_energy": 5678.25,
        "clock_gpu": 2100,
        "stamp": stamp,
    }
    assert found["memory_activity"] == pytest.approx(0.37)
    assert {
        "clock_soc",
        "clock_memory",
        "temperature_hotspot",
        "temperature_memory",
        "temperature_edge",
    } <= found.keys()
    assert found["gpu_memory_total"] == emulated.VRAM_MI300X
    assert found["power_limit"] == pytest.approx(750)
    if version != "1.3":
        assert (found["xgmi_read"], found["xgmi_written"]) == (
            sum(range(1, 9)) * 1024,
            8 * 2000 * 1024,
        )
    if version >= "1.6":
        assert [found[f"xcc_busy_{number}"] for number in range(8)] == [
            100,
            90,
            80,
            70,
            60,
            50,
            40,
            30,
        ]
        assert missing == ()
    assert all(len(absent.why) > 20 for absent in missing)


def test_columns_are_those_of_the_metric_table(tmp_path: Path) -> None:
    emulated.mi300x(tmp_path, "1.8")
    forms = {metric.name: metric.stamp for metric in SAMPLE_METRICS}
    for source in opened(tmp_path)[0]:
        for column in source.columns:
            if column.role == "value":
                assert column.unit == UNITS[column.metric]
                assert (column.form != "instant") == (forms[column.metric] == "interval")


@pytest.mark.parametrize("ago_ns", [1_000_000_000, 20_000_000_000])
def test_a_stamp_of_another_clock_is_not_used(tmp_path: Path, ago_ns: int) -> None:
    """A second old it is the driver's, who may refresh that seldom; much older it is none of
    CLOCK_BOOTTIME.
    """
    now = time.monotonic_ns()
    emulated.mi300x(
        tmp_path / "sys",
        "1.6",
        state=State(stamp_ns=time.clock_gettime_ns(time.CLOCK_BOOTTIME) - ago_ns),
    )
    layout = Layout(opened(tmp_path / "sys")[0][:1])
    file = AppendFile(str(tmp_path / "samples"))
    file.append(encode_header(layout, {"host": "h", "hz": 10.0}))
    Rows(layout, 100_000_000, file).record(now, 0)
    file.close()
    at, _, watts = values(telemetry.read(tmp_path / "samples"), "power_w")
    assert watts.tolist() == [324]
    assert int(at[0]) - now == pytest.approx(
        -ago_ns if ago_ns < 10_000_000_000 else 0, abs=500_000_000
    )


def test_package_power_of_two_dies_is_read_once_and_its_scope_said(tmp_path: Path) -> None:
    emulated.mi250x(tmp_path)
    sources, missing = opened(tmp_path)
    found = read(sources)
    assert found[FIRST, "power_w"] == 324
    assert (SECOND, "power_w") not in found
    assert (SECOND, "power_energy") not in found
    assert (SECOND, "power_limit") not in found
    assert why(missing, "power_w") == [f"{SECOND}: {FIRST} reports for the package of both dies"]
    assert (found[FIRST, "gpu_percent"], found[SECOND, "gpu_percent"]) == (100, 0)
    devices = Layout(sources).devices
    assert [(device["identity"], device["package"], device["scope"]) for device in devices] == [
        (FIRST, FIRST, "package of 2 dies"),
        (SECOND, FIRST, "package of 2 dies"),
    ]


def test_the_second_die_may_be_the_one_that_reports(tmp_path: Path) -> None:
    tree = emulated.mi250x(tmp_path)
    for address, cap in ((FIRST, 0), (SECOND, 560_000_000)):
        tree.hwmon(f"devices/pci0000:c0/{address}", power1_cap=cap)
    assert {die.address: die.package for die in find_dies(str(tmp_path))} == {
        FIRST: SECOND,
        SECOND: SECOND,
    }


def test_partitions_are_devices_of_one_package(tmp_path: Path) -> None:
    emulated.mi300x(tmp_path, "1.7", "CPX")
    sources, _ = opened(tmp_path)
    found = read(sources)
    assert [found[f"{FIRST}/{part}", "gpu_percent"] for part in range(8)] == [
        100,
        90,
        80,
        70,
        60,
        50,
        40,
        30,
    ]
    assert [identity for identity, metric in found if metric == "power_w"] == [f"{FIRST}/0"]
    device = Layout(sources).devices[3]
    assert (device["number"], device["scope"], device["mode"], device["package"]) == (
        "3",
        "package of 8 partitions",
        "CPX/NPS1",
        FIRST,
    )
    assert {die.compute_units for die in find_dies(str(tmp_path))} == {38}


@pytest.mark.parametrize("version", ["1.3", "1.5", "1.7"])
def test_unset_fields_are_missing_with_a_reason(tmp_path: Path, version: str) -> None:
    tree = emulated.mi300x(
        tmp_path, version, state=State(power_w=None, energy_j=None, gpu=None, memory=None)
    )
    tree.hwmon(f"devices/pci0000:c0/{FIRST}", power1_input="N/A")
    sources, missing = opened(tmp_path)
    found = read(sources)
    assert {metric for _, metric in found}.isdisjoint(
        {"power_w", "power_energy", "gpu_percent", "memory_activity"}
    )
    assert "does not give it" in why(missing, "power_w")[0]
    assert (
        "no number in it" in why(missing, "power_w")[0]
        or "No such file" in why(missing, "power_w")[0]
    )
    assert "does not give it" in why(missing, "power_energy")[0]


def test_a_field_that_is_unset_for_a_moment_leaves_its_row_empty(tmp_path: Path) -> None:
    tree = emulated.mi300x(tmp_path, "1.6")
    sources, _ = opened(tmp_path)
    path = tree.root / f"devices/pci0000:c0/{FIRST}/gpu_metrics"
    path.write_bytes(table("1.6", State(power_w=None, energy_j=10.0)))
    found = read(sources)
    assert (FIRST, "power_w") not in found
    assert found[FIRST, "power_energy"] == 10.0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds 0 bytes"),
        (b"\x00" * 64, "says 0 bytes"),
        (table("1.3", State())[:-8], "says 120 bytes and holds 112"),
        (b"\x78\x00\x02\x04" + b"\x00" * 116, "v2.4 is not known"),
        (b"\x70\x00\x01\x03" + b"\x00" * 108, "has 112 bytes, not 120"),
        (b"\x0c\x00\x01\x09\x05\x00\x00\x00" + b"\x00" * 4, "ends within an attribute"),
    ],
    ids=["empty", "zeros", "cut", "another-version", "too-small", "cut-attribute"],
)  # the tables hold this moment's time
def test_an_unknown_table_falls_back_to_hwmon(tmp_path: Path, content: bytes, said: str) -> None:
    assert said in str(layout_of(content))
    tree = emulated.mi300x(tmp_path, "1.6")
    for file, text in (
        ("gpu_metrics", content),
        ("gpu_busy_percent", b"88\n"),
        ("mem_busy_percent", b"12\n"),
    ):
        tree.write(f"devices/pci0000:c0/{FIRST}/{file}", text)
    sources, missing = opened(tmp_path)
    found = {metric: value for (_, metric), value in read(sources).items()}
    assert (found["power_w"], found["gpu_percent"], found["clock_gpu"]) == (
        pytest.approx(612),
        88,
        pytest.approx(2100),
    )
    assert (found["temperature_hotspot"], found["temperature_memory"]) == (
        pytest.approx(58),
        pytest.approx(48),
    )
    assert said in why(missing, "power_energy")[0]
    assert said in why(missing, "clock_memory")[0]


def test_without_kfd_the_cards_are_taken(tmp_path: Path) -> None:
    emulated.mi250x(tmp_path)
    shutil.rmtree(tmp_path / "devices/virtual")
    assert [(die.number, die.address, die.package) for die in find_dies(str(tmp_path))] == [
        ("0", FIRST, FIRST),
        ("1", SECOND, FIRST),
    ]
    sources, missing = opened(tmp_path)
    assert read(sources)[FIRST, "power_w"] == 324
    assert "KFD" in why(missing, "wave_fill")[0]


def test_without_a_device_there_is_a_reason(tmp_path: Path) -> None:
    assert opened(tmp_path) == ((), (Missing("amd", "the amdgpu driver is not loaded"),))
    Tree(tmp_path)
    assert "no AMD device is visible" in why_none(str(tmp_path))
    for number, said in (
        (1, "1 AMD device is on this node, but the kernel hides it from this job"),
        (2, "2 AMD devices are on this node, but the kernel hides them from"),
    ):
        (tmp_path / f"class/kfd/kfd/topology/nodes/{number}").mkdir()
        assert why_none(str(tmp_path)).startswith(said)
        assert opened(tmp_path) == ((), (Missing("amd", why_none(str(tmp_path))),))
    shutil.rmtree(tmp_path / "devices/virtual")
    ((), (absent,)) = open_families(("gpu",), Target(0, "", 10.0, str(tmp_path)))
    assert absent.metric == "gpu"
    assert "no AMD device is visible" in absent.why


def test_waves_of_all_processes_over_what_the_device_holds(tmp_path: Path) -> None:
    tree = emulated.mi250x(tmp_path)
    sources, _ = opened(tmp_path)
    assert read(sources)[FIRST, "wave_fill"] == 0
    tree.process(100, 50000, 44)
    tree.process(101, 50000, 22)
    tree.process(102, 50111, 0, vram=4096)
    tree.process(103, 50111, 0, vram=0)
    found = read(sources)
    assert found[FIRST, "wave_fill"] == pytest.approx(66 / 110)
    assert (
        found[FIRST, "gpu_processes"],
        found[SECOND, "gpu_processes"],
        found[SECOND, "wave_fill"],
    ) == (2, 1, 0)
    tree.process(100, 50000, 88)
    shutil.rmtree(tmp_path / "devices/virtual/kfd/kfd/proc/101")
    assert read(sources)[FIRST, "wave_fill"] == pytest.approx(88 / 110)


def test_waves_that_the_kernel_does_not_count_are_missing_and_not_zero(tmp_path: Path) -> None:
    tree = emulated.mi250x(tmp_path)
    tree.process(100, 50000, None)
    tree.process(101, 50111, 5)
    tree.write(
        "devices/virtual/kfd/kfd/proc/101/stats_50111/cu_occupancy", ""
    )  # read() fails on a real one: EINVAL
    found = read(opened(tmp_path)[0])
    assert (SECOND, "wave_fill") not in found
    assert found[SECOND, "gpu_processes"] == 1
    assert (FIRST, "wave_fill") not in found
    assert found[FIRST, "gpu_processes"] == 1
    assert (
        max(source.max_hz for source in opened(tmp_path)[0] if source.name == "amd_waves") <= 10
    )  # whatever it costs


# ---------------------------------------------------------------- in the sampler's process


def values(trace: Trace, metric: str, device: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rows = (trace.samples.metric == trace.strings.find(metric)) & (trace.samples.device == device)
    return trace.samples.at_ns[rows], trace.samples.until_ns[rows], trace.samples.value[rows]


def rewritten(folder: Path, tree: Tree, version: str, states: list[State]) -> Trace:
    """Sampled at 50 Hz while the table takes one state after the other, each for 0.1 s."""
    path = tree.root / f"devices/pci0000:c0/{FIRST}/gpu_metrics"
    handle = os.open(path, os.O_WRONLY)
    with Sampler(folder, hz=50, sources=("amd",), sysfs=str(tree.root)) as sampler:
        sampler.ready()
        for state in states:
            os.pwrite(handle, table(version, state), 0)
            time.sleep(0.1)
        assert sampler.stop()["failed"] == []
    os.close(handle)
    return telemetry.read(sampler.file("samples.bin"))


def test_residencies_become_shares_of_time(tmp_path: Path) -> None:
    start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    states = [
        State(
            stamp_ns=start + tick * 100_000_000,
            cycles=(0xFFFFFF00 + tick * 100) & 0xFFFFFFFF,
            gpu_accumulated=8000 * tick,
            memory_accumulated=3000 * tick,
            residencies=(tick, 25 * tick, 10 * tick, 40 * tick, 0),
        )
        for tick in range(8)
    ]
    trace = rewritten(
        tmp_path, emulated.mi300x(tmp_path / "sys", "1.6", state=states[0]), "1.6", states
    )
    for metric, share in (
        ("throttle_power", 0.25),
        ("throttle_thermal", 0.4),
        ("throttle_external", 0.01),
        ("gpu_activity_mean", 80.0),
        ("memory_activity_mean", 0.3),
    ):
        at, until, found = values(trace, metric)
        assert found == pytest.approx(np.full(len(found), share), rel=2e-3), (
            metric
        )  # two clocks are read one after the other
        assert len(found) >= 4
        assert (until > at).all()
    # the driver's stamp is the time of the sample, although it was read several times
    assert set((values(trace, "power_w")[0] // 1_000_000).tolist()) <= {
        (state.stamp_ns + offset) // 1_000_000
        for state in states
        for offset in range(-2_000_000, 3_000_000, 1_000_000)
    }


def test_an_accumulator_that_counts_something_else_is_dropped(tmp_path: Path) -> None:
    start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    states = [
        State(stamp_ns=start + tick * 100_000_000, cycles=100 * tick, gpu_accumulated=10**6 * tick)
        for tick in range(6)
    ]
    trace = rewritten(
        tmp_path, emulated.mi300x(tmp_path / "sys", "1.8", state=states[0]), "1.8", states
    )
    assert len(values(trace, "gpu_activity_mean")[2]) == 0
    assert len(values(trace, "memory_activity_mean")[2]) > 0


@pytest.mark.parametrize(
    ("bit", "metric"),
    [
        (0, "throttle_power"),
        (23, "throttle_power"),
        (36, "throttle_thermal"),
        (47, "throttle_external"),
    ],
)
def test_status_bits_become_shares_of_time(tmp_path: Path, bit: int, metric: str) -> None:
    start = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    states = [
        State(stamp_ns=start + tick * 100_000_000, throttle=1 << bit if tick > 2 else 0)
        for tick in range(6)
    ]
    trace = rewritten(tmp_path, emulated.mi250x(tmp_path / "sys", states[0]), "1.3", states)
    at, until, found = values(trace, metric)
    assert float(np.dot(found, until - at)) / 1e9 == pytest.approx(0.3, abs=0.11)
    for other in {"throttle_power", "throttle_thermal", "throttle_external"} - {metric}:
        assert values(trace, other)[2].max() == 0


@pytest.mark.parametrize(
    ("version", "status", "said"),
    [
        (
            "1.4",
            0,
            (
                "the driver writes 0 into throttle_status of gpu_metrics v1.4 whatever the device "
                "does; drivers with v1.6 and later (ROCm 6.3) count throttling"
            ),
        ),
        (
            "1.5",
            0,
            (
                "the driver writes 0 into throttle_status of gpu_metrics v1.5 whatever the device "
                "does; drivers with v1.6 and later (ROCm 6.3) count throttling"
            ),
        ),
        (
            "1.4",
            0x12,
            (
                "throttle_status of gpu_metrics v1.4 (0x12) has bits of the part's firmware, "
                "whose meaning is not known here"
            ),
        ),
        (
            "1.5",
            0x12,
            (
                "throttle_status of gpu_metrics v1.5 (0x12) has bits of the part's firmware, "
                "whose meaning is not known here"
            ),
        ),
        ("1.4", U32, "gpu_metrics v1.4 says nothing of throttling"),
        ("1.5", U32, "gpu_metrics v1.5 says nothing of throttling"),
        (
            "1.3",
            0,
            (
                "throttle_status of gpu_metrics v1.3 (0x0) has bits of the part's firmware, "
                "whose meaning is not known here"
            ),
        ),
        ("1.3", U32, "gpu_metrics v1.3 says nothing of throttling"),
    ],
)
def test_a_status_without_a_known_meaning_is_no_share_of_time(
    tmp_path: Path, version: str, status: int, said: str
) -> None:
    """The 0 of v1.4 and v1.5 would read as a device that is never held down."""
    emulated.mi300x(tmp_path, version, state=State(throttle=U64, throttle_status=status))
    sources, missing = opened(tmp_path)
    metrics = ("throttle_power", "throttle_thermal", "throttle_external")
    assert {column.metric for source in sources for column in source.columns}.isdisjoint(metrics)
    assert [why(missing, metric) for metric in metrics] == [[f"{FIRST}: {said}"]] * 3


def test_a_device_that_vanishes_harms_no_other(tmp_path: Path) -> None:
    tree = emulated.mi250x(tmp_path / "sys")
    with Sampler(tmp_path, hz=50, sources=("amd",), sysfs=str(tree.root)) as sampler:
        sampler.ready()
        (tree.root / f"devices/pci0000:c0/{SECOND}/gpu_metrics").write_bytes(b"")
        time.sleep(0.5)
        done = sampler.stop()
    assert [(entry["source"], entry["last"]) for entry in done["failed"]] == [
        ("amd1", "ValueError: gpu_metrics changed its layout")
    ]
    assert len(values(telemetry.read(sampler.file("samples.bin")), "power_w")[0]) > 10


def animated(folder: Path, tree: Tree, hz: float, seconds: float) -> tuple[Trace, np.ndarray]:
    """Sampled while the animator runs; its truth as rows of time and joules."""
    truth = folder / "truth"
    path = tree.root / f"devices/pci0000:c0/{FIRST}/gpu_metrics"
    with subprocess.Popen(
        [sys.executable, "-m", "tests.telemetry.animator", str(path), str(truth)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
    ) as animator:
        wait_for(truth.exists, "the animator")
        time.sleep(0.1)
        with Sampler(folder, hz=hz, sources=("amd",), sysfs=str(tree.root)) as sampler:
            sampler.ready()
            time.sleep(seconds)
            sampler.stop()
        animator.communicate()
    return telemetry.read(sampler.file("samples.bin")), np.loadtxt(truth)


@pytest.mark.slow
@pytest.mark.parametrize("hz", [20.0, 100.0])
def test_energy_and_edges_of_a_known_waveform(tmp_path: Path, hz: float) -> None:
    trace, truth = animated(tmp_path, emulated.mi250x(tmp_path / "sys"), hz, 3.0)
    at, until, watts = values(trace, "power_energy")
    boot = time.clock_gettime_ns(time.CLOCK_BOOTTIME) - time.monotonic_ns()
    real = np.interp([at[0] + boot, until[-1] + boot], truth[:, 0], truth[:, 1])
    assert float(np.dot(watts, until - at)) / 1e9 == pytest.approx(real[1] - real[0], rel=0.005)
    assert real[1] - real[0] > 500
    instants, _, power = values(trace, "power_w")
    assert {200, 400} <= {int(watt) // 10 * 10 for watt in power}
    assert len(instants) > 50
    _edges_between_the_right_samples(instants + boot, power, truth)


def _edges_between_the_right_samples(at: np.ndarray, power: np.ndarray, truth: np.ndarray) -> None:
    """The level changes from one sample to the next exactly where the truth has an edge between
    their stamps (an odd number of them).

    Begin or end of the write counts: a sample in between, where the machine was busy, may show
    either level.
    """
    level = np.diff(truth[:, 1]) / np.diff(truth[:, 0]) * 1e9 > 300
    first = np.flatnonzero(level[1:] != level[:-1]) + 2  # the write that first showed the new level
    changed = (power[1:] > 300) != (power[:-1] > 300)
    begun, written = (
        (np.diff(np.searchsorted(edges, at + 100_000)) % 2).astype(bool)
        for edges in (truth[first, 0], truth[first, 2])
    )  # two clocks, one after the other
    assert (changed == np.where(changed == begun, begun, written)).all()
    assert int(changed.sum()) >= 8


@pytest.mark.parametrize("unprivileged", [False, True])
def test_namespace_shows_the_tree_as_the_real_sys(tmp_path: Path, unprivileged: bool) -> None:
    """Without the override: the tree stands at /sys in a mount namespace of its own, as root or in
    a user namespace.
    """
    if why := namespace.why_not(unprivileged=unprivileged):
        pytest.skip(why)
    tree = emulated.mi250x(tmp_path / "tree")
    code = (
        "import json; from profharness.telemetry.sources import open_families, Target; "
        "from tests.telemetry.reading import read; "
        "sources, missing = open_families(('gpu',), Target(0, '', 10.0)); "
        "print(json.dumps([[d.identity for d in sources[0].devices], {metric: value for (_, "
        "metric), value in read(sources[:1]).items()}]))"
    )
    done = subprocess.run(
        namespace.wrapped(
            tree, tmp_path / "sys", sys.executable, "-c", code, unprivileged=unprivileged
        ),
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    devices, found = json.loads(done.stdout)
    assert devices == [FIRST]
    assert found["power_w"] == 324
    assert found["power_energy"] != U64
