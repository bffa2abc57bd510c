"""The sentences of known faults: what is said of a pass that failed, and nothing of one that did
not.
"""

from __future__ import annotations

import re

import pytest

from profharness.findings import CATALOGUE
from profharness.layers import known_faults
from profharness.layers.contract import Sign
from profharness.supervise.diagnosis import Evidence, LeftFile, PassEnd, judge

WITH_KERNELS = (LeftFile("a.db", 100, kernels=True),)
WITHOUT = (LeftFile("a.db", 100, kernels=False),)
SAID = {
    "E rocprofiler-sdk tool.cpp:1987] ROCPROFILER_STATUS_ERROR_CONFIGURATION_LOCKED :: "
    "Configuration request occurred outside of valid rocprofiler configuration period": (
        "mixed-rocm",
        "_rocm_sdk_core/bin",
    ),
    ": CommandLine Error: Option 'spirv-expand-step' registered more than once!": (
        "mixed-rocm",
        "one ROCm",
    ),
    "LLVM ERROR: inconsistency in registered CommandLine options": ("mixed-rocm", "one ROCm"),
    "W register.cpp:88] ROCPROFILER_REGISTER_LIBRARY is already set to '/a/librocprofiler-sdk.so'": (
        "mixed-rocm",
        "unset ROCPROFILER_REGISTER_LIBRARY",
    ),
    "sysfs nodes path '/sys/class/kfd/kfd/topology/nodes' does not exist": (
        "no-device-access",
        "--device=/dev/kfd",
    ),
    "Async signal handler still waiting on signal 0x7f2a4c0": ("profiler-hung", "--profile torch"),
    "python: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.33' not found "
    "(required by /.singularity.d/libs/libnuma.so.1)": ("mixed-rocm", "--container-gpu none"),
    "rocBLAS error: Cannot read /opt/rocm/lib/rocblas/library/TensileLibrary.dat": (
        "mixed-rocm",
        "--container-gpu none",
    ),
    "rocprof-compute: --torch-trace is an experimental feature. Use --experimental to enable it.": (
        "known-fault",
        "rocprof-compute:--experimental",
    ),
    "ROCPROF_OUTPUT_PATH environment variable must be set": (
        "known-fault",
        "the program itself",
    ),
    "YAML package is not installed": ("known-fault", "JSON"),
}


@pytest.mark.parametrize("said", SAID)
def test_a_fault_is_told_with_its_way_out(said: str) -> None:
    kind, way_out = SAID[said]
    evidence = Evidence("rocprofv3", PassEnd(134), said=f"epoch 1\n{said}\nepoch 2", files=WITHOUT)
    told = [found for found in judge(evidence) if found.id == kind]
    assert [said in found.message for found in told] == [True]
    assert way_out in told[0].advice
    assert told[0].advice != CATALOGUE[kind].advice


@pytest.mark.parametrize("said", [said for said in SAID if "registered more" not in said])
def test_a_pass_that_recorded_has_no_fault(said: str) -> None:
    """Also where the workload itself failed."""
    for status in (0, 1):
        ended = PassEnd(status, own_status=status)
        assert judge(Evidence("rocprofv3", ended, said=said, files=WITH_KERNELS)) == ()


@pytest.mark.parametrize("sign", known_faults.SIGNS, ids=lambda sign: sign.pattern[:24])
def test_every_sign_has_a_sentence_here_and_a_way_out(sign: Sign) -> None:
    assert any(
        re.search(sign.pattern, said, re.IGNORECASE) and SAID[said][0] == sign.finding
        for said in SAID
    )
    assert sign.finding in CATALOGUE
    assert sign.advice


def test_what_stood_still_until_the_user_ended_it() -> None:
    ended = PassEnd(130, interrupted=True)
    hung = "Async signal handler still waiting on signal 0x7f2a4c0"
    (found,) = judge(Evidence("rocprofv3", ended, said=hung))
    assert (found.id, "stands still" in found.message) == ("profiler-hung", True)
    # a run that was ended for its own reasons, and one that recorded
    assert judge(Evidence("rocprofv3", ended, said="YAML package is not installed")) == ()
    assert judge(Evidence("rocprofv3", ended, said=hung, files=WITH_KERNELS)) == ()


def test_a_refused_option_has_its_way_out() -> None:
    said = (
        "usage: rocprof-compute [options]\nrocprof-compute: error: --torch-trace is an "
        "experimental feature. Use --experimental to enable it."
    )
    refused, fault = judge(Evidence("rocprof-compute", PassEnd(2), said=said))
    assert "did not start the workload" in refused.message
    assert (fault.id, "--experimental" in fault.advice) == ("known-fault", True)


def test_children_that_recorded_nothing() -> None:
    losing = "with ROCm 7.13 children record nothing"
    silent = (*WITH_KERNELS, LeftFile("b.db", 101, kernels=False))
    (found,) = judge(
        Evidence("rocprofv3", PassEnd(0), files=silent, stepped=(100, 101, 102), losing=losing)
    )
    assert (found.id, found.severity, found.figures) == ("known-fault", "warning", {"missed": 2})
    assert found.message == (
        "rocprofv3 recorded kernels of process 100, and none of processes 101, 102, "
        f"which ran steps: {losing}"
    )
    assert "os.environ.pop" in found.advice
    for quiet in (
        Evidence("rocprofv3", PassEnd(0), files=silent, stepped=(100, 101)),  # no such software
        Evidence("rocprofv3", PassEnd(0), files=silent, stepped=(100,), losing=losing),
        Evidence(
            "rocprofv3",
            PassEnd(0),
            files=(*WITH_KERNELS, LeftFile("b.db", 101, kernels=None)),  # nobody looked
            stepped=(100, 101),
            losing=losing,
        ),
    ):
        assert judge(quiet) == ()
