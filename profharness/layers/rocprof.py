"""The `rocprof` layer: AMD's first tracer (ROCm up to 7.2, deprecated since 6.4), a shell script
around the command.

Its command follows its options directly: it takes no `--`. Its exit status may be its
post-processing's, so that the workload's own is recorded inside.
"""

from __future__ import annotations

from pathlib import Path

from profharness.errors import UsageError
from profharness.launchers.command import Command
from profharness.layers import releases, rocm_versions
from profharness.layers.around import own_folder
from profharness.layers.contract import (
    Availability,
    Description,
    Extras,
    Layer,
    Program,
    Sign,
    Where,
)
from profharness.layers.options import ALWAYS
from profharness.node.probe import Environment
from profharness.rundir.capture import period
from profharness.rundir.layer_facts import LayerFacts, LeftFile, LeftFiles

PROGRAM = Program("rocprof", (5, 7))
_DEPRECATED = (6, 4)
_LEFT_OUT = (7, 9)  # the line of releases from then on has no rocprof; 7.0 to 7.2 have it
# of one execution the first of these that is whole is read: the database holds what the others are
# made from
_FILES = (
    LeftFile(r"results\.db", "rocprof-db", turn=0, whole="filled"),
    LeftFile(r"results\.json", "rocprof-json", turn=1, whole="closed"),
    LeftFile(r"results\.csv", "rocprof", turn=2, whole="filled"),
    LeftFile(r".*\.csv", "rocprof-csv", aside=True),
    LeftFile(r".*\.json", "rocprof-json", aside=True),
    LeftFile(r".*\.db", "rocprof-db", aside=True),
    LeftFile(r".*\.txt", "rocprof-txt", aside=True),
)


class RocprofLayer(Layer):
    """Kernels with their geometry, copies and host calls; in passes of their own hardware
    counters.
    """

    about = Description(
        name="rocprof",
        gives="kernel and API statistics and traces",
        needs="ROCm before 6.2, and as long as it is shipped",
        scope="prefix",
        claims=frozenset({"hsa-tool", "traced-process"}),
        programs=(PROGRAM,),
        honours=frozenset(
            {*ALWAYS, "hip_trace", "hsa_trace", "marker_trace", "sys_trace", "stats", "pmc"}
        ),
        refusals=(
            r"^Fatal error: (?:No application provided|[^\n]*tracing options?).*$",
            r"^Wrong option.*$",
        ),
        signs=(
            Sign(
                r"Profiling data corrupted",
                "profiler-failed",
                "rocprof could not process its own records (known above some ten million calls)",
            ),
        ),
        bytes_per_command=80_000_000,  # from public recordings
        facts=LayerFacts(LeftFiles("execution", _FILES), kernels=20),
    )

    def probe(self, environment: Environment) -> Availability:
        """Whether rocprof is on the node, and what takes its place where ROCm has left it out."""
        release = releases.parse(environment.rocm_version)
        gone = release is not None and release >= _LEFT_OUT
        newer = (
            "use --profile rocprofv3"
            if "rocprofv3" in environment.tools
            else "install rocprofiler-sdk, which brings rocprofv3, or use --profile torch"
        )
        way_out = (
            f"newer ROCm releases leave it out; {rocm_versions.here(environment)}\n{newer}"
            if gone
            else f"it comes with ROCm's rocprofiler package; {rocm_versions.here(environment)}\n"
            "put ROCm's bin folder on the PATH, or use --profile torch; "
            "`profharness doctor` shows what works here"
        )
        return rocm_versions.availability(environment, way_out, PROGRAM)

    def prepare(self, command: Command, where: Where) -> Command:
        """The tool in front: the traces asked for, or one group of counters.

        Raises UsageError for a capture window in time: it records the whole execution.
        """
        if period(where.capture) is not None:
            raise UsageError(
                f"--capture {where.capture}: rocprof records the whole execution",
                "leave --capture out, or use --profile torch",
            )
        output = ("-o", str(own_folder(self.name, command, where) / "results.csv"))
        chosen = (
            ("-i", str(_input_file(command, where)), "--timestamp", "on")
            if where.counters
            else _traces(where)
        )
        tool = rocm_versions.installed(where.environment, PROGRAM)
        return command.with_prefix(
            (tool.call, *chosen, *output, *where.options.args_for(self.name))
        )

    def extras(self, command: Command, where: Where) -> Extras:
        """The folder of this execution's files, and the list of counters that rocprof reads."""
        tool = rocm_versions.installed(where.environment, PROGRAM)
        notes = [
            rocm_versions.planned_for(tool)
            if tool.found
            else f"{PROGRAM.name} is not on this node: planned as in ROCm 5.7 to 7.2, which have it"
        ]
        if tool.found and tool.sure and tool.rocm >= _DEPRECATED:
            notes.append(
                "rocprof is deprecated since ROCm 6.4, and 7.2 is the last that has it: "
                "--profile rocprofv3 takes its place"
            )
        files = (
            ((_input_file(command, where), f"pmc: {' '.join(where.counters)}\n"),)
            if where.counters
            else ()
        )
        return Extras(
            folders=(own_folder(self.name, command, where),),
            files=files,
            hides_status=True,
            notes=tuple(note for note in notes if note),
        )


def _traces(where: Where) -> tuple[str, ...]:
    """Kernels come with --stats; without an API trace its results.json is broken, so HIP calls are
    always traced too.
    """
    options = where.options
    chosen = ["--stats", "--timestamp", "on"]
    if options.sys_trace:
        return (*chosen, "--sys-trace", "--roctx-trace")
    chosen.append("--hip-trace")
    chosen += ["--hsa-trace"] if options.hsa_trace else []
    return (*chosen, "--roctx-trace") if options.marker_trace or where.is_worker else tuple(chosen)


def _input_file(command: Command, where: Where) -> Path:
    return own_folder(PROGRAM.name, command, where) / "input.txt"
