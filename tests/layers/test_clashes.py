"""Clashes told before they happen: each situation, and its neighbours in which nothing is said."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import msgspec
import pytest

from profharness import layers
from profharness.findings import Finding, finding
from profharness.layers.clashes import Planned, clashes, losing_children, upheld
from profharness.node.probe import (
    AttachedProfiler,
    Device,
    DeviceFile,
    Environment,
    ForeignLock,
    Permissions,
    Profilers,
    Tool,
    TorchFiles,
)

BIN = "/opt/rocm-7.2.0/bin"
CORE = "/venv/lib/python3.12/site-packages/_rocm_sdk_core/lib/librocprofiler-sdk.so.1.3.2"
SYSTEM = "/opt/rocm-7.2.0/lib/librocprofiler-sdk.so.1.1.0"
IN_TORCH = "/venv/lib/python3.12/site-packages/torch/lib/librocprofiler-sdk.so"
V3_ATTACHED = AttachedProfiler("LD_PRELOAD", "librocprofiler-sdk-tool.so", "rocprofv3")
NSYS_ATTACHED = AttachedProfiler("CUDA_INJECTION64_PATH", "libToolsInjection64.so", "nsys")


def node(
    release: str = "7.2.0", *, torch: str = "2.13.0+rocm7.2", kfd: bool = True, **facts: Any
) -> Environment:
    """A node with AMD devices and the tools of a release, which says nothing else."""
    own = {"rocprofv3": Tool(f"{BIN}/rocprofv3", "", release)}
    own |= {
        name: Tool(f"{BIN}/{name}", "", release)
        for name in ("rocprof-compute", "rocprof-sys-sample", "rocprof")
    }
    files = (DeviceFile("/dev/kfd"),) if kfd else ()
    return Environment(
        devices=(Device(index=0, kind="rocm", architecture="gfx942"),),
        tools=own,
        rocm_version=release,
        packages={"torch": torch},
        permissions=Permissions(files=files),
        profilers=Profilers(**facts),
    )


def told(
    environment: Environment,
    *names: str,
    torch: Literal["yes", "maybe", "no"] = "maybe",
    words: Sequence[str] | None = (),
) -> list[tuple[str, str]]:
    return [
        (found.id, found.severity)
        for found in findings(environment, *names, torch=torch, words=words)
    ]


def findings(
    environment: Environment,
    *names: str,
    torch: Literal["yes", "maybe", "no"] = "maybe",
    words: Sequence[str] | None = (),
) -> tuple[Finding, ...]:
    planned = Planned(layers.named(names), torch, words)
    return tuple(clash.finding for clash in clashes(environment, planned))


@pytest.mark.parametrize("name", [about.name for about in layers.descriptions()])
@pytest.mark.parametrize("release", ["6.2.0", "6.4.1", "7.2.0", "7.2.4", "7.13", "10.1"])
def test_a_node_in_order_has_none(name: str, release: str) -> None:
    for torch in ("2.9.1+rocm6.4", "2.13.0+rocm7.2", "2.13.0+cpu", ""):
        assert told(node(release, torch=torch, tool_sdk=SYSTEM), name, torch="yes") == []


def test_a_profiler_that_is_attached_already() -> None:
    attached = node(attached=(V3_ATTACHED,))
    for name in ("torch", "rocprofv3", "rocprof", "rocprof-sys", "rocprof-compute"):
        assert told(attached, name) == [("profiler-attached", "error")]
    (found,) = findings(attached, "torch", "rocprofv3")
    assert "LD_PRELOAD names librocprofiler-sdk-tool.so" in found.message
    assert "beside it torch and rocprofv3 will record nothing" in found.message
    assert "unset LD_PRELOAD" in found.advice
    # without a layer its costs are in the figures; a layer that needs not its place too
    assert told(attached) == [("profiler-attached", "warning")]
    assert told(attached, "onnxruntime") == [("profiler-attached", "warning")]
    # a doctor only looks
    assert told(attached, "torch", words=None) == [("profiler-attached", "warning")]


def test_an_attached_profiler_is_told_once_and_by_its_devices() -> None:
    twice = node(
        attached=(V3_ATTACHED, msgspec.structs.replace(V3_ATTACHED, variable="ROCP_TOOL_LIBRARIES"))
    )
    assert told(twice, "torch") == [("profiler-attached", "error")]
    # NVIDIA's profiler does not keep AMD's tools from recording, nor the reverse
    assert told(node(attached=(NSYS_ATTACHED,)), "torch") == [("profiler-attached", "warning")]
    cuda = msgspec.structs.replace(
        node(attached=(NSYS_ATTACHED,), torch="2.9.1+cu128"),
        devices=(Device(index=0, kind="cuda", architecture="sm_90"),),
    )
    assert told(cuda, "torch") == [("profiler-attached", "error")]


@pytest.mark.parametrize(
    ("name", "release", "sure"),
    [
        ("rocprofv3", "7.2.0", True),
        ("rocprofv3", "6.4.1", True),
        ("rocprof-sys", "7.2.0", True),
        ("rocprof-compute", "7.2.0", True),
        ("rocprof-sys", "6.3.0", False),  # it recorded by roctracer then
        ("rocprof", "7.2.0", False),
        ("amd-log", "7.2.0", False),
        ("torch", "7.2.0", False),
    ],
)
def test_two_copies_of_the_profilers_library(name: str, release: str, sure: bool) -> None:
    two = with_torch(node(release, tool_sdk=SYSTEM), sdk=IN_TORCH)
    assert told(two, name, torch="yes") == ([("mixed-rocm", "error")] if sure else [])
    assert told(two, name, torch="maybe") == ([("mixed-rocm", "warning")] if sure else [])
    assert told(two, name, torch="no") == []
    assert told(with_torch(two, sdk=SYSTEM), name, torch="yes") == []
    assert told(with_torch(two, sdk=""), name, torch="yes") == []


def with_torch(environment: Environment, **facts: str) -> Environment:
    profilers = msgspec.structs.replace(environment.profilers, torch=TorchFiles(**facts))
    return msgspec.structs.replace(environment, profilers=profilers)


def test_both_copies_are_named_with_the_way_out() -> None:
    (found,) = findings(with_torch(node(tool_sdk=SYSTEM), sdk=CORE), "rocprofv3", torch="yes")
    assert SYSTEM in found.message
    assert CORE in found.message
    assert "here is ROCm 7.2.0" in found.advice
    assert "_rocm_sdk_core/bin" in found.advice


@pytest.mark.parametrize(
    ("release", "name", "is_told"),
    [
        ("7.12", "rocprofv3", False),
        ("7.2.4", "rocprofv3", False),
        ("7.13", "rocprofv3", True),
        ("10.2", "rocprof-sys", True),
        ("10.0", "rocprof-compute", True),
        ("10.0", "torch", False),
    ],
)
def test_a_register_library_that_was_inherited(release: str, name: str, is_told: bool) -> None:
    inherited = node(release, register_library=SYSTEM)
    assert told(inherited, name) == ([("known-fault", "warning")] if is_told else [])
    if is_told:
        (found,) = findings(inherited, name)
        assert "env -u ROCPROFILER_REGISTER_LIBRARY" in found.advice


@pytest.mark.parametrize(
    ("torch", "files", "release", "is_told"),
    [
        ("2.9.1+rocm7.2.1.lw.git1a2b", {"roctracer": "yes"}, "7.2.0", True),
        ("2.11.0+rocm7.2.1", {}, "7.2.1", True),
        ("2.12.0+rocm7.2.1", {}, "7.2.1", False),  # records by rocprofiler-sdk
        ("2.9.1+rocm7.2", {}, "7.2.1", True),  # loads the one that is installed
        ("2.9.1+rocm7.2", {"roctracer": "yes"}, "7.2.1", False),  # of which release is unknown
        ("2.9.1+rocm7.2", {"sdk": IN_TORCH}, "7.2.1", False),
        ("2.9.1+rocm7.2", {}, "7.2.2", False),
        ("2.9.1+rocm7.2", {}, "7.2.12", False),
        ("2.9.1+rocm6.4", {"roctracer": "yes"}, "7.2.1", False),
        ("2.9.1+cpu", {}, "7.2.1", False),
    ],
)
def test_the_roctracer_that_loses_kernels(
    torch: str, files: dict[str, str], release: str, is_told: bool
) -> None:
    here = with_torch(node(release, torch=torch), **files)
    assert told(here, "torch") == ([("known-fault", "warning")] if is_told else [])
    assert told(here, "amd-log") == []


@pytest.mark.parametrize(
    ("torch", "kfd", "sdk", "is_told"),
    [
        ("2.13.0+rocm7.2", False, IN_TORCH, True),
        ("2.13.0+rocm7.2", True, IN_TORCH, False),
        ("2.13.0+rocm7.2", False, "", False),
        ("2.12.0+rocm7.2", False, IN_TORCH, False),
        ("2.13.0+rocm7.13", False, IN_TORCH, False),
        ("2.13.0+cu130", False, "", False),
    ],
)
def test_an_import_that_hangs_without_the_device_file(
    torch: str, kfd: bool, sdk: str, is_told: bool
) -> None:
    here = with_torch(node(torch=torch, kfd=kfd), sdk=sdk)
    assert told(here, torch="yes") == ([("no-device-access", "error")] if is_told else [])
    assert told(here, torch="maybe") == ([("no-device-access", "warning")] if is_told else [])
    assert told(here, torch="no") == []


def test_a_lock_of_another_user() -> None:
    lock = ForeignLock("/tmp/rocprof-compute-benchmark/gpu0.lock", "ada")
    here = node("10.0", locks=(lock,))
    assert told(here, "rocprof-compute") == [("known-fault", "warning")]
    assert told(here, "rocprof-compute", words=None) == [("known-fault", "warning")]
    assert "have ada (or root) remove it" in findings(here, "rocprof-compute")[0].advice
    # no benchmark, no waiting; and releases before took no lock
    assert told(here, "rocprof-compute", words=("rocprof-compute", "--no-roof")) == []
    assert told(node("7.14", locks=(lock,)), "rocprof-compute") == []
    assert told(here, "rocprofv3") == []


def test_the_gravest_stands_first() -> None:
    here = with_torch(
        node("10.0", tool_sdk=SYSTEM, register_library=SYSTEM, attached=(V3_ATTACHED,)), sdk=CORE
    )
    assert told(here, "rocprofv3", torch="maybe") == [
        ("profiler-attached", "error"),
        ("mixed-rocm", "warning"),
        ("known-fault", "warning"),
    ]


def test_what_a_run_disproved_does_not_stay() -> None:
    here = with_torch(
        node("10.0", tool_sdk=SYSTEM, register_library=SYSTEM, attached=(V3_ATTACHED,)), sdk=CORE
    )
    told_before = clashes(here, Planned(layers.named(("rocprofv3",)), "maybe", ()))
    first = [clash.finding for clash in told_before]
    drift = finding("drift", "the repeated points differ")
    recorded = upheld([*first, drift], told_before)
    # that another profiler is there still costs time
    assert [(found.id, found.severity) for found in recorded] == [
        ("profiler-attached", "warning"),
        ("drift", "warning"),
    ]
    assert "what it costs is in all times" in recorded[0].message
    empty = finding("empty-trace", "rocprofv3 wrote 1 file but recorded no kernel")
    assert upheld([*first, empty], told_before) == (*first, empty)
    # a pass's own finding of the same kind upholds them too
    own = finding("mixed-rocm", "rocprofv3: two copies were loaded")
    assert upheld([*first, own], told_before) == (*first, own)
    assert upheld([drift], ()) == (drift,)


@pytest.mark.parametrize(
    ("release", "name", "sdk", "is_losing"),
    [
        ("7.13", "rocprofv3", CORE, True),
        ("10.1", "rocprof-sys", CORE, True),
        ("7.12", "rocprofv3", CORE, False),
        ("7.2.4", "rocprofv3", CORE, False),
        ("7.13", "rocprofv3", IN_TORCH, False),  # that torch names nothing to its children
        ("7.13", "torch", CORE, False),
    ],
)
def test_software_whose_children_record_nothing(
    release: str, name: str, sdk: str, is_losing: bool
) -> None:
    (layer,) = layers.named((name,))
    said = losing_children(layer, with_torch(node(release), sdk=sdk))
    assert bool(said) == is_losing
    assert not is_losing or f"with ROCm {release} " in said
