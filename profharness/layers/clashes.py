"""What on this node will keep a profiler from recording, told before anything is started. Pure,
over the probe's facts.

Each clash is a finding with the way out. It is only told where the facts leave no doubt that the
situation is there, and it does not stay with a run that recorded all the same. What cannot be seen
from outside (a program that starts a profiler by itself) is left to the sentences of
`known_faults`.

Sources: the projects' lists of changes, and reports of users (TheRock, rocm-systems, pytorch,
TransformerEngine).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from profharness.findings import Finding, Severity, finding
from profharness.layers import releases, rocm_versions
from profharness.layers.contract import Layer
from profharness.layers.releases import Version
from profharness.layers.rocm_versions import Installed
from profharness.node.probe import Environment

# each tool's own version from which on it records by rocprofiler-sdk
_BY_SDK: dict[str, Version] = {"sdk": (0, 4), "systems": (1, 0), "compute": (3, 2)}
_LOCKING = (3, 8)  # of rocprof-compute: locks of its roofline benchmark
_NO_BENCHMARK = "--no-roof"
# releases in which a child of a program that used the device records nothing, where it inherits
# the name of the register library
_LOSING_CHILDREN = ((7, 13), (11, 0))
_HANGING_TORCH = (2, 13)  # its wheels for ROCm 7.2 wait for /dev/kfd at the import
_LAST_BY_ROCTRACER = (2, 11)  # torch releases whose profiler records through roctracer
_FAULTY_ROCTRACER = re.compile(r"7\.2\.1(?!\d)")


# what findings on a pass say where it did not record what it was for
_WITHOUT_RECORDS = frozenset(
    {
        "empty-trace",
        "nothing-recorded",
        "profiler-failed",
        "profiler-hung",
        "launcher-traced",
        "mixed-rocm",
        "no-device-access",
        "point-failed",
    }
)


@dataclass(frozen=True)
class Planned:
    """What is to be started: the layers, whether the processes import torch, and all words of the
    command lines.

    `torch` is `maybe` for a Python program that may import it. `words` is None where nothing is
    planned, and it is only asked what works here.
    """

    layers: Sequence[Layer]
    torch: Literal["yes", "maybe", "no"] = "no"
    words: Collection[str] | None = field(default=None)


@dataclass(frozen=True)
class Clash:
    """One of them. `after` is what is left of it once a run has recorded all the same."""

    finding: Finding
    after: Finding | None = None


def clashes(environment: Environment, planned: Planned) -> tuple[Clash, ...]:
    """All clashes of what is planned with what is on this node, the gravest first."""
    found = (
        *_hanging_import(environment, planned),
        *_attached(environment, planned),
        *_two_copies(environment, planned),
        *_inherited_library(environment, planned),
        *_faulty_roctracer(environment, planned),
        *_locked(environment, planned),
    )
    return tuple(sorted(found, key=lambda one: one.finding.severity != "error"))


def upheld(findings: Sequence[Finding], told: Sequence[Clash]) -> tuple[Finding, ...]:
    """The findings on a run that has ended by itself. Where it nowhere came short of records, it
    disproves the clashes, but for what is left of each.
    """
    clashing = [clash.finding for clash in told]
    others = [one for one in findings if one not in clashing]
    if any(one.id in _WITHOUT_RECORDS for one in others):
        return tuple(findings)
    left = [clash.after for clash in told if clash.finding in findings and clash.after is not None]
    return (*left, *others)


def _attached(environment: Environment, planned: Planned) -> Iterator[Clash]:
    """A profiler that the environment puts into every program, ours too."""
    kinds = {device.kind for device in environment.accelerators}
    told: set[str] = set()
    for profiler in environment.profilers.attached:
        if profiler.name in told:
            continue
        told.add(profiler.name)
        claim, kind = ("cupti", "cuda") if profiler.name == "nsys" else ("hsa-tool", "rocm")
        beside = [layer.name for layer in planned.layers if claim in layer.about.claims]
        where = (
            f"{profiler.name} is attached to every program that starts here "
            f"({profiler.variable} names {profiler.library})"
        )
        way_out = (
            f"start profharness outside of {profiler.name} (it puts the profiler of --profile "
            f"around the program itself), or unset {profiler.variable}"
        )
        costs = f"{where}: what it costs is in all times that are measured here"
        cheap = _found("profiler-attached", costs, way_out)
        if not beside or kind not in kinds:
            yield Clash(cheap, cheap)
            continue
        taken = (
            f"{where}: a process takes one profiler of the device, so that beside it "
            f"{_listed(beside)} will record nothing, or the program aborts"
        )
        severity = _severity(planned, is_sure=True)
        yield Clash(_found("profiler-attached", taken, way_out, severity), cheap)


def _two_copies(environment: Environment, planned: Planned) -> Iterator[Clash]:
    """Torch loads a copy of rocprofiler-sdk that is not the tool's: the second one cannot be
    configured any more, or the compiler library behind it aborts.
    """
    facts = environment.profilers
    tools = [layer.name for layer in planned.layers if _by_sdk(layer, environment)]
    if planned.torch == "no" or not tools or not facts.torch.sdk or not facts.tool_sdk:
        return
    if facts.torch.sdk == facts.tool_sdk:
        return
    severity = _severity(planned, is_sure=planned.torch == "yes")
    who = "the program" if severity == "error" else "a program that imports torch"
    message = (
        f"under {_listed(tools)} {who} loads rocprofiler-sdk twice, {facts.tool_sdk} for the "
        f"profiler and {facts.torch.sdk} for torch: that is known to end in an abort, a hang or no "
        "records"
    )
    yield Clash(_found("mixed-rocm", message, _one_tree(environment), severity))


def _one_tree(environment: Environment) -> str:
    tool = rocm_versions.here(environment)
    return (
        "use a build of torch for the installed release "
        f"({tool}), or put the bin folder of torch's own ROCm first on the PATH (with ROCm's "
        "wheels: site-packages/_rocm_sdk_core/bin); or use --profile torch"
    )


def _by_sdk(layer: Layer, environment: Environment) -> bool:
    """Whether the layer's tool puts the rocprofiler-sdk of rocprofv3's tree into the process."""
    tool = _tool(layer, environment)
    column = next((program.column for program in layer.about.programs if program.column), "")
    if tool is None or not column or tool.own < _BY_SDK.get(column, (99,)):
        return False
    rocprofv3 = environment.tools.get("rocprofv3")
    return rocprofv3 is not None and Path(rocprofv3.path).parent == Path(tool.path).parent


def _tool(layer: Layer, environment: Environment) -> Installed | None:
    """The layer's tool; None for a hook, and for a tool that is not on this node."""
    if layer.about.scope != "prefix" or not layer.about.programs:
        return None
    tool = rocm_versions.installed(environment, *layer.about.programs)
    return tool if tool.found else None


