"""What rocprofv3 is asked for on every release, held against what that release takes."""

from __future__ import annotations

import re
from itertools import product
from typing import Any

import pytest

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import named, releases
from profharness.layers.options import TracerOptions, parse_sampling
from tests.fakes.amd_tools import rocprofv3 as stand_in
from tests.fakes.amd_tools.rocprofv3_options import AFTER_1_3_5, parser, taken
from tests.layers.places import TRAIN, node, planned, where, words
from tests.layers.test_golden import RELEASES, V3_ROWS

HERE = tuple(release for release in RELEASES if V3_ROWS[release][0])
ASKED: dict[str, tuple[TracerOptions, dict[str, Any]]] = {
    "the trace": (TracerOptions(), {}),
    "calls": (
        TracerOptions(hip_trace=True, hsa_trace=True, marker_trace=True, rccl_trace=True),
        {},
    ),
    "everything": (TracerOptions(sys_trace=True, stats=True), {}),
    "allocations": (TracerOptions(memory_allocation_trace=True), {}),
    "scratch": (TracerOptions(scratch_memory_trace=True), {}),
    "the driver": (TracerOptions(kfd_trace=True), {}),
    "graphs": (TracerOptions(hip_graph_trace=True), {}),
    "counters": (TracerOptions(pmc=("A",), kernel_iteration_range="5"), {"counters": ("A", "B")}),
    "counters in one execution": (
        TracerOptions(pmc=("A",), replay_mode="kernel"),
        {"counters": ("A", "B", "C"), "groups": (("A", "B"), ("C",))},
    ),
    "samples by the host": (TracerOptions(pc_sampling="host_trap"), {"purpose": "pc-sampling"}),
    "samples by hardware": (TracerOptions(pc_sampling="stochastic"), {"purpose": "pc-sampling"}),
    "threads": (
        TracerOptions(thread_trace=True, kernel_include_regex="gemm"),
        {"purpose": "thread-trace"},
    ),
    "steps": (TracerOptions(), {"capture": "steps=3:6"}),
    "a time": (TracerOptions(), {"capture": "after=1s,for=2s"}),
}
# from which version on; all others are there from the first on
SINCE: dict[str, releases.Version] = {
    "allocations": (0, 6),
    "the driver": (1, 3),
    "graphs": (1, 3),
    "counters in one execution": AFTER_1_3_5,
    "samples by the host": (0, 6),
    "samples by hardware": (1, 0),
    "threads": (1, 0),
}


def of(release: str, what: str) -> Command:
    """The command line of one case."""
    options, changes = ASKED[what]
    return planned(release, "rocprofv3", options, **changes)


@pytest.mark.parametrize(("what", "release"), list(product(ASKED, HERE)))
def test_a_release_gets_what_it_takes_or_a_refusal_with_the_way_out(
    what: str, release: str
) -> None:
    if stand_in.sdk(release) < SINCE.get(what, ()):
        with pytest.raises(UsageError) as caught:
            of(release, what)
        assert f"of ROCm {release[:3]}" in caught.value.message
        assert "leave it out" in caught.value.hint
        return
    command = of(release, what)
    own = command.argv[1 : command.argv.index("--")]
    # the real tool takes no abbreviations, so that one unknown word ends it with argparse's 2
    parser(stand_in.sdk(release)).parse_args(own)
    assert command.argv[command.argv.index("--") + 1 :] == TRAIN.argv
    grown = {"-r", "--runtime-trace", "-s", *(() if what == "everything" else ("--sys-trace",))}
    assert grown.isdisjoint(own)


