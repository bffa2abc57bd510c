from __future__ import annotations

from pathlib import Path

import pytest

from profharness.layers import collect, named
from profharness.layers.options import TracerOptions
from profharness.layers.rocprofv3 import Rocprofv3Layer
from tests.layers.places import TRAIN, node, planned, where, words

HIP = TracerOptions(hip_trace=True)
OUTPUT = "-d /run/artifacts/rocprofv3 -o %hostname%/%nid%/rocprofv3_%pid%"


@pytest.mark.parametrize(
    ("release", "options", "expected"),
    [
        (
            "6.2",
            HIP,
            (
                "rocprofv3 --kernel-trace --memory-copy-trace --hip-trace --marker-trace "
                f"--output-format csv json {OUTPUT} -- python train.py --epochs 1"
            ),
        ),
        (
            "6.3",
            HIP,
            (
                "rocprofv3 --kernel-trace --memory-copy-trace --hip-trace --marker-trace "
                f"--output-format csv json {OUTPUT} -- python train.py --epochs 1"
            ),
        ),
        (
            "6.4",
            HIP,
            (
                "rocprofv3 --kernel-trace --memory-copy-trace --hip-trace --marker-trace "
                f"--output-format csv json {OUTPUT} -- python train.py --epochs 1"
            ),
        ),
        (
            "7.0",
            HIP,
            (
                "rocprofv3 --kernel-trace --memory-copy-trace --hip-trace --marker-trace "
                f"--output-format rocpd {OUTPUT} -- python train.py --epochs 1"
            ),
        ),
        (
            "7.2",
            TracerOptions(),
            (
                "rocprofv3 --kernel-trace --memory-copy-trace --marker-trace --output-format rocpd "
                f"{OUTPUT} -- python train.py --epochs 1"
            ),
        ),
        (
            "7.0",
            TracerOptions(sys_trace=True, stats=True),
            (
                "rocprofv3 --kernel-trace --memory-copy-trace --sys-trace --stats --marker-trace "
                f"--output-format rocpd csv {OUTPUT} -- python train.py --epochs 1"
            ),
        ),
        (
            "6.3",
            TracerOptions(tool_args={"rocprofv3": ("--log-level", "info")}),
            (
                "rocprofv3 --kernel-trace --memory-copy-trace --marker-trace --output-format csv "
                f"json {OUTPUT} --log-level info -- python train.py --epochs 1"
            ),
        ),
    ],
)
def test_the_command_line_of_each_release(
    release: str, options: TracerOptions, expected: str
) -> None:
    command = planned(release, "rocprofv3", options)
    assert words(command) == expected
    assert command.env == {}


def test_counters_have_a_pass_of_their_own_and_an_input_file_before_rocm_6_3() -> None:
    counters = ("SQ_WAVES", "GRBM_COUNT")
    options = TracerOptions(
        hip_trace=True, pmc=counters, kernel_include_regex="gemm", kernel_iteration_range="[5-9]"
    )
    late = planned("7.0", "rocprofv3", options, counters=counters, pass_name="rocprofv3-pmc1")
    assert words(late) == (
        "rocprofv3 --kernel-trace --memory-copy-trace --pmc SQ_WAVES GRBM_COUNT "
        "--kernel-include-regex gemm --kernel-iteration-range [5-9]"
        " --output-format rocpd -d /run/artifacts/rocprofv3 -o "
        "%hostname%/%nid%/rocprofv3-pmc1_%pid% -- python train.py --epochs 1"
    )
    place = where(
        "6.2",
        "rocprofv3",
        TracerOptions(pmc=counters),
        counters=counters,
        pass_name="rocprofv3-pmc1",
    )
    early = Rocprofv3Layer().prepare(TRAIN, place)
    ((path, text),) = Rocprofv3Layer().extras(TRAIN, place).files
    assert text == "pmc: SQ_WAVES GRBM_COUNT\n"
    assert (
        early.argv[early.argv.index("-i") + 1]
        == str(path)
        == "/run/control/rocprofv3-pmc1/rocprofv3-pmc1.counters.txt"
    )
    assert "--pmc" not in early.argv


def test_ranks_and_workers_write_under_names_of_their_own() -> None:
    assert "%hostname%/3/rocprofv3_%pid%" in planned("7.0", "rocprofv3", rank=3).argv
    worker = TRAIN.with_env(
        {
            "PROFHARNESS_SPEC": "/run/control/rocprofv3/spec-torch.json",
            "PROFHARNESS_FIRST_POINT": "torch-b4",
        }
    )
    assert (
        "%hostname%/%nid%/rocprofv3.torch.torch-b4_%pid%"
        in planned("7.0", "rocprofv3", command=worker, is_worker=True).argv
    )


@pytest.mark.parametrize("release", ["", "5.7", "6.1"])
def test_before_rocm_6_2_it_is_missing_and_a_dry_run_plans_for_the_newest(release: str) -> None:
    (layer,) = named(("rocprofv3",))
    state = layer.probe(node(release))
    assert not state.available
    here = f"here is ROCm {release}.1" if release else "no ROCm was found here"
    older = (
        "--profile rocprof (kernel statistics) or " if release else ""
    )  # without ROCm that one is missing too
    assert state.why.splitlines() == [
        f"it came with ROCm 6.2; {here}",
        f"use {older}--profile torch; `profharness doctor --try` shows what works here",
    ]
    place = where(release, "rocprofv3")
    assert "rocpd" in layer.prepare(TRAIN, place).argv
    assert layer.extras(TRAIN, place).notes == (
        "rocprofv3 is not on this node: planned for ROCm 10.2, the newest known",
    )


def make(path: Path, text: str = "x") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_of_each_process_the_best_file_is_read_and_the_others_are_kept(tmp_path: Path) -> None:
    place = where("6.3", "rocprofv3", run_root=tmp_path)
    folder = tmp_path / "artifacts" / "rocprofv3" / "node1"
    for kind in ("kernel_trace.csv", "hip_api_trace.csv", "agent_info.csv", "kernel_stats.csv"):
        make(folder / "100" / f"rocprofv3_100_{kind}")
        make(folder / "101" / f"rocprofv3_101_{kind}")
    make(folder / "100" / "rocprofv3_100_results.json", '{"rocprofiler-sdk-tool": []}')
    make(folder / "101" / "rocprofv3_101_results.json", '{"rocprofiler-sdk-tool": [')  # cut off
    make(folder / "7" / "rocprofv3_102_results.db")
    make(folder / "100" / "rocprofv3-pmc1_100_kernel_trace.csv")
    make(
        tmp_path
        / "artifacts"
        / "rocprofv3"
        / "None1"
        / "node1"
        / "103"
        / "rocprofv3_103_counter_collection.csv"
    )
    found = collect(Rocprofv3Layer(), place, frozenset())
    read = {
        (artifact.pid, Path(artifact.path).name, artifact.format, artifact.rank, artifact.host)
        for artifact in found
        if not artifact.aside
    }
    assert read == {
        (100, "rocprofv3_100_results.json", "rocprofv3-json", None, "node1"),
        (101, "rocprofv3_101_kernel_trace.csv", "rocprofv3-csv", None, "node1"),
        (101, "rocprofv3_101_hip_api_trace.csv", "rocprofv3-csv", None, "node1"),
        (102, "rocprofv3_102_results.db", "rocpd", 7, "node1"),
        (103, "rocprofv3_103_counter_collection.csv", "rocprofv3-csv", None, "node1"),
    }
    assert len(found) == 12
    assert collect(Rocprofv3Layer(), place, frozenset(artifact.path for artifact in found)) == ()
