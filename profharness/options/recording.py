"""How a layer records: capture, hooks, the options of AMD's tracers and of torch's profiler; the
second chapter of `Request`.

Which layer can honour which option is the layers' own knowledge: it is asked of them, for the
checks and for help.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from profharness import layers
from profharness.errors import UsageError
from profharness.layers import options as tracers
from profharness.layers.options import TracerOptions
from profharness.options import trace_ranks
from profharness.options.declared import LAYERS, Limit, Option, TextForm
from profharness.options.workload import WorkloadOptions, for_commands
from profharness.rundir import capture

_AS_MANY_PASSES = for_commands("leave it out: a scan makes as many passes as its layers need")


def honouring(name: str) -> tuple[str, ...]:
    """The layers that can do what this option asks for, by their own descriptions."""
    return tuple(about.name for about in layers.descriptions() if name in about.honours)


def _by_layers(name: str) -> str:
    return f" ({', '.join(honouring(name))})."


def _counters(value: object, _named: str) -> object:
    if isinstance(value, str):
        return tracers.parse_counters([value])
    return tracers.parse_counters(
        [str(part) for part in value] if isinstance(value, list | tuple) else []
    )


def _step_range(pattern: str) -> None:
    """Raises UsageError for what is no regular expression, and for one that a run would record and
    no reader of the run would use.
    """
    from profharness.rundir.foreign.patterns import why_not
    from profharness.trace.parts.step_ranges import compiled

    if pattern:
        compiled(pattern)
        if why := why_not(pattern):
            raise UsageError(
                f"--step-range: '{pattern}': {why}",
                r"write it without a repetition of repetitions, such as '[\w/]*step (\d+)'",
            )


def _capture(text: str) -> None:
    capture.period(text)


def _joined_by_blanks(words: Sequence[str]) -> str:
    return " ".join(words)


class RecordingOptions(WorkloadOptions, frozen=True, kw_only=True):
    """What layers record, and with which options of their tools."""

    capture: Annotated[
        str,
        Option(
            "all | 10:30 (steps) | after=30s,for=10s (commands: 20 steps after warm-up, "
            "or 10 s of device work)",
            LAYERS,
            common=True,
            check=_capture,
        ),
    ] = "default"
    step_range: Annotated[
        str,
        Option(
            r"Commands: ranges of the program (roctx, NVTX, record_function) whose whole name "
            r"matches are its steps: 'iteration (\d+)'.",
            LAYERS,
            metavar="REGEX",
            only=for_commands("leave it out: a scan's steps are its trials"),
            check=_step_range,
        ),
    ] = ""
    bare: Annotated[
        bool,
        Option(
            "Commands: also run once without layers, to measure their overhead.",
            LAYERS,
            common=True,
            only=for_commands("leave it out: a scan always has a bare pass"),
        ),
    ] = False
    passes: Annotated[
        int | None,
        Option("Commands: allow this many executions.", LAYERS, only=_AS_MANY_PASSES),
    ] = None
    yes: Annotated[
        bool,
        Option(
            "Commands: allow all executions that layers need. With --resume: also another's run.",
            LAYERS,
            common=True,
            only=_AS_MANY_PASSES,
        ),
    ] = False
    trace_ranks: Annotated[
        tuple[int, ...],
        Option(
            "Commands: put the layers around these ranks only, 0,3 or 0-3,8; the others run "
            "without.",
            LAYERS,
            metavar="RANKS",
            text=trace_ranks.FORM,
            only=for_commands("leave it out: a scan is one process"),
        ),
    ] = ()
    hook: Annotated[
        Literal["env", "exec"],
        Option(
            "env (PYTHONPATH) or exec (where PYTHONPATH cannot be trusted).",
            LAYERS,
            only=for_commands(),
        ),
    ] = "env"
    attachable: Annotated[
        bool,
        Option(
            "Commands: let `profharness attach` record the program later (ROCP_TOOL_ATTACH=1).",
            LAYERS,
            only=for_commands("leave it out: a scan is recorded by its layers from the start"),
        ),
    ] = False
    hip_trace: Annotated[bool, Option("HIP calls of the host", LAYERS, more_help=_by_layers)] = (
        False
    )
    hsa_trace: Annotated[
        bool, Option("HSA calls of the host, voluminous", LAYERS, more_help=_by_layers)
    ] = False
    kernel_trace: Annotated[
        bool, Option("Kernels, which are always recorded", LAYERS, more_help=_by_layers)
    ] = False
    memory_copy_trace: Annotated[
        bool, Option("Copies, which are always recorded", LAYERS, more_help=_by_layers)
    ] = False
    marker_trace: Annotated[bool, Option("roctx ranges", LAYERS, more_help=_by_layers)] = False
    rccl_trace: Annotated[bool, Option("RCCL calls", LAYERS, more_help=_by_layers)] = False
    memory_allocation_trace: Annotated[
        bool, Option("Allocations of device memory (ROCm 6.4)", LAYERS, more_help=_by_layers)
    ] = False
    scratch_memory_trace: Annotated[
        bool, Option("Scratch memory that kernels need", LAYERS, more_help=_by_layers)
    ] = False
    kfd_trace: Annotated[
        bool,
        Option(
            "Page migrations, mappings and queues of the kernel driver (ROCm 7.2.4, 7.13)",
            LAYERS,
            more_help=_by_layers,
        ),
    ] = False
    hip_graph_trace: Annotated[
        bool, Option("Launches of graphs (ROCm 7.2.4, 7.13)", LAYERS, more_help=_by_layers)
    ] = False
    sys_trace: Annotated[
        bool, Option("All interfaces, voluminous", LAYERS, more_help=_by_layers)
    ] = False
    stats: Annotated[
        bool, Option("The tool's own statistics files too", LAYERS, more_help=_by_layers)
    ] = False
    pmc: Annotated[
        tuple[str, ...],
        Option(
            'Hardware counters, "C1 C2" or C1,C2, or sets such as activity; in passes of their own',
            LAYERS,
            text=TextForm(_counters),
            gather=_joined_by_blanks,
            more_help=_by_layers,
        ),
    ] = ()
    kernel_include_regex: Annotated[
        str,
        Option(
            "Count, and trace threads of, only kernels whose name matches",
            LAYERS,
            more_help=_by_layers,
        ),
    ] = ""
    kernel_iteration_range: Annotated[
        str,
        Option(
            "Count, and trace threads of, only these launches of a kernel, for example [10-20]",
            LAYERS,
            more_help=_by_layers,
        ),
    ] = ""
    replay_mode: Annotated[
        str,
        Option(
            "application (default): an execution per group of counters; kernel: one execution that "
            "runs every kernel once per group, beta, after ROCm 10.0",
            LAYERS,
            choices=("application", "kernel"),
            more_help=_by_layers,
        ),
    ] = ""
    pc_sampling: Annotated[
        str,
        Option(
            "Sample program counters in a pass of its own: host_trap[:MICROSECONDS] (ROCm 6.4, "
            "MI200) or stochastic[:CYCLES] (ROCm 7.0, MI300)",
            LAYERS,
            metavar="METHOD[:INTERVAL]",
            examples=("host_trap", "stochastic"),
            more_help=_by_layers,
        ),
    ] = ""
    thread_trace: Annotated[
        bool,
        Option(
            "Every instruction of some waves, in a pass of its own (ROCm 7.0)",
            LAYERS,
            names=("--thread-trace", "--att"),
            more_help=_by_layers,
        ),
    ] = False
    rocprof_sys_mode: Annotated[
        str,
        Option(
            "sample (default), run or python",
            LAYERS,
            choices=("sample", "run", "python"),
            more_help=_by_layers,
        ),
    ] = ""
    roofline: Annotated[
        bool,
        Option("Also measure the device's ceilings, some minutes", LAYERS, more_help=_by_layers),
    ] = False
    one_execution: Annotated[
        bool,
        Option(
            "Count in one execution: each launch of a kernel carries a part of the counters",
            LAYERS,
            more_help=_by_layers,
        ),
    ] = False
    pmc_set: Annotated[
        str,
        Option(
            "Count one set of metrics of the tool in one execution",
            LAYERS,
            metavar="NAME",
            more_help=_by_layers,
        ),
    ] = ""
    rocprof_sys_output: Annotated[
        str,
        Option(
            "perfetto (default: it alone holds call stacks), rocpd (a database) or both",
            LAYERS,
            choices=("perfetto", "rocpd", "both"),
            more_help=_by_layers,
        ),
    ] = ""
    stacks: Annotated[
        bool,
        Option("Modules of the model and Python functions too", LAYERS, more_help=_by_layers),
    ] = False
    profile_memory: Annotated[
        bool, Option("What torch's allocator takes and frees", LAYERS, more_help=_by_layers)
    ] = False
    host_samples: Annotated[
        str,
        Option(
            "How often per second the lines of Python are looked at (50), or off",
            LAYERS,
            metavar="HZ|off",
            more_help=_by_layers,
        ),
    ] = ""
    tool_arg: Annotated[
        tuple[str, ...],
        Option("LAYER:ARG, passed to that layer's tool as it is. Repeatable.", LAYERS),
    ] = ()
    exit_limit: Annotated[
        float,
        Option(
            "Seconds that a profiler may go on after the workload's end while it writes nothing, "
            "and a command after SIGTERM (default 300).",
            LAYERS,
            limit=Limit(
                above=0,
                says="must be more than 0",
                hint="it is how long, in seconds, a profiler may go on after the workload's end",
            ),
        ),
    ] = 300.0

    @property
    def variables(self) -> dict[str, str]:
        """What is set for a command apart from what layers and hooks need."""
        return {"ROCP_TOOL_ATTACH": "1"} if self.attachable else {}

    @property
    def tracer(self) -> TracerOptions:
        """What recording tools are told. Raises UsageError for a --tool-arg of a wrong form."""
        plain = {
            field.name: getattr(self, field.name)
            for field in msgspec.structs.fields(TracerOptions)
            if field.name != "tool_args"
        }
        return TracerOptions(
            **plain,
            tool_args=tracers.parse_tool_args(self.tool_arg, self.profile, layers.descriptions),
        )
