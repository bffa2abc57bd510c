"""The `rocprofv3` layer: AMD's tracer since ROCm 6.2, around the workload's process.

It replaces itself by the workload, so that exit status and signals stay the workload's own. Kernels
and copies are always recorded: --hip-trace alone would give host calls only.
"""

from __future__ import annotations

from pathlib import Path

from profharness.launchers.command import Command
from profharness.layers import attaching, releases, rocm_versions, rocprofv3_line
from profharness.layers.around import execution
from profharness.layers.contract import (
    Attachment,
    Availability,
    Description,
    Extras,
    Layer,
    Program,
    Purpose,
    Sign,
    Where,
)
from profharness.layers.options import ALWAYS
from profharness.layers.rocm_versions import Installed
from profharness.layers.rocprofv3_line import (
    PC_SAMPLING,
    PERIOD,
    PMC,
    ROCPD,
    SWITCHES,
    THREAD_TRACE,
)
from profharness.node.probe import Environment
from profharness.rundir.capture import period
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles

PROGRAM = Program("rocprofv3", (6, 2), "sdk")
PREDECESSOR = "rocprof"
_ATTACH = (1, 1)  # rocprofiler-sdk's version with --pid
_WAITS_FOR_FILES = (1, 3, 5)  # attached, it ends when its files are written
_FAILS_WITH_TORCH = (1, 3, 5)  # the last that may fail in a process with a profiler of torch's
# <execution>_<pid>_<kind>.<ext>; the tool adds kind and extension. Of one process the first kind
# that is whole is read; statistics and lists of agents never speak for it.
_PID = r"_(\d+)_[a-z_]+\.(?:csv|json|db|pftrace)(?:\.gz)?$"
# the thread trace names its files by device and dispatch alone, so that each process has a folder
_FOLDER = r"_(\d+)$"
_SAMPLES = "rocprofv3-pc-sampling"
_THREADS = "rocprofv3-thread-trace"
_FILES = (
    LeftFile(r".*_\d+_pc_sampling_(host_trap|stochastic)\.csv(\.gz)?", _SAMPLES, aside=True),
    LeftFile(r"stats_.*\.csv(\.gz)?", _THREADS, aside=True),
    LeftFile(r".*\.(att|out)", "rocprofv3-att", aside=True),
    LeftFile(r".*\.db(\.gz)?", "rocpd", turn=0),
    LeftFile(r".*_\d+_results\.json(\.gz)?", "rocprofv3-json", turn=1, whole="closed"),
    LeftFile(r".*\.json(\.gz)?", "rocprofv3-json", aside=True, turn=1, whole="closed"),
    LeftFile(
        r".*_\d+_([a-z_]*_trace|[a-z_]*counter_collection)\.csv(\.gz)?", "rocprofv3-csv", turn=2
    ),
    LeftFile(r".*\.csv(\.gz)?", "rocprofv3-csv", aside=True, turn=2),
    LeftFile(r".*\.pftrace(\.gz)?", "pftrace", turn=3),
)
# records only between roctxProfilerResume and roctxProfilerPause; since ROCm 7.0
_REGIONS = "--selected-regions"
_PURPOSES = (
    Purpose(
        PC_SAMPLING,
        "pc_sampling",
        "samples program counters, a beta feature of the tool that may freeze a device",
        _SAMPLES,
        "took no sample of a program counter: the kernels were shorter than the interval, or the "
        "device or its firmware cannot",
    ),
    Purpose(
        THREAD_TRACE,
        "thread_trace",
        "records each instruction of the waves on one compute unit per shader engine",
        _THREADS,
        "decoded no thread trace: no kernel was chosen, or its decoder could not read the trace",
    ),
)
# sentences of the tool, of AMD's issue threads and lists of changes, each with its cause
_SIGNS = (
    Sign(
        r"rocprofiler_force_configure failed",
        "mixed-rocm",
        "torch's own profiler could not attach beside the tool, so it has no device records: "
        "profile with torch in a pass of its own",
    ),
    Sign(
        r"trace-decoder[^\n]*not found|INVALID_SHADER_DATA",
        "profiler-failed",
        "the thread trace needs librocprof-trace-decoder.so in ROCm's lib folder, or where "
        "ROCPROF_ATT_LIBRARY_PATH says",
    ),
    Sign(
        r"Data Lost",
        "events-dropped",
        "the device dropped a part of the thread trace: trace fewer launches "
        "(--kernel-include-regex, --kernel-iteration-range)",
    ),
    Sign(
        r"pc.sampling[^\n]*(?:unavailable|not available|not supported)",
        "profiler-failed",
        "this device or its driver cannot sample program counters so: `rocprofv3 -L` says what "
        "it can",
    ),
)


