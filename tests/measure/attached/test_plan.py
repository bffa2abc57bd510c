"""How each version attaches, what is refused before anything starts, and what a failure is told
as.
"""

from __future__ import annotations

import dataclasses
import os
import time
from pathlib import Path

import pytest

from profharness.cli.attach import _TAKEN
from profharness.errors import Unavailable, UsageError
from profharness.launchers import Outcome
from profharness.layers import named
from profharness.layers.contract import Attachment
from profharness.layers.options import TracerOptions
from profharness.measure.attached.plan import (
    AttachPlan,
    _notes,
    _require_alone,
    _require_fresh,
    attaching_names,
)
from profharness.measure.attached.recording import why_nothing
from profharness.measure.attached.session import Ended
from profharness.measure.attached.target import Target
from profharness.node.probe import Tool
from profharness.options.request import Request
from tests.fakes.amd_tools import rocprof_sys
from tests.layers.places import TOOLS, node, where

V3_OUT = "-d /run/artifacts/rocprofv3 -o %hostname%/%nid%/rocprofv3_%pid%"
SYS_OUT = "/run/artifacts/rocprof-sys/node1/0/rocprof-sys"
V3_LINE = (
    "rocprofv3 --kernel-trace --memory-copy-trace --hip-trace --marker-trace --output-format rocpd "
    f"{V3_OUT} --pid 42 --attach-duration-msec 1500"
)


def attachment(release: str, layer: str, options: TracerOptions | None = None) -> Attachment:
    """As planned on a node with the tools of that release."""
    tools = (*TOOLS, *(("rocprof-sys-attach",) if release in rocprof_sys.ATTACHING else ()))
    (one,) = named((layer,))
    place = where(release, layer, options, environment=node(release, tools=tools))
    return one.attach(42, 1_500_000_000, place)


@pytest.mark.parametrize(
    ("release", "late"),
    [("7.1", True), ("7.2", True), ("7.2.4", True), ("7.14", True), ("10.0", False)],
)
def test_rocprofv3_attaches_by_its_own_switches(release: str, late: bool) -> None:
    found = attachment(release, "rocprofv3", TracerOptions(hip_trace=True))
    assert " ".join(found.command.argv) == V3_LINE
    assert found.command.env == {"ROCPROF_ATTACH_OUTPUT_GENERATION_SYNC": "1"}
    assert (found.timed, found.late) == (True, late)
    assert found.memory == Path("/tmp/rocprofv3_attach_42.pkl")


@pytest.mark.parametrize("release", rocprof_sys.ATTACHING)
@pytest.mark.parametrize(
    ("asked", "formats"), [("", "perfetto"), ("rocpd", "rocpd"), ("both", "perfetto,rocpd")]
)
def test_rocprof_sys_attaches_by_a_program_of_its_own(
    release: str, asked: str, formats: str
) -> None:
    found = attachment(release, "rocprof-sys", TracerOptions(rocprof_sys_output=asked))
    assert " ".join(found.command.argv) == f"rocprof-sys-attach -p 42 -o {SYS_OUT} -F {formats}"
    # of two attachments to one process the second must not write over the first
    assert found.command.env["ROCPROFSYS_TIME_OUTPUT"] == "ON"
    assert found.command.env["ROCPROFSYS_OUTPUT_PATH"] == SYS_OUT
    assert (found.timed, found.late, found.memory) == (False, True, None)


@pytest.mark.parametrize(
    ("release", "layer", "since"),
    [
        ("6.2", "rocprofv3", "rocprofiler-sdk 1.1 (ROCm 7.1)"),
        ("7.0", "rocprofv3", "rocprofiler-sdk 1.1 (ROCm 7.1)"),
        ("6.4", "rocprof-sys", "rocprof-sys 1.5 (ROCm 7.12)"),
        ("7.2", "rocprof-sys", "rocprof-sys 1.5 (ROCm 7.12)"),
        ("7.11", "rocprof-sys", "rocprof-sys 1.5 (ROCm 7.12)"),
    ],
)
def test_older_tools_are_refused_with_the_release_that_can(
    release: str, layer: str, since: str
) -> None:
    with pytest.raises(Unavailable, match="cannot attach to a running process") as refused:
        attachment(release, layer)
    assert since in refused.value.hint
    assert "--profile telemetry" in refused.value.hint


