"""Command lines and environments of rocprof, rocprof-sys and amd-log, per ROCm release."""

from __future__ import annotations

from pathlib import Path

import pytest

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import members, named
from profharness.layers.options import TracerOptions
from profharness.rundir.older_layers import OLDER
from tests.layers.places import TRAIN, node, planned, where, words

RECORDER = "python /wrappers/status.py /run/control"


def test_runs_of_older_versions_are_read_by_the_facts_of_their_layers() -> None:
    known = [layer for layer in members() if layer.name in OLDER]
    assert {layer.name: layer.about.facts for layer in known} == OLDER
    assert [layer.name for layer in known] == list(OLDER)
    assert [layer.name for layer in known if layer.about.perturbing] == [
        "rocprof-compute",
        "amd-log",
    ]


@pytest.mark.parametrize("release", ["5.7", "6.1", "6.2", "6.3", "6.4"])
@pytest.mark.parametrize(
    ("options", "chosen"),
    [
        (TracerOptions(), "--stats --timestamp on --hip-trace"),
        (TracerOptions(hip_trace=True), "--stats --timestamp on --hip-trace"),
        (
            TracerOptions(hsa_trace=True, marker_trace=True),
            "--stats --timestamp on --hip-trace --hsa-trace --roctx-trace",
        ),
        (TracerOptions(sys_trace=True), "--stats --timestamp on --sys-trace --roctx-trace"),
    ],
)
def test_rocprof_takes_its_command_without_a_separator(
    release: str, options: TracerOptions, chosen: str
) -> None:
    command = planned(release, "rocprof", options)
    expected = (
        f"rocprof {chosen} -o /run/artifacts/rocprof/node1/0/rocprof/results.csv "
        f"{RECORDER}/rocprof/status -- python train.py --epochs 1"
    )
    assert words(command) == expected
    assert "--" not in command.argv[: command.argv.index("python")]


def test_rocprof_counts_with_an_input_file_and_hides_nothing_from_its_shell() -> None:
    (layer,) = named(("rocprof",))
    place = where("6.1", "rocprof", counters=("SQ_WAVES", "FETCH_SIZE"), pass_name="rocprof-pmc1")
    folder = Path("/run/artifacts/rocprof/node1/0/rocprof-pmc1")
    assert layer.extras(TRAIN, place).files == (
        (folder / "input.txt", "pmc: SQ_WAVES FETCH_SIZE\n"),
    )
    assert layer.prepare(TRAIN, place).argv[:7] == (
        "rocprof",
        "-i",
        str(folder / "input.txt"),
        "--timestamp",
        "on",
        "-o",
        str(folder / "results.csv"),
    )
    hazard = Command(("python", "-c", "print('$HOME `id`')"))
    command = planned("6.1", "rocprof", command=hazard)
    assert not any("$" in word for word in command.argv)
    assert command.env["PROFHARNESS_RECORDED_ARGV"] == '["python", "-c", "print(\'$HOME `id`\')"]'


@pytest.mark.parametrize(
    ("release", "program", "prefix"),
    [
        ("5.7", "omnitrace-sample", "OMNITRACE_"),
        ("6.1", "omnitrace-sample", "OMNITRACE_"),
        ("6.2", "omnitrace-sample", "OMNITRACE_"),
        ("6.3", "rocprof-sys-sample", "ROCPROFSYS_"),
        ("6.4", "rocprof-sys-sample", "ROCPROFSYS_"),
        ("7.0", "rocprof-sys-sample", "ROCPROFSYS_"),
    ],
)
def test_rocprof_sys_goes_by_its_old_name_before_rocm_6_3(
    release: str, program: str, prefix: str
) -> None:
    command = planned(release, "rocprof-sys")
    assert (
        words(command)
        == f"{program} --trace --host --device --profile -- python train.py --epochs 1"
    )
    folder = "/run/artifacts/rocprof-sys/node1/0/rocprof-sys"
    assert command.env == {
        f"{prefix}TRACE": "ON",
        f"{prefix}PROFILE": "ON",
        f"{prefix}USE_PID": "ON",
        f"{prefix}TIME_OUTPUT": "OFF",
        f"{prefix}OUTPUT_PATH": folder,
    }


