from __future__ import annotations

import pytest

from profharness.supervise import sentences
from profharness.supervise.diagnosis import (
    REFUSED,
    Evidence,
    LeftFile,
    PassEnd,
    final_status,
    judge,
)

WITH_KERNELS = (LeftFile("a.db", 100, kernels=True),)
WITHOUT = (LeftFile("a.db", 100, kernels=False),)


def ids(signs: Evidence) -> list[str]:
    return [found.id for found in judge(signs)]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ("", []),
        (
            "CommandLine Error: Option 'x' registered more than once!\nLLVM ERROR: inconsistency",
            ["mixed-rocm"],
        ),
        (
            (
                "W: Device 0 could not be locked for profiling due to lack of permissions "
                "(capability SYS_PERFMON)"
            ),
            ["counters-inexact"],
        ),
        ("Unable to find all counters for agent 4 (gpu-0, gfx942)", ["counters-refused"]),
        ("Request exceeds the capabilities of the hardware to collect", ["counters-refused"]),
        ("Unable to open /dev/kfd read-write: Permission denied", ["no-device-access"]),
        ("hipErrorNoDevice: no ROCm-capable device is detected", ["no-device-access"]),
        ("Profiling data corrupted: ' /tmp/rpl/results.txt'", ["profiler-failed"]),
        ("[rocprofiler] buffer overflow, 12 records dropped", ["events-dropped"]),
        ("my own loader dropped records; the buffer is full", []),
        ("WARNING: rocprofiler_force_configure failed with status 33", ["mixed-rocm"]),
        ("Fatal error: rocprof-trace-decoder library path not found", ["profiler-failed"]),
        ("[rocprofv3] Data Lost in shader engine 3", ["events-dropped"]),
        ("PC sampling is not supported on this agent", ["profiler-failed"]),
    ],
)
def test_sentences_of_the_tools(said: str, expected: list[str]) -> None:
    signs = Evidence("rocprofv3", PassEnd(0), said=f"epoch 1\n{said}\nepoch 2", files=WITH_KERNELS)
    assert ids(signs) == expected
    for found in judge(signs):
        assert said.splitlines()[0] in found.message
        assert found.advice


@pytest.mark.parametrize(
    ("ended", "status", "expected"),
    [
        (PassEnd(0), 0, []),
        (PassEnd(7), 7, []),  # the workload's own: the tool became the workload
        (PassEnd(7, own_status=7), 7, []),
        (PassEnd(1, own_status=0), 0, ["profiler-changed-exit"]),
        (PassEnd(0, own_status=3), 3, ["profiler-changed-exit"]),
        (PassEnd(134, own_status=0), 0, ["profiler-changed-exit"]),
        (PassEnd(137, own_status=0, overdue=True, limit_s=300), 0, ["profiler-hung"]),
        (PassEnd(130, own_status=0, interrupted=True), 130, []),
    ],
)
def test_a_profilers_end_is_never_the_workloads(
    ended: PassEnd, status: int, expected: list[str]
) -> None:
    assert final_status(ended, "") == status
    assert ids(Evidence("rocprof", ended, files=WITH_KERNELS)) == expected


@pytest.mark.parametrize(
    "said",
    [
        "usage: rocprofv3 [options]\nrocprofv3: error: unrecognized arguments: --bogus",
        "Fatal error: No application provided",
        "Wrong option '-x'",
        "rocprof-compute: error: the following arguments are required: -n/--name",
        "[rocprof-sys-sample] unknown option: --bogus",
    ],
)
def test_a_tool_that_refuses_its_options_is_not_the_workloads_failure(said: str) -> None:
    ended = PassEnd(2)
    assert final_status(ended, said) == REFUSED
    (found,) = judge(Evidence("rocprofv3", ended, said=said))
    assert found.id == "profiler-failed"
    assert said.splitlines()[-1] in found.message
    # a workload that was seen to run may say the same and means itself
    assert final_status(PassEnd(2, ran=True), said) == 2


def test_a_recorder_that_never_started_means_that_the_tool_failed_first() -> None:
    ended = PassEnd(1, never_ran=True)
    assert final_status(ended, "") == REFUSED
    assert (
        "did not start the workload: it exited 1 first"
        in judge(Evidence("rocprof", ended))[0].message
    )


