"""The options of the tools that record a process as one typed record, and whether the layers asked
for can honour them. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import msgspec

from profharness.errors import UsageError

ALWAYS = ("kernel_trace", "memory_copy_trace")
"""What a tracer of kernels records in any case, asked for or not."""

_CHOOSING = ("kernel_include_regex", "kernel_iteration_range")
_RATE = re.compile(r"1000|[1-9][0-9]{0,2}")
_RANGE = re.compile(r"[\[\]\d,\- ]*\d[\[\]\d,\- ]*")


class TracerOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked of AMD's tracers and of torch's profiler (`stacks`, `profile_memory`,
    `host_samples`: a number per second, or `off`).
    `pmc` holds counter names and names of sets; `pmc_set`, `one_execution` and `roofline` are for
    rocprof-compute; `tool_args` go to the tool as they are.
    """

    hip_trace: bool = False
    hsa_trace: bool = False
    kernel_trace: bool = False
    memory_copy_trace: bool = False
    marker_trace: bool = False
    rccl_trace: bool = False
    memory_allocation_trace: bool = False
    scratch_memory_trace: bool = False
    kfd_trace: bool = False
    hip_graph_trace: bool = False
    sys_trace: bool = False
    stats: bool = False
    pmc: tuple[str, ...] = ()
    kernel_include_regex: str = ""
    kernel_iteration_range: str = ""
    replay_mode: str = ""
    pc_sampling: str = ""
    thread_trace: bool = False
    rocprof_sys_mode: str = ""
    rocprof_sys_output: str = ""
    stacks: bool = False
    profile_memory: bool = False
    host_samples: str = ""
    roofline: bool = False
    one_execution: bool = False
    pmc_set: str = ""
    tool_args: dict[str, tuple[str, ...]] = {}

    def args_for(self, layer: str) -> tuple[str, ...]:
        return self.tool_args.get(layer, ())


class Sampling(NamedTuple):
    """How program counters are sampled: the tool's `method`, and the `interval` in its `unit`."""

    method: str
    unit: str
    interval: int


# An interval of a millisecond, and of about half of one at 2.1 GHz: a thousand or two samples per
# second of each busy compute unit.
_SAMPLING = {
    "host_trap": Sampling("host_trap", "time", 1000),
    "stochastic": Sampling("stochastic", "cycles", 1 << 20),
}


def parse_sampling(text: str) -> Sampling:
    """`METHOD` or `METHOD:INTERVAL` of --pc-sampling: microseconds for host_trap, cycles (a power
    of two) for stochastic. Raises UsageError.
    """
    method, colon, interval = text.partition(":")
    if method not in _SAMPLING:
        raise UsageError(
            f"--pc-sampling: {method!r} is not a method",
            "use host_trap (MI200 and newer) or stochastic (MI300 and newer, with stall reasons)",
        )
    default = _SAMPLING[method]
    if not colon:
        return default
    unit = "microseconds" if default.unit == "time" else "cycles, a power of two"
    number = int(interval) if interval.isascii() and interval.isdigit() else 0
    if number < 1 or (default.unit == "cycles" and number & (number - 1)):
        raise UsageError(
            f"--pc-sampling: {interval!r} is not an interval of {method}",
            f"write {unit}, for example {method}:{default.interval}",
        )
    return default._replace(interval=number)


def parse_counters(texts: Sequence[str]) -> tuple[str, ...]:
    """`--pmc "A B"`, `--pmc A,B` and repeated --pmc: all names in order, each once."""
    names = [name for text in texts for name in re.split(r"[\s,]+", text) if name]
    return tuple(dict.fromkeys(names))


class Obedient(Protocol):
    """A layer as far as options go: its name, the options that it honours, whether it has a command
    line, and the names of its further steps with one.
    """

    @property
    def name(self) -> str: ...
    @property
    def honours(self) -> frozenset[str]: ...
    @property
    def is_tool(self) -> bool: ...
    @property
    def further_steps(self) -> tuple[str, ...]: ...


def parse_tool_args(
    texts: Sequence[str], profile: Sequence[str], layers: Callable[[], Sequence[Obedient]]
) -> dict[str, tuple[str, ...]]:
    """`LAYER:ARG` of each --tool-arg, in order, where LAYER may be a further step of a layer
    (`rocprof-compute-analyze`). `layers` gives all that there are; without texts nobody asks it.

    Raises UsageError for an unknown layer, or one that was not asked for.
    """
    known = layers() if texts else ()
    layer_of = {step: layer.name for layer in known for step in layer.further_steps}
    names = [*(layer.name for layer in known), *layer_of]
    tools = [*(layer.name for layer in known if layer.is_tool), *layer_of]
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
        owner = layer_of.get(layer, layer)
        if owner not in profile:
            raise UsageError(
                f"--tool-arg: {owner} was not asked for",
                f"add --profile {owner}, or leave {text} out",
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
    for name in _CHOOSING:
        if getattr(options, name) and not (options.pmc or options.thread_trace):
            raise UsageError(
                f"--{name.replace('_', '-')} chooses kernels for counters and for the thread "
                "trace, and neither was asked for",
                "add --pmc or --thread-trace; the trace always holds every kernel",
            )
    if options.replay_mode and not options.pmc:
        raise UsageError(
            "--replay-mode says how counters are collected, and none were asked for",
            "add --pmc, or leave it out",
        )
    _check_values(options)


def _check_values(options: TracerOptions) -> None:
    if options.rocprof_sys_mode not in ("", "sample", "run", "python"):
        raise UsageError(
            f"--rocprof-sys-mode: {options.rocprof_sys_mode!r} is not a mode",
            "use sample (default), run or python",
        )
    if options.replay_mode not in ("", "application", "kernel"):
        raise UsageError(
            f"--replay-mode: {options.replay_mode!r} is not a mode",
            "use application (default: one execution per group of counters) or kernel",
        )
    if options.host_samples not in ("", "off") and not _RATE.fullmatch(options.host_samples):
        raise UsageError(
            f"--host-samples: {options.host_samples!r} is no number of samples per second",
            "write a number up to 1000, or off",
        )
    if options.pc_sampling:
        parse_sampling(options.pc_sampling)
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