class Rocprofv3Layer(Layer):
    """Kernels, copies, host calls, markers; in passes of their own hardware counters."""

    about = Description(
        name="rocprofv3",
        gives=(
            "kernels, copies, HIP/HSA/RCCL calls, roctx ranges, allocations, graphs; "
            "`--pmc` counters, PC samples and thread traces in passes of their own"
        ),
        needs="ROCm 6.2 and newer",
        scope="prefix",
        claims=frozenset({"hsa-tool", "traced-process"}),
        programs=(PROGRAM,),
        honours=frozenset(
            {
                *ALWAYS,
                *(switch.option for switch in SWITCHES),
                *(purpose.option for purpose in _PURPOSES),
                "pmc",
                "replay_mode",
                "kernel_include_regex",
                "kernel_iteration_range",
            }
        ),
        purposes=_PURPOSES,
        steps_by_hooks=True,
        attaches="rocprofiler-sdk 1.1 (ROCm 7.1)",
        refusals=(
            r"^(?:rocprofv3|rocprofv3\.py): error: .*$",
            r"^Fatal error: (?!Command ).*$",  # of a command that ended badly it says so too
        ),
        signs=_SIGNS,
        caught=r"\brocprofv3 caught signal (\d+)",
        bytes_per_command=60_000_000,  # from public recordings
        facts=LayerFacts(
            LeftFiles("process", _FILES, pid=_PID, folder=_FOLDER, first=True),
            kernels=10,
        ),
    )

    def probe(self, environment: Environment) -> Availability:
        """Whether rocprofv3 is on the node, and if not, which of the other layers would do."""
        older = (
            "--profile rocprof (kernel statistics) or " if PREDECESSOR in environment.tools else ""
        )
        release = releases.parse(environment.rocm_version)
        get = (
            "install rocprofiler-sdk, or put ROCm's bin folder on the PATH; or "
            if release is not None and release >= PROGRAM.since
            else ""
        )
        way_out = (
            f"it came with ROCm 6.2; {rocm_versions.here(environment)}\n"
            f"{get}use {older}--profile torch; `profharness doctor --try` shows what works here"
        )
        return rocm_versions.availability(environment, way_out, PROGRAM)

    def prepare(self, command: Command, where: Where) -> Command:
        """The tool in front, with the switches that its version understands.

        Raises UsageError for what this version or device cannot record, and for arguments of the
        tool that take the run out of our hands.
        """
        tool = rocm_versions.installed(where.environment, PROGRAM)
        passed_on = where.options.args_for(self.name)
        rocprofv3_line.check_arguments(passed_on, counting=bool(where.counters))
        is_trace = not (where.counters or where.purpose)
        chosen = rocprofv3_line.switches(tool, where) if is_trace else []
        window = _window(tool, where.capture)
        # our hooks mark steps and points as roctx ranges, and tell the tool when to record
        marked = is_trace or where.purpose == PC_SAMPLING or _REGIONS in window
        if marked and "--marker-trace" not in chosen:
            chosen.append("--marker-trace")
        argv = (
            tool.call,
            "--kernel-trace",
            "--memory-copy-trace",
            *chosen,
            *rocprofv3_line.counted(where, str(_input_file(command, where)), tool),
            *rocprofv3_line.purposed(tool, where),
            *window,
            "--output-format",
            *rocprofv3_line.formats(tool, where),
            *_place(self.name, command, where),
            *passed_on,
            "--",
        )
        env = (
            {"PROFHARNESS_REGIONS": where.capture.removeprefix("steps=")}
            if _REGIONS in window
            else {}
        )
        return command.with_prefix(argv).with_env(
            {
                **env,
                **rocprofv3_line.environment(passed_on),
                **({"ROCPROF_TMPDIR": str(_spill(where))} if where.spill else {}),
            }
        )

    def attach(self, pid: int, for_ns: int, where: Where) -> Attachment:
        """The same switches and places, with the process in place of a command. Before 1.3.5 its
        files may be written behind its end; the variable asks it to wait for them.
        """
        tool = rocm_versions.installed(where.environment, PROGRAM)
        attaching.require(self.about, tool, _ATTACH)
        prepared = self.prepare(Command(("program",)), where)
        length = ("--attach-duration-msec", str(-(-for_ns // 1_000_000)))
        argv = (*attaching.words_of_tool(prepared), "--pid", str(pid), *length)
        return Attachment(
            Command(argv, {**prepared.env, "ROCPROF_ATTACH_OUTPUT_GENERATION_SYNC": "1"}),
            timed=True,
            attached=r"Attaching to PID \d+ .*success",
            library="librocprofiler-sdk-tool",
            late=tool.own < _WAITS_FOR_FILES,
            fails_with_torch=tool.own <= _FAILS_WITH_TORCH,
            memory=Path(f"/tmp/rocprofv3_attach_{pid}.pkl"),  # noqa: S108  the tool's own place
        )

    def extras(self, command: Command, where: Where) -> Extras:
        """Its folders, the counters for releases before 6.3, and a window to be cut on reading."""
        tool = rocm_versions.installed(where.environment, PROGRAM)
        cut = where.capture if _is_whole(tool, where.capture) else ""
        notes = tuple(
            note for note in (rocm_versions.planned_for(tool), _cut_note(tool, cut)) if note
        )
        files = (
            ((_input_file(command, where), f"pmc: {' '.join(where.counters)}\n"),)
            if where.counters and tool.own < PMC
            else ()
        )
        folders = (where.artifacts / self.name, *((_spill(where),) if where.spill else ()))
        return Extras(folders=folders, files=files, notes=notes, cut=cut)


def _place(layer: str, command: Command, where: Where) -> tuple[str, ...]:
    """Host, rank (or pid) and pid are the tool's to fill in: every process writes files of
    its own. What a thread trace leaves goes into the folder alone, whatever -o says.
    """
    owner = "%nid%" if where.rank is None else str(where.rank)
    name = f"{execution(command, where)}_%pid%"
    own, folder = f"%hostname%/{owner}", where.artifacts / layer
    if where.purpose == THREAD_TRACE:
        return ("-d", f"{folder}/{own}/{name}", "-o", name)
    return ("-d", str(folder), "-o", f"{own}/{name}")


def _input_file(command: Command, where: Where) -> Path:
    return (
        where.run_root / "control" / where.pass_name / f"{execution(command, where)}.counters.txt"
    )


def _window(tool: Installed, capture: str) -> tuple[str, ...]:
    """What bounds the recording: for steps our hooks tell the tool when to record, a time with its
    length it knows itself.
    """
    if capture in ("default", "all") or _is_whole(tool, capture):
        return ()
    asked = period(capture)
    return (
        (_REGIONS,)
        if asked is None
        else (
            "--collection-period",
            f"{asked.after_ns}:{asked.for_ns}:1",
            "--collection-period-unit",
            "nsec",
        )
    )


def _is_whole(tool: Installed, capture: str) -> bool:
    """Whether a window was asked for that this release cannot keep to, so that it records the whole
    execution.
    """
    if capture in ("default", "all"):
        return False
    asked = period(capture)
    return tool.own < ROCPD if asked is None else tool.own < PERIOD or asked.for_ns is None


def _cut_note(tool: Installed, cut: str) -> str:
    return (
        f"rocprofv3 of ROCm {tool.release} records the whole execution; "
        f"--capture {cut} is cut from it"
        if cut
        else ""
    )


def _spill(where: Where) -> Path:
    """Of each rank its own: names in there hold pids, and nodes may share them."""
    return (where.spill or where.run_root) / where.host / where.owner
