"""The sampler with `device-counters`: the whole way from a compiled stand-in to figures."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from profharness.rundir import telemetry
from profharness.telemetry.sources.ownership import Ownership
from profharness.trace.model import Trace
from profharness.writers import telemetry_parquet
from tests.fakes.device_counting import MI300X, Gpu, Load, compiled, playing, rocm_tree
from tests.telemetry import emulated
from tests.telemetry.running import Sampler, wait_for

LOAD = Load(requests={"TCC_EA0_RDREQ": 0.5, "TCC_EA0_RDREQ_32B": 0.1, "TCC_BUBBLE": 0.2})
TRUTH = {
    "cu_active": 0.38,
    "cu_occupancy": 0.11,
    "matrix_busy": 0.04,
    "valu_busy": 0.21,
    "vmem_busy": 0.07,
    "lds_busy": 0.09,
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    compiled("stand_in_kfd.c", folder / "kfd.so", "-ldl")
    return rocm_tree(folder / "rocm").parent


pytestmark = pytest.mark.slow  # each waits for samples of a process of its own
Begin = Callable[..., Sampler]


@pytest.fixture
def begin(built: Path, tmp_path: Path) -> Iterator[Begin]:
    """A sampler over an emulated MI300X, whose driver has the profiler interface."""
    started: list[Sampler] = []

    def start(
        *gpus: Gpu,
        mode: str = "",
        partition: str = "SPX",
        kfd: str = "1.23,profiler",
        sources: tuple[str, ...] = ("device-counters",),
        gate: str = "",
        load: Load = LOAD,
        hz: float = 50.0,
        **more: str,
    ) -> Sampler:
        folder = tmp_path / f"s{len(started)}"
        tree = emulated.mi300x(folder / "sys", mode=partition)
        played = playing(gpus or (MI300X,), load, mode, **more)
        environment = {
            **os.environ,
            **played,
            "ROCM_PATH": str(built / "rocm"),
            "STAND_IN_KFD": kfd,
            "LD_PRELOAD": str(built / "kfd.so"),
        }
        started.append(
            Sampler(
                folder,
                hz=hz,
                sources=sources,
                sysfs=str(tree.root),
                counting_gate=gate,
                env=environment,
            )
        )
        return started[-1]

    yield start
    for sampler in started:
        sampler.__exit__()


def sampled(sampler: Sampler, least: int = 5) -> Trace:
    """What was sampled, once there are so many rows of counters."""
    sampler.ready()
    wait_for(
        lambda: len(telemetry.read_raw(sampler.file("samples.bin")).samples) > 28 * least,
        "samples of the counters",
    )
    sampler.stop()
    return telemetry.read(sampler.file("samples.bin"))


def values(trace: Trace, metric: str) -> np.ndarray:
    return trace.samples.value[trace.samples.metric == trace.strings.find(metric)]


def mean_rate(trace: Trace, metric: str) -> float:
    """The mean over all time. A reading that comes late makes one rate too small and the next too
    large; over all intervals only the first and the last reading matter.
    """
    rows = trace.samples.metric == trace.strings.find(metric)
    lengths = trace.samples.until_ns[rows] - trace.samples.at_ns[rows]
    return float(np.average(trace.samples.value[rows], weights=lengths))


def test_figures_from_the_device_to_the_reader(begin: Begin, tmp_path: Path) -> None:
    sampler = begin()
    ready = sampler.ready()
    assert [source["name"] for source in ready["sources"]] == ["device-counters"]
    assert ready["missing"] == []
    trace = sampled(sampler, 60)
    for metric, truth in TRUTH.items():
        assert values(trace, metric) == pytest.approx(truth, rel=1e-4), metric
    per_cycle = 0.2 * 128 + (0.5 - 0.2 - 0.1) * 64 + 0.1 * 32
    assert mean_rate(trace, "fabric_read") == pytest.approx(per_cycle * 2e9, rel=0.01)
    assert not [
        text for text in trace.strings.decode(np.unique(trace.samples.metric)) if ":" in text
    ]
    facts = json.loads(dict(trace.sources[0].details)["device-counters.0000:c1:00.0"])
    assert (facts["compute_units"], facts["dies"], facts["mode"], facts["sdk"], facts["level"]) == (
        304,
        8,
        "SPX/NPS1",
        "1.1.0",
        "full" if os.geteuid() == 0 else facts["level"],
    )

    # the table that is kept has the totals' rates, so that its figures are worked out anew
    kept = tmp_path / "kept.parquet"
    telemetry_parquet.write(telemetry.read_raw(sampler.file("samples.bin")), kept)
    again = telemetry.read(kept)
    for metric in (*TRUTH, "fabric_read"):
        assert values(again, metric).tolist() == values(trace, metric).tolist()


def test_partitions_are_devices_of_their_own(begin: Begin) -> None:
    gpus = tuple(Gpu(60000 + part, 152, 1) for part in range(8))
    trace = sampled(begin(*gpus, partition="CPX"), 40)
    assert {device.identity for device in trace.devices} == {
        f"0000:c1:00.0/{part}" for part in range(8)
    }
    assert values(trace, "cu_active") == pytest.approx(0.38, rel=1e-4)


@pytest.mark.parametrize(
    ("mode", "kfd", "said"),
    [
        ("eperm", "1.23,profiler", "the kernel refused the profiler's lock"),
        ("einval", "1.14", "(KFD 1.14) has no profiler interface"),
    ],
)
def test_hidden_shaders_are_said_and_the_fabric_stays(
    begin: Begin, mode: str, kfd: str, said: str
) -> None:
    trace = sampled(begin(mode=mode, kfd=kfd))
    for metric in TRUTH:
        assert not len(values(trace, metric))
    assert len(values(trace, "fabric_read"))
    assert said in dict(trace.sources[0].details)["device-counters-hidden.0000:c1:00.0"]


@pytest.mark.parametrize(
    ("mode", "kfd", "said"),
    [
        ("abort-start", "1.23,profiler", "ended the counting process (SIGABRT)"),
        ("no-register", "1.23,profiler", "built without rocprofiler-register"),
    ],
)
def test_what_cannot_start_is_named_and_the_others_go_on(
    begin: Begin, mode: str, kfd: str, said: str
) -> None:
    sampler = begin(mode=mode, kfd=kfd, sources=("cpu", "device-counters"))
    missing = {absent["metric"]: absent["why"] for absent in sampler.ready()["missing"]}
    assert said in missing["device-counters"]
    assert sampler.stop()["failed"] == []


def test_an_end_in_the_middle_costs_its_own_values_only(begin: Begin, built: Path) -> None:
    sampler = begin(sources=("cpu", "device-counters"))
    sampler.ready()
    child = wait_for(lambda: children(sampler.process.pid), "the counting process")
    wait_for(
        lambda: len(telemetry.read(sampler.file("samples.bin")).samples) > 20, "samples of both"
    )
    os.kill(child[0], 9)
    wait_for(lambda: not children(sampler.process.pid), "its end")
    killed_ns = time.monotonic_ns()
    wait_for(
        lambda: _last_ns(telemetry.read(sampler.file("samples.bin")), "cpu_node") > killed_ns,
        "a sample of the other source after it",
    )
    done = sampler.stop()
    assert done["failed"] == [
        {
            "source": "device-counters",
            "count": 1,
            "last": "HelperEndedError: the counting process was ended from outside (SIGKILL)",
        }
    ]
    trace = telemetry.read(sampler.file("samples.bin"))
    assert values(trace, "cu_active") == pytest.approx(0.38, rel=1e-3)
    assert _last_ns(trace, "cu_active") < killed_ns


def _last_ns(trace: Trace, metric: str) -> int:
    """When the last interval of a metric ended, CLOCK_MONOTONIC."""
    mine = trace.samples.metric == trace.strings.find(metric)
    return int(trace.samples.until_ns[mine].max(initial=0))


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
    return [int(word) for word in text.split()]


def test_a_gate_begins_and_ends_the_counting(begin: Begin, tmp_path: Path) -> None:
    gate, calls = tmp_path / "gate", tmp_path / "calls"
    sampler = begin(gate=str(gate), STAND_IN_TRACE=str(calls))
    assert [source["name"] for source in sampler.ready()["sources"]] == ["device-counters"]
    assert not children(sampler.process.pid), "nothing counts before the gate opens"
    gate.touch()
    wait_for(Path(f"{gate}.ready").exists, "the answer")
    assert json.loads(Path(f"{gate}.ready").read_text()) == {"why": ""}
    wait_for(lambda: calls.read_text().count("sample") > 5, "samples")
    gate.unlink()
    wait_for(lambda: not Path(f"{gate}.ready").exists(), "the word that the devices are free")
    assert "hsa_shut_down" in calls.read_text()
    trace = sampled(sampler, 2)
    assert values(trace, "cu_active") == pytest.approx(0.38, rel=1e-4)
    assert calls.read_text().split().count("start_context") == 1


def test_nothing_is_left_when_the_sampler_is_killed(begin: Begin) -> None:
    sampler = begin()
    sampler.ready()
    child = children(sampler.process.pid)[0]
    sampler.process.kill()
    wait_for(lambda: not Path(f"/proc/{child}/stat").exists() or _zombie(child), "its end")


def _zombie(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_without_a_rocm_the_reason_says_what_is_missing(tmp_path: Path) -> None:
    tree = emulated.mi300x(tmp_path / "sys")
    with Sampler(tmp_path, sources=("device-counters",), sysfs=str(tree.root)) as sampler:
        missing = {absent["metric"]: absent["why"] for absent in sampler.ready()["missing"]}
        assert "is absent" in missing["device-counters"] or "cannot" in missing["device-counters"]
        sampler.stop()


def test_a_process_of_the_sampler_is_no_stranger(tmp_path: Path) -> None:
    roots = tmp_path / "roots"
    roots.write_text("1\n")
    assert Ownership(str(roots)).strangers([os.getpid()]) == 0
    assert Ownership(str(roots)).strangers([os.getppid()]) in (0, 1)


def test_a_slow_sampler_sees_longer_intervals_and_no_gaps(begin: Begin) -> None:
    """At 2 readings per second of counters that are read 20 times, each interval is one of 2 Hz."""
    sampler = begin(hz=2.0)
    trace = sampled(sampler, 2)
    assert values(trace, "cu_active") == pytest.approx(0.38, rel=1e-4)
    length = np.diff(trace.samples.at_ns[trace.samples.metric == trace.strings.find("cu_active")])
    assert len(length)
    assert np.median(length) == pytest.approx(5e8, rel=0.3)
