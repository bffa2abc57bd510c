"""The words of rocprofv3's command line, by the version of rocprofiler-sdk, and what a version
refuses. Pure.

Only single switches are asked for: what --runtime-trace and --sys-trace of the tool record grew
from version to version.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from profharness.errors import UsageError
from profharness.layers import counters, releases
from profharness.layers.contract import Where
from profharness.layers.options import parse_sampling
from profharness.layers.releases import Version, text
from profharness.layers.rocm_versions import Installed

PMC: Version = (0, 5)
"""--pmc, and counters of a whole run."""
PERIOD: Version = (0, 6)
"""--collection-period."""
ROCPD: Version = (1, 0)
"""Databases, and --selected-regions."""

PC_SAMPLING = "pc-sampling"
"""The name of the pass that samples program counters."""
THREAD_TRACE = "thread-trace"
"""The name of the pass that records each instruction of some waves."""

_SAMPLING: Version = (0, 6)
_STOCHASTIC: Version = (1, 0)
_THREAD_TRACE: Version = (1, 0)
# of what came before gfx90a, the devices that rocprofv3 runs on
_BEFORE_MI200 = frozenset({"gfx900", "gfx902", "gfx904", "gfx906", "gfx908", "gfx909", "gfx90c"})
_REPLAY_AFTER: Version = (1, 3, 5)  # the version in which it came has no published number
_REPLAY_ROCM: Version = (10, 1)
_FILL_POLICY = "--perfetto-buffer-fill-policy"


class Switch(NamedTuple):
    """An option of ours that is a switch of the tool, the version from which it has it, and what
    older ones cannot record.
    """

    option: str
    since: Version = (0, 4)
    what: str = ""


SWITCHES = (
    Switch("hip_trace"),
    Switch("hsa_trace"),
    Switch("marker_trace"),
    Switch("rccl_trace"),
    Switch("memory_allocation_trace", (0, 6, 0), "allocations of device memory"),
    Switch("scratch_memory_trace"),
    Switch("kfd_trace", (1, 3, 0), "what the kernel driver does (page migrations, queues)"),
    Switch("hip_graph_trace", (1, 3, 0), "launches of graphs"),
    Switch("sys_trace"),
    Switch("stats"),
)

# arguments of --tool-arg that would take the run out of our hands, and the way out
_HARNESS = "the harness names the files, so that each process, rank and pass has its own"
_OTHER = "leave it out: it starts no command; call rocprofv3 by itself for that"
_REFUSED = {
    **dict.fromkeys(("-h", "--help", "-v", "--version"), _OTHER),
    **dict.fromkeys(("-L", "--list-avail", "--list-metrics"), _OTHER),
    **dict.fromkeys(("-d", "--output-directory", "-o", "--output-file"), _HARNESS),
    **dict.fromkeys(
        ("-i", "--input"),
        "it starts the command once per job of the file and loses its exit status: give --pmc, or "
        "its switches one by one as --tool-arg",
    ),
    **dict.fromkeys(
        ("--pid", "--attach"), "it attaches to another process, and here a command is started"
    ),
    "-p": "it attaches to another process, or is --collection-period before rocprofiler-sdk 1.0: "
    "write that in full",
    "--profile-mpi-ranks": "the ranks that it leaves out would count as failed: use --trace-ranks",
}


def check_arguments(arguments: Sequence[str], *, counting: bool) -> None:
    """Raises UsageError for an argument of --tool-arg with which the command would not start, start
    several times, or leave its files elsewhere; `counting`: the pass has counters already.
    """
    if sum(argument.partition("=")[0] == "--pmc" for argument in arguments) + counting > 1:
        raise UsageError(
            "--tool-arg rocprofv3:--pmc: a second --pmc starts the command once more",
            "give all counters to our own --pmc",
        )
    for argument in arguments:
        name = argument.partition("=")[0]
        if name in _REFUSED:
            raise UsageError(
                f"--tool-arg rocprofv3:{argument}: not under profharness", _REFUSED[name]
            )


def switches(tool: Installed, where: Where) -> list[str]:
    """What the trace pass asks for. Raises UsageError for what this version cannot record."""
    chosen = [switch for switch in SWITCHES if getattr(where.options, switch.option)]
    for switch in chosen:
        if tool.own < switch.since:
            _refuse(tool, f"--{switch.option.replace('_', '-')}", switch.what, switch.since)
    return [f"--{switch.option.replace('_', '-')}" for switch in chosen]


def counted(where: Where, input_file: str, tool: Installed) -> tuple[str, ...]:
    """The counters of a pass; --pmc came with ROCm 6.3, an input file with one `pmc:` line does
    before. Several groups are replays of each kernel: without those, each further --pmc would start
    the command again.
    """
    if not where.counters:
        return ()
    if len(where.groups) > 1:
        if not can_replay(tool):
            raise UsageError(
                f"--replay-mode kernel: rocprofv3 {text(tool.own)} of ROCm {tool.release} cannot "
                "replay kernels",
                f"it came after rocprofiler-sdk {text(_REPLAY_AFTER)} (ROCm {text(_REPLAY_ROCM)}): "
                "leave it out, and each group of counters gets an execution of its own",
            )
        words: tuple[str, ...] = ("--replay-mode", "kernel", "--kernel-replay-beta-enabled")
        words += tuple(word for group in where.groups for word in ("--pmc", *group))
    elif tool.own < PMC:
        words = ("-i", input_file)
    else:
        words = ("--pmc", *where.counters)
    return (*words, *_chosen_kernels(where))


def purposed(tool: Installed, where: Where) -> tuple[str, ...]:
    """What a pass of program counters or of the thread trace asks for. Raises UsageError for what
    this version or device cannot do.
    """
    if where.purpose == PC_SAMPLING:
        return _sampling(tool, where)
    if where.purpose == THREAD_TRACE:
        if tool.own < _THREAD_TRACE:
            _refuse(tool, "--thread-trace", "each instruction of a wave", _THREAD_TRACE)
        return ("--att", *_chosen_kernels(where))
    return ()


def formats(tool: Installed, where: Where) -> tuple[str, ...]:
    """A rocpd database where it exists; before it CSV, and JSON for the bytes of copies. The tool's
    own statistics are CSV, and no database holds program counters.
    """
    if tool.own < ROCPD:
        return ("csv", "json")
    if where.purpose == PC_SAMPLING:
        return ("rocpd", "csv", "json")
    in_trace = not (where.counters or where.purpose)
    return ("rocpd", "csv") if where.options.stats and in_trace else ("rocpd",)


def can_replay(tool: Installed) -> bool:
    """Whether it counts several groups in one execution by running each kernel again."""
    told = tool.own > _REPLAY_AFTER
    return told or (tool.own == _REPLAY_AFTER and tool.rocm >= _REPLAY_ROCM)


def environment(arguments: Sequence[str]) -> dict[str, str]:
    """Variables that stand for an argument which the tool takes and passes over: its script reads
    the fill policy under a name that does not exist.
    """
    policies = [
        word.partition("=")[2] if "=" in word else after
        for word, after in pairwise((*arguments, ""))
        if word.partition("=")[0] == _FILL_POLICY
    ]
    return {"ROCPROF_PERFETTO_BUFFER_FILL_POLICY": policies[-1]} if policies else {}


def _chosen_kernels(where: Where) -> tuple[str, ...]:
    options = where.options
    words: tuple[str, ...] = ()
    if options.kernel_include_regex:
        words += ("--kernel-include-regex", options.kernel_include_regex)
    if options.kernel_iteration_range:
        words += ("--kernel-iteration-range", options.kernel_iteration_range)
    return words


def _sampling(tool: Installed, where: Where) -> tuple[str, ...]:
    asked = parse_sampling(where.options.pc_sampling)
    option = f"--pc-sampling {asked.method}"
    if tool.own < _SAMPLING:
        _refuse(tool, option, "program counters", _SAMPLING)
    here = counters.architectures(where.environment)
    if all(name in _BEFORE_MI200 for name in here):
        raise UsageError(
            f"{option}: {', '.join(here)} cannot; it needs MI200 or newer",
            "leave it out: --pmc counts what kernels do on this device",
        )
    if asked.method == "stochastic":
        if tool.own < _STOCHASTIC:
            _refuse(tool, option, "program counters by stochastic sampling", _STOCHASTIC)
        if not any(_samples_by_hardware(name) for name in here):
            raise UsageError(
                f"{option}: {', '.join(here)} cannot; it needs MI300 or newer",
                "use --pc-sampling host_trap",
            )
    return (
        "--pc-sampling-beta-enabled",
        "--pc-sampling-method",
        asked.method,
        "--pc-sampling-unit",
        asked.unit,
        "--pc-sampling-interval",
        str(asked.interval),
    )


def _samples_by_hardware(architecture: str) -> bool:
    """MI300 (gfx940 to gfx942), MI350 (gfx950), and the Instinct line after them (gfx1250)."""
    return architecture.startswith(("gfx94", "gfx95", "gfx125"))


def _refuse(tool: Installed, option: str, what: str, since: Version) -> None:
    came = " and ".join(text(version) for version in releases.first_with("sdk", since))
    raise UsageError(
        f"{option}: rocprofv3 {text(tool.own)} of ROCm {tool.release} does not record {what}",
        f"it came with rocprofiler-sdk {text(since)} (ROCm {came}): leave it out, or use a newer "
        "ROCm",
    )
