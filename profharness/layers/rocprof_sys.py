"""The `rocprof-sys` layer: ROCm Systems Profiler (Omnitrace before ROCm 6.3), host call stacks and
device work in Perfetto.

Three of its programs can start a command: sample (call stacks, the default), run (no sampling) and
python (Python functions). Its device records stamp CLOCK_BOOTTIME and its host records
CLOCK_MONOTONIC, in one file.
"""

from __future__ import annotations

import re
from pathlib import Path

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import rocm_versions
from profharness.layers.around import own_folder
from profharness.layers.contract import Availability, Description, Extras, Layer, Program, Where
from profharness.layers.options import ALWAYS
from profharness.layers.rocm_versions import Installed
from profharness.node.probe import Environment
from profharness.rundir.capture import Period, period
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles

_PYTHON = re.compile(r"python[0-9.]*$")
# what rocprofiler-sdk records for it from ROCm 6.4 on, and what each of our options adds
_DOMAINS = ("hip_runtime_api", "marker_api", "kernel_dispatch", "memory_copy", "scratch_memory")
_MORE_DOMAINS = (
    ("hsa_trace", "hsa_api"),
    ("rccl_trace", "rccl_api"),
    ("hip_trace", "hip_compiler_api"),
)

# own versions of rocprof-sys, and what it takes from then on
_SDK_DOMAINS = (1, 0)  # a list of domains; switches of the older tracing library before

_MODES = ("sample", "run", "python")


def _programs(mode: str) -> tuple[Program, Program]:
    """The program's name since ROCm 6.3, and the one before."""
    return (Program(f"rocprof-sys-{mode}", (6, 3), "systems"), Program(f"omnitrace-{mode}", (5, 7)))


class RocprofSysLayer(Layer):
    """Host functions and samples, HIP calls, kernels, copies and the driver's counters on one
    timeline.
    """

    about = Description(
        name="rocprof-sys",
        gives="sampled call stacks and device activity (Omnitrace before ROCm 6.3)",
        needs="ROCm",
        scope="prefix",
        claims=frozenset({"hsa-tool", "cpu-sampler"}),
        programs=tuple(program for mode in _MODES for program in _programs(mode)),
        honours=frozenset(
            {
                *ALWAYS,
                "hip_trace",
                "hsa_trace",
                "marker_trace",
                "rccl_trace",
                "sys_trace",
                "rocprof_sys_mode",
            }
        ),
        refusals=(
            (
                r"^\[?(?:rocprof-sys|omnitrace)[^\n]*(?:unknown|unrecognized|invalid) "
                r"(?:argument|option).*$"
            ),
        ),
        bytes_per_command=100_000_000,  # from public recordings
        facts=LayerFacts(
            LeftFiles(
                "execution",
                (
                    LeftFile(r".*\.proto", "pftrace"),
                    LeftFile(r".*\.txt", "rocprof-sys-txt", aside=True),
                    LeftFile(r".*\.json", "rocprof-sys-json", aside=True),
                    LeftFile(r".*\.db", "rocprof-sys-db", aside=True),
                ),
                pid=r"-(\d+)\.(?:proto|txt|json|db)$",
                deep=True,
            ),
            kernels=30,
        ),
    )

    def probe(self, environment: Environment) -> Availability:
        """Whether rocprof-sys (or Omnitrace) is on the node, with the front end that samples."""
        way_out = (
            f"it comes with ROCm 6.3 (as Omnitrace before it); {rocm_versions.here(environment)}\n"
            f"install rocprofiler-systems, or use {rocm_versions.alternatives(environment)}"
        )
        state = rocm_versions.availability(environment, way_out, *_programs("sample"))
        return rocm_versions.with_counters(
            state, environment, "it records no hardware counters of the CPU (PAPI)"
        )

    def prepare(self, command: Command, where: Where) -> Command:
        """The front end of the mode asked for in front; what it records is set by variables.

        Raises UsageError where the python mode gets no Python script.
        """
        mode = where.options.rocprof_sys_mode or "sample"
        tool = _tool(where)
        arguments = where.options.args_for(self.name)
        # the python front end has switches of its own; everything else is set by variables
        switches = (
            ()
            if mode == "python"
            else ("--trace", "--host", "--device", *(("--profile",) if mode == "sample" else ()))
        )
        inner = _script(command) if mode == "python" else command
        return inner.with_prefix((tool.call, *switches, *arguments, "--")).with_env(
            _settings(tool, command, where)
        )

    def extras(self, command: Command, where: Where) -> Extras:
        """The folder of this execution's files, and the release assumed where none was found."""
        note = rocm_versions.planned_for(_tool(where))
        return Extras(
            folders=(own_folder(self.name, command, where),), notes=(note,) if note else ()
        )


def _tool(where: Where) -> Installed:
    return rocm_versions.installed(
        where.environment, *_programs(where.options.rocprof_sys_mode or "sample")
    )


def _settings(tool: Installed, command: Command, where: Where) -> dict[str, str | None]:
    """The tool's own variables: one file per process in a folder of this execution, without a time
    in its name.
    """
    prefix = "OMNITRACE_" if tool.program.startswith("omnitrace") else "ROCPROFSYS_"
    values = {
        "TRACE": "ON",
        "PROFILE": "ON",
        "USE_PID": "ON",
        "TIME_OUTPUT": "OFF",
        "OUTPUT_PATH": str(own_folder("rocprof-sys", command, where)),
        **_domains(tool, where),
        **_window(period(where.capture)),
    }
    return {f"{prefix}{name}": value for name, value in values.items()}


def _domains(tool: Installed, where: Where) -> dict[str, str]:
    """Which interfaces are recorded: a list since ROCm 6.4, switches of the older tracing library
    before.
    """
    options = where.options
    if tool.own >= _SDK_DOMAINS:
        more = [
            domain for name, domain in _MORE_DOMAINS if getattr(options, name) or options.sys_trace
        ]
        return {"ROCM_DOMAINS": ",".join((*_DOMAINS, *more))} if more else {}
    found = {"ROCTRACER_HSA_API": "ON"} if options.hsa_trace or options.sys_trace else {}
    found |= (
        {"USE_ROCTX": "ON"} if options.marker_trace or options.sys_trace or where.is_worker else {}
    )
    return found | ({"USE_RCCLP": "ON"} if options.rccl_trace or options.sys_trace else {})


def _window(asked: Period | None) -> dict[str, str]:
    if asked is None:
        return {}
    found = {"TRACE_DELAY": f"{asked.after_ns / 1e9:g}"}
    return found if asked.for_ns is None else {**found, "TRACE_DURATION": f"{asked.for_ns / 1e9:g}"}


def _script(command: Command) -> Command:
    """`python script.py args` without its interpreter, which the tool supplies."""
    if (
        len(command.argv) < 2
        or not _PYTHON.search(Path(command.argv[0]).name)
        or command.argv[1].startswith("-")
    ):
        raise UsageError(
            "--rocprof-sys-mode python needs a command of the form: python SCRIPT ...",
            "use --rocprof-sys-mode sample for modules, options of the interpreter, "
            "and other programs",
        )
    return Command(
        command.argv[1:], {**command.env, "PYTHON_EXECUTABLE": command.argv[0]}, command.cwd
    )
