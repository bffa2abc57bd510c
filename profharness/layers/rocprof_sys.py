"""The `rocprof-sys` layer: ROCm Systems Profiler (Omnitrace before ROCm 6.3), host call stacks and
device work in Perfetto.

Three of its programs can start a command: sample (call stacks, the default), run (no sampling) and
python (Python functions). Its device records stamp CLOCK_BOOTTIME and its host records
CLOCK_MONOTONIC, in one file.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Literal

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import COMMAND, Availability, Extras, Where, rocm_versions
from profharness.layers.around import own_folder, rank_of
from profharness.layers.rocm_versions import ROCM_6_4, Installed
from profharness.node.probe import Environment
from profharness.rundir.capture import Period, period
from profharness.rundir.manifest import Artifact

_PYTHON = re.compile(r"python[0-9.]*$")
_PID = re.compile(r"-(\d+)\.(?:proto|txt|json|db)$")
# what rocprofiler-sdk records for it from ROCm 6.4 on, and what each of our options adds
_DOMAINS = ("hip_runtime_api", "marker_api", "kernel_dispatch", "memory_copy", "scratch_memory")
_MORE_DOMAINS = (
    ("hsa_trace", "hsa_api"),
    ("rccl_trace", "rccl_api"),
    ("hip_trace", "hip_compiler_api"),
)


class RocprofSysLayer:
    """Host functions and samples, HIP calls, kernels, copies and the driver's counters on one
    timeline.
    """

    name = "rocprof-sys"
    claims = frozenset({"hsa-tool", "cpu-sampler"})
    scope: Literal["prefix"] = "prefix"
    perturbing = False
    attach_hint = "it goes around a process: profile a scan's backend or a command"

    def attaches(self, target: str) -> bool:
        return target in ("torch", "onnxruntime", "tensorflow", COMMAND)

    def probe(self, environment: Environment) -> Availability:
        way_out = (
            f"it comes with ROCm 6.3 (as Omnitrace before it); {rocm_versions.here(environment)}\n"
            f"install rocprofiler-systems, or use {rocm_versions.alternatives(environment)}"
        )
        state = rocm_versions.availability(environment, way_out, *_programs("sample"))
        return rocm_versions.with_counters(
            state, environment, "it records no hardware counters of the CPU (PAPI)"
        )

    def prepare(self, command: Command, where: Where) -> Command:
        mode = where.options.rocprof_sys_mode or "sample"
        tool = _tool(where)
        arguments = where.options.args_for(self.name)
        # the python front end has switches of its own; everything else is said by variables
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
        note = rocm_versions.planned_for(_tool(where))
        return Extras(
            folders=(own_folder(self.name, command, where),), notes=(note,) if note else ()
        )

    def follow_up(self, where: Where) -> tuple[Command, ...]:  # noqa: ARG002  nothing is left to do
        return ()

    def collect(self, where: Where, known: frozenset[str]) -> tuple[Artifact, ...]:
        """The Perfetto traces of this pass, and the tool's text and JSON tables beside them."""
        found: list[Artifact] = []
        for folder in sorted((where.artifacts / self.name).glob(f"*/*/{where.pass_name}*")):
            if folder.name.split(".")[0] == where.pass_name:
                found += [
                    _artifact(path, folder, where)
                    for path in sorted(folder.rglob("*"))
                    if path.is_file()
                    and path.suffix in (".proto", ".txt", ".json", ".db")
                    and str(path.relative_to(where.run_root)) not in known
                ]
        return tuple(found)


def _programs(mode: str) -> tuple[str, str]:
    """The program's name since ROCm 6.3, and the one before."""
    return (f"rocprof-sys-{mode}", f"omnitrace-{mode}")


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
    if tool.rocm >= ROCM_6_4:
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


def _artifact(path: Path, folder: Path, where: Where) -> Artifact:
    match = _PID.search(path.name)
    is_trace = path.suffix == ".proto"
    number = int(match.group(1)) if match else None
    return Artifact(
        path=str(path.relative_to(where.run_root)),
        layer="rocprof-sys",
        format="pftrace" if is_trace else f"rocprof-sys-{path.suffix[1:]}",
        pass_name=where.pass_name,
        host=folder.parent.parent.name,
        pid=number,
        rank=rank_of(folder.parent.name, where),
        size_bytes=path.stat().st_size,
        aside=not is_trace,
    )
