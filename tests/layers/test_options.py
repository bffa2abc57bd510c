from __future__ import annotations

import pytest

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers.options import parse_counters
from profharness.layers.rocprofv3 import Rocprofv3Layer
from profharness.layers.torch import TorchLayer
from profharness.options.request import Request
from profharness.options.settings import from_mapping

from .places import where


def request(**settings: object) -> Request:
    return from_mapping({"command": ("python", "t.py"), **settings}, "the command line")


def test_counters_part_at_blanks_and_commas() -> None:
    assert parse_counters(["A B,C", " A, D "]) == ("A", "B", "C", "D")
    assert request(profile="rocprofv3", pmc="SQ_WAVES,GRBM_COUNT").tracer.pmc == (
        "SQ_WAVES",
        "GRBM_COUNT",
    )
    assert request(profile="rocprofv3", pmc=["SQ_WAVES", "GRBM_COUNT"]).tracer.pmc == (
        "SQ_WAVES",
        "GRBM_COUNT",
    )


def test_what_torchs_profiler_also_records_reaches_its_layer_and_its_hooks() -> None:
    asked = request(profile="torch,rocprofv3", stacks=True, hip_trace=True).tracer
    assert (asked.stacks, asked.profile_memory) == (True, False)
    command = Command(("python", "t.py"))
    of_torch = TorchLayer().prepare(command, where("6.4", "torch", asked)).env
    assert of_torch["PROFHARNESS_STACKS"] == "1"
    assert "PROFHARNESS_PROFILE_MEMORY" not in of_torch
    assert "PROFHARNESS_HOST_SAMPLES" not in of_torch
    rarely = request(profile="torch", host_samples="20").tracer
    asked_for = TorchLayer().prepare(command, where("6.4", "torch", rarely)).env
    assert asked_for["PROFHARNESS_HOST_SAMPLES"] == "20"
    of_tracer = Rocprofv3Layer().prepare(command, where("6.4", "rocprofv3", asked))
    assert "PROFHARNESS_STACKS" not in of_tracer.env
    assert not any("stack" in word for word in of_tracer.argv)


def test_tool_arguments_go_to_their_layer_in_order() -> None:
    options = request(
        profile="rocprofv3,torch", tool_arg=("rocprofv3:--log-level", "rocprofv3:info")
    ).tracer
    assert options.args_for("rocprofv3") == ("--log-level", "info")
    assert options.args_for("rocprof") == ()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"profile": "torch", "hip_trace": True}, "--profile rocprofv3"),
        ({"hip_trace": True}, "no AMD tracer was asked for"),
        ({"stacks": True}, "--stacks: no layer was asked for add --profile torch"),
        ({"profile": "rocprofv3", "stacks": True}, "rocprofv3 cannot do that add --profile torch"),
        (
            {"profile": "onnxruntime", "command": (), "profile_memory": True},
            "--profile-memory: onnxruntime cannot do that",
        ),
        ({"profile": "rocprof", "rccl_trace": True}, "rocprof cannot do that"),
        ({"profile": "torch", "host_samples": "often"}, "write a number up to 1000, or off"),
        ({"profile": "torch", "host_samples": "0"}, "no number of samples per second"),
        ({"profile": "rocprof-sys", "pmc": "SQ_WAVES"}, "--profile rocprofv3"),
        ({"profile": "rocprofv3", "kernel_include_regex": "gemm"}, "add --pmc"),
        (
            {"profile": "rocprofv3", "pmc": "A", "kernel_include_regex": "gemm("},
            "regular expression",
        ),
        ({"profile": "rocprofv3", "pmc": "A", "kernel_iteration_range": "late"}, "10-20"),
        ({"profile": "rocprof-sys", "rocprof_sys_mode": "instrument"}, "sample"),
        ({"profile": "rocprofv3", "tool_arg": ("rocprofv9:--x",)}, "known layers"),
        ({"profile": "rocprofv3", "tool_arg": ("rocprof:--x",)}, "was not asked for"),
        ({"profile": "torch", "tool_arg": ("torch:--x",)}, "no tool with a command line"),
        ({"profile": "rocprofv3", "tool_arg": ("--log-level",)}, "LAYER:ARG"),
        ({"profile": "rocprofv3", "exit_limit": 0.0}, "--exit-limit"),
        ({"ranks": 0}, "--ranks"),
        ({"ranks": 2, "command": ()}, "a scan is one process"),
    ],
)
def test_what_nobody_can_honour_is_a_usage_error(settings: dict[str, object], words: str) -> None:
    with pytest.raises(UsageError) as caught:
        request(**settings)
    assert words in f"{caught.value.message} {caught.value.hint}"