def _inherited_library(environment: Environment, planned: Planned) -> Iterator[Clash]:
    """Kernels of a program go unrecorded where it inherits the register library's name."""
    if not environment.profilers.register_library:
        return
    first, end = _LOSING_CHILDREN
    tools = [
        (layer.name, tool)
        for layer in planned.layers
        if _by_sdk(layer, environment)
        and (tool := _tool(layer, environment)) is not None
        and first <= tool.rocm < end
    ]
    if tools:
        message = (
            "ROCPROFILER_REGISTER_LIBRARY is set by a program before this one: with ROCm "
            f"{tools[0][1].release} {_listed([name for name, _ in tools])} may record no kernel "
            "of a program that inherits it"
        )
        way_out = "unset it: env -u ROCPROFILER_REGISTER_LIBRARY profharness ..."
        yield Clash(_found("known-fault", message, way_out))


def losing_children(layer: Layer, environment: Environment) -> str:
    """Why the children of a program that used the device may record nothing under this layer; empty
    where nothing speaks for it. Torch from ROCm's wheels names the register library to them.
    """
    tool = _tool(layer, environment)
    first, end = _LOSING_CHILDREN
    if (
        tool is None
        or not first <= tool.rocm < end
        or not _by_sdk(layer, environment)
        or "/_rocm_sdk_core" not in environment.profilers.torch.sdk
    ):
        return ""
    return (
        f"with ROCm {tool.release} the children of a program that used the device inherit "
        "ROCPROFILER_REGISTER_LIBRARY, and record nothing"
    )