def test_what_can_attach() -> None:
    assert attaching_names() == ("rocprofv3", "rocprof-sys", "telemetry")
    with pytest.raises(UsageError, match="rocprof-compute cannot attach"):
        attachment("10.0", "rocprof-compute")


def test_options_that_need_the_start_of_a_program_are_not_taken() -> None:
    assert {"pmc", "hip_trace", "tool_arg", "exit_limit", "telemetry", "output"} <= _TAKEN
    assert not {"capture", "bare", "hook", "stacks", "attachable", "command"} & _TAKEN
    # else they would be taken in silence, and the recording would be an ordinary trace
    assert not {"pc_sampling", "thread_trace", "trace_ranks", "roofline", "one_execution"} & _TAKEN


def test_what_the_tool_remembers_of_another_process(tmp_path: Path) -> None:
    (layer,) = named(("rocprofv3",))
    memory = tmp_path / "rocprofv3_attach_42.pkl"
    now = time.clock_gettime_ns(time.CLOCK_BOOTTIME)
    young = Target(42, ("a",), began_boot_ns=now - 10**9)
    _require_fresh(layer, young, memory)  # there is none
    memory.touch()
    _require_fresh(layer, young, memory)
    os.utime(memory, (time.time() - 3600, time.time() - 3600))
    with pytest.raises(Unavailable, match="is left from an earlier process") as refused:
        _require_fresh(layer, young, memory)
    assert refused.value.hint == f"remove it: rm {memory}"
    if now > 2 * 3600 * 10**9:  # it ran when the tool wrote that
        _require_fresh(layer, Target(42, ("a",), began_boot_ns=now - 7200 * 10**9), memory)


@pytest.mark.parametrize(
    ("layer", "mapped", "remembered", "by"),
    [
        ("rocprofv3", "librocprofiler-sdk-tool.so.1", False, "rocprofv3"),
        ("rocprofv3", "librocprofiler-sdk-tool.so.1", True, ""),
        ("rocprofv3", "librocprof-sys-dl.so.1", True, "rocprof-sys"),
        ("rocprof-sys", "librocprofiler-sdk-tool.so.1", False, "rocprofv3"),
        ("rocprof-sys", "librocprof-sys-dl.so.1", False, ""),
        # what torch and attaching itself bring
        ("rocprofv3", "librocprofiler-sdk.so.1", False, ""),
        ("rocprofv3", "librocprofiler-sdk-attach.so.1", False, ""),
    ],
)
def test_no_second_profiler_is_put_into_a_process(
    tmp_path: Path, layer: str, mapped: str, by: str, *, remembered: bool
) -> None:
    target = Target(42, ("python",), variable=True, libraries=frozenset({mapped}))
    asked = attachment("10.0", layer)
    if asked.memory is not None:
        asked = dataclasses.replace(asked, memory=tmp_path / "memory")
    if remembered:
        (tmp_path / "memory").touch()
    if not by:
        _require_alone(target, asked)
        return
    with pytest.raises(Unavailable, match=f"is recorded by {by} already, or was before") as caught:
        _require_alone(target, asked)
    assert "start the program anew" in caught.value.hint


