"""The `rocprof-sys` layer: ROCm Systems Profiler (Omnitrace before ROCm 6.3), host call stacks and
device work in Perfetto.

Three of its programs can start a command: sample (call stacks, the default), run (no sampling) and
python (Python functions). Its device records stamp CLOCK_BOOTTIME and its host records
CLOCK_MONOTONIC, in one file.

What it leaves by default changed with its versions (a database instead of Perfetto since 1.9, no
text tables, another ending), so that every file that is wanted is asked for by name.
"""

from __future__ import annotations

import re
from pathlib import Path

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import attaching, rocm_versions
from profharness.layers.around import own_folder
from profharness.layers.contract import (
    Attachment,
    Availability,
    Description,
    Extras,
    Layer,
    Program,
    Where,
)
from profharness.layers.options import ALWAYS
from profharness.layers.releases import BEFORE
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

# own versions of rocprof-sys, and what it takes or does from then on
_SDK_DOMAINS = (1, 0)  # a list of domains; switches of the older tracing library before
_ROCPD = (1, 2)  # a database beside Perfetto; by default since 1.9
_CACHED = (1, 4)  # records wait in a cache, and become files after the end of the program
_OUTPUT_FORMAT = (1, 7)  # --output-format, which excludes --trace and --profile
_NAMED_FILE = (1, 8)  # the Perfetto file has another ending by default

_ATTACH = (1, 5)  # a program of its own

