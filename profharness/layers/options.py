"""The options of the tools that record a process as one typed record, and whether the layers asked
for can honour them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

import msgspec

from profharness.errors import UsageError

ALWAYS = ("kernel_trace", "memory_copy_trace")
"""What a tracer of kernels records in any case, asked for or not."""

_FOR_COUNTERS = ("kernel_include_regex", "kernel_iteration_range")
_RANGE = re.compile(r"[\[\]\d,\- ]*\d[\[\]\d,\- ]*")


class TracerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked of AMD's tracers and of torch's profiler (the last two before `tool_args`).
    `pmc` holds counter names and names of sets; `tool_args` go to the tool as they are.
    """

    hip_trace: bool = False
    hsa_trace: bool = False
    kernel_trace: bool = False
    memory_copy_trace: bool = False
    marker_trace: bool = False
    rccl_trace: bool = False
    sys_trace: bool = False
    stats: bool = False
    pmc: tuple[str, ...] = ()
    kernel_include_regex: str = ""
    kernel_iteration_range: str = ""
    rocprof_sys_mode: str = ""
    rocprof_sys_output: str = ""
    stacks: bool = False
    profile_memory: bool = False
    tool_args: dict[str, tuple[str, ...]] = {}

    def args_for(self, layer: str) -> tuple[str, ...]:
        return self.tool_args.get(layer, ())


def parse_counters(texts: Sequence[str]) -> tuple[str, ...]:
    """`--pmc "A B"`, `--pmc A,B` and repeated --pmc: all names in order, each once."""
    names = [name for text in texts for name in re.split(r"[\s,]+", text) if name]
    return tuple(dict.fromkeys(names))


class Obedient(Protocol):
    """A layer as far as options go: its name, the options that it honours, and whether it has a
    command line.
    """

    @property
    def name(self) -> str: ...
    @property
    def honours(self) -> frozenset[str]: ...
    @property
    def is_tool(self) -> bool: ...


def parse_tool_args(
    texts: Sequence[str], profile: Sequence[str], layers: Callable[[], Sequence[Obedient]]
) -> dict[str, tuple[str, ...]]:
    """`LAYER:ARG` of each --tool-arg, in order. `layers` gives all that there are; without texts
    nobody asks it.

    Raises UsageError for an unknown layer, or one that was not asked for.
    """
    names = [layer.name for layer in layers()] if texts else []
    tools = [layer.name for layer in layers() if layer.is_tool] if texts else []
    found: dict[str, tuple[str, ...]] = {}
    for text in texts:
        layer, colon, argument = text.partition(":")
        if not colon or not argument:
            raise UsageError(
                f"--tool-arg: {text!r} is not LAYER:ARG",
                "write for example --tool-arg rocprofv3:--hsa-core-trace",
            )
        if layer not in names:
            raise UsageError(
                f"--tool-arg: there is no layer {layer!r}", f"known layers: {', '.join(names)}"
            )
        if layer not in tools:
            raise UsageError(
                f"--tool-arg: the {layer} layer has no tool with a command line",
                f"it is for {', '.join(tools)}",
            )
        if layer not in profile:
            raise UsageError(
                f"--tool-arg: {layer} was not asked for",
                f"add --profile {layer}, or leave {text} out",
            )
        found[layer] = (*found.get(layer, ()), argument)
    return found


def check(
    options: TracerOptions, profile: Sequence[str], layers: Callable[[], Sequence[Obedient]]
) -> None:
    """`layers` gives all that there are; nobody asks it where no option was set.

    Raises UsageError for an option that no layer asked for can honour, and for a value of a wrong
    form.
    """
    for name in _given(options):
        flag = "--" + name.replace("_", "-")
        honouring = [layer for layer in layers() if name in layer.honours]
        able = [layer.name for layer in honouring]
        if not any(layer in able for layer in profile):
            # a layer without a command line is no tracer, and only its own options concern it
            tools = any(layer.is_tool for layer in honouring)
            alike = {layer.name for layer in layers() if layer.is_tool or not tools}
            here = [asked for asked in profile if asked in alike]
            missing = "no AMD tracer was asked for" if tools else "no layer was asked for"
            said = f"{', '.join(here)} cannot do that" if here else missing
            raise UsageError(
                f"{flag}: {said}",
                f"add --profile {able[0]}" + (f" (or {', '.join(able[1:])})" if able[1:] else ""),
            )
    for name in _FOR_COUNTERS:
        if getattr(options, name) and not options.pmc:
            raise UsageError(
                f"--{name.replace('_', '-')} chooses kernels for counters, and none were asked for",
                "add --pmc; the trace always holds every kernel",
            )
    _check_values(options)


def _check_values(options: TracerOptions) -> None:
    if options.rocprof_sys_mode not in ("", "sample", "run", "python"):
        raise UsageError(
            f"--rocprof-sys-mode: {options.rocprof_sys_mode!r} is not a mode",
            "use sample (default), run or python",
        )
    if options.rocprof_sys_output not in ("", "perfetto", "rocpd", "both"):
        raise UsageError(
            f"--rocprof-sys-output: {options.rocprof_sys_output!r} is no kind of file",
            "use perfetto (default), rocpd or both",
        )
    if options.kernel_iteration_range and not _RANGE.fullmatch(options.kernel_iteration_range):
        raise UsageError(
            f"--kernel-iteration-range: {options.kernel_iteration_range!r} is not a range",
            "write 5, 10-20 or [10-20,30-40]",
        )
    try:
        re.compile(options.kernel_include_regex)
    except re.error as error:
        raise UsageError(
            f"--kernel-include-regex: {options.kernel_include_regex!r} is not a regular "
            f"expression ({error})",
            "quote it for the shell, and escape brackets that are meant literally",
        ) from error


def _given(options: TracerOptions) -> list[str]:
    """Names of the options that were set, --tool-arg apart."""
    return [
        field.name
        for field in msgspec.structs.fields(TracerOptions)
        if field.name != "tool_args" and getattr(options, field.name) not in (False, (), "")
    ]
