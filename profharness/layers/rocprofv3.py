"""The `rocprofv3` layer: AMD's tracer since ROCm 6.2, around the workload's process.

It replaces itself by the workload, so that exit status and signals stay the workload's own. Kernels
and copies are always recorded: --hip-trace alone would give host calls only.
"""

from __future__ import annotations

from pathlib import Path

from profharness.launchers.command import Command
from profharness.layers import attaching, releases, rocm_versions
from profharness.layers.around import execution
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
from profharness.layers.rocm_versions import Installed
from profharness.node.probe import Environment
from profharness.rundir.capture import period
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles

PROGRAM = Program("rocprofv3", (6, 2), "sdk")
PREDECESSOR = "rocprof"
# versions of rocprofiler-sdk, and what rocprofv3 takes from then on
_PMC = (0, 5)  # --pmc, and counters of a whole run
_PERIOD = (0, 6)  # --collection-period
_ROCPD = (1, 0)  # databases, and --selected-regions
_ATTACH = (1, 1)  # --pid
_WAITS_FOR_FILES = (1, 3, 5)  # attached, it ends when its files are written
# <execution>_<pid>_<kind>.<ext>; the tool adds kind and extension. Of one process the first kind
# that is whole is read; statistics and lists of agents never speak for it.
_PID = r"_(\d+)_[a-z_]+\.(?:csv|json|db|pftrace)(?:\.gz)?$"
_FILES = (
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
_SWITCHES = ("hip_trace", "hsa_trace", "marker_trace", "rccl_trace", "sys_trace", "stats")


class Rocprofv3Layer(Layer):
    """Kernels, copies, host calls, markers; in passes of their own hardware counters."""

    about = Description(
        name="rocprofv3",
        gives=(
            "kernels, copies, HIP/HSA/RCCL calls, roctx ranges; "
            "`--pmc` counters in passes of their own"
        ),
        needs="ROCm 6.2 and newer",
        scope="prefix",
        claims=frozenset({"hsa-tool"}),
        programs=(PROGRAM,),
        honours=frozenset(
            {
                *ALWAYS,
                *_SWITCHES,
                "pmc",
                "kernel_include_regex",
                "kernel_iteration_range",
            }
        ),
        steps_by_hooks=True,
        attaches="rocprofiler-sdk 1.1 (ROCm 7.1)",
        refusals=(r"^(?:rocprofv3|rocprofv3\.py): error: .*$",),
        caught=r"\brocprofv3 caught signal (\d+)",
        bytes_per_command=60_000_000,  # from public recordings
        facts=LayerFacts(
            LeftFiles("process", _FILES, pid=_PID, first=True),
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
        """The tool in front, with the switches that its release understands."""
        tool = rocm_versions.installed(where.environment, PROGRAM)
        options = where.options
        chosen = (
            []
            if where.counters
            else [f"--{name.replace('_', '-')}" for name in _SWITCHES if getattr(options, name)]
        )
        window = _window(tool, where.capture)
        if (not where.counters or _REGIONS in window) and "--marker-trace" not in chosen:
            chosen.append(
                "--marker-trace"
            )  # our hooks mark steps and points as roctx ranges, and tell the tool when to record
        argv = (
            tool.call,
            "--kernel-trace",
            "--memory-copy-trace",
            *chosen,
            *_counters(tool, where, command),
            *window,
            "--output-format",
            *_formats(tool, where),
            "-d",
            str(where.artifacts / self.name),
            "-o",
            _file_name(command, where),
            *options.args_for(self.name),
            "--",
        )
        env = (
            {"PROFHARNESS_REGIONS": where.capture.removeprefix("steps=")}
            if _REGIONS in window
            else {}
        )
        return command.with_prefix(argv).with_env(
            {**env, **({"ROCPROF_TMPDIR": str(_spill(where))} if where.spill else {})}
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
            if where.counters and tool.own < _PMC
            else ()
        )
        folders = (where.artifacts / self.name, *((_spill(where),) if where.spill else ()))
        return Extras(folders=folders, files=files, notes=notes, cut=cut)


def _file_name(command: Command, where: Where) -> str:
    """Host, rank (or pid) and pid are the tool's to fill in: every process writes files of
    its own.
    """
    owner = "%nid%" if where.rank is None else str(where.rank)
    return f"%hostname%/{owner}/{execution(command, where)}_%pid%"


def _formats(tool: Installed, where: Where) -> tuple[str, ...]:
    """A rocpd database where it exists; before it CSV, and JSON for the bytes of copies. The tool's
    own statistics are CSV.
    """
    if tool.own >= _ROCPD:
        return ("rocpd", "csv") if where.options.stats and not where.counters else ("rocpd",)
    return ("csv", "json")


def _counters(tool: Installed, where: Where, command: Command) -> tuple[str, ...]:
    """The counters of the pass; --pmc came with ROCm 6.3, an input file with one `pmc:` line does
    before.
    """
    if not where.counters:
        return ()
    options = where.options
    chosen = (
        ("--pmc", *where.counters) if tool.own >= _PMC else ("-i", str(_input_file(command, where)))
    )
    if options.kernel_include_regex:
        chosen += ("--kernel-include-regex", options.kernel_include_regex)
    if options.kernel_iteration_range:
        chosen += ("--kernel-iteration-range", options.kernel_iteration_range)
    return chosen


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
    return tool.own < _ROCPD if asked is None else tool.own < _PERIOD or asked.for_ns is None


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
