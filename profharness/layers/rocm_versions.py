"""Which of AMD's tools is on the node, in which version, and what that means for its options. Pure.

A tool's options follow its own version, which it tells itself or which the table in `releases`
knows for the ROCm release that it came with. That release is read from the installation in which
the tool lies; the node's ROCm version stands in where it does not say.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from profharness.layers import releases
from profharness.layers.contract import Availability, Program
from profharness.layers.releases import BEFORE, NEWEST, Release, Version, parse, text
from profharness.node import access
from profharness.node.probe import Environment, Tool


@dataclass(frozen=True)
class Installed:
    """A tool as it will be called: its program, its own version, the ROCm release that it came
    with, and how that was learnt.

    `own` decides what it takes and leaves; it is BEFORE for a program of an older name. `call` is
    its path, or its name where it is not on the node; a dry run then plans for the newest known
    release. `sure` is False where the tool is there but nothing tells its release. `newer` is the
    version that it tells where this is newer than the newest that is known.
    """

    program: str
    rocm: Version
    own: Version
    found: bool
    sure: bool = True
    path: str = ""
    newer: str = ""

    @property
    def call(self) -> str:
        return self.path or self.program

    @property
    def release(self) -> str:
        return text(self.rocm[:2])


def installed(environment: Environment, *programs: Program) -> Installed:
    """The first of the programs that the probe found, with its version; else the first name, for
    the newest one.

    A tool whose release is unknown is treated as the oldest that could have its name, so that
    no option is used that it may not know.
    """
    for program in programs:
        tool = environment.tools.get(program.name)
        if tool is not None:
            return _found(program, tool, environment)
    return Installed(programs[0].name, NEWEST.rocm, _own(programs[0], NEWEST), found=False)


def _found(program: Program, tool: Tool, environment: Environment) -> Installed:
    told = parse(tool.version) if program.column else None
    came_with = releases.of_tool(program.column, told) if told else None
    release = (
        parse(tool.rocm)
        or (came_with.rocm if came_with else None)
        or parse(environment.rocm_version)
    )
    rocm = release or program.since
    own = told or _own(program, releases.of_rocm(rocm))
    newer, newest = "", releases.newest_of(program.column) if program.column else BEFORE
    if rocm[:2] > NEWEST.rocm and not (told and told <= newest):
        newer = text(told) if told else f"of ROCm {text(rocm[:2])}"
    elif told and told[:2] > newest[:2] and parse(tool.rocm) is None:
        newer = text(told)
    return Installed(
        program.name, rocm, own, found=True, sure=bool(release), path=tool.path, newer=newer
    )


def _own(program: Program, release: Release) -> Version:
    own: Version = getattr(release, program.column) if program.column else BEFORE
    return own


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
            f"{tool.program} is not on this node: planned for ROCm {text(NEWEST.rocm)}, the newest "
            "known"
        )
    if tool.newer:
        return (
            f"{tool.program} {tool.newer} is newer than the newest known, that of ROCm "
            f"{text(NEWEST.rocm)}: it is used as that one"
        )
    return (
        ""
        if tool.sure
        else f"{tool.program} does not tell its release: planned for ROCm {tool.release}"
    )