LIBRARY = "librocprof-sys"  # what the tool brings into a process
ATTACHING = Program("rocprof-sys-attach", (7, 12), "systems")
_MODES = ("sample", "run", "python")
_SUFFIXES = "proto|pftrace|txt|json|db"
# of one process Perfetto speaks, since it alone holds the host's call stacks
_FILES = (
    LeftFile(r"merged\.(proto|pftrace)", "pftrace", aside=True),  # the others once more
    LeftFile(r".*\.(proto|pftrace)", "pftrace", turn=0),
    LeftFile(r".*rocpd[^/]*\.db", "rocpd", turn=1),
    LeftFile(r".*\.txt", "rocprof-sys-txt", aside=True),
    LeftFile(r".*\.json", "rocprof-sys-json", aside=True),
    LeftFile(r".*\.db", "rocprof-sys-db", aside=True),
)


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
        programs=(*(program for mode in _MODES for program in _programs(mode)), ATTACHING),
        attaches="rocprof-sys 1.5 (ROCm 7.12), as rocprof-sys-attach",
        honours=frozenset(
            {
                *ALWAYS,
                "hip_trace",
                "hsa_trace",
                "marker_trace",
                "rccl_trace",
                "sys_trace",
                "rocprof_sys_mode",
                "rocprof_sys_output",
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
                _FILES,
                pid=rf"-(\d+)\.(?:{_SUFFIXES})$",
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

        Raises UsageError where the python mode gets no Python script, and for an output that this
        version does not know.
        """
        mode = where.options.rocprof_sys_mode or "sample"
        tool = _tool(where)
        _check_output(tool, where)
        arguments = where.options.args_for(self.name)
        # the python front end has switches of its own; everything else is set by variables
        switches = () if mode == "python" else _switches(mode, where)
        inner = _script(command) if mode == "python" else command
        return inner.with_prefix((tool.call, *switches, *arguments, "--")).with_env(
            _settings(tool, own_folder(self.name, command, where), where)
        )

    def attach(self, pid: int, for_ns: int, where: Where) -> Attachment:  # noqa: ARG002  its line
        """The program that attaches; the line on its stdin ends it, so that it is not told the
        time. A folder with the time in its name for each call: the tool keeps the settings of its
        first attachment to a process, and would write over the files of that one.
        """
        tool = rocm_versions.installed(where.environment, ATTACHING)
        older = rocm_versions.installed(where.environment, *_programs("sample"))
        attaching.require(self.about, tool if tool.found else older, _ATTACH)
        folder = own_folder(self.name, Command(("program",)), where)
        perfetto, rocpd = _wanted(where)
        formats = ",".join((*(("perfetto",) * perfetto), *(("rocpd",) * rocpd)))
        settings = _settings(tool, folder, where) | {"ROCPROFSYS_TIME_OUTPUT": "ON"}
        words = ("-p", str(pid), "-o", str(folder), "-F", formats)
        return Attachment(
            Command((tool.call, *words, *where.options.args_for(self.name)), settings),
            timed=False,
            attached=r"Attached to process|Press ENTER to detach",
            library=LIBRARY,
            late=True,
            fails_with_torch=True,
        )

    def extras(self, command: Command, where: Where) -> Extras:
        """The folder of this execution's files, and the release assumed where none was found."""
        tool = _tool(where)
        note = rocm_versions.planned_for(tool)
        cached = tool.own >= _CACHED and not _is_direct(where)
        return Extras(
            folders=(own_folder(self.name, command, where),),
            notes=(note,) if note else (),
            if_killed=_ONLY_CACHE if cached else "",
        )


_ONLY_CACHE = (
    "rocprof-sys 1.4 and newer make their files after the program's end, so that a killed program "
    "leaves at most a cache that nothing reads (/tmp/buffered_storage_*.bin); "
    "--tool-arg rocprof-sys:--trace-legacy writes the trace while the program runs"
)


def _tool(where: Where) -> Installed:
    return rocm_versions.installed(
        where.environment, *_programs(where.options.rocprof_sys_mode or "sample")
    )


def _asks_format(where: Where) -> bool:
    """Whether the user names the files by the tool's own --output-format, beside which the tool
    takes no switch and obeys no variable for them.
    """
    return any(
        word.split("=")[0] == "--output-format" for word in where.options.args_for("rocprof-sys")
    )


def _is_direct(where: Where) -> bool:
    """Whether the user asked for traces that are written at once instead of cached."""
    return bool({"-L", "--trace-legacy"} & set(where.options.args_for("rocprof-sys")))


def _wanted(where: Where) -> tuple[bool, bool]:
    """Whether Perfetto and whether a rocpd database is to be left."""
    asked = where.options.rocprof_sys_output or "perfetto"
    return asked in ("perfetto", "both"), asked in ("rocpd", "both")


def _check_output(tool: Installed, where: Where) -> None:
    """Raises UsageError for files that this version cannot leave."""
    asked = where.options.rocprof_sys_output
    own = ".".join(map(str, tool.own[:2])) if tool.own > BEFORE else "before ROCm 6.3"
    if asked in ("rocpd", "both") and tool.own < _ROCPD:
        raise UsageError(
            f"--rocprof-sys-output {asked}: the version here ({own}) writes no rocpd database",
            "it came with rocprof-sys 1.2 (ROCm 7.1); leave the option out for Perfetto",
        )
    if not _asks_format(where):
        return
    if asked:
        raise UsageError(
            "--rocprof-sys-output and the tool's own --output-format both say which files to leave",
            "use --rocprof-sys-output alone",
        )
    if tool.own < _OUTPUT_FORMAT:
        raise UsageError(
            f"--tool-arg rocprof-sys:--output-format: the version here ({own}) does not take it",
            "it came with rocprof-sys 1.7 (ROCm 7.14); use --rocprof-sys-output",
        )


def _switches(mode: str, where: Where) -> tuple[str, ...]:
    """What the front ends sample and run are told beside the variables."""
    named = _asks_format(where)
    trace = ("--trace",) if _wanted(where)[0] and not named else ()
    profile = ("--profile",) if mode == "sample" and not named else ()
    return (*trace, "--host", "--device", *profile)


def _settings(tool: Installed, folder: Path, where: Where) -> dict[str, str | None]:
    """The tool's own variables: one file per process in a folder of this execution, without a time
    in its name.
    """
    prefix = "OMNITRACE_" if tool.program.startswith("omnitrace") else "ROCPROFSYS_"
    values = {
        **({} if _asks_format(where) else _formats(tool, where)),
        "USE_PID": "ON",
        "TIME_OUTPUT": "OFF",
        "OUTPUT_PATH": str(folder),
        **_domains(tool, where),
        **_window(period(where.capture)),
    }
    return {f"{prefix}{name}": value for name, value in values.items()}


def _formats(tool: Installed, where: Where) -> dict[str, str]:
    """Which files are left: the same ones, whatever the version's defaults are."""
    perfetto, rocpd = ("ON" if wanted else "OFF" for wanted in _wanted(where))
    return {
        "TRACE": perfetto,
        "PROFILE": "ON",
        **({"USE_ROCPD": rocpd} if tool.own >= _ROCPD else {}),
        **({"PERFETTO_FILE": "perfetto-trace.proto"} if tool.own >= _NAMED_FILE else {}),
    }


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