def _hanging_import(environment: Environment, planned: Planned) -> Iterator[Clash]:
    if planned.torch != "no" and (message := hanging_import(environment)):
        way_out = (
            "start it where there is an AMD device (in a container: --device=/dev/kfd "
            "--device=/dev/dri), or use torch's build for the CPU"
        )
        severity = _severity(planned, is_sure=planned.torch == "yes")
        yield Clash(_found("no-device-access", message, way_out, severity))


def hanging_import(environment: Environment) -> str:
    """Why `import torch` hangs on this node; empty where nothing speaks for it."""
    version, build = _torch(environment)
    has_kfd = any(file.path.endswith("/kfd") for file in environment.permissions.files)
    if (
        version[:2] != _HANGING_TORCH
        or not build.startswith("7.2")
        or has_kfd
        or not environment.profilers.torch.sdk
    ):
        return ""
    return (
        f"`import torch` hangs on a node without /dev/kfd: torch "
        f"{environment.packages.get('torch')} brings a rocprofiler-sdk that waits for it"
    )


def _faulty_roctracer(environment: Environment, planned: Planned) -> Iterator[Clash]:
    """The roctracer of ROCm 7.2.1, which torch's profiler used to record through: the one in the
    wheel, or the installed one where the wheel has none.
    """
    version, build = _torch(environment)
    if not version or version[:2] > _LAST_BY_ROCTRACER or not build:
        return
    if not any(layer.name == "torch" for layer in planned.layers):
        return
    files = environment.profilers.torch
    brings_its_own = bool(files.roctracer or files.sdk)
    if _FAULTY_ROCTRACER.match(build) or (
        not brings_its_own
        and build.startswith("7.2")
        and _FAULTY_ROCTRACER.match(environment.rocm_version)
    ):
        fault = _found(
            "known-fault",
            f"torch {environment.packages['torch']} records through roctracer, and that of ROCm "
            "7.2.1 loses kernels, few or all of them",
            "update to ROCm 7.2.2, or use --profile rocprofv3",
        )
        yield Clash(fault, fault)


def _torch(environment: Environment) -> tuple[Version, str]:
    """Torch's version, and the ROCm release that it was built for, empty where it is another
    build; () without torch.
    """
    text = environment.packages.get("torch", "")
    suffix = text.partition("+")[2]
    build = re.match(r"rocm(?:sdk)?([\d.]+)", suffix)
    hip = environment.profilers.torch.hip if not suffix else ""
    return releases.parse(text) or (), build.group(1) if build else hip


def _locked(environment: Environment, planned: Planned) -> Iterator[Clash]:
    """A roofline benchmark of rocprof-compute waits for a lock that nobody gives back."""
    locks = environment.profilers.locks
    if not locks or (planned.words is not None and _NO_BENCHMARK in planned.words):
        return
    for layer in planned.layers:
        tool = _tool(layer, environment)
        if layer.name == "rocprof-compute" and tool is not None and tool.own >= _LOCKING:
            message = (
                f"the roofline benchmark of rocprof-compute cannot begin: {locks[0].path} is a "
                f"lock of the user {locks[0].owner}, and this user may not open it"
            )
            way_out = f"have {locks[0].owner} (or root) remove it once no benchmark of theirs runs"
            yield Clash(_found("known-fault", message, way_out))


def _severity(planned: Planned, *, is_sure: bool) -> Severity:
    """An error where a program is to be started that will certainly meet the clash."""
    return "error" if is_sure and planned.words is not None else "warning"


def _found(kind: str, message: str, advice: str, severity: Severity = "warning") -> Finding:
    return msgspec.structs.replace(finding(kind, message, severity=severity), advice=advice)


def _listed(names: Sequence[str]) -> str:
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:])))