def test_rocprof_sys_options_and_modes() -> None:
    domains = planned("7.0", "rocprof-sys", TracerOptions(hsa_trace=True, rccl_trace=True)).env[
        "ROCPROFSYS_ROCM_DOMAINS"
    ]
    assert (
        domains
        == "hip_runtime_api,marker_api,kernel_dispatch,memory_copy,scratch_memory,hsa_api,rccl_api"
    )
    old = planned("6.3", "rocprof-sys", TracerOptions(hsa_trace=True, rccl_trace=True)).env
    assert (old["ROCPROFSYS_ROCTRACER_HSA_API"], old["ROCPROFSYS_USE_RCCLP"]) == ("ON", "ON")
    assert words(planned("6.4", "rocprof-sys", TracerOptions(rocprof_sys_mode="run"))).startswith(
        "rocprof-sys-run --trace --host --device -- python"
    )
    python = planned("6.4", "rocprof-sys", TracerOptions(rocprof_sys_mode="python"))
    assert words(python) == "rocprof-sys-python -- train.py --epochs 1"
    assert python.env["PYTHON_EXECUTABLE"] == "python"
    with pytest.raises(UsageError, match="python SCRIPT"):
        planned(
            "6.4",
            "rocprof-sys",
            TracerOptions(rocprof_sys_mode="python"),
            command=Command(("./a.out",)),
        )
    window = planned("6.4", "rocprof-sys", capture="after=30s,for=1.5s").env
    assert (window["ROCPROFSYS_TRACE_DELAY"], window["ROCPROFSYS_TRACE_DURATION"]) == ("30", "1.5")


@pytest.mark.parametrize(
    ("release", "level"), [("5.7", "4"), ("6.4", "4"), ("7.0", "5"), ("", "5")]
)
def test_amd_log_sets_the_runtimes_variables(release: str, level: str) -> None:
    command = planned(release, "amd-log")
    folder = "/run/artifacts/amd-log/node1/0/amd-log"
    assert words(command) == f"python /wrappers/stamp.py {folder} -- python train.py --epochs 1"
    assert command.env == {
        "AMD_LOG_LEVEL": level,
        "AMD_LOG_MASK": "0x10089",
        "AMD_LOG_LEVEL_FILE": f"{folder}/amdlog",
        "MIOPEN_ENABLE_LOGGING": "1",
        "MIOPEN_ENABLE_LOGGING_CMD": "1",
        "MIOPEN_LOG_LEVEL": "6",
    }
    assert (
        planned(release, "amd-log", TracerOptions(tool_args={"amd-log": ("AMD_LOG_LEVEL=3",)})).env[
            "AMD_LOG_LEVEL"
        ]
        == "3"
    )
    with pytest.raises(UsageError, match="NAME=VALUE"):
        planned(release, "amd-log", TracerOptions(tool_args={"amd-log": ("--level",)}))


@pytest.mark.parametrize("layer", ["rocprof", "rocprof-compute", "amd-log"])
def test_layers_without_a_window_of_time_say_so(layer: str) -> None:
    with pytest.raises(UsageError, match="--capture after=1s"):
        planned("6.4", layer, capture="after=1s,for=2s")
    planned("6.4", layer, capture="all")


@pytest.mark.parametrize(
    "layer", ["rocprofv3", "rocprof", "rocprof-sys", "rocprof-compute", "amd-log"]
)
def test_a_missing_tool_says_how_to_go_on_and_can_still_be_planned(layer: str) -> None:
    (tool,) = named((layer,))
    state = tool.probe(node(""))
    assert not state.available
    assert "--profile" in state.why.partition("\n")[2]
    assert planned("", layer).argv
    assert tool.probe(node("6.4")).available


def test_two_executions_of_one_pass_never_share_a_file() -> None:
    first = TRAIN.with_env({"PROFHARNESS_SPEC": "/run/control/x/spec-torch.json"})
    again = first.with_env({"PROFHARNESS_FIRST_POINT": "torch-b16"})
    other = TRAIN.with_env({"PROFHARNESS_SPEC": "/run/control/x/spec-onnxruntime.json"})
    for layer in ("rocprof", "rocprof-compute", "amd-log"):
        lines = {
            words(planned("6.4", layer, command=command, is_worker=True))
            for command in (first, again, other)
        }
        assert len(lines) == 3