def test_a_tool_that_ends_well_without_starting_the_workload_has_failed() -> None:
    ended = PassEnd(0, never_ran=True)
    assert final_status(ended, "") == REFUSED
    assert "did not start the workload: it exited 0 first" in (
        judge(Evidence("rocprof-compute", ended))[0].message
    )
    # a program that was seen to run, by its hooks for instance, ended as the tool says
    assert final_status(PassEnd(0, never_ran=True, ran=True), "") == 0


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("tool: error: unrecognized arguments: --path", "unrecognized arguments: --path"),
        (
            "tool: error: PC sampling is an experimental feature. Use --experimental to enable it.",
            "Use --experimental",
        ),
        ("ERROR Profiling execution failed.", "Profiling execution failed."),
        (
            "ROCPROF_OUTPUT_PATH environment variable must be set\nProfiling execution failed.",
            "ROCPROF_OUTPUT_PATH environment variable must be set",
        ),
    ],
)
def test_rocprof_computes_words_for_a_workload_that_never_started(said: str, words: str) -> None:
    ended = PassEnd(2 if "error:" in said else 1, never_ran=True)
    assert final_status(ended, said) == REFUSED
    found = judge(Evidence("rocprof-compute", ended, said=said))[0]
    assert (found.id, words in found.message) == ("profiler-failed", True)


def test_nothing_recorded() -> None:
    assert ids(Evidence("rocprofv3", PassEnd(0))) == ["profiler-failed"]
    assert ids(Evidence("rocprofv3", PassEnd(0), files=WITHOUT)) == ["empty-trace"]
    assert (
        ids(
            Evidence("rocprofv3", PassEnd(0), files=(*WITHOUT, LeftFile("b.db", 101, kernels=None)))
        )
        == []
    )
    assert ids(Evidence("amd-log", PassEnd(0), files=WITHOUT, expects_kernels=False)) == []
    (crashed,) = judge(Evidence("rocprofv3", PassEnd(139)))
    assert (
        "the workload was killed by SIGSEGV, perhaps before it used the device" in crashed.message
    )


CLOSED = "/dev/kfd is there, but this user may not open it; ask for the group render"


def test_devices_that_are_closed_are_the_reason_for_a_pass_without_kernels() -> None:
    for files, other in (((), "profiler-failed"), (WITHOUT, "empty-trace")):
        access, empty = judge(Evidence("rocprofv3", PassEnd(0), files=files, closed=CLOSED))
        assert (access.id, access.severity, access.message) == (
            "no-device-access",
            "error",
            f"rocprofv3 met no device: {CLOSED}",
        )
        assert (empty.id, empty.message.rpartition(": ")[2]) == (
            other,
            "this user reaches no device here",
        )
    said = "hipErrorNoDevice: no ROCm-capable device is detected"
    assert ids(Evidence("rocprofv3", PassEnd(1), said=said, files=WITHOUT, closed=CLOSED)) == [
        "no-device-access",
        "empty-trace",
    ]  # once
    assert (
        ids(Evidence("rocprofv3", PassEnd(0), files=WITH_KERNELS, closed=CLOSED)) == []
    )  # it ran elsewhere
    assert (
        ids(Evidence("amd-log", PassEnd(0), files=WITHOUT, expects_kernels=False, closed=CLOSED))
        == []
    )


def test_the_launcher_was_traced_instead_of_the_workers() -> None:
    (found,) = judge(Evidence("rocprofv3", PassEnd(0), files=WITHOUT, users=(100, 201, 202)))
    assert found.id == "launcher-traced"
    assert "traced process 100" in found.message
    assert "processes 201, 202" in found.message
    assert (
        ids(
            Evidence(
                "rocprofv3",
                PassEnd(0),
                files=(*WITHOUT, LeftFile("c.db", 201, kernels=True)),
                users=(201, 202),
            )
        )
        == []
    )


CAUGHT = "E20260102 09:53:32.744880 77 tool.cpp:2100] rocprofv3 caught signal 6..."
FATAL = "F20260102 09:53:32.744880 77 tool.cpp:310] hsa_init failed"


