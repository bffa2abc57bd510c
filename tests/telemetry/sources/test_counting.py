"""The counting process against compiled stand-ins of rocprofiler-sdk, one per generation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from profharness.telemetry.sources.amd.counting.child import Task, parse_task
from profharness.telemetry.sources.amd.counting.helper import Helper, HelperEndedError, Sampled
from profharness.telemetry.sources.amd.counting.service import Wanted
from profharness.telemetry.sources.amd.counting.sets import SETS
from tests.fakes.device_counting import (
    MI210,
    MI300X,
    MI300X_CPX,
    MI355X,
    Gpu,
    Load,
    compiled,
    playing,
    rocm_tree,
)
from tests.telemetry.running import wait_for

HZ = 100.0
LOAD = Load()


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    made: dict[str, Path] = {}

    def tree(version: str) -> Path:
        if version not in made:
            made[version] = rocm_tree(tmp_path_factory.mktemp("rocm"), version)
        return made[version]

    return tree


def wanted(gpu: Gpu) -> Wanted:
    counters = SETS[gpu.target]
    return Wanted(gpu.gpu_id, counters.blocks, counters.columns(gpu.xccs))


class Play:
    """One counting process, and what came from it."""

    def __init__(self, tree: Path, *gpus: Gpu) -> None:
        number = next(tree.glob("lib/librocprofiler-sdk.so.*")).name
        self.gpus = gpus
        self.helper = Helper(
            Task(
                str(tree / "lib" / number),
                str(tree / "lib/libhsa-runtime64.so.1"),
                HZ,
                tuple(wanted(gpu) for gpu in gpus),
            )
        )

    def records(self, count: int, seconds: float = 60.0) -> list[Sampled]:
        found: list[Sampled] = []
        end = time.monotonic() + seconds
        while len(found) < count and time.monotonic() < end:
            found += self.helper.take()
            time.sleep(0.002)
        return found

    def growth(self, first: Sampled, last: Sampled) -> dict[str, int]:
        """Of each column that both have."""
        columns = wanted(self.gpus[first.place]).columns
        return {
            name: new - old
            for name, old, new in zip(columns, first.totals, last.totals, strict=True)
            if old >= 0 and new >= 0
        }


@pytest.fixture
def play(
    trees: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Play]]:
    started: list[Play] = []

    def begin(
        *gpus: Gpu, version: str = "1.1", load: Load = LOAD, mode: str = "", **more: str
    ) -> Play:
        for name, text in playing(gpus, load, mode, **more).items():
            monkeypatch.setenv(name, text)
        started.append(Play(trees(version), *gpus))
        return started[-1]

    yield begin
    for one in started:
        one.helper.close()


def shares(gpu: Gpu, growth: dict[str, int]) -> dict[str, float]:
    """The truth of the stand-in again, from the totals: written out here a second time."""
    cycles = max(growth[f"GRBM_COUNT:{die}"] for die in range(gpu.xccs))
    units = gpu.simds / 4
    return {
        "busy": max(growth[f"GRBM_GUI_ACTIVE:{die}"] for die in range(gpu.xccs)) / cycles,
        "active": growth["SQ_BUSY_CU_CYCLES"] / cycles / units,
        "occupancy": 4 * growth["SQ_WAVE_CYCLES"] / cycles / units / 32,
        "matrix": growth["SQ_VALU_MFMA_BUSY_CYCLES"] / cycles / gpu.simds,
        "lds": growth["SQ_ACTIVE_INST_LDS"] / cycles / units,
    }


@pytest.mark.parametrize(
    ("version", "gpu"),
    [("0.6", MI210), ("1.0", MI300X_CPX), ("1.1", MI300X), ("1.3", MI300X), ("1.3", MI355X)],
)
def test_every_generation_gives_the_scripted_load(play, version: str, gpu: Gpu) -> None:
    played = play(gpu, version=version, load=Load(busy=0.5))
    first, *_, last = played.records(4)
    assert played.helper.hello == {
        "sdk": f"{version}.0",
        "devices": [{"gpu_id": gpu.gpu_id, "why": "", "dropped": []}],
    }
    found = shares(gpu, played.growth(first, last))
    truth = {"busy": 0.5, "active": 0.38, "occupancy": 0.11, "matrix": 0.04, "lds": 0.09}
    assert found == pytest.approx(truth, rel=1e-5)  # totals are whole numbers
    assert all(record.before_ns <= record.after_ns for record in (first, last))


def test_calls_come_in_the_order_that_the_library_wants(play, tmp_path: Path) -> None:
    trace = tmp_path / "calls"
    played = play(MI300X, MI355X, STAND_IN_TRACE=str(trace))
    played.records(4)
    played.helper.close()
    calls = [
        name
        for name in dict.fromkeys(trace.read_text().split())
        if name not in ("create_config", "create_context")
    ]
    assert calls == [
        "force_configure",
        "query_available_agents",
        "configure_device_counting_service",
        "hsa_init",
        "start_context",
        "sample",
        "stop_context",
        "hsa_shut_down",
    ]
    assert trace.read_text().split().count("start_context") == 2, "one start per device and run"


def test_two_devices_are_told_apart_by_kfds_ids(play) -> None:
    other = Gpu(60001, 608, 4)
    played = play(MI300X, other)
    records = played.records(6)
    assert {record.place for record in records} == {0, 1}
    assert [len(record.totals) for record in records[:2]] == [
        len(wanted(MI300X).columns),
        len(wanted(other).columns),
    ]


@pytest.mark.parametrize(
    ("version", "mode", "said"),
    [
        ("0.5", "", "rocprofiler-sdk 0.5.0 cannot count"),
        ("2.0", "", "2.0.0 is newer than 1.x"),
        ("1.1", "no-register", "built without rocprofiler-register"),
        ("1.1", "abort-start", "(SIGABRT): F0000 Check failed: the queue could not be made"),
        ("1.1", "hidden=60000", "counting cannot be started here: status 7"),
    ],
)
def test_what_cannot_be_counted_is_said(play, version: str, mode: str, said: str) -> None:
    played = play(MI300X, version=version, mode=mode)
    played.helper.wait_hello(60)
    assert said in played.helper.why
    assert played.helper.take() == []


def test_hsa_without_a_device(play) -> None:
    played = play(MI300X, STAND_IN_HSA_STATUS="0x1008")
    played.helper.wait_hello(60)
    assert played.helper.why == (
        "HSA cannot be started (status 0x1008: it finds no usable /dev/kfd)"
    )


def test_a_hidden_device_costs_its_own_values_only(play) -> None:
    played = play(MI300X, Gpu(60001), mode="hidden=60001", ROCR_VISIBLE_DEVICES="0")
    records = played.records(3)
    assert {record.place for record in records} == {0}
    why = [state["why"] for state in played.helper.hello["devices"]]
    assert not why[0]
    assert why[1] == (
        "counting cannot be started here: status 7 (Unnamed status); "
        "ROCR_VISIBLE_DEVICES may hide it"
    )


@pytest.mark.parametrize(
    ("mode", "dropped"),
    [
        ("missing=SQ_WAVE_CYCLES", ["SQ_WAVE_CYCLES"]),
        ("invalid=SQ_ACTIVE_INST_LDS", ["SQ_ACTIVE_INST_LDS"]),
        ("sq-room=6", ["SQ_ACTIVE_INST_LDS", "SQ_ACTIVE_INST_SCA"]),
    ],
)
def test_counters_without_room_are_left_out_and_the_others_stay(
    play, mode: str, dropped: list[str]
) -> None:
    played = play(MI300X, mode=mode)
    first, *_, last = played.records(3)
    assert played.helper.hello["devices"][0]["dropped"] == dropped
    growth = played.growth(first, last)
    assert set(wanted(MI300X).columns) - set(growth) == set(dropped)
    assert growth["SQ_BUSY_CU_CYCLES"] / growth["GRBM_COUNT:7"] == pytest.approx(0.38 * 304)


def test_gfx950_reads_the_newer_name_where_it_is_listed(play) -> None:
    newer = play(MI355X, version="1.3")
    assert "TCC_EA0_RDREQ_128B" in newer.growth(*newer.records(2)[:2])
    older = play(MI355X, version="1.0")
    growth = older.growth(*older.records(2)[:2])
    assert "TCC_BUBBLE" in growth
    assert "TCC_EA0_RDREQ_128B" not in growth


@pytest.mark.parametrize(
    ("mode", "warning"),
    [
        ("eperm", "the kernel refused the profiler's lock: CAP_PERFMON is missing"),
        ("ebusy", "another profiler holds the device"),
        ("einval", "this amdgpu driver has no profiler interface"),
    ],
)
def test_warnings_of_the_library_are_understood(play, mode: str, warning: str) -> None:
    played = play(MI300X, mode=mode)
    first, second = played.records(2)[:2]
    assert played.helper.warnings() == (warning,)
    growth = played.growth(first, second)
    assert growth["SQ_BUSY_CU_CYCLES"] == 0
    assert growth["GRBM_COUNT:7"] > 0


def test_a_call_that_does_not_come_back_ends_the_process(play, monkeypatch) -> None:
    monkeypatch.setattr("profharness.telemetry.sources.amd.counting.helper.SILENT_NS", 300_000_000)
    played = play(MI300X, mode="hang-sample")
    with pytest.raises(HelperEndedError, match=r"did not answer for 0.31 s and was ended"):
        played.records(9)
    assert played.helper.take() == []


def test_a_hanging_process_ends_when_the_sampler_does(play, tmp_path: Path) -> None:
    trace = tmp_path / "calls"
    played = play(MI300X, mode="hang-sample", STAND_IN_TRACE=str(trace))
    played.records(2)
    calls = ["sample"] * 4  # one with too little room, two that answer, and the one that hangs
    wait_for(lambda: trace.read_text().split()[-4:] == calls, "the call that hangs")
    process = played.helper._process
    process.stdin.close()
    assert process.wait(30) == 3


def test_a_sample_that_fails_is_told_and_the_next_ones_come(play) -> None:
    played = play(MI300X, mode="fail-sample")
    assert len(played.records(4)) >= 4
    assert played.helper.troubles == 1
    assert played.helper.trouble == (
        "sample_device_counting_service: status 9 (Context operation failed)"
    )


def test_other_tools_in_the_environment_do_not_reach_the_process(play, monkeypatch) -> None:
    monkeypatch.setenv("ROCP_TOOL_LIBRARIES", "/x/librocprofiler-sdk-tool.so")
    monkeypatch.setenv("HSA_TOOLS_LIB", "librocprofiler64.so")
    assert play(MI300X).records(1)  # the stand-in aborts where one of them is set


def test_a_process_that_says_why_and_does_not_end_is_ended(monkeypatch) -> None:
    counting = "profharness.telemetry.sources.amd.counting.helper"
    said = """import os, time; os.write(1, b'{{"why": "no"}}\\n'); time.sleep(30)  # {!r}"""
    monkeypatch.setattr(f"{counting}._CHILD", said)
    monkeypatch.setattr(f"{counting}.END_S", 0.1)
    helper = Helper(Task("/a", "/b", 2.0, ()))
    began = time.monotonic()
    helper.wait_hello(20)
    assert helper.why == "no"
    assert time.monotonic() - began < 15
    helper.close()


def test_a_library_that_is_none(tmp_path: Path) -> None:
    (tmp_path / "lib").mkdir()
    compiled("stand_in_hsa.c", tmp_path / "lib/libhsa-runtime64.so.1")
    compiled("stand_in_hsa.c", tmp_path / "lib/librocprofiler-sdk.so.1")
    played = Play(tmp_path, MI300X)
    played.helper.wait_hello(60)
    assert "is no rocprofiler-sdk" in played.helper.why
    played.helper.close()


def test_a_task_survives_its_way() -> None:
    task = Task("/a", "/b", 2.0, (wanted(MI300X), wanted(MI210)))
    assert parse_task(task.line()) == task
    assert len(wanted(MI300X).columns) == 2 * 8 + 8 + 4
    wide = Gpu(1, 4864, 32)
    assert Task("/a", "/b", 2.0, (wanted(wide),)).body_bytes == 8 * (2 * 32 + 8 + 4)
