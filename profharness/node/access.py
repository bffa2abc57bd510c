"""What of AMD's devices and of the kernel's counters is closed to this user, and who can open it.
Pure, over the probe's facts.

HIP and every tool of AMD open /dev/kfd and the render node of each device that they use. Both
belong to a group (`render`, or `video` on older systems), and a batch system or a container may
keep them from a job whatever the group.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from profharness.node.probe import DeviceFile, Environment

AMD_VENDOR = "0x1002"
FREELY_COUNTED = 2  # up to this perf_event_paranoid a program may count its own hardware events
_UDEV = 'KERNEL=="{}", GROUP="render", MODE="0660"'


class AccessState(msgspec.Struct, frozen=True):
    """One thing to be opened: whether this user may, why not, and the way out. `group` owns the
    file.
    """

    name: str
    available: bool
    why: str = ""
    fix: str = ""
    group: str = ""

    @property
    def sentence(self) -> str:
        """Why and the way out, on one line."""
        return f"{self.why}; {self.fix}" if self.fix else self.why


def states(found: Environment) -> tuple[AccessState, ...]:
    """AMD's device files where there is anything of AMD, and the kernel's performance counters."""
    return (*_amd_states(found), *_counter_states(found))


def closed(found: Environment) -> str:
    """Why a program of this user reaches no AMD device here, with the way out; empty where no fact
    speaks against it.
    """
    return next((state.sentence for state in _amd_states(found) if not state.available), "")


def amd_warning(found: Environment) -> str:
    """The same, and also where the node simply shows no AMD device."""
    if said := closed(found):
        return said
    if any(device.kind == "rocm" for device in found.devices):
        return ""
    return "no AMD device is seen" + (
        "" if found.permissions.amdgpu else ": the amdgpu driver is not loaded"
    )


def counters_warning(found: Environment, what: str) -> str:
    """What is not counted where the kernel keeps hardware events from this user; `what` names it.
    Empty where it is free.
    """
    return "".join(
        f"{state.why}: {what}; {state.fix}"
        for state in _counter_states(found)
        if not state.available
    )


def _amd_states(found: Environment) -> Iterator[AccessState]:
    kfd = next((file for file in found.permissions.files if file.path.endswith("/kfd")), None)
    if not (
        kfd or found.permissions.amdgpu or any(device.kind == "rocm" for device in found.devices)
    ):
        return
    if kfd is None:
        if found.permissions.amdgpu:
            yield _absent("/dev/kfd", found)
    else:
        yield _file_state(kfd.path, [kfd], found)
    nodes = [
        file
        for file in found.permissions.files
        if file is not kfd and file.vendor in ("", AMD_VENDOR)
    ]
    if nodes:
        yield _file_state(
            nodes[0].path
            if len(nodes) == 1
            else f"{nodes[0].path.rpartition('renderD')[0]}renderD*",
            nodes,
            found,
        )
    elif kfd is not None:
        yield _absent("/dev/dri/renderD*", found)
    if found.permissions.hidden_devices and not any(
        device.kind == "rocm" for device in found.devices
    ):
        count = found.permissions.hidden_devices
        yield AccessState(
            "AMD devices",
            available=False,
            why=(
                f"{count} AMD device{'s are' if count > 1 else ' is'} on this node, "
                "but hidden from this job"
            ),
            fix=_granted(found),
        )


def _absent(path: str, found: Environment) -> AccessState:
    if found.container:
        return AccessState(
            path,
            available=False,
            why=f"{path} is not in this container, though the node has the amdgpu driver",
            fix=_into_container(found),
        )
    return AccessState(
        path,
        available=False,
        why=f"{path} is absent, though the amdgpu driver is loaded",
        fix=(
            "the driver does not support this device for compute: "
            "`dmesg | grep -e amdgpu -e kfd` says why"
        ),
    )


def _file_state(name: str, files: Sequence[DeviceFile], found: Environment) -> AccessState:
    """Of several files (one per device) one that opens is enough: a job has its own devices
    only.
    """
    refused = [file for file in files if file.error]
    if len(refused) < len(files):
        why = (
            f"{len(files) - len(refused)} of {len(files)} open: "
            f"{_listed(file.path.rpartition('/')[2] for file in files if not file.error)}"
            if refused
            else ""
        )
        return AccessState(name, available=True, why=why, group=files[0].group)
    file = refused[0]
    if file.error == "EPERM":
        return AccessState(
            name,
            available=False,
            why=f"{name} is there, but this job's control group forbids it",
            fix=_granted(found),
            group=file.group,
        )
    if file.error != "EACCES":
        return AccessState(
            name,
            available=False,
            why=f"{name} is there, but cannot be opened ({file.error})",
            fix="the driver does not answer: `dmesg | grep -e amdgpu -e kfd` says why",
            group=file.group,
        )
    owns = (
        f"it belongs to the group {file.group} (mode {file.mode}), "
        f"and this user is in {_listed(found.permissions.groups) or 'no group'}"
    )
    return AccessState(
        name,
        available=False,
        why=f"{name} is there, but this user may not open it: {owns}",
        fix=_let_in(file, found),
        group=file.group,
    )


def _let_in(file: DeviceFile, found: Environment) -> str:
    """What opens a file that belongs to a group."""
    if found.container == "podman":
        return f"start the container with --group-add keep-groups (as root: --group-add {file.gid})"
    if found.container == "docker":
        return f"start the container with --group-add {file.gid}"
    if file.gid == 0 or file.group in found.permissions.groups:
        return (
            "the file's mode keeps users out: the administrators add a udev rule, "
            f"such as {_UDEV.format(file.path.rpartition('/')[2])}"
        )
    if file.listed:
        return (
            f"{file.group} was given to this user after this session began: log in again, "
            f"or `newgrp {file.group}`"
        )
    if _has_slurm(found):
        ask = f"ask the administrators for the group {file.group}"
        first = "request a GPU from Slurm (srun --gpus=1 ...); if it is closed there too, "
        return ask if found.slurm else first + ask
    return (
        f"`sudo usermod -aG {file.group} {found.permissions.user_name or '$USER'}`, "
        "then log in again; on a cluster ask its administrators"
    )


def _granted(found: Environment) -> str:
    """Who grants a device that a control group keeps back."""
    if _has_slurm(found):
        return "request a GPU from Slurm: sbatch or srun with --gpus=1 (or --gres=gpu:1)"
    if found.container in ("docker", "podman"):
        return _into_container(found)
    return (
        "ask for the device where the job is started (a batch system's GPU option, "
        "a service's DeviceAllow)"
    )


def _into_container(found: Environment) -> str:
    return (
        "start it with apptainer exec --rocm"
        if found.container == "apptainer"
        else "start it with --device=/dev/kfd --device=/dev/dri"
    )


def _counter_states(found: Environment) -> Iterator[AccessState]:
    level, is_free = found.permissions.perf_event_paranoid, found.permissions.perfmon
    if level is None:
        return
    if level <= FREELY_COUNTED or is_free:
        yield AccessState(
            "perf_event",
            available=True,
            why=(
                "perf_event_paranoid is "
                f"{level}{', and this process has CAP_PERFMON' if level > FREELY_COUNTED else ''}"
            ),
        )
        return
    grant = (
        "docker --cap-add=PERFMON"
        if found.container
        else f"`sudo sysctl kernel.perf_event_paranoid={FREELY_COUNTED}`, or CAP_PERFMON"
    )
    yield AccessState(
        "perf_event", available=False, why=f"perf_event_paranoid is {level}", fix=grant
    )


def _has_slurm(found: Environment) -> bool:
    return bool(found.slurm) or "srun" in found.tools


def _listed(words: Iterable[str]) -> str:
    return ", ".join(words)