@pytest.mark.parametrize(
    ("ended", "said", "status", "expected"),
    [
        (
            PassEnd(7, vanished=True),
            CAUGHT,
            134,
            ["profiler-changed-exit"],
        ),  # the handler ended otherwise
        (PassEnd(134, vanished=True), CAUGHT, 134, []),
        (PassEnd(137, vanished=True, overdue=True, limit_s=5), CAUGHT, 134, ["profiler-hung"]),
        (
            PassEnd(7),
            CAUGHT,
            7,
            [],
        ),  # a child may have been hit: what has no hooks says nothing about itself
        (PassEnd(0, vanished=True), CAUGHT, 0, []),
        (PassEnd(7, own_status=3, vanished=True), CAUGHT, 3, ["profiler-changed-exit"]),
        (PassEnd(134, vanished=True), f"{FATAL}\n{CAUGHT}", REFUSED, ["profiler-failed"]),
        (PassEnd(139, vanished=True), FATAL, REFUSED, ["profiler-failed"]),
        (PassEnd(3, vanished=True), FATAL, 3, []),
        (PassEnd(139, vanished=True), "my loader failed with error code 5", 139, []),
    ],
)
def test_what_the_tools_handler_says_of_a_signal(
    ended: PassEnd, said: str, status: int, expected: list[str]
) -> None:
    assert final_status(ended, said) == status
    assert ids(Evidence("rocprofv3", ended, said=said, files=WITH_KERNELS)) == expected


def test_a_status_that_is_a_guess_is_called_one() -> None:
    (found,) = judge(
        Evidence("rocprofv3", PassEnd(134, own_status=0, guessed=True), files=WITH_KERNELS)
    )
    assert "with which status is not known" in found.message


def test_a_refused_pass_is_judged_elsewhere() -> None:
    said = (
        "Could not construct profile cfg failed with error code 38: "
        "Request exceeds the capabilities of the\nhardware to collect"
    )
    assert sentences.too_many_counters(said)
    assert sentences.refused_line(said).startswith(
        "Could not construct profile cfg failed with error code 38"
    )
    assert (
        ids(
            Evidence(
                "rocprofv3", PassEnd(134, vanished=True), said=said, counting=True, refused=True
            )
        )
        == []
    )
    assert sentences.refused_line("all is well") == sentences.fatal_line("all is well") == ""


def test_a_window_that_never_opened_explains_an_empty_trace() -> None:
    (found,) = judge(
        Evidence("rocprofv3", PassEnd(0), files=WITHOUT, unopened="its window never opened")
    )
    assert found.message.endswith("recorded no kernel: its window never opened")


def test_a_refused_command_line_says_why_and_what_to_do() -> None:
    ended = PassEnd(2)
    said = "usage: rocprofv3 ...\nrocprofv3: error: unrecognized arguments: --bogus\n"
    (found,) = judge(Evidence("rocprofv3", ended, said=said, passed_on=("--bogus", "1")))
    assert found.message == (
        "rocprofv3 did not start the workload: rocprofv3: error: unrecognized arguments: --bogus; "
        "this version may not take what --tool-arg gave it: --bogus 1"
    )
    assert final_status(ended, said) == REFUSED
    said = "Fatal error: rocprof-trace-decoder library path not found in /opt/rocm/lib"
    (found,) = judge(Evidence("rocprofv3", PassEnd(1), said=said))
    assert found.message.startswith(f"rocprofv3 did not start the workload: {said}; the thread")
    assert "ROCPROF_ATT_LIBRARY_PATH" in found.message


def test_a_replay_that_fails_is_the_commands_failure() -> None:
    """The tool's last words on a command that it had started say nothing of its own line."""
    said = "Fatal error: Command ['./a.out'] returned non-zero exit status 7"
    ended = PassEnd(1)
    assert final_status(ended, said) == 1
    assert "did not start" not in "".join(
        found.message for found in judge(Evidence("rocprofv3", ended, said=said))
    )


@pytest.mark.parametrize(
    ("ended", "files", "told"),
    [
        (PassEnd(137), (), True),
        (PassEnd(137, own_status=0, overdue=True, limit_s=300), (), True),
        (PassEnd(137), WITHOUT, False),  # its files are there, and say what is in them
        (PassEnd(1), (), False),  # it came to its end, and the tool with it
    ],
)
def test_what_a_killed_program_means_for_the_tools_files(
    ended: PassEnd, files: tuple[LeftFile, ...], told: bool
) -> None:
    evidence = Evidence("rocprof-sys", ended, files=files, if_killed="only its cache is left")
    messages = [found.message for found in judge(evidence)]
    assert any("was killed by SIGKILL; only its cache is left" in one for one in messages) == told