@pytest.mark.parametrize("release", HERE)
def test_an_option_of_a_later_release_is_refused_by_the_stand_in(
    release: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """The table above says something only because a stand-in takes no more than its release."""
    later = taken(AFTER_1_3_5) - taken(stand_in.sdk(release))
    for name in sorted(name for name in later if name.startswith("--")):
        with pytest.raises(SystemExit) as ended:
            parser(stand_in.sdk(release)).parse_args([name])
        assert ended.value.code == 2
        assert f"unrecognized arguments: {name}" in capsys.readouterr().err


def test_what_each_purpose_asks_for() -> None:
    sampled = of("6.4", "samples by the host")
    assert words(sampled) == (
        "rocprofv3 --kernel-trace --memory-copy-trace --marker-trace --pc-sampling-beta-enabled "
        "--pc-sampling-method host_trap --pc-sampling-unit time --pc-sampling-interval 1000 "
        "--output-format csv json -d /run/artifacts/rocprofv3 "
        "-o %hostname%/%nid%/rocprofv3_%pid% -- python train.py --epochs 1"
    )
    by_hardware = TracerOptions(pc_sampling="stochastic:65536")
    place = where("7.2", "rocprofv3", by_hardware, purpose="pc-sampling", rank=3)
    assert words(named(("rocprofv3",))[0].prepare(TRAIN, place)) == (
        "rocprofv3 --kernel-trace --memory-copy-trace --marker-trace --pc-sampling-beta-enabled "
        "--pc-sampling-method stochastic --pc-sampling-unit cycles --pc-sampling-interval 65536 "
        "--output-format rocpd csv json -d /run/artifacts/rocprofv3 "
        "-o %hostname%/3/rocprofv3_%pid% -- python train.py --epochs 1"
    )
    assert words(of("10.0", "threads")) == (
        "rocprofv3 --kernel-trace --memory-copy-trace --att --kernel-include-regex gemm "
        "--output-format rocpd -d /run/artifacts/rocprofv3/%hostname%/%nid%/rocprofv3_%pid% "
        "-o rocprofv3_%pid% -- python train.py --epochs 1"
    )
    replayed = of("10.2", "counters in one execution")
    assert (
        "--replay-mode kernel --kernel-replay-beta-enabled --pmc A B --pmc C --output-format"
        in words(replayed)
    )


def test_one_group_needs_no_replay() -> None:
    options = TracerOptions(pmc=("A",), replay_mode="kernel")
    for release in ("7.0", "10.2"):
        line = words(planned(release, "rocprofv3", options, counters=("A", "B")))
        assert "--pmc A B --output-format" in line
        assert "replay" not in line


@pytest.mark.parametrize(
    ("architecture", "able"),
    [
        ("gfx90a", False),
        ("gfx940", True),
        ("gfx942", True),
        ("gfx950", True),
        ("gfx1100", False),
        ("gfx1201", False),
    ],
)
def test_only_mi300_and_newer_sample_by_hardware(architecture: str, able: bool) -> None:
    options = TracerOptions(pc_sampling="stochastic")
    here = node("7.0", architecture=architecture)
    if able:
        planned("7.0", "rocprofv3", options, environment=here, purpose="pc-sampling")
        return
    with pytest.raises(UsageError, match=f"{architecture} cannot") as caught:
        planned("7.0", "rocprofv3", options, environment=here, purpose="pc-sampling")
    assert caught.value.hint == "use --pc-sampling host_trap"


@pytest.mark.parametrize("method", ["host_trap", "stochastic"])
def test_devices_before_mi200_cannot_sample(method: str) -> None:
    options = TracerOptions(pc_sampling=method)
    for architecture in ("gfx906", "gfx908"):
        here = node("7.0", architecture=architecture)
        with pytest.raises(UsageError, match=f"{architecture} cannot; it needs MI200"):
            planned("7.0", "rocprofv3", options, environment=here, purpose="pc-sampling")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("host_trap", ("host_trap", "time", 1000)),
        ("host_trap:7", ("host_trap", "time", 7)),
        ("stochastic", ("stochastic", "cycles", 1048576)),
        ("stochastic:256", ("stochastic", "cycles", 256)),
    ],
)
def test_a_sampling_method_with_its_interval(text: str, expected: tuple[str, str, int]) -> None:
    assert parse_sampling(text) == expected


