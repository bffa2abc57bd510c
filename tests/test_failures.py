from __future__ import annotations

import pytest

from profharness.failures import REFUSED, Ended, Left, Signs, final_status, judge

WITH_KERNELS = (Left("a.db", 100, kernels=True),)
WITHOUT = (Left("a.db", 100, kernels=False),)


def ids(signs: Signs) -> list[str]:
    return [found.id for found in judge(signs)]


@pytest.mark.parametrize(("said", "expected"), [
    ("", []),
    ("CommandLine Error: Option 'x' registered more than once!\nLLVM ERROR: inconsistency", ["mixed-rocm"]),
    ("W: Device 0 could not be locked for profiling due to lack of permissions (capability SYS_PERFMON)", ["counters-inexact"]),
    ("Unable to find all counters for agent 4 (gpu-0, gfx942)", ["counters-refused"]),
    ("Request exceeds the capabilities of the hardware to collect", ["counters-refused"]),
    ("Unable to open /dev/kfd read-write: Permission denied", ["no-device-access"]),
    ("hipErrorNoDevice: no ROCm-capable device is detected", ["no-device-access"]),
    ("Profiling data corrupted: ' /tmp/rpl/results.txt'", ["profiler-failed"]),
    ("[rocprofiler] buffer overflow, 12 records dropped", ["events-dropped"]),
    ("my own loader dropped records; the buffer is full", []),
])
def test_sentences_of_the_tools(said: str, expected: list[str]) -> None:
    signs = Signs("rocprofv3", Ended(0), said=f"epoch 1\n{said}\nepoch 2", files=WITH_KERNELS)
    assert ids(signs) == expected
    for found in judge(signs):
        assert said.splitlines()[0] in found.message
        assert found.advice


@pytest.mark.parametrize(("ended", "status", "expected"), [
    (Ended(0), 0, []),
    (Ended(7), 7, []),  # the workload's own: the tool became the workload
    (Ended(7, own_status=7), 7, []),
    (Ended(1, own_status=0), 0, ["profiler-changed-exit"]),
    (Ended(0, own_status=3), 3, ["profiler-changed-exit"]),
    (Ended(134, own_status=0), 0, ["profiler-changed-exit"]),
    (Ended(137, own_status=0, overdue=True, limit_s=300), 0, ["profiler-hung"]),
    (Ended(130, own_status=0, interrupted=True), 130, []),
])
def test_a_profilers_end_is_never_the_workloads(ended: Ended, status: int, expected: list[str]) -> None:
    assert final_status(ended, "") == status
    assert ids(Signs("rocprof", ended, files=WITH_KERNELS)) == expected


@pytest.mark.parametrize("said", [
    "usage: rocprofv3 [options]\nrocprofv3: error: unrecognized arguments: --bogus", "Fatal error: No application provided", "Wrong option '-x'",
    "rocprof-compute: error: the following arguments are required: -n/--name", "[rocprof-sys-sample] unknown option: --bogus",
])
def test_a_tool_that_refuses_its_options_is_not_the_workloads_failure(said: str) -> None:
    ended = Ended(2)
    assert final_status(ended, said) == REFUSED
    found, = judge(Signs("rocprofv3", ended, said=said))
    assert found.id == "profiler-failed"
    assert said.splitlines()[-1] in found.message
    # a workload that was seen to run may say the same and means itself
    assert final_status(Ended(2, ran=True), said) == 2


def test_a_recorder_that_never_started_means_that_the_tool_failed_first() -> None:
    ended = Ended(1, never_ran=True)
    assert final_status(ended, "") == REFUSED
    assert "did not start the workload: it exited 1 first" in judge(Signs("rocprof", ended))[0].message


def test_nothing_recorded() -> None:
    assert ids(Signs("rocprofv3", Ended(0))) == ["profiler-failed"]
    assert ids(Signs("rocprofv3", Ended(0), files=WITHOUT)) == ["empty-trace"]
    assert ids(Signs("rocprofv3", Ended(0), files=(*WITHOUT, Left("b.db", 101, kernels=None)))) == []
    assert ids(Signs("amd-log", Ended(0), files=WITHOUT, expects_kernels=False)) == []
    crashed, = judge(Signs("rocprofv3", Ended(139)))
    assert "the workload was killed by SIGSEGV, perhaps before it used the device" in crashed.message


def test_the_launcher_was_traced_instead_of_the_workers() -> None:
    found, = judge(Signs("rocprofv3", Ended(0), files=WITHOUT, users=(100, 201, 202)))
    assert found.id == "launcher-traced"
    assert "traced process 100" in found.message
    assert "processes 201, 202" in found.message
    assert ids(Signs("rocprofv3", Ended(0), files=(*WITHOUT, Left("c.db", 201, kernels=True)), users=(201, 202))) == []
