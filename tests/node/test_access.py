"""What is closed to a user, said with its owner and the way out, from facts as the probe gives
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from profharness.launchers import Outcome
from profharness.layers import named
from profharness.node import access
from profharness.node.access import AccessState
from profharness.node.probe import Device, DeviceFile, Environment, Permissions, Tool
from profharness.supervise.pass_plan import PassPlan
from profharness.supervise.tool import ToolPass
from tests.layers.places import node, where

KFD = DeviceFile("/dev/kfd", error="EACCES", group="render", gid=109, mode="0660")
OPEN_KFD = DeviceFile("/dev/kfd", group="render", gid=109, mode="0660")
RENDER = DeviceFile(
    "/dev/dri/renderD128", error="EACCES", group="render", gid=109, mode="0660", vendor="0x1002"
)
AMD = (Device(index=0, kind="rocm", name="MI210"), Device(index=0, kind="cpu"))
REFUSED = "it belongs to the group render (mode 0660), and this user is in docker, users"


def facts(
    *files: DeviceFile,
    devices: tuple[Device, ...] = AMD,
    tools: tuple[str, ...] = (),
    container: str = "",
    slurm: dict[str, str] | None = None,
    **changes: Any,
) -> Environment:
    given: dict[str, Any] = {
        "files": files,
        "amdgpu": True,
        "groups": ("docker", "users"),
        "user_name": "ada",
        **changes,
    }
    return Environment(
        host="n1",
        devices=devices,
        tools={name: Tool(path=name) for name in tools},
        permissions=Permissions(**given),
        container=container,
        slurm=slurm or {},
    )


def test_a_user_outside_of_the_group_is_told_the_group_and_the_command() -> None:
    kfd, render = access.states(facts(KFD, RENDER))
    assert kfd == AccessState(
        "/dev/kfd",
        available=False,
        why=f"/dev/kfd is there, but this user may not open it: {REFUSED}",
        fix="`sudo usermod -aG render ada`, then log in again; on a cluster ask its administrators",
        group="render",
    )
    assert (render.name, render.available, render.why) == (
        "/dev/dri/renderD128",
        False,
        f"/dev/dri/renderD128 is there, but this user may not open it: {REFUSED}",
    )
    assert access.closed(facts(KFD, RENDER)) == f"{kfd.why}; {kfd.fix}"
    assert access.closed(facts(OPEN_KFD, RENDER)) == f"{render.why}; {render.fix}"


def change(file: DeviceFile, **changes: Any) -> DeviceFile:
    return msgspec.structs.replace(file, **changes)


@pytest.mark.parametrize(
    ("found", "fix"),
    [
        (
            facts(change(KFD, listed=True)),
            (
                "render was given to this user after this session began: log in again, "
                "or `newgrp render`"
            ),
        ),
        (
            facts(KFD, tools=("srun",)),
            (
                "request a GPU from Slurm (srun --gpus=1 ...); if it is closed there too, "
                "ask the administrators for the group render"
            ),
        ),
        (facts(KFD, slurm={"SLURM_JOB_ID": "7"}), "ask the administrators for the group render"),
        (facts(KFD, container="docker"), "start the container with --group-add 109"),
        (
            facts(KFD, container="podman"),
            "start the container with --group-add keep-groups (as root: --group-add 109)",
        ),
        (
            facts(KFD, container="apptainer"),
            "`sudo usermod -aG render ada`, then log in again; on a cluster ask its administrators",
        ),
        (
            facts(change(KFD, group="root", gid=0, mode="0600")),
            (
                "the file's mode keeps users out: the administrators add a udev rule, "
                'such as KERNEL=="kfd", GROUP="render", MODE="0660"'
            ),
        ),
        (
            facts(change(KFD, mode="0600"), groups=("render",)),
            (
                "the file's mode keeps users out: the administrators add a udev rule, "
                'such as KERNEL=="kfd", GROUP="render", MODE="0660"'
            ),
        ),
        (
            facts(change(KFD, error="EPERM")),
            (
                "ask for the device where the job is started (a batch system's GPU option, "
                "a service's DeviceAllow)"
            ),
        ),
        (
            facts(change(KFD, error="EPERM"), slurm={"SLURM_JOB_ID": "7"}),
            "request a GPU from Slurm: sbatch or srun with --gpus=1 (or --gres=gpu:1)",
        ),
        (
            facts(change(KFD, error="EPERM"), container="docker"),
            "start it with --device=/dev/kfd --device=/dev/dri",
        ),
        (
            facts(change(KFD, error="ENXIO")),
            "the driver does not answer: `dmesg | grep -e amdgpu -e kfd` says why",
        ),
        (facts(container="apptainer"), "start it with apptainer exec --rocm"),
        (facts(container="docker"), "start it with --device=/dev/kfd --device=/dev/dri"),
        (
            facts(),
            (
                "the driver does not support this device for compute: "
                "`dmesg | grep -e amdgpu -e kfd` says why"
            ),
        ),
    ],
)
def test_who_can_open_it(found: Environment, fix: str) -> None:
    state = access.states(found)[0]
    assert (state.name, state.available, state.fix) == ("/dev/kfd", False, fix)


@pytest.mark.parametrize(
    ("found", "why"),
    [
        (
            facts(change(KFD, error="EPERM")),
            "/dev/kfd is there, but this job's control group forbids it",
        ),
        (facts(change(KFD, error="ENXIO")), "/dev/kfd is there, but cannot be opened (ENXIO)"),
        (
            facts(container="docker"),
            "/dev/kfd is not in this container, though the node has the amdgpu driver",
        ),
        (facts(), "/dev/kfd is absent, though the amdgpu driver is loaded"),
        (
            facts(change(KFD, error="EACCES"), groups=()),
            (
                "/dev/kfd is there, but this user may not open it: "
                "it belongs to the group render (mode 0660), and this user is in no group"
            ),
        ),
    ],
)
def test_why_it_is_closed(found: Environment, why: str) -> None:
    assert access.states(found)[0].why == why


def test_one_render_node_of_several_is_enough_for_a_job() -> None:
    own = change(RENDER, path="/dev/dri/renderD130", error="")
    others = (
        change(RENDER, error="EPERM"),
        change(RENDER, path="/dev/dri/renderD129", error="EPERM"),
    )
    found = facts(OPEN_KFD, *others, own)
    assert access.states(found)[1] == AccessState(
        "/dev/dri/renderD*", available=True, why="1 of 3 open: renderD130", group="render"
    )
    assert access.closed(found) == ""
    assert "control group forbids it" in access.closed(facts(OPEN_KFD, *others))


def test_the_render_nodes_of_other_vendors_count_for_nothing() -> None:
    other = change(RENDER, vendor="0x10de")
    assert access.states(facts(other, devices=AMD[1:], amdgpu=False)) == ()
    kfd, render = access.states(facts(OPEN_KFD, other))
    assert (kfd.available, render.available, render.why) == (
        True,
        False,
        "/dev/dri/renderD* is absent, though the amdgpu driver is loaded",
    )


def test_devices_that_a_control_group_hides_are_counted() -> None:
    found = facts(
        OPEN_KFD, change(RENDER, error=""), devices=AMD[1:], hidden_devices=4, tools=("srun",)
    )
    assert access.closed(found) == (
        "4 AMD devices are on this node, but hidden from this job; "
        "request a GPU from Slurm: sbatch or srun with --gpus=1 (or --gres=gpu:1)"
    )
    assert (
        access.closed(facts(OPEN_KFD, change(RENDER, error=""), hidden_devices=3)) == ""
    )  # it sees its own


def test_a_node_without_anything_of_amd_says_nothing_of_its_files() -> None:
    assert access.states(Environment()) == ()
    assert access.closed(Environment()) == ""
    assert (
        access.amd_warning(Environment())
        == "no AMD device is seen: the amdgpu driver is not loaded"
    )
    assert (
        access.amd_warning(facts(OPEN_KFD, change(RENDER, error=""), devices=()))
        == "no AMD device is seen"
    )
    assert access.amd_warning(facts(OPEN_KFD, change(RENDER, error=""))) == ""


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"perf_event_paranoid": 2},
            AccessState("perf_event", available=True, why="perf_event_paranoid is 2"),
        ),
        (
            {"perf_event_paranoid": 4, "perfmon": True},
            AccessState(
                "perf_event",
                available=True,
                why="perf_event_paranoid is 4, and this process has CAP_PERFMON",
            ),
        ),
        (
            {"perf_event_paranoid": 4},
            AccessState(
                "perf_event",
                available=False,
                why="perf_event_paranoid is 4",
                fix="`sudo sysctl kernel.perf_event_paranoid=2`, or CAP_PERFMON",
            ),
        ),
        (
            {"perf_event_paranoid": 3, "container": "docker"},
            AccessState(
                "perf_event",
                available=False,
                why="perf_event_paranoid is 3",
                fix="docker --cap-add=PERFMON",
            ),
        ),
    ],
)
def test_the_kernels_counters(changes: dict[str, Any], expected: AccessState) -> None:
    assert access.states(facts(devices=AMD[1:], **{"amdgpu": False, **changes})) == (expected,)


def with_facts(release: str, permissions: Permissions, **changes: Any) -> Environment:
    return msgspec.structs.replace(node(release, **changes), permissions=permissions)


def test_layers_warn_and_do_not_refuse_where_devices_are_closed() -> None:
    """The command may start its program elsewhere, or use no device at all."""
    shut = with_facts(
        "6.4",
        Permissions(
            files=(KFD,), amdgpu=True, groups=("users",), user_name="ada", perf_event_paranoid=4
        ),
    )
    free = with_facts(
        "6.4",
        Permissions(files=(OPEN_KFD, change(RENDER, error="")), amdgpu=True, perf_event_paranoid=1),
    )
    for layer in named(("rocprofv3", "rocprof", "rocprof-sys", "rocprof-compute", "amd-log")):
        state = layer.probe(shut)
        assert state.available
        assert state.why.splitlines()[0] == f"it is here, but {access.closed(shut)}"
        assert layer.probe(free).why == ""
    paranoid = (
        "perf_event_paranoid is 4: {}; `sudo sysctl kernel.perf_event_paranoid=2`, or CAP_PERFMON"
    )
    told = {
        layer.name: layer.probe(shut).why.splitlines()[1:]
        for layer in named(("rocprofv3", "rocprof-sys", "rocprof-compute"))
    }
    assert told == {
        "rocprofv3": [],
        "rocprof-sys": [paranoid.format("it records no hardware counters of the CPU (PAPI)")],
        "rocprof-compute": [
            paranoid.format("from ROCm 7.0.2 on its counters may include other programs' work")
        ],
    }


@pytest.mark.parametrize(
    ("version", "kind", "said"),
    [
        (
            "2.5.1+cpu",
            "rocm",
            "this build sees no AMD device: install torch's build for it (pytorch.org/get-started)",
        ),
        (
            "2.5.1+cu124",
            "rocm",
            "this build sees no AMD device: install torch's build for it (pytorch.org/get-started)",
        ),
        ("2.5.1+rocm6.2", "rocm", ""),
        ("2.5.1", "rocm", ""),
        ("2.5.1+cpu", "cpu", ""),
        (
            "2.5.1+cpu",
            "cuda",
            (
                "this build sees no NVIDIA device: install torch's build for it "
                "(pytorch.org/get-started)"
            ),
        ),
        ("2.5.1+cu124", "cuda", ""),
    ],
)
def test_a_build_of_torch_for_other_devices_is_pointed_out(
    version: str, kind: str, said: str
) -> None:
    (torch,) = named(("torch",))
    state = torch.probe(
        Environment(packages={"torch": version}, devices=(Device(index=0, kind=kind),))
    )
    assert (state.available, state.version, state.why) == (True, version, said)


def test_torch_for_rocm_needs_the_device_files_too() -> None:
    (torch,) = named(("torch",))
    found = msgspec.structs.replace(facts(KFD), packages={"torch": "2.5.1+rocm6.2"})
    assert torch.probe(found).why == access.closed(found)


@pytest.mark.parametrize(
    ("tools", "layer", "expected"),
    [
        ((), "rocprof-sys", "install rocprofiler-systems, or use --profile torch"),
        (
            ("rocprof",),
            "rocprof-sys",
            "install rocprofiler-systems, or use --profile rocprof or --profile torch",
        ),
        (
            ("rocprofv3", "rocprof"),
            "rocprof-sys",
            "install rocprofiler-systems, or use --profile rocprofv3 or --profile torch",
        ),
        (
            (),
            "rocprof-compute",
            (
                "install rocprofiler-compute and its requirements, "
                "or use --profile torch (kernels without counters)"
            ),
        ),
        (
            ("rocprof",),
            "rocprof-compute",
            (
                "install rocprofiler-compute and its requirements, "
                "or use --profile rocprof --pmc COUNTERS"
            ),
        ),
        (
            ("rocprofv3",),
            "rocprof-compute",
            (
                "install rocprofiler-compute and its requirements, "
                "or use --profile rocprofv3 --pmc COUNTERS"
            ),
        ),
        ((), "rocprof", "install rocprofiler-sdk, which brings rocprofv3, or use --profile torch"),
        (("rocprofv3",), "rocprof", "use --profile rocprofv3"),
        (
            (),
            "rocprofv3",
            (
                "install rocprofiler-sdk, or put ROCm's bin folder on the PATH; "
                "or use --profile torch; `profharness doctor --try` shows what works here"
            ),
        ),
    ],
)
def test_only_tools_that_are_here_are_advised(
    tools: tuple[str, ...], layer: str, expected: str
) -> None:
    (one,) = named((layer,))
    # the line of releases from 7.9 on has left rocprof out
    release = "7.9" if layer == "rocprof" else "7.0"
    state = one.probe(node(release, tools=tools))
    assert not state.available
    assert state.why.splitlines()[1] == expected


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (facts(KFD), ["no-device-access", "profiler-failed"]),
        (facts(OPEN_KFD, change(RENDER, error="")), ["profiler-failed"]),
    ],
)
def test_a_pass_that_recorded_nothing_is_judged_by_the_nodes_facts(
    tmp_path: Path, found: Environment, expected: list[str]
) -> None:
    layers = named(("rocprofv3",))
    tool = ToolPass(
        PassPlan("rocprofv3", layers, ("command",)),
        where("6.4", "rocprofv3", run_root=tmp_path, environment=found),
        1.0,
    )
    judged = tool.of_tool(Outcome(exit_status=0, pid=1, start_boot_ns=0, end_boot_ns=1), "", [])
    assert [one.id for one in judged] == expected
    assert [one.message for one in judged if one.id == "no-device-access"] == [
        f"rocprofv3 met no device: {access.closed(found)}"
    ][: len(expected) - 1]