def test_notes_say_what_the_tool_will_not_do(tmp_path: Path) -> None:
    v3, system = named(("rocprofv3", "rocprof-sys"))
    plain = Target(42, ("python",), variable=True, listens=True)
    of_v3 = dataclasses.replace(attachment("7.1", "rocprofv3"), memory=tmp_path / "x.pkl")
    of_sys = attachment("10.0", "rocprof-sys")
    assert _notes(v3, plain, of_v3) == _notes(system, plain, of_sys) == ()
    (tmp_path / "x.pkl").touch()
    assert "refuses other traces" in _notes(v3, plain, of_v3)[0]
    held = dataclasses.replace(plain, libraries=frozenset({"librocprof-sys-dl.so.1"}))
    assert "keeps the settings of that time" in _notes(system, held, of_sys)[0]
    deaf = dataclasses.replace(plain, listens=False)
    assert "has no thread rocp-bg-attach" in _notes(system, deaf, of_sys)[0]
    torch = dataclasses.replace(plain, libraries=frozenset({"libtorch_cpu.so"}))
    assert "up to rocprofiler-sdk 1.3.5" in _notes(v3, torch, of_v3)[1]
    assert "up to rocprofiler-sdk 1.3.5" in _notes(v3, torch, attachment("10.0", "rocprofv3"))[0]
    told = node("10.1")
    told.tools["rocprofv3"] = Tool(path="rocprofv3", version="1.4.0", rocm="10.1.0")
    newer = v3.attach(42, 10**9, where("10.1", "rocprofv3", environment=told))
    assert _notes(v3, torch, newer) == ()


@pytest.mark.parametrize(
    ("said", "status", "alive", "expected"),
    [
        (
            "E0923 rocattach.cpp:358] Cannot attach to process 42: 'rocp-bg-attach' thread not found.",
            1,
            True,
            "the process does not wait for tools",
        ),
        (
            "Traceback ...\nRuntimeError: trace options cannot be changed when reattaching",
            1,
            True,
            "was attached to this process before",
        ),
        (
            "RuntimeError: Calling attach in librocprofv3-attach.so returned non-zero status 6",
            1,
            True,
            "it exited 1 (RuntimeError: Calling attach in librocprofv3-attach.so returned non-zero",
        ),
        ("ptrace: Operation not permitted", 1, True, "the kernel did not let the tool trace"),
        ("some words", 139, True, "it was killed by SIGSEGV (some words)"),
        ("", 0, True, "recorded nothing of python (42): no file came from it"),
        ("", 0, False, "the process ended meanwhile, and no file came from it"),
    ],
)
def test_a_tool_that_left_nothing_is_told_in_a_sentence(
    said: str, status: int, alive: bool, expected: str
) -> None:
    plan = plan_for()
    ended = Ended(Outcome(status, 7, 0, 1), 10**9, alive)
    assert expected in why_nothing(plan, ended, said)


def plan_for() -> AttachPlan:
    """A plan as far as sentences need it."""
    from profharness.launchers.local import LocalLauncher
    from profharness.measure import ranks
    from profharness.measure.plan import RunPlan
    from profharness.measure.schedule import Schedule
    from profharness.supervise.pass_plan import PassPlan

    layers = named(("rocprofv3",))
    run_plan = RunPlan(
        Request(command=("python",), profile=("rocprofv3",)),
        Path("/run"),
        ranks.detect({}),
        node("10.0"),
        LocalLauncher(None),
        "python",
        Schedule((PassPlan("rocprofv3", layers, ("command",)),)),
        None,
    )
    return AttachPlan(run_plan, Target(42, ("python",)), 10**9, None)


def test_the_tools_files_go_where_the_run_was_made() -> None:
    """The name that was planned may be taken when the recording begins."""
    run_plan = dataclasses.replace(plan_for().run_plan, environment=node("10.0", tools=TOOLS))
    (passed,) = run_plan.schedule.passes
    first = passed.layers[0].attach(42, 10**9, run_plan.where(passed, is_worker=False))
    decided = AttachPlan(run_plan, Target(42, ("python",)), 10**9, first)
    moved = decided.at(run_plan.at(Path("/run-2")))
    assert moved.attachment is not None
    words = " ".join(moved.attachment.command.argv)
    assert "/run-2/artifacts" in words
    assert "/run/" not in words
    assert decided.at(run_plan).attachment == first