@pytest.mark.parametrize(
    ("text", "words_of"),
    [
        ("", "is not a method"),
        ("random", "use host_trap"),
        ("host_trap:", "microseconds"),
        ("host_trap:0", "microseconds"),
        ("host_trap:-1", "microseconds"),
        ("host_trap:1.5", "microseconds"),
        ("host_trap:²", "microseconds"),
        ("stochastic:1000", "a power of two"),
        ("stochastic:0", "a power of two"),
    ],
)
def test_a_wrong_sampling_is_told(text: str, words_of: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_sampling(text)
    assert words_of in f"{caught.value.message} {caught.value.hint}"


@pytest.mark.parametrize(
    ("argument", "way_out"),
    [
        ("--version", "it starts no command"),
        ("-h", "it starts no command"),
        ("-L", "it starts no command"),
        ("-o", "the harness names the files"),
        ("--output-directory=/elsewhere", "the harness names the files"),
        ("-i", "loses its exit status"),
        ("--pid=77", "attaches to another process"),
        ("-p", "attaches to another process"),
        ("--profile-mpi-ranks", "--trace-ranks"),
    ],
)
def test_arguments_that_take_the_run_out_of_our_hands_are_refused(
    argument: str, way_out: str
) -> None:
    options = TracerOptions(tool_args={"rocprofv3": (argument, "x")})
    with pytest.raises(UsageError, match=re.escape(f"--tool-arg rocprofv3:{argument}")) as caught:
        planned("7.0", "rocprofv3", options)
    assert way_out in caught.value.hint


def test_one_list_of_counters_may_be_passed_on_and_no_second() -> None:
    one = TracerOptions(tool_args={"rocprofv3": ("--pmc", "SQ_WAVES")})
    assert "--pmc SQ_WAVES" in words(planned("7.13", "rocprofv3", one))
    two = TracerOptions(tool_args={"rocprofv3": ("--pmc", "A", "--pmc", "B")})
    for options, own in ((one, ("GRBM_COUNT",)), (two, ())):
        with pytest.raises(UsageError, match="a second --pmc starts the command once more"):
            planned("7.13", "rocprofv3", options, counters=own)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--perfetto-buffer-fill-policy", "ring_buffer"),
        ("--perfetto-buffer-fill-policy=ring_buffer",),
    ],
)
def test_the_fill_policy_that_the_script_passes_over_reaches_the_tool(
    arguments: tuple[str, ...],
) -> None:
    options = TracerOptions(tool_args={"rocprofv3": arguments})
    for release in HERE:
        command = planned(release, "rocprofv3", options)
        assert command.env == {"ROCPROF_PERFETTO_BUFFER_FILL_POLICY": "ring_buffer"}
        assert " ".join(arguments) in words(command)


def test_a_tool_that_is_newer_than_the_newest_known_is_used_as_that_one_and_says_so() -> None:
    here = node("11.3")
    newest = planned("10.2", "rocprofv3", TracerOptions(kfd_trace=True))
    assert planned("11.3", "rocprofv3", TracerOptions(kfd_trace=True), environment=here) == newest
    (layer,) = named(("rocprofv3",))
    assert layer.extras(TRAIN, where("11.3", "rocprofv3")).notes == (
        (
            "rocprofv3 of ROCm 11.3 is newer than the newest known, that of ROCm 10.2: "
            "it is used as that one"
        ),
    )


def test_a_new_front_end_of_another_tool_is_never_taken_for_an_old_one() -> None:
    """`rocsys` was rocprofv2's name, and is rocprof-sys's since ROCm 10.2."""
    programs = {
        program.name
        for layer in named(("rocprofv3", "rocprof", "rocprof-sys"))
        for program in layer.about.programs
    }
    assert "rocsys" not in programs
    assert "rocprofv2" not in programs
