"""Which generation of AMD's tools is on the node, and what that generation is called and can do.
Pure.

A tool's options follow the ROCm release that it came with. That release is read from the
installation in which the tool lies; rocprofiler-sdk's own version (0.4.0 came with ROCm 6.2, 0.5.0
with 6.3, 0.6.0 with 6.4, 1.0.0 with 7.0) and the node's ROCm version stand in where it does not
say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from profharness.layers.contract import Availability, Program, Version
from profharness.node import access
from profharness.node.probe import Environment

ROCM_6_2: Version = (6, 2)
ROCM_6_3: Version = (6, 3)
ROCM_6_4: Version = (6, 4)
ROCM_7_0: Version = (7, 0)
NEWEST: Version = ROCM_7_0
"""The newest generation whose options are known; later releases are treated like it."""

# rocprofiler-sdk's version -> the ROCm release that it came with
_OF_SDK: tuple[tuple[Version, Version], ...] = (
    ((0, 4), ROCM_6_2),
    ((0, 5), ROCM_6_3),
    ((0, 6), ROCM_6_4),
    ((1, 0), ROCM_7_0),
)
_NUMBER = re.compile(r"(\d+)\.(\d+)")


@dataclass(frozen=True)
class Installed:
    """A tool as it will be called: its program, its ROCm generation, and how that was learnt.

    `call` is its path, or its name where it is not on the node; a dry run then plans for the newest
    known generation. `sure` is False where the tool is there but nothing tells its release.
    """

    program: str
    rocm: Version
    found: bool
    sure: bool = True
    path: str = ""

    @property
    def call(self) -> str:
        return self.path or self.program

    @property
    def release(self) -> str:
        return text(self.rocm)


def parse(version: str) -> Version | None:
    """Major and minor of a version text; None where there is none."""
    match = _NUMBER.search(version)
    return (int(match.group(1)), int(match.group(2))) if match else None


def text(version: Version) -> str:
    """`6.2`, as people write it."""
    return f"{version[0]}.{version[1]}"


def installed(environment: Environment, *programs: Program) -> Installed:
    """The first of the programs that the probe found, with its generation; else the first name, for
    the newest one.

    A tool whose release is unknown is treated as the oldest that could have its name, so that
    no option is used that it may not know.
    """
    for program in programs:
        tool = environment.tools.get(program.name)
        if tool is None:
            continue
        release = (
            parse(tool.rocm)
            or (_from_sdk(tool.version) if program.tells_sdk else None)
            or parse(environment.rocm_version)
        )
        if release is not None:
            return Installed(program.name, release, found=True, path=tool.path)
        return Installed(program.name, program.since, found=True, sure=False, path=tool.path)
    return Installed(programs[0].name, NEWEST, found=False)


def availability(environment: Environment, way_out: str, *programs: Program) -> Availability:
    """Whether one of the programs is there, and what speaks against its finding a device; `way_out`
    says what to use instead where it is not.
    """
    tool = installed(environment, *programs)
    if tool.found:
        known = environment.tools[tool.program].version
        return Availability(
            available=True,
            version=known or (f"of ROCm {tool.release}" if tool.sure else ""),
            why=but(environment),
        )
    return Availability(available=False, why=way_out)


def but(environment: Environment) -> str:
    """What speaks against the tools' finding a device; empty without.

    No reason to refuse: the command may start its program elsewhere (srun, a container), and a
    program may use no device.
    """
    warning = access.amd_warning(environment)
    return f"it is here, but {warning}" if warning else ""


def with_counters(state: Availability, environment: Environment, what: str) -> Availability:
    """The same, with `what` a tool that is here lacks where the kernel keeps hardware events from
    this user.
    """
    warning = access.counters_warning(environment, what)
    if not state.available or not warning:
        return state
    return replace(state, why=f"{state.why}\n{warning}" if state.why else warning)


def alternatives(environment: Environment, *, counting: bool = False) -> str:
    """Which other layers to use here: of the tracers those that are installed, and torch;
    `counting` for a tool's hardware counters.
    """
    if "rocprofv3" in environment.tools:
        tracers = ["rocprofv3"]
    else:
        tracers = ["rocprof"] if "rocprof" in environment.tools else []
    if counting:
        return (
            " or ".join(f"--profile {name} --pmc COUNTERS" for name in tracers)
            or "--profile torch (kernels without counters)"
        )
    return " or ".join(f"--profile {name}" for name in (*tracers, "torch"))


def here(environment: Environment) -> str:
    """`here is ROCm 6.1.3`, or that there is none."""
    return (
        f"here is ROCm {environment.rocm_version}"
        if environment.rocm_version
        else "no ROCm was found here"
    )


def planned_for(tool: Installed) -> str:
    """What a dry run says where it had to assume a release; empty where the tool named its own."""
    if not tool.found:
        return (
            f"{tool.program} is not on this node: planned for ROCm {text(NEWEST)}, the newest known"
        )
    return (
        ""
        if tool.sure
        else f"{tool.program} does not tell its release: planned for ROCm {tool.release}"
    )


def _from_sdk(version: str) -> Version | None:
    """The release of rocprofiler-sdk's version; the other tools' own numbers say nothing about
    ROCm.
    """
    number = parse(version)
    if number is None:
        return None
    return next((rocm for sdk, rocm in reversed(_OF_SDK) if number >= sdk), None)
